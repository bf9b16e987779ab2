"""The published numbers, read off the paper again by eye."""

import math

import pytest

from dualt.reproduce.results import published_values

VALUES = published_values()
CELL = ["dataset", "noise", "estimator", "method"]


def test_shape():
    real = VALUES[VALUES.dataset != "clothing1m"]
    assert len(real) == 13 * 12
    assert len(VALUES) - len(real) == 13
    assert len(real[CELL[:2]].drop_duplicates()) == 12
    assert len(real[CELL[2:]].drop_duplicates()) == 13


@pytest.mark.parametrize(
    ("cell", "mean", "sd"),
    [
        (("mnist", "sym-20", None, "ce"), 95.77, 0.11),
        (("mnist", "pair-45", "dual-t", "forward"), 97.24, 0.10),
        (("fashion-mnist", "pair-45", "t", "co-teaching"), 58.18, 7.00),
        (("fashion-mnist", "sym-50", "dual-t", "mentornet"), 75.67, 0.31),
        (("cifar10", "sym-20", None, "decoupling"), 81.63, 0.34),
        (("cifar10", "pair-45", "dual-t", "revision"), 77.72, 1.80),
        (("cifar100", "sym-50", "t", "mentornet"), 36.66, 9.13),
        (("cifar100", "pair-45", "dual-t", "revision"), 26.10, 0.43),
        (("clothing1m", "given", None, "mixup"), 71.29, None),
        (("clothing1m", "given", "dual-t", "co-teaching"), 64.54, None),
    ],
)
def test_cells(cell, mean, sd):
    (value,) = VALUES[(VALUES[CELL] == [name or "" for name in cell]).all(axis=1)].itertuples()
    assert value.paper_mean == mean
    assert value.paper_sd == sd or (sd is None and math.isnan(value.paper_sd))


def test_each_column_has_one_star_and_each_pair_one_bold_value():
    for _, own in VALUES.groupby(CELL[:2]):
        assert own.paper_star.sum() == 1
        for method in ("mentornet", "co-teaching", "forward", "reweighting", "revision"):
            pair = own[own.method == method]
            assert pair.paper_bold.loc[pair.paper_mean.idxmax()]
            assert pair.paper_bold.sum() == 1

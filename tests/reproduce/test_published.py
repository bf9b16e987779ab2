"""The published numbers, read off the paper again by eye."""

import pytest

from dualt.reproduce.results import published_values


def test_shape():
    cells = list(published_values())
    real = [cell for cell in cells if cell[0] != "clothing1m"]
    assert len(real) == 13 * 12
    assert len(cells) - len(real) == 13
    assert len({cell[:2] for cell in real}) == 12
    assert len({cell[2:] for cell in real}) == 13


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
    value = published_values()[cell]
    assert (value.mean, value.sd) == (mean, sd)


def test_each_column_has_one_star_and_each_pair_one_bold_value():
    values = published_values()
    for column in {cell[:2] for cell in values}:
        own = {cell: value for cell, value in values.items() if cell[:2] == column}
        assert sum(value.star for value in own.values()) == 1
        for method in ("mentornet", "co-teaching", "forward", "reweighting", "revision"):
            pair = {cell[2]: value for cell, value in own.items() if cell[3] == method}
            assert max(pair.values(), key=lambda value: value.mean).bold
            assert sum(value.bold for value in pair.values()) == 1

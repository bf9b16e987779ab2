"""What bench/real.py computes from records and problems, by hand; and that data which are not here are left out."""

import argparse
import importlib
import sys

import numpy as np
import pytest
from docs_pages import ROOT
from rich.console import Console


@pytest.fixture
def bench(monkeypatch, tmp_path):
    """Return the modules `real` and `worlds`, as if no real labels were on this machine."""
    monkeypatch.syspath_prepend(ROOT / "bench")
    monkeypatch.setenv("DUALT_REAL_NOISE", str(tmp_path / "none"))
    names = ("worlds", "real")
    for name in names:
        sys.modules.pop(name, None)
    yield argparse.Namespace(**{name: importlib.import_module(name) for name in names})
    for name in names:
        del sys.modules[name]


def record(**values):
    return {"group": "parts", "problem": "digits parts-0.2", "seed": 0, "estimator": "clean-count", **values}


def test_the_matrix_that_happened_is_counted(bench):
    clean, given = np.array([0, 0, 0, 0, 1]), np.array([0, 0, 0, 1, 1])
    assert bench.worlds.drawn_matrix(clean, given, 3).tolist() == [[0.75, 0.25, 0], [0, 1, 0], [0, 0, 1]]


def test_the_calibration_error_of_constant_and_of_true_probabilities(bench):
    right = np.arange(15_000) % 4 > 0
    assert bench.real.calibration_error(np.full(15_000, 0.5), right) == pytest.approx(0.25, abs=0.01)
    assert bench.real.calibration_error(np.full(15_000, 0.75), right) == pytest.approx(0, abs=0.01)
    assert bench.real.calibration_error(right.astype(float), right) == 0


def test_precision_is_of_the_ranking(bench):
    wrong = np.array([False, True, False, True])
    assert bench.real.precision_of(np.array([1, 3, 0, 2]), wrong) == 1
    assert bench.real.precision_of(np.array([0, 1, 2, 3]), wrong) == pytest.approx((1 / 2 + 2 / 4) / 2)
    assert bench.real.precision_of(np.arange(4), np.zeros(4, bool)) is None


def test_ranges_are_counted_and_losses_named(bench):
    runs = [record(range=[0.1, 0.3], **{"true rate": rate}) for rate in (0.2, 0.25, 0.4)]
    assert bench.real.held(runs) == "2 of 3 (0.20)"
    assert bench.real.held([record(**{"true rate": 0.1})]) == "–"
    assert list(bench.real.lost(runs, 0.12, 0.1, 0.88, 0.9)) == ["error", "AP", "range"]
    assert list(bench.real.lost(runs[:2], 0.11, 0.1, 0.895, 0.9)) == []


def test_a_mean_over_groups_weighs_them_the_same_and_wants_all(bench):
    own = {"annotators": [record(error=0.1), record(error=0.3)], "parts": [record(error=0.4)]}
    assert bench.real.over(own, ("annotators", "parts")) == "0.300"
    assert bench.real.over(own, ("annotators", "CIFAR-10N")) == "–"


def test_real_labels_that_are_not_here_are_left_out_and_said(bench, capsys):
    options = argparse.Namespace(seeds=[], draws=[0], quick=True, only="labelme", cache=None, out=None)
    assert bench.real.run(options, Console()) == []
    assert "labelme-vote is left out: there is no labelme.npz" in " ".join(capsys.readouterr().out.split())


def test_a_made_problem_is_measured_whole_and_kept(bench, tmp_path):
    options = argparse.Namespace(
        seeds=[0],
        draws=[],
        quick=True,
        only="digits annotators-0.2",
        cache=tmp_path / "kept",
        out=tmp_path / "out.json",
    )
    records = bench.real.run(options, Console())
    assert [path.name for path in (tmp_path / "kept").iterdir()] == ["quick-digits-annotators-0.2-0.npz"]
    again = bench.real.run(argparse.Namespace(**{**vars(options), "out": None}), Console())
    assert [{**r, "seconds": 0} for r in again] == [{**r, "seconds": 0} for r in records]
    assert bench.real.run(options, Console()) == records  # of the file
    text = "\n".join(bench.real.page(records))
    assert "| clean-count (default) |" in text
    assert "| self-confidence |" in text
    assert "| digits annotators-0.2 | 1 |" in text
    true_rate = records[0]["true rate"]
    assert 0.15 < true_rate < 0.25
    oracle = next(r for r in records if r["estimator"] == "oracle")
    assert oracle["rate"] == pytest.approx(true_rate)
    assert 0 < oracle["error"] < 0.2  # the draw scatters around the expected matrix

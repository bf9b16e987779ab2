"""What bench/families.py computes from records, by hand, and one small problem from its file to its figures."""

import importlib
import sys

import numpy as np
import pytest
from docs_pages import ROOT

from dualt import noise


@pytest.fixture
def families(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(ROOT / "bench")
    monkeypatch.setenv("DUALT_REAL_NOISE", str(tmp_path / "none"))
    for name in ("worlds", "families"):
        sys.modules.pop(name, None)
    yield importlib.import_module("families")
    for name in ("worlds", "families"):
        sys.modules.pop(name, None)


def test_a_family_counts_as_one_and_rules_are_left_out_of_the_mean(families):
    records = [
        {"family": "ccn", "error": 0.1},
        {"family": "ccn", "error": 0.3},
        {"family": "idn", "error": 0.4},
        {"family": "idn", "error": None},
        {"family": "rule", "error": 0.9},
    ]
    assert families.by_family(records, "error") == pytest.approx({"ccn": 0.2, "idn": 0.4, "rule": 0.9, "mean": 0.3})


def test_constants_are_chosen_by_the_other_families(families):
    steady = dict.fromkeys(families.FAMILIES, 0.2)
    lucky = dict.fromkeys(families.FAMILIES, 0.21) | {"weak": 0.0}
    chosen = families.chosen_by_others({"steady": steady, "lucky": lucky})
    assert chosen["weak"] == ("steady", 0.2)  # what is good for this family alone does not count
    assert chosen["ccn"] == ("lucky", 0.21)


def test_a_problem_is_read_and_measured(families, tmp_path):
    rng = np.random.default_rng(0)
    clean = np.repeat([0, 1], 300)
    transition = noise.symmetric(2, 0.2)
    given = noise.corrupt(clean, transition, random_state=rng)
    probs = np.where(clean[:, None] == [0, 1], 0.8, 0.2).astype(np.float16)
    np.savez(tmp_path / "ccn__two.npz", pred_probs=probs, given=given, clean=clean, transition=transition)
    (problem,) = families.problems(tmp_path)
    assert (problem.family, problem.name) == ("ccn", "two")
    assert list(families.problems(tmp_path, "idn")) == []
    found = families.measure(problem, "spade")
    counted = np.array([np.bincount(given[clean == k], minlength=2) / 300 for k in (0, 1)])
    assert found["error"] == pytest.approx(np.abs(counted - transition).sum() / 2)
    assert found["AP"] == pytest.approx(1)
    assert list(families.real_labels(tmp_path / "none")) == []


def test_every_constant_that_is_moved_is_one_of_the_default(families):
    for module, name in families.CONSTANTS:
        assert isinstance(getattr(importlib.import_module(module), name), (int, float))

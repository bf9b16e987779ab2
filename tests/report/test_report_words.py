from io import StringIO

import numpy as np
import pytest
from report_samples import SampleEstimate
from rich.console import Console

from dualt.cli.terminal import show_estimate
from dualt.estimators import estimate_transition
from dualt.report.payload import confusions, without_diagonal
from dualt.report.words import facts, hardest_hit, verdict


@pytest.mark.parametrize(
    ("rate", "words"),
    [
        (0.0, "The labels look clean: fewer than 1 in 10,000."),
        (0.02, "A few labels look wrong: about 1 in 50."),
        (0.05, "Some labels look wrong: about 1 in 20."),
        (0.20, "Many labels look wrong: about 20 in 100."),
        (0.45, "A large part of the labels looks wrong: about 45 in 100."),
        (0.80, "Most labels look wrong: about 80 in 100."),
    ],
)
def test_the_verdict_grows_with_the_rate(rate, words):
    assert verdict(SampleEstimate(("a", "b"), rate)) == words


def test_the_worst_class_is_named_with_its_usual_label():
    transition = np.array([[0.9, 0.1, 0.0], [0.1, 0.5, 0.4], [0.0, 0.0, 1.0]])
    assert hardest_hit(SampleEstimate(("a", "b<", "c"), transition=transition)) == (
        "Class <bdi>b&lt;</bdi> is hit hardest: 50.0% of its examples carry another label, most often <bdi>c</bdi>."
    )


def test_no_class_is_named_whose_interval_meets_another():
    transition = np.array([[0.69, 0.31, 0.0], [0.15, 0.7, 0.15], [0.0, 0.0, 1.0]])
    assert hardest_hit(SampleEstimate(("a", "b", "c"), transition=transition)) == ""
    transition[0] = [0.67, 0.33, 0.0]
    assert hardest_hit(SampleEstimate(("a", "b", "c"), transition=transition)).startswith("Class <bdi>a</bdi>")


def test_confusions_are_given_then_true_largest_first():
    counts = np.array([[90.0, 3.0, 0.2], [7.0, 80.0, 0.0], [0.0, 5.0, 70.0]])
    assert confusions(without_diagonal(counts)) == [(1, 0, 7.0), (2, 1, 5.0), (0, 1, 3.0)]


@pytest.mark.parametrize(
    ("number", "words"),
    [(1.5, "well conditioned"), (50.0, "magnify errors somewhat"), (1e4, "badly"), (np.inf, "cannot be inverted")],
)
def test_conditioning_is_said_in_words(number, words):
    assert any(words in fact for fact in facts(SampleEstimate(("a", "b"), condition_number=number)))


def test_page_and_terminal_say_the_same_of_the_ranges():
    clean = np.arange(300) % 3
    given = np.where(np.arange(300) % 5 == 0, (clean + 1) % 3, clean)
    probs = np.eye(3)[clean] * 0.94 + 0.02
    for options in ({}, {"estimator": "spade"}, {"verified": (np.arange(0, 300, 4), clean[::4])}):
        estimate = estimate_transition(probs, given, **options)
        out = Console(file=StringIO(), width=1_000, highlight=False)
        show_estimate(out, estimate, 0.95)
        assert facts(estimate)[0] in out.file.getvalue()

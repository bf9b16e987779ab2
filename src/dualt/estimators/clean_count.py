"""Count the given labels among the examples whose *true* class is clear."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualt.estimators._counts import count_fit, match_rows
from dualt.estimators.confident_joint import confident_joint
from dualt.labels import Codes
from dualt.results.fit import Fit, Matrix
from dualt.rows.counts import count_pairs, normalize_counts
from dualt.rows.floats import surest
from dualt.rows.posterior import NoisyPosterior
from dualt.rows.summary import PosteriorSummary
from dualt.transition import early_posterior
from dualt.validation import check_fraction

# A class that is seldom clear still counts its clearest members: this share, and this many, of them.
_LEAST_SHARE, _LEAST_MEMBERS = 0.1, 100
# The sample stands for the data in all rounds but the last if it has this many rows for each class.
_ENOUGH_PER_CLASS = 100
_BALANCED_ROUNDS, _FREE_ROUNDS, _BALANCE_STEPS = 3, 2, 5
# Of a class that nothing resembles no weight may overflow.
_LEAST_MEAN = 1e-6
_ROUNDING = 1e-5


def clean_count(posterior: NoisyPosterior, *, confidence: float = 0.9, shrink: bool = True) -> Fit:
    """T̂[i, j] = share of given label j among the examples whose clean class is i with `confidence`.

    dual-T with a better intermediate class: not the prediction, which follows the noise, but the most
    probable *clean* class under a first estimate (the confident joint), among examples that are sure of
    it. T♣ is then the identity, and the counted T♠ is the whole transition. Six rounds, each of which reads
    the clean class with the matrix of the one before, all but the last on a sample of the data. Where there
    are too many classes for a sample, two rounds on all of it.

    Of few examples and much noise, a class whose first row is poor may lose its examples to another. So in the
    first three rounds each class gets as large a share as its label has (later ones are free to leave it), and
    rows that have changed places are put back: see `match_rows`.

    Needs out-of-fold probabilities: counting is honest only if the choice has not seen the labels.

    Parameters
    ----------
    posterior
    confidence
        Clean posterior that makes a class clear. In a class where few examples reach it, the clearest tenth,
        and at least a hundred, count.
    shrink
        Draw off-diagonals towards uniform by as much as chance explains; see `shrink_off_diagonals`.
    """
    check_fraction(confidence, "confidence")
    summary = posterior.summary
    n_sampled = len(summary.sample_rows)
    rough = confident_joint(posterior).transition
    if n_sampled == summary.n_samples or n_sampled >= _ENOUGH_PER_CLASS * summary.n_classes:
        for number in range(_BALANCED_ROUNDS + _FREE_ROUNDS):
            rough = _round_on_sample(summary, rough, confidence, balanced=number < _BALANCED_ROUNDS)
    else:
        rough = normalize_counts(_count_clear(posterior, rough, confidence))
    return count_fit(_count_clear(posterior, rough, confidence), shrink=shrink)


def _round_on_sample(summary: PosteriorSummary, transition: Matrix, confidence: float, *, balanced: bool) -> Matrix:
    """Return the rows counted over those of the sample that are sure of their clean class."""
    posterior = early_posterior(summary.sample_rows, transition.astype(summary.sample_rows.dtype))
    if balanced:
        posterior = _balance(posterior, summary.label_counts)
    clean, sureness = surest(posterior)
    clear = sureness >= _thresholds(clean, sureness, summary, confidence)[clean]
    keys = clean[clear] * summary.n_classes + summary.sample_labels[clear]
    return match_rows(normalize_counts(count_pairs([keys], summary.n_classes)))[0]


def _balance(posterior: NDArray[Any], label_counts: NDArray[np.int64]) -> NDArray[Any]:
    """Weigh the classes until the mean of each is the share of its label, and normalise the rows again."""
    shares = (label_counts + 1) / (label_counts.sum() + len(label_counts))
    weights = np.ones(len(shares), posterior.dtype)
    tiny = np.finfo(posterior.dtype).tiny
    for _ in range(_BALANCE_STEPS):
        means = weights * ((1 / np.maximum(posterior @ weights, tiny)) @ posterior) / len(posterior)
        weights *= (shares / np.maximum(means, _LEAST_MEAN)).astype(posterior.dtype)
    weighted = posterior * weights
    return np.asarray(weighted / np.maximum(weighted.sum(axis=1, keepdims=True), tiny))


def _count_clear(posterior: NoisyPosterior, transition: Matrix, confidence: float) -> NDArray[np.int64]:
    """Count (clean class, given label) over the examples that are sure of their clean class."""
    summary = posterior.summary
    n_classes = summary.n_classes
    matrix = transition.astype(summary.sample_rows.dtype)
    thresholds = _thresholds(*surest(early_posterior(summary.sample_rows, matrix)), summary, confidence)

    def clear_pairs(probs: NDArray[Any], labels: Codes) -> NDArray[np.intp]:
        clean, sureness = surest(early_posterior(probs, matrix))
        clear = np.flatnonzero(sureness >= thresholds[clean])
        return np.asarray(clean[clear] * n_classes + labels[clear])

    return posterior.count(clear_pairs)


def _thresholds(
    clean: NDArray[np.intp], sureness: NDArray[Any], summary: PosteriorSummary, confidence: float
) -> NDArray[np.float64]:
    """Return the sureness that counts in each class: `confidence`, or less where too few of the sample reach it."""
    least = _LEAST_MEMBERS * len(clean) / summary.n_samples
    thresholds = np.full(summary.n_classes, confidence)
    for label in np.unique(clean):
        members = np.sort(sureness[clean == label])[::-1]
        needed = int(np.ceil(max(least, _LEAST_SHARE * len(members))))
        thresholds[label] = min(confidence, members[min(needed, len(members)) - 1])
    # The member that sets a threshold must reach it although its sureness is rounded anew in each pass.
    return thresholds - _ROUNDING

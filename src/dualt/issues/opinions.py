"""Two opinions on a label, Bayes' rule through T and the probabilities alone, pooled as far as T is to be trusted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualt.audit import Calibration, calibrated_posterior
from dualt.labels import Codes
from dualt.rows.confidence import raised
from dualt.rows.floats import entries_at, surest
from dualt.rows.summary import PosteriorSummary
from dualt.transition import EarlyPosterior

# A probability far below this share of a class's chance is an estimate's tail, and how far says nothing.
_TAIL = 0.3
# How much the strongest rival of a label counts beside the label's own probability.
_RIVAL = 0.25
_SATURATED = 1e-6
# The sample's quantiles are taken from so many rows, and read off a table of so many steps.
_ROWS, _QUANTILES, _STEPS = 4_096, np.linspace(0, 1, 2_001), 4_096


@dataclass(frozen=True)
class BayesScorer:
    """From (probabilities, label codes) of a chunk to (given, P(right), suggested, its probability).

    P(Y=i | x, y) = q_i · T_iy / Σ_k q_k · T_ky, where q is the clean posterior, of probabilities read at `power`.
    """

    clean_posterior: EarlyPosterior
    power: float = 1.0

    def __call__(self, probs: NDArray[Any], labels: Codes) -> tuple[NDArray[Any], ...]:
        """Return the columns of `Scores` of a chunk."""
        return self.of_read(raised(probs, self.power), labels)

    def of_read(self, probs: NDArray[Any], labels: Codes) -> tuple[NDArray[Any], ...]:
        """Return the same of probabilities at that power."""
        right, suggested, probability = self.clean_posterior.scores(probs, labels)
        # Where the matrix rules out all that the classifier expects, one class is as good as another.
        return labels, right, suggested, np.where(probability > 0, probability, 1 / probs.shape[1])


@dataclass(frozen=True)
class CalibratedScorer:
    """The same by the posterior that verified labels have calibrated."""

    calibration: Calibration

    def __call__(self, probs: NDArray[Any], labels: Codes) -> tuple[NDArray[Any], ...]:
        """Return the columns of `Scores` of a chunk."""
        weights = calibrated_posterior(self.calibration, probs, labels)
        return labels, entries_at(weights, labels), *surest(weights)


@dataclass(frozen=True)
class PooledScorer:
    """The same, ranked by two opinions, so that a matrix whose structure the data do not carry cannot spoil it.

    The log odds of Bayes' rule count `trust`; the rest is an opinion that needs no T, log(p_y^1.25 / p_r^0.25), where
    r is the strongest other class. That gives an order. The probabilities are those of Bayes' rule, dealt out in this
    order: a row whose pooled log odds are at a quantile of the sample's gets Bayes' at the same quantile.
    """

    bayes: BayesScorer
    trust: float
    lowest: float
    step: float
    log_odds: NDArray[np.float32]

    @classmethod
    def of(cls, bayes: BayesScorer, trust: float, summary: PosteriorSummary) -> PooledScorer:
        """Take the quantiles of both from the sample of a summary."""
        trust = float(trust)  # of NumPy's type it would make all that follows float64
        n_rows = len(summary.sample_rows)
        few = summary.thinned(n_rows // max(1, n_rows // _ROWS))
        probs, labels = raised(few.sample_rows, bayes.power).copy(), few.sample_labels
        _, right, *_ = bayes.of_read(probs, labels)
        pooled = _quantiles(_pool(trust, probs.shape[1], right, *_strongest_other(probs, labels)[1:]))
        log_odds = _quantiles(_log_odds(right, _SATURATED))
        table = np.interp(np.linspace(pooled[0], pooled[-1], _STEPS), pooled, log_odds)
        step = max(float(pooled[-1] - pooled[0]) / (_STEPS - 1), _SATURATED)
        return cls(bayes, trust, float(pooled[0]), step, table.astype(np.float32))

    def __call__(self, probs: NDArray[Any], labels: Codes) -> tuple[NDArray[Any], ...]:
        """Return the columns of `Scores` of a chunk."""
        probs = raised(probs, self.bayes.power)
        _, bayes_right, suggested, probability = self.bayes.of_read(probs, labels)
        rival, own, strongest = _strongest_other(probs, labels)
        pooled = _pool(self.trust, probs.shape[1], bayes_right, own, strongest)
        place = ((pooled - self.lowest) / self.step).astype(np.intp)
        # Of rows in one step of the table, or of which Bayes' rule is certain, the pooled odds tell the order.
        log_odds = self.log_odds.take(place, mode="clip") + 1e-3 * pooled
        right = 1 / (1 + np.exp(-log_odds))
        # What is left goes to the class that Bayes' rule suggests, or to the rival if it suggests the label itself. All
        # labels that are likely to be right stay.
        best, best_probability = labels.copy(), right.copy()
        doubtful = np.flatnonzero(right < 0.5)
        label, suggested = labels[doubtful], suggested[doubtful]
        bayes_right, own, left = bayes_right[doubtful], own[doubtful], 1 - right[doubtful]
        differs = suggested != label
        tiny = np.finfo(probs.dtype).tiny
        of_bayes = probability[doubtful] / np.maximum(1 - bayes_right, tiny)
        of_rival = strongest[doubtful] / np.maximum(1 - own, tiny)
        left *= np.minimum(np.where(differs, of_bayes, of_rival), 1)
        replaced = left > right[doubtful]
        best[doubtful] = np.where(replaced, np.where(differs, suggested, rival[doubtful]), label)
        best_probability[doubtful] = np.maximum(left, right[doubtful])
        return labels, right, best, best_probability


def _strongest_other(probs: NDArray[Any], labels: Codes) -> tuple[NDArray[np.intp], NDArray[Any], NDArray[Any]]:
    """Return the strongest other class of every row, the probability of the label, and that of the other class."""
    rival, strongest = surest(probs, without=labels)
    return rival, entries_at(probs, labels), strongest


def _pool(
    trust: float, n_classes: int, right: NDArray[Any], own: NDArray[Any], strongest: NDArray[Any]
) -> NDArray[Any]:
    tail = _TAIL / n_classes
    plain = (1 + _RIVAL) * np.log(own + tail) - _RIVAL * np.log(strongest + tail)
    return np.asarray(trust * _log_odds(right, tail) + (1 - trust) * plain)


def _quantiles(values: NDArray[Any]) -> NDArray[Any]:
    """Return `np.quantile(values, _QUANTILES)`, which is slow for so many of them."""
    places = _QUANTILES * (len(values) - 1)
    return np.asarray(np.interp(places, np.arange(len(values)), np.sort(values)))


def _log_odds(right: NDArray[Any], tail: float) -> NDArray[Any]:
    return np.asarray(np.log((right + tail) / (1 - right + tail)))

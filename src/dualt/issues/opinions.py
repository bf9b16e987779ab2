"""Two opinions on a label, Bayes' rule through T and the probabilities alone, pooled as far as T is to be trusted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualt.labels import Codes
from dualt.rows.summary import PosteriorSummary
from dualt.transition import EarlyPosterior

# A probability far below this share of a class's chance is an estimate's tail, and how far says nothing.
_TAIL = 0.3
# How much the strongest rival of a label counts beside the label's own probability.
_RIVAL = 0.25
_QUANTILES = np.linspace(0, 1, 2001)
_SATURATED = 1e-6


@dataclass(frozen=True)
class BayesScorer:
    """From (probabilities, label codes) of a chunk to (given, P(right), suggested, its probability).

    P(Y=i | x, y) = q_i · T_iy / Σ_k q_k · T_ky, where q is the clean posterior.
    """

    clean_posterior: EarlyPosterior

    def __call__(self, probs: NDArray[Any], labels: Codes) -> tuple[NDArray[Any], ...]:
        """Return the columns of `Scores` of a chunk."""
        right, suggested, probability = self.clean_posterior.scores(probs, labels)
        # Where the matrix rules out all that the classifier expects, one class is as good as another.
        return labels, right, suggested, np.where(probability > 0, probability, 1 / probs.shape[1])


@dataclass(frozen=True)
class PooledScorer:
    """The same, ranked by two opinions, so that a matrix whose structure the data do not carry cannot spoil it.

    The log odds of Bayes' rule count `trust`; the rest is an opinion that needs no T, log(p_y^1.25 / p_r^0.25), where
    r is the strongest other class. That gives an order. The probabilities are those of Bayes' rule, dealt out in this
    order: a row whose pooled log odds are at a quantile of the sample's gets Bayes' at the same quantile.
    """

    bayes: BayesScorer
    trust: float
    pooled: NDArray[np.float64]
    log_odds: NDArray[np.float64]

    @classmethod
    def of(cls, bayes: BayesScorer, trust: float, summary: PosteriorSummary) -> PooledScorer:
        """Take the quantiles of both from the sample of a summary."""
        probs, labels = summary.sample_rows, summary.sample_labels
        _, right, *_ = bayes(probs, labels)
        pooled = _pool(trust, probs.shape[1], right, *_strongest_other(probs, labels)[1:])
        return cls(bayes, trust, np.quantile(pooled, _QUANTILES), np.quantile(_log_odds(right, _SATURATED), _QUANTILES))

    def __call__(self, probs: NDArray[Any], labels: Codes) -> tuple[NDArray[Any], ...]:
        """Return the columns of `Scores` of a chunk."""
        _, bayes_right, suggested, probability = self.bayes(probs, labels)
        rival, own, strongest = _strongest_other(probs, labels)
        pooled = _pool(self.trust, probs.shape[1], bayes_right, own, strongest)
        # Where Bayes' rule is as good as certain of many rows alike, the pooled odds still tell them apart.
        log_odds = np.interp(pooled, self.pooled, self.log_odds) + 1e-3 * pooled
        right = 1 / (1 + np.exp(-log_odds))
        # What is left goes to the class that Bayes' rule suggests, or to the rival if it suggests the label itself.
        differs = suggested != labels
        other = np.where(differs, suggested, rival)
        tiny = np.finfo(probs.dtype).tiny
        of_bayes = probability / np.maximum(1 - bayes_right, tiny)
        share = np.minimum(np.where(differs, of_bayes, strongest / np.maximum(1 - own, tiny)), 1)
        kept = right >= (1 - right) * share
        return labels, right, np.where(kept, labels, other), np.where(kept, right, (1 - right) * share)


def _strongest_other(probs: NDArray[Any], labels: Codes) -> tuple[NDArray[np.intp], NDArray[Any], NDArray[Any]]:
    """Return the strongest other class of every row, the probability of the label, and that of the other class."""
    rows = np.arange(len(labels))
    others = probs.copy()
    others[rows, labels] = -1
    rival = others.argmax(axis=1)
    return rival, probs[rows, labels], others[rows, rival]


def _pool(
    trust: float, n_classes: int, right: NDArray[Any], own: NDArray[Any], strongest: NDArray[Any]
) -> NDArray[np.float64]:
    tail = _TAIL / n_classes
    plain = (1 + _RIVAL) * np.log(own + tail) - _RIVAL * np.log(strongest + tail)
    return np.asarray(trust * _log_odds(right, tail) + (1 - trust) * plain, np.float64)


def _log_odds(right: NDArray[Any], tail: float) -> NDArray[np.float64]:
    right = right.astype(np.float64)
    return np.asarray(np.log(right + tail) - np.log(1 - right + tail))

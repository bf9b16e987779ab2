"""Two opinions on a label, Bayes' rule through T and the probabilities alone, pooled as far as T is to be trusted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualt.labels import Codes
from dualt.transition import EarlyPosterior

# A probability far below this share of a class's chance is an estimate's tail, and how far says nothing.
_TAIL = 0.3
# How much the strongest rival of a label counts beside the label's own probability.
_RIVAL = 0.25


@dataclass(frozen=True)
class Scorer:
    """From (probabilities, label codes) of a chunk to (given, P(right), suggested, its probability).

    With `trust` 1, P(Y=i | x, y) = q_i · T_iy / Σ_k q_k · T_ky. With less, the log odds of that and of an opinion that
    needs no T are averaged: log(p_y^1.25 / p_r^0.25), where r is the strongest other class. A matrix whose structure
    the data do not carry then cannot spoil the ranking.
    """

    clean_posterior: EarlyPosterior
    trust: float = 1.0

    def __call__(self, probs: NDArray[Any], labels: Codes) -> tuple[NDArray[Any], ...]:
        """Return the columns of `Scores` of a chunk."""
        right, suggested, probability = self.clean_posterior.scores(probs, labels)
        if self.trust == 1:
            return labels, right, suggested, probability
        rows, tail = np.arange(len(labels)), _TAIL / probs.shape[1]
        own = probs[rows, labels]
        others = probs.copy()
        others[rows, labels] = -1
        rival = others.argmax(axis=1)
        strongest = others[rows, rival]
        plain = (1 + _RIVAL) * np.log(own + tail) - _RIVAL * np.log(strongest + tail)
        bayes = np.log(right + tail) - np.log(1 - right + tail)
        pooled = 1 / (1 + np.exp(-(self.trust * bayes + (1 - self.trust) * plain)))
        # What is left goes to the class that Bayes' rule suggests, or to the rival if it suggests the label itself.
        differs = suggested != labels
        other = np.where(differs, suggested, rival)
        tiny = np.finfo(probs.dtype).tiny
        share = np.where(differs, probability / np.maximum(1 - right, tiny), strongest / np.maximum(1 - own, tiny))
        other_probability = (1 - pooled) * np.minimum(share, 1)
        kept = pooled >= other_probability
        return labels, pooled, np.where(kept, labels, other), np.where(kept, pooled, other_probability)

"""Calibrate P(true class | x, given label) by verified rows: four numbers for all rows, one for each pair of classes.

    P(Y=i | x, ỹ=j) ∝ exp(a·log q_i + b·log T_ij + g·1[i=j] + h·log p_i + r_ij)

q is the clean posterior, T the estimate without verified labels, p the predicted probabilities. (a, b, g, h) =
(1, 1, 0, 0) and r = 0 is Bayes' rule as it stands. The four numbers tell how far p and T can be trusted; r tells
which pairs of classes behave otherwise. r_ij ~ N(0, τ²), and τ is what the verified rows make probable (Laplace's
marginal likelihood): few rows, or rows that fit, leave r near zero; many rows that do not fit let the counts of each
pair prevail.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualt.audit.calibration_fit import BAYES, Point, VerifiedColumns, likely_scale, maximise, softmax
from dualt.audit.design import Floats, Ints
from dualt.labels import Codes

# Smaller probabilities are noise of the classifier: their logarithms must not decide.
_SMALLEST = 1e-4
# A zero in T means "not seen", not "impossible": this share of each row is spread over all classes.
_UNSEEN = 1e-3


@dataclass(frozen=True, eq=False)
class Calibration:
    """A fitted model of P(Y=i | x, ỹ).

    Attributes
    ----------
    theta : (4,)
        a, b, g, h.
    offsets : (n_classes, n_classes)
        r[i, j], of true class i and given label j.
    scale : float
        τ, the standard deviation that the offsets were given.
    transition : (n_classes, n_classes)
        The matrix T that enters.
    """

    theta: Floats
    offsets: Floats
    scale: float
    transition: Floats

    def posterior(self, probs: NDArray[Any], given: Codes, clean: NDArray[Any]) -> Floats:
        """Return P(Y=i | x, ỹ) of some rows, (n_rows, n_classes), from their p, given labels and q."""
        return next(posteriors((self,), probs, given, clean))

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers and lists."""
        numbers = dict(zip("abgh", self.theta.tolist(), strict=True))
        tables = {"offsets": self.offsets.tolist(), "transition": self.transition.tolist()}
        return {**numbers, "scale": self.scale, **tables}


def posteriors(
    models: Iterable[Calibration], probs: NDArray[Any], given: Codes, clean: NDArray[Any]
) -> Iterator[Floats]:
    """Yield P(Y=i | x, ỹ=j) ∝ exp(a·log q_i + b·log T_ij + g·1[i=j] + h·log p_i + r_ij) by each model.

    Parameters
    ----------
    models
    probs, clean : (n_rows, n_classes)
        p and q.
    given : (n_rows,)
    """
    log_clean, log_probs = _log(clean), _log(probs)
    for model in models:
        # All that depends on the pair of classes alone is one table, looked up by the given label.
        pairs = model.theta[1] * np.log(_seen(model.transition)) + model.offsets
        pairs[np.diag_indices_from(pairs)] += model.theta[2]
        yield softmax(model.theta[0] * log_clean + model.theta[3] * log_probs + pairs.T[given])


def to_transition(joint: Floats) -> Floats:
    """Return T[i, j] = joint[i, j] / Σ_j joint[i, j]; the unit vector for a class that no row is expected to have."""
    totals = joint.sum(axis=1, keepdims=True)
    return np.where(totals > 0, joint / np.where(totals > 0, totals, 1), np.eye(len(joint)))


def fit_calibration(
    probs: NDArray[Any],
    given: Codes,
    clean: NDArray[Any],
    transition: Floats,
    true: Codes,
    weights: Floats | None = None,
    *,
    scale: float | None = None,
) -> Calibration:
    """Fit θ and r to verified rows: the maximum of their posterior density, τ averaged over its evidence.

    Parameters
    ----------
    probs, clean : (n_verified, n_classes)
        p and q of the verified rows.
    given, true : (n_verified,)
    transition : (n_classes, n_classes)
    weights : (n_verified,), optional
        Inverse inclusion probabilities; only their ratios matter.
    scale
        τ; by default chosen by marginal likelihood.
    """
    weights = np.ones(len(true)) if weights is None else weights * (len(true) / weights.sum())
    data = VerifiedColumns.of(_features(probs, given, clean, transition), given, true, weights)
    start = Point(BAYES, np.zeros((len(transition), len(transition))))
    if scale is None:
        scale = likely_scale(data, start)
    point, _ = maximise(data, start, scale)
    return Calibration(point.theta, point.offsets, scale, transition)


def cross_calibrate(
    probs: NDArray[Any],
    given: Codes,
    clean: NDArray[Any],
    transition: Floats,
    true: Codes,
    weights: Floats,
    folds: Ints,
    scale: float,
) -> tuple[list[Calibration], Floats]:
    """Return a calibration without each fold, and the posterior of every verified row by the one that has not seen it.

    Intervals need predictions that did not see the truth they are compared with; see `prediction_powered`.
    """
    models, unseen = [], np.empty(probs.shape)
    for fold in range(int(folds.max()) + 1):
        out, rest = folds == fold, folds != fold
        model = fit_calibration(
            probs[rest], given[rest], clean[rest], transition, true[rest], weights[rest], scale=scale
        )
        unseen[out] = model.posterior(probs[out], given[out], clean[out])
        models.append(model)
    return models, unseen


def assign_folds(strata: Ints, n_folds: int, rng: np.random.Generator) -> Ints:
    """Return a fold for each verified row, at random and evenly within the strata of the draw.

    A fold is then a random sample of the rows that its calibration has not seen, which is what makes intervals from
    cross-calibrated predictions unbiased. Folds balanced by the true class would look at the truth, and are not.
    """
    order = rng.permutation(len(strata))
    order = order[np.argsort(strata[order], kind="stable")]
    folds = np.empty(len(strata), np.intp)
    folds[order] = np.arange(len(strata)) % n_folds
    return folds


def _log(values: NDArray[Any]) -> Floats:
    return np.asarray(np.log(np.maximum(values, _SMALLEST), dtype=np.float64))


def _seen(transition: Floats) -> Floats:
    return (1 - _UNSEEN) * transition + _UNSEEN / len(transition)


def _features(probs: NDArray[Any], given: Codes, clean: NDArray[Any], transition: Floats) -> Floats:
    """Return what θ multiplies, (n_rows, n_classes, 4)."""
    by_label = np.log(_seen(transition)).T
    return np.stack((_log(clean), by_label[given], np.eye(len(transition))[given], _log(probs)), axis=-1)

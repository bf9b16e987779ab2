"""What verified rows make of an estimate: the calibrated matrix, and intervals that hold whatever its bias was."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualt.audit.calibration import (
    Calibration,
    assign_folds,
    cross_calibrate,
    fit_calibration,
    posteriors,
    to_transition,
)
from dualt.audit.design import Floats, Ints, Weights
from dualt.audit.prediction_powered import Verified, class_rate_intervals, rate_interval, transition_intervals
from dualt.audit.verified_labels import Audit, check_audit
from dualt.labels import Codes
from dualt.results.fit import Fit
from dualt.rows.posterior import NoisyPosterior
from dualt.transition import early_posterior

_FOLDS = 5
# The labels that occur in a chunk, and Σ P(Y | x, ỹ) over the rows of each: by the fold models' mean, and by all rows.
_Sums = tuple[Codes, Floats, Floats]


@dataclass(frozen=True, eq=False)
class AuditResult:
    """What an audit has shown: `TransitionEstimate.audit`.

    Attributes
    ----------
    rows : (n_verified,)
    verified : Verified
        Given and true classes of these rows, what was predicted of them unseen, and the joint that was predicted.
    weights : Weights
        How much each row stands for.
    calibration : Calibration
        The model of P(true class | x, given label) that was fitted to all verified rows.
    joint : (n_classes, n_classes)
        Expected number of rows of true class i and given label j, the verified rows being known.
    """

    rows: Ints
    verified: Verified
    weights: Weights
    calibration: Calibration
    joint: Floats

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def transition(self) -> Floats:
        """The calibrated matrix: the aggregate of P(true class | x, given label) over all rows."""
        return to_transition(self.joint)

    @property
    def clean_prior(self) -> Floats:
        """Share of each true class; unlike one that is solved for, it is the only one that fits."""
        return np.asarray(self.joint.sum(axis=1) / self.joint.sum())

    def noise_rate_interval(self, level: float = 0.95) -> tuple[float, float]:
        """Return (low, high) for the share of wrong labels, whatever the bias of the predictions."""
        found = rate_interval(self.verified, self.weights, level)
        return float(found.low[0]), float(found.high[0])

    def transition_interval(self, level: float = 0.95) -> tuple[Floats, Floats]:
        """Return (low, high), each (n_classes, n_classes), for P(given label j | true class i)."""
        found = transition_intervals(self.verified, self.weights, level)
        return found.low, found.high

    def support(self) -> NDArray[np.int64]:
        """Return how many labels, counted at random, would tell as much of the noise rate of each class."""
        found = class_rate_intervals(self.verified, self.weights)
        counted = np.bincount(self.verified.true, minlength=len(self.joint))
        cautious = (counted * found.estimate + 0.5) / (counted + 1)
        variance = np.maximum(found.standard_error**2, np.finfo(np.float64).tiny)
        worth = np.minimum(cautious * (1 - cautious) / variance, self.joint.sum(axis=1))
        return np.rint(np.where(counted > 0, np.maximum(counted, worth), 0)).astype(np.int64)

    def residuals(self) -> Floats:
        """Return (label is wrong) − (predicted to be wrong) of every verified row, by models that had not seen it."""
        verified = self.verified
        right = verified.posterior[np.arange(len(self)), verified.given]
        return np.asarray((verified.given != verified.true) - (1 - right))

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers and lists."""
        return {
            "n_verified": len(self),
            "rows": self.rows.tolist(),
            "joint": self.joint.tolist(),
            "verified": {name: values.tolist() for name, values in self.verified._asdict().items()},
            "weights": {name: values.tolist() for name, values in self.weights._asdict().items()},
            "calibration": self.calibration.to_dict(),
        }


def correct_by_audit(posterior: NoisyPosterior, transition: Floats, audit: Audit) -> AuditResult:
    """Calibrate an estimate by verified rows, and measure on them what the calibrated predictions get wrong.

    Parameters
    ----------
    posterior
        The data.
    transition : (n_classes, n_classes)
        What is believed without the verified rows.
    audit
        Checked here: rows and classes that the data have, drawn at random or with known probabilities.
    """
    audit, true = check_audit(audit, posterior)
    n_samples, n_classes = posterior.n_samples, posterior.n_classes
    weights = audit.weights(n_samples)
    probs, given = posterior.take(audit.rows)
    clean = early_posterior(probs, transition)
    of_rows = (probs, given, clean)
    full = fit_calibration(*of_rows, transition, true, weights.weight)
    # Folds are drawn anew for every audit, yet the same for the same one.
    folds = assign_folds(weights.strata, _FOLDS, np.random.default_rng([7, *audit.rows.tolist()]))
    models, unseen = cross_calibrate(*of_rows, transition, true, weights.weight, folds, full.scale)
    predicted, joint = np.zeros((2, n_classes, n_classes))
    for labels, by_folds, by_all in posterior.map(partial(_sum_chunk, (*models, full))):
        predicted[:, labels] += by_folds.T
        joint[:, labels] += by_all.T
    # Verified rows enter by the model that has not seen them; in the joint they are known.
    *of_folds, of_all = posteriors((*models, full), *of_rows)
    np.add.at(predicted.T, given, unseen - np.mean(of_folds, axis=0))
    np.add.at(joint.T, given, np.eye(n_classes)[true] - of_all)
    verified = Verified(given, true, unseen, np.maximum(predicted, 0) / n_samples)
    return AuditResult(audit.rows, verified, weights, full, np.maximum(joint, 0))


def corrected_fit(result: AuditResult) -> Fit:
    """Return the fit of the calibrated matrix."""
    transition, support = result.transition, result.support()
    return Fit(transition, support, partial(_draw, transition, support), audit=result)


def calibrated_posterior(calibration: Calibration, probs: NDArray[Any], given: Codes) -> Floats:
    """Return P(true class | x, given label) of a chunk of rows, (n_rows, n_classes)."""
    return calibration.posterior(probs, given, early_posterior(probs, calibration.transition))


def _sum_chunk(models: Sequence[Calibration], probs: NDArray[Any], given: Codes) -> _Sums:
    """Sum P(Y | x, ỹ) of a chunk over the rows of each given label, by the folds' mean and by the last model."""
    clean = early_posterior(probs, models[-1].transition)
    order = np.argsort(given, kind="stable")
    labels, starts = np.unique(given[order], return_index=True)
    total = np.zeros((len(labels), probs.shape[1]))
    sums = total
    for found in posteriors(models, probs, given, clean):
        sums = np.add.reduceat(found[order], starts)
        total += sums
    return labels, (total - sums) / (len(models) - 1), sums


def _draw(transition: Floats, support: NDArray[np.int64], rng: np.random.Generator) -> Floats:
    """Draw each row from a Dirichlet distribution around it, of the weight of its support."""
    # The little weight keeps a row defined if its support is 0 or every draw of it underflows.
    drawn = rng.standard_gamma(support[:, None] * transition) + 1e-9
    return np.asarray(drawn / drawn.sum(axis=1, keepdims=True))

"""Correct an estimate by verified rows: calibrate P(true class | x, given label), and measure what is still wrong.

    P(Y=i | x, ỹ=j) ∝ exp(a·log q_i + b·log T_ij + g·1[i=j] + h·log p_i + r_ij)

q is the clean posterior, T the estimate without verified labels, p the predicted probabilities. (a, b, g, h) =
(1, 1, 0, 0) and r = 0 is Bayes' rule. The four numbers say how far p and T can be trusted, r which pairs of classes
behave differently. r_ij ~ N(0, 1): few rows, or rows that fit, leave r near zero; many rows that do not fit let the
counts of each pair prevail. (A scale chosen by the likelihood of rows left out was no better, on four data sets.)
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax, softmax

from dualt.audit.design import Floats, Ints
from dualt.audit.intervals import Verified, rate_interval, transition_intervals
from dualt.audit.verified import Audit, check_drawn_at_random, check_rows
from dualt.labels import Codes
from dualt.results.fit import Fit
from dualt.rows.chunks import normalize_counts
from dualt.rows.posterior import NoisyPosterior
from dualt.transition import early_posterior

# Bayes' rule, and the ridge penalty towards it: 2/m on the mean loss of m rows.
_BAYES = np.array([1.0, 1.0, 0.0, 0.0])
_RIDGE = 2.0
_FOLDS = 5
# Probabilities are clipped here: the logarithms of smaller ones are noise of the classifier.
_SMALLEST = 1e-4
# A zero in T means "not seen", not "impossible": this share of each row is spread over all classes.
_UNSEEN = 1e-3


@dataclass(frozen=True, eq=False)
class Calibration:
    """A fitted model of P(Y=i | x, ỹ): `theta` = (a, b, g, h), `offsets` = r and `transition` = T."""

    theta: Floats
    offsets: Floats
    transition: Floats

    def predict(self, probs: NDArray[Any], given: Codes) -> Floats:
        """Return P(true class | x, given label) of a chunk of rows, (n_rows, n_classes)."""
        return self.posterior(features_of(probs, given, self.transition), given)

    def posterior(self, features: Floats, given: Codes) -> Floats:
        """Return the same from `features_of` the rows, which several models share."""
        return np.asarray(softmax(features @ self.theta + self.offsets.T[given], axis=1))


@dataclass(frozen=True, eq=False, repr=False)
class AuditResult:
    """What an audit has shown: `TransitionEstimate.audit`.

    Attributes
    ----------
    rows : (n_verified,)
    verified : Verified
        Given and true classes of these rows, predictions by models that had not seen them, and the predicted joint.
    calibration : Calibration
        Fitted to all verified rows.
    joint : (n_classes, n_classes)
        Expected number of rows with true class i and given label j; the verified rows are known.
    """

    rows: Ints
    verified: Verified
    calibration: Calibration
    joint: Floats

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        return f"AuditResult(n_verified={len(self)})"

    @property
    def transition(self) -> Floats:
        """The calibrated matrix."""
        return normalize_counts(self.joint)

    @property
    def clean_prior(self) -> Floats:
        """Share of each true class."""
        return np.asarray(self.joint.sum(axis=1) / self.joint.sum())

    def noise_rate_interval(self, level: float = 0.95) -> tuple[float, float]:
        """Return (low, high) for the share of wrong labels."""
        found = rate_interval(self.verified, level)
        return float(found.low[0]), float(found.high[0])

    def transition_interval(self, level: float = 0.95) -> tuple[Floats, Floats]:
        """Return (low, high), each (n_classes, n_classes), for P(given label j | true class i)."""
        found = transition_intervals(self.verified, level)
        return found.low, found.high

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers and lists."""
        interval = list(self.noise_rate_interval())
        return {"n_verified": len(self), "noise_rate_interval": interval, "joint": self.joint.tolist()}


def correct_by_audit(posterior: NoisyPosterior, transition: Floats, audit: Audit) -> AuditResult:
    """Calibrate `transition`, the estimate without verified rows, and measure what the predictions still get wrong."""
    n_samples, n_classes = posterior.n_samples, posterior.n_classes
    audit, true = check_rows(audit, n_samples, posterior.coder, lambda rows: posterior.take(rows)[1])
    check_drawn_at_random(posterior, audit)
    probs, given = posterior.take(audit.rows)
    features = features_of(probs, given, transition)
    # Folds are drawn anew for every audit, yet the same for the same one.
    folds = assign_folds(len(audit), np.random.default_rng([7, *audit.rows.tolist()]))
    full = fit_calibration(features, given, true, transition)
    # Intervals need predictions that did not see the truth they are compared with; see `intervals`.
    models = [
        fit_calibration(features[kept], given[kept], true[kept], transition)
        for kept in (folds != fold for fold in range(folds.max() + 1))
    ]
    by_model = np.stack([model.posterior(features, given) for model in models])
    unseen = by_model[folds, np.arange(len(folds))]
    predicted, joint = np.zeros((2, n_classes, n_classes))
    for labels, by_folds, by_all in posterior.map(partial(_sum_chunk, models, full)):
        predicted[:, labels] += by_folds.T
        joint[:, labels] += by_all.T
    # Verified rows enter by the model that has not seen them; in the joint they are known.
    np.add.at(predicted.T, given, unseen - by_model.mean(axis=0))
    np.add.at(joint.T, given, np.eye(n_classes)[true] - full.posterior(features, given))
    verified = Verified(given, true, unseen, np.maximum(predicted, 0) / n_samples, n_samples)
    return AuditResult(audit.rows, verified, full, np.maximum(joint, 0))


def corrected_fit(result: AuditResult) -> Fit:
    """Return the fit of the calibrated matrix; its rows rest on the verified rows of each class."""
    transition, support = result.transition, np.bincount(result.verified.true, minlength=len(result.joint))
    return Fit(transition, support, partial(_draw, support[:, None] * transition + 1e-9), audit=result)


def _draw(counts: Floats, rng: np.random.Generator) -> Floats:
    return np.stack([rng.dirichlet(row) for row in counts])


def features_of(probs: NDArray[Any], given: Codes, transition: Floats) -> Floats:
    """Return log q_i, log T_ij, 1[i=j] and log p_i of rows with given label j, (n_rows, n_classes, 4)."""
    clean, n_classes = early_posterior(probs, transition), len(transition)
    log_clean, log_probs = (np.log(np.maximum(each, _SMALLEST), dtype=np.float64) for each in (clean, probs))
    log_transition = np.log((1 - _UNSEEN) * transition + _UNSEEN / n_classes)
    return np.stack((log_clean, log_transition.T[given], np.eye(n_classes)[given], log_probs), axis=-1)


def fit_calibration(features: Floats, given: Codes, true: Codes, transition: Floats) -> Calibration:
    """Minimise −Σ log P(Y=true) + 2|θ − (1, 1, 0, 0)|² + |r|²/2 over θ and r."""
    from scipy.optimize import minimize

    n_rows, n_classes = features.shape[:2]
    # Offsets of labels that no row has stay zero.
    labels, columns = np.unique(given, return_inverse=True)
    members, rows = np.eye(len(labels))[columns], np.arange(n_rows)

    def loss(point: Floats) -> tuple[float, Floats]:
        theta, offsets = point[:4], point[4:].reshape(len(labels), n_classes)
        log_posterior = log_softmax(features @ theta + offsets[columns], axis=1)
        surprise = np.exp(log_posterior)
        surprise[rows, true] -= 1
        value = -log_posterior[rows, true].sum() + _RIDGE * ((theta - _BAYES) ** 2).sum() + (offsets**2).sum() / 2
        by_theta = np.einsum("kc,kcf->f", surprise, features) + 2 * _RIDGE * (theta - _BAYES)
        return value, np.r_[by_theta, (members.T @ surprise + offsets).ravel()]

    first = np.r_[_BAYES, np.zeros(len(labels) * n_classes)]
    found = minimize(loss, first, jac=True, method="L-BFGS-B", options={"maxiter": 1000, "ftol": 1e-13, "gtol": 1e-6}).x
    offsets = np.zeros((n_classes, n_classes))
    offsets[:, labels] = found[4:].reshape(len(labels), n_classes).T
    return Calibration(found[:4], offsets, transition)


def assign_folds(n_rows: int, rng: np.random.Generator) -> Ints:
    """Return a fold for each verified row, at random.

    Intervals from cross-calibrated predictions are then unbiased; folds balanced by true class would look at the truth.
    """
    return np.argsort(rng.permutation(n_rows)) % _FOLDS


def _sum_chunk(
    models: Sequence[Calibration], full: Calibration, probs: NDArray[Any], given: Codes
) -> tuple[Codes, Floats, Floats]:
    """Return the labels in a chunk, and Σ P(Y | x, ỹ) over the rows of each: the mean of the models, and the full."""
    order = np.argsort(given, kind="stable")
    given = given[order]
    features, (labels, starts) = features_of(probs[order], given, full.transition), np.unique(given, return_index=True)
    *sums, by_all = (np.add.reduceat(model.posterior(features, given), starts) for model in (*models, full))
    return labels, np.mean(sums, axis=0), by_all

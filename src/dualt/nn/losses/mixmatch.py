"""The parts of DivideMix: probabilities that labels are right, targets for the other samples, and the loss."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

# A component narrower than this would be a single sample; both figures as in the authors' code.
_LEAST_VARIANCE = 5e-4
_MOST_ROUNDS, _ENOUGH = 100, 1e-6


def small_loss_probability(losses: ArrayLike) -> NDArray[np.float64]:
    """Return P(component of the smaller losses | loss) under a mixture of two Gaussians, fitted by EM.

    Losses are first scaled to 0–1. If all losses are equal, all count as small.

    Examples
    --------
    >>> small_loss_probability([0.1, 0.2, 0.15, 3.0, 3.1]).round(3)
    array([1., 1., 1., 0., 0.])
    """
    x = np.asarray(losses, np.float64)
    spread = np.ptp(x)
    if not spread > 0:
        return np.ones(len(x))
    x = (x - x.min()) / spread
    large: NDArray[np.float64] = (x > x.mean()).astype(np.float64)
    for _ in range(_MOST_ROUNDS):
        before, weights = large, np.stack([1 - large, large])
        totals = weights.sum(axis=1, keepdims=True).clip(1e-12)
        means = weights @ x[:, None] / totals
        variances = (weights * (x - means) ** 2).sum(axis=1, keepdims=True) / totals + _LEAST_VARIANCE
        log_density = np.log(totals / len(x)) - 0.5 * (np.log(variances) + (x - means) ** 2 / variances)
        large = 1 / (1 + np.exp(np.clip(log_density[0] - log_density[1], -500, 500)))
        if np.abs(large - before).max() < _ENOUGH:
            break
    return np.asarray(1 - large if means[0, 0] <= means[1, 0] else large)


def sharpened(probs: Tensor, temperature: float = 0.5) -> Tensor:
    """Return p^(1/temperature), scaled to sum to one."""
    powers = probs ** (1 / temperature)
    return powers / powers.sum(1, keepdim=True)


def divided_targets(
    labels: Tensor, clean: Tensor, own: Tensor, guess: Tensor, *, threshold: float = 0.5, temperature: float = 0.5
) -> Tensor:
    """Return targets (n, C): co-refined labels where they are probably right, co-guessed labels elsewhere.

    Parameters
    ----------
    labels : (n,)
    clean : (n,)
        How probably each label is right, by the peer network.
    own, guess : (n, C)
        Probabilities of the network itself, and the mean of both networks.
    threshold, temperature
        Probability above which a label counts as right; temperature of the sharpening.
    """
    given = torch.zeros_like(own).scatter_(1, labels[:, None], 1.0)
    weight = clean[:, None].to(own.dtype)
    mixed = torch.where(weight > threshold, weight * given + (1 - weight) * own, guess)
    return sharpened(mixed, temperature)


def mixmatch_loss(
    logits: Tensor, targets: Tensor, labelled: Tensor, prior: Tensor, unlabelled_weight: float = 25.0
) -> Tensor:
    """Return cross entropy where labelled + weight · squared error elsewhere + KL(prior ‖ mean prediction).

    Parameters
    ----------
    logits, targets : (n, C)
    labelled : (n,)
        Which rows have a label. Each term is a mean over its own rows, zero if there are none.
    prior : (C,)
        Expected share of each class.
    unlabelled_weight

    References
    ----------
    Li, Socher and Hoi, DivideMix: learning with noisy labels as semi-supervised learning, ICLR 2020, Eq. 10–13.
    """
    log_probs = logits.log_softmax(1)
    probs = log_probs.exp()
    entropy = -(targets * log_probs).sum(1)
    error = (probs - targets).square().mean(1)
    mean = probs.mean(0).clamp_min(1e-12)
    regular = (prior * (prior.clamp_min(1e-12) / mean).log()).sum()
    return _mean_of(entropy, labelled) + unlabelled_weight * _mean_of(error, ~labelled) + regular


def _mean_of(values: Tensor, chosen: Tensor) -> Tensor:
    weights = chosen.to(values.dtype)
    return (values * weights).sum() / weights.sum().clamp_min(1)

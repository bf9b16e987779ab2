"""Dawid–Skene with pooled matrices, a classifier as one more voice, and votes that overlap.

Item n has true class y with P(y); annotator a says v with probability T_a[y, v]. P(y) is the class shares, or
softmax(τ log p + b) of a classifier's probabilities p. EM finds posterior, matrices, shares, τ and b together. Then
each item is judged once more, by matrices that were not estimated from it, and with voices that count for less the more
there are, since people fail on the same difficult items, and classifiers on those of the people who taught them.

References
----------
A. P. Dawid and A. M. Skene, "Maximum likelihood estimation of observer error-rates using the EM algorithm", 1979.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import minimize_scalar

from dualt.transition import softmax

Array = NDArray[np.float64]
Codes = NDArray[np.intp]
Triples = tuple[Codes, Codes, Codes]

# An annotator's row of T is pooled with the common row as if they had given this many more votes.
POOLING = 3.0
# Annotators share errors: m votes are worth m / (1 + (m - 1) · overlap), the design effect of survey statistics. This
# is the usual overlap, with the least mean log loss over all sets of bench/votes.py.
OVERLAP = 0.4
# Upper bound of τ: a classifier that fits a higher power repeats the votes, errors included.
MAX_TEMPERATURE = 2.0
# Items with this many voices count in full when EM updates class shares and the common matrix. With two votes these can
# hardly be told apart and EM drifts, so such items count mostly by the majority of their votes.
ENOUGH_VOICES = 4
# An annotator who gave only one class this often may be a rule; with fewer votes it may be chance.
RULE_VOTES = 10
_TINY = 1e-12


class VotesFit(NamedTuple):
    """What EM found: P(true class) of each item, matrices `[annotator, true class, vote]`, and what they rest on."""

    posterior: Array  # (n_items, n_classes), overlap taken into account; verified items are certain
    matrices: Array  # (n_annotators, n_classes, n_classes): P(vote | true class)
    counts: Array  # expected votes of each annotator by true class and vote
    common: Array  # (n_classes, n_classes): the matrix of all votes together
    shares: Array  # (n_classes,)
    least_rate: float  # share of the consensus that is wrong if votes are independent given the class
    overlap: float
    temperature: float | None  # the classifier's τ


def fit_votes(
    item: Codes,
    annotator: Codes,
    vote: Codes,
    n_items: int,
    n_annotators: int,
    n_classes: int,
    *,
    probs: Array | None = None,
    verified: tuple[Codes, Codes] | None = None,
    audited: tuple[Codes, Codes] | None = None,
    overlap: float | None = None,
    max_iter: int = 100,
    tol: float = 1e-4,
) -> VotesFit:
    """Fit votes `annotator[i]` said `vote[i]` of `item[i]`, all codes from 0.

    Parameters
    ----------
    probs : (n_items, n_classes), optional
        Out-of-fold probabilities of a classifier, used as the prior of each item.
    verified : (items, classes), optional
        Items whose true class is known, and used.
    audited : (items, classes), optional
        Items drawn at random whose true class is known, used to refit `overlap` only.
    overlap : float, optional
        0 takes votes to be independent given the class; by default it is fitted.
    """
    votes = item, annotator, vote
    said = sparse.csr_array(
        (np.ones(len(item)), (item, annotator * n_classes + vote)), shape=(n_items, n_annotators * n_classes)
    )
    said_by = said.T.tocsr()
    rules = rules_among(said_by.sum(axis=1).reshape(n_annotators, n_classes))
    voices = np.bincount(item, minlength=n_items) + (probs is not None)
    heard = np.clip((voices - 1) / (ENOUGH_VOICES - 1), 0, 1)[:, None]
    log_probs = None if probs is None else np.log(np.clip(probs, 1e-6, 1))

    def expected_counts(posterior: Array) -> Array:
        """Σ over votes of P(y), by annotator, y and vote."""
        counts = (said_by @ posterior).reshape(n_annotators, n_classes, n_classes)
        return np.asarray(counts.transpose(0, 2, 1))

    first = posterior = pin(majority(item, vote, n_items, n_classes, probs), verified)
    tau, bias = 1.0, np.zeros(n_classes)
    for _ in range(max_iter):
        taught = heard * posterior + (1 - heard) * first
        shares = np.full(n_classes, 1 / n_classes) if rules.any() else class_shares(taught)
        common = common_matrix(expected_counts(taught).sum(axis=0))
        counts = expected_counts(posterior)
        own_counts = np.where(rules[:, None, None], 0, counts)
        matrices = pooled_matrices(own_counts, common)
        if log_probs is None:
            log_prior = np.log(shares)[None]
        else:
            tau, bias = calibrate(log_probs, posterior, tau, bias)
            log_prior = np.log(np.maximum(softmax(tau * log_probs + bias), _TINY))
        # log P(y) + Σ log T_a[y, vote], normalised by item
        evidence = said @ np.log(matrices).transpose(0, 2, 1).reshape(-1, n_classes)
        updated = pin(softmax(log_prior + evidence), verified)
        change = np.abs(updated - posterior).sum() / n_items
        posterior = updated
        if change < tol:
            break

    # Each item once more, by what its annotators said elsewhere.
    said_elsewhere = log_elsewhere(votes, posterior, own_counts, common)
    to_items = sparse.csr_array((np.ones(len(item)), (item, np.arange(len(item)))), shape=(n_items, len(item)))
    logits = log_prior + to_items @ said_elsewhere
    if overlap is None:
        # Each vote is predicted from the other voices. Errors that all share do not show in this way, so that votes can
        # raise the usual overlap and not lower it.
        others = logits[item] - said_elsewhere
        overlap = max(OVERLAP, fit_overlap(others, voices[item] - 1, np.exp(said_elsewhere), OVERLAP))
        if audited is not None:
            rows, truth = audited
            overlap = fit_overlap(logits[rows], voices[rows], np.eye(n_classes)[truth], overlap)
    least = float(1 - pin(softmax(logits), verified).max(axis=1).mean())
    posterior = pin(tempered(logits, voices, overlap), verified)
    return VotesFit(posterior, matrices, counts, common, shares, least, overlap, None if probs is None else tau)


def rules_among(used: NDArray[Any]) -> NDArray[np.bool_]:
    """Annotators who give one class only, if most votes are theirs; `used` counts votes by annotator and class.

    One class does not show a matrix, so rules have the common one; how often they fire for a class does not say how
    frequent it is, so shares are even. Among people, somebody with one class says nothing: their rows are all alike.
    """
    one_class = ((used > 0).sum(axis=1) == 1) & (used.sum(axis=1) >= RULE_VOTES)
    return np.asarray(one_class & (used[one_class].sum() > used.sum() / 2))


def pin(posterior: Array, verified: tuple[Codes, Codes] | None) -> Array:
    """Make verified items certain, in place."""
    if verified is not None:
        posterior[verified[0]] = np.eye(posterior.shape[1])[verified[1]]
    return posterior


def normalised(values: NDArray[Any]) -> Array:
    """Divide by the sums over the last axis."""
    return np.asarray(values / values.sum(axis=-1, keepdims=True))


def majority(item: Codes, vote: Codes, n_items: int, n_classes: int, probs: Array | None) -> Array:
    """Shares of each item's votes, of which the classifier has one."""
    counts = np.bincount(item * n_classes + vote, minlength=n_items * n_classes).reshape(n_items, n_classes)
    return normalised(counts + (0.01 if probs is None else probs))


def class_shares(posterior: Array) -> Array:
    """π = mean posterior, with one more item of each class."""
    return normalised(posterior.sum(axis=0) + 1)


def common_matrix(counts: Array) -> Array:
    """Rows of the pooled counts, with one more vote for each class."""
    return normalised(counts + 1)


def pooled_matrices(counts: Array, common: Array) -> Array:
    """T_a[y] = (counts_a[y] + POOLING · common[y]) / (Σ counts_a[y] + POOLING): the mean of a Dirichlet posterior."""
    return normalised(counts + POOLING * common)


def calibrate(log_probs: Array, posterior: Array, tau: float, bias: Array) -> tuple[float, Array]:
    """Take a step towards the τ and b whose softmax(τ log p + b) fits the posterior: Newton for τ, scaling for b."""
    p = softmax(tau * log_probs + bias)
    mean = (p * log_probs).sum(axis=1, keepdims=True)
    curvature = max((p * (log_probs - mean) ** 2).sum(), 1e-9)
    step = ((posterior - p) * log_probs).sum() / curvature
    tau = float(np.clip(tau + np.clip(step, -0.5, 0.5), 0.1, MAX_TEMPERATURE))
    p = softmax(tau * log_probs + bias)
    return tau, bias + 0.9 * (np.log(posterior.sum(axis=0) + 1) - np.log(p.sum(axis=0) + 1))


def log_elsewhere(votes: Triples, posterior: Array, counts: Array, common: Array) -> Array:
    """Log T_a[y, vote] for each vote, its item's share taken out of the counts of T_a."""
    item, annotator, vote = votes
    own = posterior[item]
    said: Array = np.maximum(counts[annotator, :, vote] - own, 0) + POOLING * common.T[vote]
    said /= np.maximum(counts.sum(axis=2)[annotator] - own, 0) + POOLING
    return np.log(said, out=said)


def tempered(logits: Array, voices: NDArray[np.int64], overlap: float) -> Array:
    """P(y) ∝ exp(logits)^w, w = 1 / (1 + (voices - 1) · overlap)."""
    worth = 1 / (1 + np.maximum(voices - 1, 0) * overlap)
    return softmax(worth[:, None] * logits)


def fit_overlap(logits: Array, voices: NDArray[np.int64], likelihood: Array, around: float) -> float:
    """Return the overlap with the largest Σ log Σ_y P(y) likelihood[y]; its logarithm has a normal prior.

    The likelihood is that of a vote that is not among the voices, or 1 for the true class.
    """

    def loss(overlap: float) -> float:
        predicted = (tempered(logits, voices, overlap) * likelihood).sum(axis=1)
        prior = 5 * np.log((overlap + 0.05) / (around + 0.05)) ** 2
        return float(prior - np.log(np.maximum(predicted, _TINY)).sum())

    return float(minimize_scalar(loss, bounds=(0, 5), method="bounded").x)

"""Dawid–Skene with pooled matrices, a classifier as one more voice, and votes that overlap.

Item n has true class y with P(y); annotator a says v with probability T_a[y, v]. P(y) is the class shares, or
softmax(τ log p + b) of a classifier's probabilities p. EM finds posterior, matrices, shares, τ and b together. Then
each item is judged once more, by matrices that were not estimated from it, and with votes that count for less the more
there are, since people fail on the same difficult items.

References
----------
A. P. Dawid and A. M. Skene, "Maximum likelihood estimation of observer error-rates using the EM algorithm", 1979.
"""

from __future__ import annotations

from typing import NamedTuple

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
# Annotators share errors: m votes are worth m / (1 + (m - 1) · OVERLAP), the design effect of survey statistics. Chosen
# from .2 to .8 on all sets of bench/votes.py, where .4 and .5 have the least mean log loss; verified items refit it.
OVERLAP = 0.4
# Upper bound: a classifier that fits a higher power repeats the votes, errors included. Where all votes are by rules,
# the bound is 1, because a classifier trained on rules learns the rules.
MAX_TEMPERATURE = 2.0
# Items with this many votes count in full when EM updates class shares and the common matrix. With two votes these can
# hardly be told apart and EM drifts, so such items count mostly by the weighted majority of their votes.
ENOUGH_VOICES = 4
# An annotator who gave only one class this often is taken for a rule: its votes cannot show its matrix.
ONE_CLASS_VOTES = 10
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
    calibration: tuple[float, bool] | None  # the classifier's τ, and whether it is at its bound


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
        0 takes votes to be independent given the class; by default `OVERLAP`, or what the audit says.
    """
    said = sparse.csr_array(
        (np.ones(len(item)), (item, annotator * n_classes + vote)), shape=(n_items, n_annotators * n_classes)
    )
    said_by = said.T.tocsr()
    shape = (n_annotators, n_classes, n_classes)
    voices = np.bincount(item, minlength=n_items) + (probs is not None)
    heard = np.clip((voices - 1) / (ENOUGH_VOICES - 1), 0, 1)[:, None]
    # A rule gives one class only: its matrix is 1 in one column and says nothing.
    used = said_by.sum(axis=1).reshape(n_annotators, n_classes)
    rules = ((used > 0).sum(axis=1) == 1) & (used.sum(axis=1) >= ONE_CLASS_VOTES)
    rule_share = float(used[rules].sum() / len(item))
    log_probs = None if probs is None else np.log(np.clip(probs, 1e-6, 1))

    first = posterior = pin(weighted_majority((item, annotator, vote), used, n_items, probs), verified)
    tau, max_tau = 1.0, MAX_TEMPERATURE ** (1 - rule_share)
    bias: Array = np.zeros(n_classes)
    for _ in range(max_iter):
        counts = (said_by @ posterior).reshape(shape).transpose(0, 2, 1)
        taught = heard * posterior + (1 - heard) * first
        shares = class_shares(taught, rule_share)
        common = common_matrix((said_by @ taught).reshape(shape).sum(axis=0).T)
        matrices = pooled_matrices(counts, common)
        matrices[rules] = matrices[rules] ** (1 - rule_share) * common**rule_share
        if log_probs is None:
            log_prior = np.log(shares)[None]
        else:
            tau, bias = calibrate(log_probs, posterior, tau, bias, max_tau)
            log_prior = np.log(np.maximum(softmax(tau * log_probs + bias), _TINY))
        evidence = said @ np.log(matrices).transpose(0, 2, 1).reshape(-1, n_classes)
        updated = pin(softmax(log_prior + evidence), verified)
        change = np.abs(updated - posterior).sum() / n_items
        posterior = updated
        if change < tol:
            break

    logits = log_prior + evidence_elsewhere((item, annotator, vote), posterior, counts, common, rules, matrices)
    if overlap is None:
        overlap = OVERLAP if audited is None else fit_overlap(logits[audited[0]], voices[audited[0]], audited[1])
    least = float(1 - pin(softmax(logits), verified).max(axis=1).mean())
    posterior = pin(tempered(logits, voices, overlap), verified)
    calibration = None if log_probs is None else (tau, tau >= max_tau)
    return VotesFit(posterior, matrices, counts, common, shares, least, overlap, calibration)


def pin(posterior: Array, verified: tuple[Codes, Codes] | None) -> Array:
    """Make verified items certain, in place."""
    if verified is not None:
        posterior[verified[0]] = np.eye(posterior.shape[1])[verified[1]]
    return posterior


def weighted_majority(votes: Triples, used: Array, n_items: int, probs: Array | None) -> Array:
    """Shares of the votes, then shares of votes weighted by how often their giver agrees with the first, above chance.

    The classifier has one vote; `used` counts votes by annotator and class.
    """
    item, annotator, vote = votes
    n_annotators, n_classes = used.shape
    seed = 0.01 if probs is None else probs

    def shares(weight: Array) -> Array:
        cells = np.bincount(item * n_classes + vote, weight[annotator], minlength=n_items * n_classes)
        total: Array = (cells.reshape(n_items, n_classes) + seed).astype(np.float64)
        total /= total.sum(axis=1, keepdims=True)
        return total

    agreed = np.bincount(annotator, shares(np.ones(n_annotators))[item, vote], minlength=n_annotators)
    return shares(np.maximum((agreed + 1) / (used.sum(axis=1) + 1.5) - 1 / n_classes, 0.02))


def class_shares(posterior: Array, rule_share: float) -> Array:
    """π = mean posterior, one item more for each class; flatter the more votes come from rules.

    How often rules fire for a class does not say how frequent it is.
    """
    n_items, n_classes = posterior.shape
    shares: Array = ((posterior.sum(axis=0) + 1) / (n_items + n_classes)) ** (1 - rule_share)
    shares /= shares.sum()
    return shares


def common_matrix(counts: Array) -> Array:
    """Rows of the pooled counts, with as many more votes as classes, right as often as all are and wrong evenly."""
    n_classes = len(counts)
    right = np.trace(counts) / counts.sum()
    even = np.where(np.eye(n_classes) > 0, right, (1 - right) / (n_classes - 1))
    matrix: Array = counts + n_classes * np.maximum(even, 1e-6)
    matrix /= matrix.sum(axis=1, keepdims=True)
    return matrix


def pooled_matrices(counts: Array, common: Array) -> Array:
    """T_a[y] = (counts_a[y] + POOLING · common[y]) / (Σ counts_a[y] + POOLING): the mean of a Dirichlet posterior."""
    matrices: Array = counts + POOLING * common
    matrices /= counts.sum(axis=2, keepdims=True) + POOLING
    return matrices


def calibrate(log_probs: Array, posterior: Array, tau: float, bias: Array, max_tau: float) -> tuple[float, Array]:
    """Three steps towards the τ and b whose softmax(τ log p + b) fits the posterior: Newton for τ, scaling for b."""
    for _ in range(3):
        p = softmax(tau * log_probs + bias)
        mean = (p * log_probs).sum(axis=1, keepdims=True)
        curvature = max((p * (log_probs - mean) ** 2).sum(), 1e-9)
        step = ((posterior - p) * log_probs).sum() / curvature
        tau = float(np.clip(tau + np.clip(step, -0.5, 0.5), 0.1, max_tau))
        p = softmax(tau * log_probs + bias)
        bias = bias + 0.9 * (np.log(posterior.sum(axis=0) + 1) - np.log(p.sum(axis=0) + 1))
    return tau, bias


def evidence_elsewhere(
    votes: Triples, posterior: Array, counts: Array, common: Array, rules: NDArray[np.bool_], matrices: Array
) -> Array:
    """Σ log T_a[y, vote] over each item's votes, the item's own share taken out of the counts of T_a."""
    evidence, rows = np.zeros_like(posterior), counts.sum(axis=2)
    step = max(1, (1 << 22) // posterior.shape[1])
    for start in range(0, len(votes[0]), step):
        n, a, v = (codes[start : start + step] for codes in votes)
        own = posterior[n]
        said = np.maximum(counts[a, :, v] - own, 0) + POOLING * common.T[v]
        said /= np.maximum(rows[a] - own, 0) + POOLING
        said[rules[a]] = matrices[a, :, v][rules[a]]
        to_items = sparse.csr_array((np.ones(len(n)), (n, np.arange(len(n)))), shape=(len(evidence), len(n)))
        evidence += to_items @ np.log(said)
    return evidence


def tempered(logits: Array, voices: NDArray[np.int64], overlap: float) -> Array:
    """P(y) ∝ exp(logits)^w, w = 1 / (1 + (voices - 1) · overlap)."""
    worth = 1 / (1 + np.maximum(voices - 1, 0) * overlap)
    return softmax(worth[:, None] * logits)


def fit_overlap(logits: Array, voices: NDArray[np.int64], truth: Codes) -> float:
    """Overlap with the largest likelihood of the true classes, log overlap with a normal prior around OVERLAP."""

    def loss(overlap: float) -> float:
        right = tempered(logits, voices, overlap)[np.arange(len(truth)), truth]
        prior = 5 * np.log((overlap + 0.05) / (OVERLAP + 0.05)) ** 2
        return float(prior - np.log(np.maximum(right, _TINY)).sum())

    return float(minimize_scalar(loss, bounds=(0, 5), method="bounded").x)

"""Dawid–Skene with pooled matrices, a classifier as one more voice, and votes that overlap.

Item n has true class y with P(y); annotator a says v with probability T_a[y, v]. P(y) is the class shares, or
softmax(τ log p + b) of a classifier's probabilities p. EM finds posterior, matrices, shares, τ and b together. Then
each item is judged once more, by matrices that were not estimated from it, and with voices that count for less the more
there are, since people fail on the same difficult items, and classifiers on those of the people who taught them.

After A. P. Dawid and A. M. Skene, "Maximum likelihood estimation of observer error-rates using the EM algorithm", 1979.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import minimize_scalar

from dualt.transition import softmax

Array = NDArray[np.float64]
Codes = NDArray[np.intp]
Triples = tuple[Codes, Codes, Codes]
Predicted = tuple[Array, Codes, Array]  # logits, how many voices they rest on, likelihood of another vote or the truth
Blockwise = Callable[[slice], Array]  # a row per item or vote of a block

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
# Arrays of votes or items × classes are made in blocks with this many values.
_BLOCK = 1 << 20


class VotesFit(NamedTuple):
    """What EM found: P(true class) of each item, matrices `[annotator, true class, vote]`, and what they rest on."""

    posterior: Array  # (n_items, n_classes), overlap taken into account; verified items are certain
    matrices: Array  # (n_annotators, n_classes, n_classes): P(vote | true class)
    counts: Array  # expected votes of each annotator by true class and vote
    common: Array  # (n_classes, n_classes): the matrix of all votes together
    shares: Array  # (n_classes,)
    least_rate: float  # share of the consensus that is wrong if votes are independent given the class
    overlap: float
    temperature: float  # the classifier's τ


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
    order = np.argsort(item, kind="stable")
    votes = item, annotator, vote = item[order], annotator[order], vote[order]
    shape = n_items, n_annotators * n_classes
    said = sparse.csr_array((np.ones(len(item)), (item, annotator * n_classes + vote)), shape=shape)
    said_by = said.T.tocsr()
    rules = rules_among(said_by.sum(axis=1).reshape(n_annotators, n_classes))
    voices = np.bincount(item, minlength=n_items) + (probs is not None)
    truth = np.full(n_items, -1)
    if verified is not None:
        truth[verified[0]] = verified[1]
    posterior = pin(majority(item, vote, n_items, n_classes, probs), truth)
    log_probs = None if probs is None else np.log(np.clip(probs, 1e-6, 1))
    tau, bias, even = 1.0, np.zeros(n_classes), np.full(n_classes, 1 / n_classes)

    # Shares and the common matrix are linear in the posterior; what the majority adds to them is summed once.
    heard = np.clip((voices - 1) / (ENOUGH_VOICES - 1), 0, 1)
    by_vote = sparse.csr_array((heard[item], (vote, item)), shape=(n_classes, n_items))
    few_by_vote = sparse.csr_array((1 - heard[item], (vote, item)), shape=(n_classes, n_items))
    few_shares, few_counts = (1 - heard) @ posterior, few_by_vote @ posterior
    for _ in range(max_iter):
        shares = even if rules.any() else normalised(heard @ posterior + few_shares + 1)
        common = normalised((by_vote @ posterior + few_counts).T + 1)
        counts = (said_by @ posterior).reshape(n_annotators, n_classes, n_classes)  # Σ P(y), by annotator, vote and y
        own_counts = np.where(rules[:, None, None], 0, counts) if rules.any() else counts
        if log_probs is not None:
            tau, bias = calibrate(log_probs, posterior, tau, bias)
        prior = partial(log_prior, shares, log_probs, tau, bias)
        if update(posterior, prior, said, pooled_matrices(own_counts, common), truth) < tol:
            break

    # Each item once more, by what its annotators said elsewhere.
    elsewhere = partial(log_elsewhere, votes, posterior, own_counts, own_counts.sum(axis=1), common)
    logits = judge(prior, elsewhere, item, posterior.shape)
    if overlap is None:
        # Predict each vote from the other voices. Errors that all share do not show: votes can only raise the overlap.
        overlap = max(OVERLAP, fit_overlap(partial(left_out, logits, voices, elsewhere, item), OVERLAP))
        if audited is not None:
            checked = logits[audited[0]], voices[audited[0]], np.eye(n_classes)[audited[1]]
            overlap = fit_overlap(lambda: [checked], overlap)
    right = 0.0
    for rows in blocks(*posterior.shape):
        right += float(pin(softmax(logits[rows]), truth[rows]).max(axis=1).sum())
        posterior[rows] = pin(tempered(logits[rows], voices[rows], overlap), truth[rows])
    del logits  # the matrices need the memory
    matrices, least = pooled_matrices(own_counts, common).transpose(0, 2, 1), 1 - right / n_items
    return VotesFit(posterior, matrices, counts.transpose(0, 2, 1), common, shares, least, overlap, tau)


def blocks(n_rows: int, n_classes: int) -> Iterator[slice]:
    """Return slices of rows, each with _BLOCK values."""
    size = max(1, _BLOCK // n_classes)
    return (slice(start, start + size) for start in range(0, n_rows, size))


def rules_among(used: NDArray[Any]) -> NDArray[np.bool_]:
    """Annotators who give one class only, if most votes are theirs; `used` counts votes by annotator and class.

    One class does not show a matrix, so rules have the common one; how often they fire for a class does not say how
    frequent it is, so shares are even. Among people, somebody with one class says nothing: their rows are all alike.
    """
    one_class = ((used > 0).sum(axis=1) == 1) & (used.sum(axis=1) >= RULE_VOTES)
    return np.asarray(one_class & (used[one_class].sum() > used.sum() / 2))


def pin(posterior: Array, truth: Codes) -> Array:
    """Make items certain whose class is known (not -1), in place."""
    known = truth >= 0
    posterior[known] = np.eye(posterior.shape[1])[truth[known]]
    return posterior


def normalised(values: NDArray[Any]) -> Array:
    """Divide by the sums over the last axis."""
    return np.asarray(values / values.sum(axis=-1, keepdims=True))


def majority(item: Codes, vote: Codes, n_items: int, n_classes: int, probs: Array | None) -> Array:
    """Shares of each item's votes, of which the classifier has one."""
    counts = np.bincount(item * n_classes + vote, minlength=n_items * n_classes).reshape(n_items, n_classes)
    return normalised(counts + (0.01 if probs is None else probs))


def pooled_matrices(counts: Array, common: Array) -> Array:
    """T_a[y] = (counts_a[y] + POOLING · common[y]) / (Σ counts_a[y] + POOLING), a Dirichlet's mean; [a, vote, y]."""
    matrices: Array = counts + POOLING * common.T
    return np.asarray(np.divide(matrices, matrices.sum(axis=1, keepdims=True), out=matrices))


def calibrate(log_probs: Array, posterior: Array, tau: float, bias: Array) -> tuple[float, Array]:
    """Take a step towards the τ and b whose softmax(τ log p + b) fits the posterior: Newton for τ, scaling for b."""
    slope = curvature = 0.0
    for rows in blocks(*log_probs.shape):
        logs, p = log_probs[rows], softmax(tau * log_probs[rows] + bias)
        curvature += float((p * (logs - (p * logs).sum(axis=1, keepdims=True)) ** 2).sum())
        slope += float(((posterior[rows] - p) * logs).sum())
    tau = float(np.clip(tau + np.clip(slope / max(curvature, 1e-9), -0.5, 0.5), 0.1, MAX_TEMPERATURE))
    total = sum(softmax(tau * log_probs[rows] + bias).sum(axis=0) for rows in blocks(*log_probs.shape))
    return tau, bias + 0.9 * (np.log(posterior.sum(axis=0) + 1) - np.log(total + 1))


def log_prior(shares: Array, log_probs: Array | None, tau: float, bias: Array, rows: slice) -> Array:
    """Log P(y) of these items: the shares, or the classifier's softmax(τ log p + b)."""
    if log_probs is None:
        return np.log(shares)[None]
    return np.asarray(np.log(np.maximum(softmax(tau * log_probs[rows] + bias), _TINY)))


def update(posterior: Array, prior: Blockwise, said: Any, matrices: Array, truth: Codes) -> float:
    """Set the posterior to P(y) Π T_a[y, vote], normalised; return its mean change. The matrices are overwritten."""
    log_matrices = np.log(matrices, out=matrices).reshape(-1, posterior.shape[1])
    change = 0.0
    for rows in blocks(*posterior.shape):
        updated = pin(softmax(prior(rows) + said[rows] @ log_matrices), truth[rows])
        change += float(np.abs(updated - posterior[rows]).sum())
        posterior[rows] = updated
    return change / len(posterior)


def log_elsewhere(votes: Triples, posterior: Array, counts: Array, totals: Array, common: Array, rows: slice) -> Array:
    """Log T_a[y, vote] for each of these votes, its item's share taken out of the counts of T_a and their totals."""
    item, annotator, vote = (codes[rows] for codes in votes)
    own = posterior[item]
    said: Array = np.maximum(counts[annotator, vote] - own, 0) + POOLING * common.T[vote]
    said /= np.maximum(totals[annotator] - own, 0) + POOLING
    return np.log(said, out=said)


def judge(prior: Blockwise, elsewhere: Blockwise, item: Codes, shape: tuple[int, ...]) -> Array:
    """Log P(y) + Σ log T_a[y, vote], T_a without the item; votes are in the order of their items."""
    logits = np.empty(shape)
    for rows in blocks(*shape):
        logits[rows] = prior(rows)
    for rows in blocks(len(item), shape[1]):
        own = item[rows]
        to_items = sparse.csr_array((np.ones(len(own)), (own - own[0], np.arange(len(own)))))
        logits[own[0] : own[-1] + 1] += to_items @ elsewhere(rows)
    return logits


def left_out(logits: Array, voices: Codes, elsewhere: Blockwise, item: Codes) -> Iterator[Predicted]:
    """Yield for blocks of votes the logits of the other voices, how many these are, and T_a[y, vote]."""
    for rows in blocks(len(item), logits.shape[1]):
        said = elsewhere(rows)
        yield logits[item[rows]] - said, voices[item[rows]] - 1, np.exp(said)


def tempered(logits: Array, voices: Codes, overlap: float) -> Array:
    """P(y) ∝ exp(logits)^w, w = 1 / (1 + (voices - 1) · overlap)."""
    worth = 1 / (1 + np.maximum(voices - 1, 0) * overlap)
    return softmax(worth[:, None] * logits)


def fit_overlap(parts: Callable[[], Iterable[Predicted]], around: float) -> float:
    """Return the overlap with the largest Σ log Σ_y P(y) likelihood[y]; its logarithm has a normal prior."""

    def loss(overlap: float) -> float:
        total = 5 * np.log((overlap + 0.05) / (around + 0.05)) ** 2
        for logits, voices, likelihood in parts():
            predicted = (tempered(logits, voices, overlap) * likelihood).sum(axis=1)
            total -= np.log(np.maximum(predicted, _TINY)).sum()
        return float(total)

    return float(minimize_scalar(loss, bounds=(0, 5), method="bounded").x)

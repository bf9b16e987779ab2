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
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import minimize_scalar

from dualt.labels import Codes
from dualt.transition import softmax

Array: TypeAlias = NDArray[np.float64]
OfItems: TypeAlias = Callable[[slice], Array]  # log P(y) of these items, or log T_a[y, vote] of each of their votes

POOLING = 3.0  # the common row of T counts as this many votes in the row of an annotator
# Annotators share errors: m votes are worth m / (1 + (m - 1) · overlap), the design effect of survey statistics.
OVERLAP = 0.4  # the usual one, with the least mean log loss over all sets of bench/votes.py
MAX_TEMPERATURE = 2.0  # upper bound of τ: a classifier that fits a higher power repeats the votes, errors included
# With few votes EM can hardly tell class shares from errors, and drifts. For both the majority counts as these votes.
MAJORITY_VOTES = 200.0  # per class
RULE_VOTES = 10  # an annotator who gave only one class may be a rule; with fewer votes it may be chance
# How often rules fire for a class says little about how frequent it is: their class shares are raised to this power.
# Even ones (0) fall behind the majority where classes are skewed, those that EM finds (1) where a rule fires too often.
RULE_SHARES = 0.5
_TINY = 1e-12
_BLOCK = 1 << 20  # arrays of votes or items × classes are made for blocks of items, with about this many values


class VotesFit(NamedTuple):
    """What EM found: P(true class) of each item, matrices `[annotator, true class, vote]`, and what they rest on."""

    posterior: Array  # (n_items, n_classes), overlap taken into account; verified items are certain
    matrices: Array  # (n_annotators, n_classes, n_classes): P(vote | true class)
    counts: Array  # expected votes of each annotator by true class and vote
    common: Array  # (n_classes, n_classes): the matrix of all votes together
    shares: Array  # (n_classes,): how frequent each true class is
    least_rate: float  # what is wrong at least: the smaller of what independent and equally good votes imply
    overlap: float  # how much voices repeat each other, 0 if they are independent
    temperature: float  # the classifier's τ, 0 without one


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
    max_iter: int = 100,  # 7 of 39 cases of bench/votes.py need more; nothing is better with a thousand
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
    # Sparse tables with a row per item: who said what, and how often each class was said.
    columns = (annotator * n_classes + vote)[np.argsort(item, kind="stable")]
    n_votes = np.bincount(item, minlength=n_items)
    one, ends = np.ones(len(item)), np.append(0, n_votes.cumsum())
    said = sparse.csr_array((one, columns, ends), shape=(n_items, n_annotators * n_classes))
    tally = sparse.csr_array((one, columns % n_classes, ends), shape=(n_items, n_classes))
    rules = rules_among(said.sum(axis=0).reshape(n_annotators, n_classes))
    voices = n_votes + (probs is not None)
    truth = np.full(n_items, -1)
    if verified is not None:
        truth[verified[0]] = verified[1]

    # EM starts with the majority, in which the classifier has one vote, and no class is ruled out.
    posterior = pin(normalised(tally.toarray() + (0.01 if probs is None else probs)), truth)
    log_probs = None if probs is None else np.log(np.clip(probs, 1e-6, 1))
    tau, bias = 1.0, np.zeros(n_classes)
    # A single vote shows neither how frequent its class is nor that it is wrong.
    confirmed = ((voices > 1) | (truth >= 0)).astype(np.float64)
    # Sums over items of P(y): a row for each class that was said, for the common matrix; the last for the class shares.
    sums = sparse.hstack([tally, confirmed[:, None]]).T.tocsr()
    by_em = sums * (confirmed * len(item) / (len(item) + MAJORITY_VOTES * n_classes))
    by_majority = sums @ posterior - by_em @ posterior
    for _ in range(max_iter):
        *pooled, frequent = by_majority + by_em @ posterior + 1
        common, shares = normalised(np.transpose(pooled)), normalised(frequent ** (RULE_SHARES if rules.any() else 1))
        counts = (said.T @ posterior).reshape(n_annotators, n_classes, n_classes)  # Σ P(y), by annotator, vote and y
        own_counts = np.where(rules[:, None, None], 0, counts) if rules.any() else counts
        if log_probs is not None:
            frequent = confirmed @ posterior + 1 if rules.any() else frequent  # the majority of rules is no guide
            tau, bias = calibrate(log_probs, posterior, confirmed, frequent, tau, bias)
        prior = partial(log_prior, shares, log_probs, tau, bias)
        before, posterior = posterior, e_step(prior, said, pooled_matrices(own_counts, common), truth)
        if np.abs(posterior - before).sum() < tol * n_items:
            break

    # Each item once more, by what its annotators said elsewhere.
    elsewhere = partial(log_elsewhere, said, posterior, own_counts, own_counts.sum(axis=1), common)
    logits = log_joint(prior, elsewhere, said, n_classes)
    if overlap is None:
        # Predict each vote from the others. Shared errors do not show, so votes only raise it, to 1: all are worth one.
        overlap = max(OVERLAP, fit_overlap(partial(left_out, logits, voices, elsewhere, said), OVERLAP, most=1.0))
        if audited is not None:
            checked = logits[audited[0]], voices[audited[0]], np.eye(n_classes)[audited[1]]
            overlap = fit_overlap(lambda: [checked], overlap, most=5.0)
    even = evenly_wrong(tally.toarray(), lambda own: log_prior(own, log_probs, tau, bias, slice(None)))
    # What is wrong at least, by the less doubtful of independent and equally good votes, less a sampling error.
    doubts = [confirmed * (1 - pin(own, truth).max(axis=1)) for own in (tempered(logits, voices, 0), even)]
    least_rate = max(0.0, min(float(doubt.sum() - 1.96 * np.sqrt(doubt @ (1 - doubt))) for doubt in doubts) / n_items)
    posterior = pin(tempered(logits, voices, overlap), truth)
    matrices, counts = pooled_matrices(own_counts, common).transpose(0, 2, 1), counts.transpose(0, 2, 1)
    return VotesFit(posterior, matrices, counts, common, shares, least_rate, overlap, tau * (probs is not None))


def rules_among(used: NDArray[Any]) -> NDArray[np.bool_]:
    """Annotators who give one class only, if most votes are theirs; `used` counts votes by annotator and class.

    One class shows no matrix, so rules have the common one. People who all give the same class met no other.
    """
    one_class = ((used > 0).sum(axis=1) == 1) & (used.sum(axis=1) >= RULE_VOTES)
    by_class = used[one_class].sum(axis=0)
    return np.asarray(one_class & (by_class.sum() > used.sum() / 2) & ((by_class > 0).sum() > 1))


def normalised(values: NDArray[Any]) -> Array:
    """Divide by the sums over the last axis."""
    return np.asarray(values / values.sum(axis=-1, keepdims=True))


def pin(posterior: Array, truth: Codes) -> Array:
    """Make items certain whose class is known (not -1), in place."""
    known = truth >= 0
    posterior[known] = np.eye(posterior.shape[1])[truth[known]]
    return posterior


def pooled_matrices(counts: Array, common: Array) -> Array:
    """T_a[y] = (counts_a[y] + POOLING · common[y]) / (Σ counts_a[y] + POOLING), a Dirichlet's mean; [a, vote, y]."""
    matrices: Array = counts + POOLING * common.T
    return np.asarray(np.divide(matrices, matrices.sum(axis=1, keepdims=True), out=matrices))


def calibrate(
    log_probs: Array, posterior: Array, confirmed: Array, frequent: Array, tau: float, bias: Array
) -> tuple[float, Array]:
    """Take a short step in softmax(τ log p + b): τ to fit the posterior (Newton), b how `frequent` classes are."""
    prior = softmax(tau * log_probs + bias)
    means = np.einsum("nc,nc->n", prior, log_probs)
    slope = np.einsum("nc,nc->", posterior, log_probs) - means.sum()
    curvature = np.einsum("nc,nc,nc->", prior, log_probs, log_probs) - means @ means
    tau = float(np.clip(tau + np.clip(slope / max(curvature, 1e-9), -0.5, 0.5), 0.1, MAX_TEMPERATURE))
    return tau, bias + 0.9 * np.log(frequent / (confirmed @ softmax(tau * log_probs + bias) + 1))


def log_prior(shares: Array, log_probs: Array | None, tau: float, bias: Array, rows: slice) -> Array:
    """Log P(y) of these items: the shares, or the classifier's softmax(τ log p + b)."""
    if log_probs is None:
        return np.log(shares)[None]
    return np.asarray(np.log(np.maximum(softmax(tau * log_probs[rows] + bias), _TINY)))


def e_step(prior: OfItems, said: Any, matrices: Array, truth: Codes) -> Array:
    """P(y | votes) ∝ P(y) Π T_a[y, vote]. The matrices are overwritten."""
    log_matrices = np.log(matrices, out=matrices).reshape(said.shape[1], -1)
    posterior = np.empty((said.shape[0], log_matrices.shape[1]))
    for rows in blocks(said, posterior.shape[1]):
        posterior[rows] = softmax(prior(rows) + said[rows] @ log_matrices)
    return pin(posterior, truth)


def log_elsewhere(said: Any, posterior: Array, counts: Array, totals: Array, common: Array, rows: slice) -> Array:
    """Log T_a[y, vote] of each vote on these items, with the item's own share taken out of counts and totals."""
    annotator, vote = np.divmod(said[rows].indices, len(common))
    own = np.repeat(posterior[rows], np.diff(said[rows].indptr), axis=0)
    likelihood: Array = np.maximum(counts[annotator, vote] - own, 0) + POOLING * common.T[vote]
    likelihood /= np.maximum(totals[annotator] - own, 0) + POOLING
    return np.log(likelihood, out=likelihood)


def log_joint(prior: OfItems, elsewhere: OfItems, said: Any, n_classes: int) -> Array:
    """Log P(y) + Σ log T_a[y, vote] of each item, T_a without the item."""
    logits = np.empty((said.shape[0], n_classes))
    for rows in blocks(said, n_classes):
        ends = said[rows].indptr
        sums = sparse.csr_array((np.ones(ends[-1]), np.arange(ends[-1]), ends), shape=(len(ends) - 1, ends[-1]))
        logits[rows] = prior(rows) + sums @ elsewhere(rows)
    return logits


def left_out(logits: Array, voices: Codes, elsewhere: OfItems, said: Any) -> Iterator[tuple[Array, Codes, Array]]:
    """Yield for blocks of votes the logits of the other voices, how many these are, and T_a[y, vote]."""
    for rows in blocks(said, logits.shape[1]):
        own, item = elsewhere(rows), np.repeat(np.arange(len(logits))[rows], np.diff(said[rows].indptr))
        yield logits[item] - own, voices[item] - 1, np.exp(own)


def tempered(logits: Array, voices: Codes, overlap: float) -> Array:
    """P(y) ∝ exp(logits)^w, w = 1 / (1 + (voices - 1) · overlap)."""
    worth = 1 / (1 + np.maximum(voices - 1, 0) * overlap)
    return softmax(worth[:, None] * logits)


def fit_overlap(parts: Callable[[], Iterable[tuple[Array, Codes, Array]]], around: float, most: float) -> float:
    """Return the overlap with the largest Σ log Σ_y P(y) likelihood[y]; its logarithm has a normal prior, σ² = 1/10.

    A part has the logits of P(y) without overlap, the voices these rest on, and the likelihood of what is predicted.
    """

    def loss(overlap: float) -> float:
        predicted = ((tempered(logits, voices, overlap) * likely).sum(axis=1) for logits, voices, likely in parts())
        fit = sum(np.log(np.maximum(own, _TINY)).sum() for own in predicted)
        return float(5 * np.log((overlap + 0.05) / (around + 0.05)) ** 2 - fit)

    return float(minimize_scalar(loss, bounds=(0, most), method="bounded").x)


def evenly_wrong(votes: Array, prior: Callable[[Array], Array]) -> Array:
    """P(y | votes) if all votes are right equally often, q, and wrong evenly; `prior` takes class shares.

    Two votes on an item then agree with probability q² + (1 − q)² / (C − 1), and the votes for a class have the share
    π q + (1 − π)(1 − q) / (C − 1). Matrices fitted to few votes make rare classes more frequent, and noise larger.
    """
    n_votes, n_classes = votes.sum(axis=1), votes.shape[1]
    agreed = (votes * (votes - 1)).sum() / max((n_votes * (n_votes - 1)).sum(), 1)
    right = (1 + np.sqrt(max((n_classes - 1) * (n_classes * agreed - 1), 0))) / n_classes
    wrong = (1 - np.clip(right, 1 / n_classes + 1e-6, 1 - 1e-6)) / (n_classes - 1)
    shares = normalised(np.maximum(votes.sum(axis=0) / votes.sum() - wrong, _TINY))
    return softmax(prior(shares) + votes * np.log(1 / wrong - n_classes + 1))


def blocks(said: Any, n_classes: int) -> Iterator[slice]:
    """Return slices of items whose votes × classes have about _BLOCK values."""
    size = max(1, _BLOCK // n_classes // (1 + said.nnz // said.shape[0]))
    return (slice(start, start + size) for start in range(0, said.shape[0], size))

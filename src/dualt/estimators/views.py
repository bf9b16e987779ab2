"""Several models instead of one: the given label and each model's vote are voices about the true class.

From one classifier's probabilities and the labels, hard examples with even noise look the same as sure examples with
noise that grows with difficulty. Three voices that err independently given the true class identify the confusion
matrix of each (Kruskal 1977; Dawid and Skene 1979); that of the given label is T.

References
----------
Dawid and Skene, "Maximum Likelihood Estimation of Observer Error-Rates Using the EM Algorithm", 1979.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from itertools import combinations
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dualt.errors import InputError
from dualt.estimators._counts import resample_counts
from dualt.estimators.clean_count import clean_count
from dualt.labels import Codes
from dualt.results.fit import Fit
from dualt.rng import stream
from dualt.rows.posterior import NoisyPosterior
from dualt.rows.scaling import apply_power, likeliest_power
from dualt.transition import clean_prior, early_posterior, softmax

Floats: TypeAlias = NDArray[np.float64]
Members: TypeAlias = Sequence[NDArray[np.float32]]

# A model's vote comes in this many levels of confidence, equally frequent: a sure vote counts more than an unsure one.
LEVELS = 5
# The matrix of a voice is smoothed by this many extra votes, whose errors are spread evenly over the other classes.
POOLING = 1.0
# Several models that are not unanimous on this share of the rows say no more than one does.
DISPUTED = 0.5
# Weight of the voices in the ranking if the models agreed on every row; the two other opinions weigh 1 each.
VOICES_WEIGHT = 0.5
# EM steps for the voices (until convergence) and for the stacked model (stopped early, since it fits noisy labels).
_STEPS, _STACKED_STEPS, _TOLERANCE = 100, 20, 1e-4
# These affect cost only: matrices are fitted on this many rows, or this many per class if that is more.
_ROWS, _ROWS_PER_CLASS = 20_000, 200
_LEAST = 1e-6


class Voices(NamedTuple):
    """P(true class) by the voices, (n_samples, n_classes), and each model's prediction: (n_models, n_samples)."""

    posterior: Floats
    named: Codes

    @property
    def belief(self) -> float:
        """How far to believe the voices: 1 − (u / `DISPUTED`)³, at least 0, if models differ on a share u of the rows.

        Weak models share their errors and outvote labels that are right, and they contradict each other too.
        """
        disputed = float((self.named != self.named[0]).any(axis=0).mean())
        return 1 - min(1.0, disputed / DISPUTED) ** 3


def views(posterior: NoisyPosterior, *, determined: bool | None = None) -> Fit:
    """T̂ = P(given label | true class), where the label and several models' votes are voices about the true class.

    The voices' matrix is weighted by how far they are believed (`Voices.belief`), the rest is `clean_count`'s.

    Parameters
    ----------
    posterior
        With the probabilities of several models; see `dualt.rows.as_posterior`.
    determined
        Whether an expert could always tell the class from the example. True: what the voices say. False: where classes
        overlap, good models make the same "error", which is none; `clean_count` on the mean of the models then says
        how much noise the labels support. None, if that is not known: halfway between the two.
    """
    if determined is False:
        return clean_count(posterior, determined=False)
    calibrated, labels = _calibrated(posterior)
    heard, label_counts = hear(calibrated, labels), posterior.summary.label_counts
    voices, belief = _table(labels, heard.posterior), heard.belief
    counted = clean_count(posterior, determined=True).transition
    transition = belief * voices + (1 - belief) * counted
    prior = belief * heard.posterior.mean(axis=0) + (1 - belief) * clean_prior(counted, label_counts)
    least = _least_rate(float(prior @ (1 - np.diagonal(transition))), heard.named)
    if determined is None:
        overlapping = clean_count(posterior, determined=False)
        transition = (transition + overlapping.transition) / 2
        prior = (prior + clean_prior(overlapping.transition, label_counts)) / 2
        least = min(least, (overlapping.rate_interval or (0.0,))[0])
    counts = heard.posterior.T @ np.eye(posterior.n_classes)[labels]
    return Fit(
        transition,
        np.rint(counts.sum(axis=1)).astype(np.int64),
        partial(_resample, counts, transition - voices),
        rate_interval=(least, 1.0),
        clean_prior=prior,
        determined=determined,
    )


def views_scores(
    posterior: NoisyPosterior, transition: Floats, determined: bool | None
) -> tuple[Codes, Floats, Codes, Floats]:
    """Return given labels, P(right), the likeliest class and its probability, by the pooled opinion of the models."""
    calibrated, labels = _calibrated(posterior)
    pooled = pooled_posterior(calibrated, labels, transition, hear(calibrated, labels) if determined else None)
    rows, suggested = np.arange(len(labels)), pooled.argmax(axis=1)
    return labels, pooled[rows, labels], suggested, pooled[rows, suggested]


def _calibrated(posterior: NoisyPosterior) -> tuple[Members, Codes]:
    """Return the calibrated probabilities of each model, and all labels."""
    if posterior.members is None:
        raise InputError(
            "The estimator 'views' needs the probabilities of several models: pass a list of arrays, or what"
            " `dualt.cross_fit` returns."
        )
    labels = np.concatenate([codes for _, codes in posterior.chunks()]).astype(np.intp)
    return calibrate_members(list(posterior.members), labels), labels


def calibrate_members(members: Sequence[NDArray[Any]], labels: Codes) -> Members:
    """Return each model's probabilities, raised to the power that makes the given labels likeliest."""
    chosen = _some_rows(len(labels), np.shape(members[0])[1])
    rows = (np.asarray(probs, np.float32) for probs in members)
    return [apply_power(probs, likeliest_power(probs[chosen], labels[chosen])) for probs in rows]


def _resample(counts: Floats, shift: Floats, rng: np.random.Generator) -> Floats:
    drawn = resample_counts(counts, rng) + POOLING * (counts + 1e-9) / (counts.sum(axis=1, keepdims=True) + 1e-6)
    rows = np.maximum(drawn / drawn.sum(axis=1, keepdims=True) + shift, 0)
    return np.asarray(rows / rows.sum(axis=1, keepdims=True))


def _least_rate(rate: float, named: Codes) -> float:
    """Return the noise rate less the largest disagreement of two models, and a sampling error.

    Errors that all models share look like wrong labels. How many there are cannot be known: the yardstick is how often
    the two most different models contradict each other.
    """
    n_rows = named.shape[1]
    apart = max(float((a != b).mean()) for a, b in combinations(named, 2))
    return max(0.0, rate - apart - 1.96 * float(np.sqrt((rate * (1 - rate) + 1 / n_rows) / n_rows)))


def hear(calibrated: Members, labels: Codes) -> Voices:
    """Return what the given label and the votes of calibrated models say about the true class, by EM.

    Votes are cast for the likeliest class, then once more for the likeliest clean class under the T that was found.
    """
    # Why not the EM of `dualt.votes`, with an annotator per model and level: it shrinks all annotators to one matrix
    # and ignores the level as evidence. With three levels the error of T was .163, not .149 (bench/several_models.py).
    n_rows, n_classes = calibrated[0].shape
    chosen = _some_rows(n_rows, n_classes)
    transition: Floats | None = None
    for _ in range(2):
        votes = [_votes(probs, transition, chosen) for probs in calibrated]
        # Rows on which every voice says the same are fitted as one: in half the time with CIFAR-10N's two networks.
        said = np.stack([labels[chosen], *(vote[chosen] for vote in votes)])
        patterns, times = np.unique(said, axis=1, return_counts=True)
        posterior = _agreement(patterns % n_classes, times, n_classes)
        for _ in range(_STEPS):
            weighted = posterior * times[:, None]
            tables = [_table(voice, weighted) for voice in patterns]
            shares = np.log((weighted.sum(axis=0) + 1) / (len(chosen) + n_classes))
            found = _posterior(shares, tables, patterns)
            change, posterior = np.abs(found - posterior).max(), found
            if change < _TOLERANCE:
                break
        transition = tables[0]
    named = np.stack([probs.argmax(axis=1) for probs in calibrated])
    return Voices(_posterior(shares, tables, [labels, *votes]), named)


def _votes(probs: NDArray[np.float32], transition: Floats | None, chosen: Codes) -> Codes:
    """Return class + n_classes · level of every row, where the level is a quantile of the confidence."""
    if transition is not None:
        probs = early_posterior(probs, transition.astype(np.float32))
    confidence = probs.max(axis=1)
    cuts = np.quantile(confidence[chosen], np.arange(1, LEVELS) / LEVELS)
    return np.asarray(probs.argmax(axis=1) + probs.shape[1] * np.digitize(confidence, cuts))


def _agreement(patterns: Codes, times: Codes, n_classes: int) -> Floats:
    """Return shares of the votes per pattern, in which each voice weighs by how often the others agree with it."""
    rows, weights = np.arange(len(times)), np.ones(len(patterns))
    for _ in range(2):
        shares = np.full((len(rows), n_classes), 0.01)
        for voice, weight in zip(patterns, weights, strict=True):
            shares[rows, voice] += weight
        shares /= shares.sum(axis=1, keepdims=True)
        agreed = [np.average(shares[rows, voice], weights=times) for voice in patterns]
        weights = np.maximum(np.array(agreed) - 1 / n_classes, 0.02)
    return shares


def _table(voice: Codes, posterior: Floats) -> Floats:
    """Return P(what a voice says | true class): (n_classes, n_classes · levels).

    At each level the counts are smoothed by `POOLING` votes that are wrong as often as all votes of this level are,
    with errors spread evenly.
    """
    n_classes = posterior.shape[1]
    levels, n_votes = int(voice.max()) // n_classes + 1, posterior.sum()
    counts = np.stack([np.bincount(voice, weights, n_classes * levels) for weights in posterior.T])
    for level in range(levels):
        own = counts[:, level * n_classes : (level + 1) * n_classes]
        total = own.sum()
        right = (np.trace(own) + 1) / (total + 2)
        evenly = np.where(np.eye(n_classes) > 0, right, (1 - right) / (n_classes - 1))
        own += POOLING * evenly * (total + 1) / (n_votes + levels)
    return np.asarray(counts / counts.sum(axis=1, keepdims=True))


def _posterior(shares: Floats, tables: Sequence[Floats], voices: Iterable[Codes]) -> Floats:
    """Return P(true class | all voices) ∝ share of the class · Π P(what a voice says | class)."""
    logs = shares + sum(np.log(table).T[voice] for table, voice in zip(tables, voices, strict=True))
    return softmax(np.asarray(logs))


def pooled_posterior(calibrated: Members, labels: Codes, transition: Floats, heard: Voices | None) -> Floats:
    """Return P(true class | models, given label), the log-linear pool of three opinions: (n_samples, n_classes).

    Bayes' rule through T on the mean of the models; a weighted model with a matrix of its own (`_stacked`); and, where
    the class is determined by the example, what the voices say (`heard`), as far as they are believed.
    """
    opinions = [(1.0, _bayes(calibrated, labels, transition)), (1.0, _stacked(calibrated, labels, transition))]
    if heard is not None:
        opinions.append((VOICES_WEIGHT * heard.belief, heard.posterior))
    logs = sum(weight * np.log(np.maximum(opinion, _LEAST)) for weight, opinion in opinions)
    return softmax(np.asarray(logs / sum(weight for weight, _ in opinions)))


def _bayes(calibrated: Members, labels: Codes, transition: Floats) -> Floats:
    """Return P(true class) by Bayes' rule through T on the mean of the models."""
    matrix = transition.astype(np.float32)
    weights = early_posterior(np.mean(calibrated, axis=0), matrix) * matrix.T[labels]
    return np.asarray(weights / np.maximum(weights.sum(axis=1, keepdims=True), 1e-30), np.float64)


def _stacked(calibrated: Members, labels: Codes, transition: Floats) -> Floats:
    """Return P(true class) of a clean class softmax(Σ a_k log p_k + b) whose label passes through a matrix, by EM.

    It starts from `transition`, and fits weights, biases and the matrix to the labels alone, as if noise depended on
    the class only: it knows better than the voices which pairs of classes are confused.
    """
    n_models, n_classes = len(calibrated), len(transition)
    logs = np.stack([np.log(np.maximum(probs, np.float32(1e-4))) for probs in calibrated])
    chosen = _some_rows(len(labels), n_classes)
    some, given = logs[:, chosen], labels[chosen]
    weights, bias = np.full(n_models, 1 / n_models), np.zeros(n_classes)
    matrix = np.maximum(transition, _LEAST)
    for _ in range(_STACKED_STEPS):
        clean = softmax(np.tensordot(weights, some, 1) + bias) * matrix.T[given]
        clean /= clean.sum(axis=1, keepdims=True)
        for _ in range(2):  # Newton for the weights with a unit ridge to their mean, proportional fitting for the bias
            model = softmax(np.tensordot(weights, some, 1) + bias)
            expected = np.einsum("nc,knc->kn", model, some)
            slope = np.einsum("nc,knc->k", clean - model, some) - (weights - 1 / n_models)
            curvature = np.einsum("inc,nc,jnc->ij", some, model, some, optimize=True) - expected @ expected.T
            step = np.linalg.solve(curvature + (1 + _LEAST) * np.eye(n_models), slope)
            weights = np.clip(weights + np.clip(step, -0.3, 0.3), 0, 5)
            model = softmax(np.tensordot(weights, some, 1) + bias)
            bias = bias + 0.9 * (np.log(clean.sum(axis=0) + 1) - np.log(model.sum(axis=0) + 1))
        matrix = _table(given, clean)
    clean = softmax(np.tensordot(weights, logs, 1) + bias) * matrix.T[labels]
    return np.asarray(clean / clean.sum(axis=1, keepdims=True))


def _some_rows(n_rows: int, n_classes: int) -> Codes:
    size = max(_ROWS, _ROWS_PER_CLASS * n_classes)
    return np.arange(n_rows) if n_rows <= size else np.sort(stream(0, "views").permutation(n_rows)[:size])

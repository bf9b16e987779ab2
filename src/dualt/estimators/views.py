"""Several models instead of one: the given label and each model's vote are voices about the true class.

From one classifier's probabilities and the labels, hard examples with even noise look the same as sure examples with
noise that grows with difficulty. Three voices that err independently given the true class identify the confusion
matrix of each (Kruskal 1977; Dawid and Skene 1979); that of the given label is T.

All models are unsure of the same rows. If each of them said so anew, a rare class would come to mean "hard"; so how
sure k models are counts as √k voices. Their EM starts from the majority of the voices and is stopped early, after two
steps for T and after one for the ranking: on real labels, one class against the rest (`bench/several_models.py`), the
error of T is .20 after two steps and at convergence, average precision .64 after one and .58 at convergence.

References
----------
Dawid and Skene, "Maximum Likelihood Estimation of Observer Error-Rates Using the EM Algorithm", 1979.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import combinations
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import entr

from dualt.errors import InputError
from dualt.estimators._counts import pooled_rows, resample_counts
from dualt.estimators.clean_count import calibrated_sample, clean_count, part_of, supported_shares
from dualt.labels import Codes
from dualt.results.fit import Fit
from dualt.rng import stream
from dualt.rows.chunks import normalize_counts
from dualt.rows.posterior import NoisyPosterior
from dualt.rows.scaling import apply_power, likeliest_power
from dualt.transition import clean_prior, early_posterior, softmax

Floats: TypeAlias = NDArray[np.float64]
Members: TypeAlias = Sequence[NDArray[np.float32]]

# A model's vote comes in this many levels of confidence, equally frequent: a sure vote counts more than an unsure one.
LEVELS = 5
# EM steps from the majority, for T and for the ranking.
TRANSITION_STEPS, RANKING_STEPS = 2, 1
# Several models that differ on this share of the rows say no more than one does.
DISPUTED = 0.45
# EM steps of the stacked model, which is stopped early because it fits noisy labels.
_STACKED_STEPS = 20
# These affect cost only: matrices are fitted on this many rows, or this many per class if that is more.
_ROWS, _ROWS_PER_CLASS = 20_000, 200
_LEAST = 1e-6


class Voices(NamedTuple):
    """What the given label and the models say together."""

    posterior: Floats  # P(true class), (n_samples, n_classes)
    counts: Floats  # rows by true class and given label
    named: Codes  # the class that each model finds likeliest, (n_models, n_samples)
    informed: Floats  # the share of the labels' entropy that each model explains, divided by the largest, (n_models,)

    @property
    def transition(self) -> Floats:
        """The matrix of the given label."""
        return normalize_counts(self.counts)

    @property
    def belief(self) -> float:
        """How far to believe the voices: 1 − (u / `DISPUTED`)³, at least 0, if models differ on a share u of the rows.

        Weak models share their errors and outvote labels that are right, and they contradict each other too. A row
        counts by the weight of the best informed pair that differs.
        """
        disputed = np.zeros(self.named.shape[1])
        for weight, differ in self.pairs():
            np.maximum(disputed, weight * differ, out=disputed)
        return 1 - min(1.0, float(disputed.mean()) / DISPUTED) ** 3

    def pairs(self) -> Iterator[tuple[float, NDArray[np.bool_]]]:
        """Yield for two models how well informed both are, and where they differ; a poor model hardly counts."""
        for a, b in combinations(range(len(self.named)), 2):
            yield float(self.informed[a] * self.informed[b]), self.named[a] != self.named[b]

    def least_rate(self, labels: Codes, rate: float) -> float:
        """Return the rate of wrong labels that a model contradicts, less the largest disagreement of two models.

        Errors that all models share look like wrong labels. How many there are cannot be known: the yardstick is how
        often two well-informed models contradict each other. Where all models name the given class, the voices may
        take unsure for wrong, most of all if one class is rare. A sampling error is subtracted too.
        """
        n_rows = len(labels)
        wrong = 1 - self.posterior[np.arange(n_rows), labels]
        contradicted = (self.informed[:, None] * (self.named != labels)).max(axis=0)  # a poor model hardly counts
        rate *= float(wrong @ contradicted / max(wrong.sum(), _LEAST))
        apart = max(weight * float(differ.mean()) for weight, differ in self.pairs())
        return max(0.0, rate - apart - 1.96 * float(np.sqrt((rate * (1 - rate) + 1 / n_rows) / n_rows)))


def views(posterior: NoisyPosterior, *, determined: bool | None = None) -> Fit:
    """T̂ = P(given label | true class), where the label and several models' votes are voices about the true class.

    The voices' matrix is weighted by how far they are believed (`Voices.belief`), the rest is `clean_count`'s.
    The lower end of the claimed rate is that of the voices (`Voices.least_rate`) or that of `clean_count` on the mean
    of the models, whichever is higher.

    Parameters
    ----------
    posterior
        With the probabilities of several models; see `dualt.rows.as_posterior`.
    determined
        Whether an expert could always tell the class from the example. True: what the voices say. False: where classes
        overlap, good models make the same "error", which is none; `clean_count` on the mean of the models then says
        how much noise the labels support. None, if that is not known: as much of what the voices say as explains the
        labels no worse than none or half of it (see `clean_count`).
    """
    if determined is False:
        return clean_count(posterior, determined=False)
    calibrated, labels = _calibrated(posterior)
    one, label_counts = clean_count(posterior, determined=True), posterior.summary.label_counts
    heard = hear(calibrated, labels, TRANSITION_STEPS)
    voices, belief = heard.transition, heard.belief
    transition = belief * voices + (1 - belief) * one.transition
    prior = belief * heard.posterior.mean(axis=0) + (1 - belief) * clean_prior(one.transition, label_counts)
    rate = float(prior @ (1 - np.diagonal(transition)))
    least, share = heard.least_rate(labels, rate), 1.0
    if determined is None:
        shares = supported_shares(calibrated_sample(posterior), transition, posterior.n_jobs)
        least, share = min(least, shares.least * rate), shares.most
    least = max(least, (one.rate_interval or (0.0,))[0])
    return Fit(
        part_of(transition, share),
        np.rint(heard.counts.sum(axis=1)).astype(np.int64),
        partial(_resample, heard.counts, transition - voices, share),
        rate_interval=(least, 1.0),
        clean_prior=share * prior + (1 - share) * label_counts / label_counts.sum(),
        determined=determined,
    )


def views_scores(
    posterior: NoisyPosterior, transition: Floats, determined: bool | None
) -> tuple[Codes, Floats, Codes, Floats]:
    """Return given labels, P(right), the likeliest class and its probability, by the pooled opinion of the models."""
    calibrated, labels = _calibrated(posterior)
    heard = None if determined is False else hear(calibrated, labels, RANKING_STEPS)
    pooled = pooled_posterior(calibrated, labels, transition, heard)
    rows, suggested = np.arange(len(labels)), pooled.argmax(axis=1)
    return labels, pooled[rows, labels], suggested, pooled[rows, suggested]


def _calibrated(posterior: NoisyPosterior) -> tuple[Members, Codes]:
    """Return the calibrated probabilities of each model, and all labels."""
    if posterior.members is None:
        raise InputError(
            "The estimator 'views' needs the probabilities of several models: pass several files (one.npy,other.npy), a"
            " list of arrays, or what `dualt.cross_fit` returns."
        )
    labels = np.concatenate([codes for _, codes in posterior.chunks()]).astype(np.intp)
    return calibrate_members(list(posterior.members), labels), labels


def calibrate_members(members: Sequence[NDArray[Any]], labels: Codes) -> Members:
    """Return each model's probabilities, raised to the power that makes the given labels likeliest."""
    chosen = _some_rows(len(labels), np.shape(members[0])[1])
    rows = (np.asarray(probs, np.float32) for probs in members)
    return [apply_power(probs, likeliest_power(probs[chosen], labels[chosen])) for probs in rows]


def _resample(counts: Floats, shift: Floats, share: float, rng: np.random.Generator) -> Floats:
    rows = np.maximum(normalize_counts(resample_counts(counts, rng)) + shift, 0)
    return part_of(rows / rows.sum(axis=1, keepdims=True), share)


def hear(calibrated: Members, labels: Codes, n_steps: int) -> Voices:
    """Return what the given label and the votes of calibrated models say about the true class.

    An EM step counts how often a voice says what in each class, and applies Bayes' rule; it starts from the majority.
    Models are unsure of the same rows, so that how sure k of them are counts as √k voices, not as k.
    Votes are cast for the likeliest class, then once more for the likeliest clean class under the T that was found,
    where classes with few labels borrow from the others: nobody votes for the class of a single typo.
    """
    n_rows, n_classes = calibrated[0].shape
    rows, transition = np.arange(n_rows), None
    for _ in range(2):
        voices = [labels, *(_votes(probs, transition) for probs in calibrated)]
        posterior = np.full((n_rows, n_classes), 0.01)
        for voice in voices:
            posterior[rows, voice % n_classes] += 1
        posterior /= posterior.sum(axis=1, keepdims=True)
        for _ in range(n_steps):
            logs = np.tile(np.log(posterior.mean(axis=0)), (n_rows, 1))
            for voice in voices:
                logs += _log_likelihoods(_count(voice, posterior), 1 / np.sqrt(len(calibrated)))[voice]
            posterior = softmax(logs)
        counts = _count(labels, posterior)
        transition = pooled_rows(counts)
    named = np.stack([probs.argmax(axis=1) for probs in calibrated])
    return Voices(posterior, counts, named, _informed(calibrated, labels))


def _informed(calibrated: Members, labels: Codes) -> Floats:
    """Return the share of the labels' entropy that each model explains, divided by the largest."""
    n_rows, n_classes = calibrated[0].shape
    entropy = float(entr(np.bincount(labels, minlength=n_classes) / n_rows).sum())
    logs = [np.log(np.maximum(probs[np.arange(n_rows), labels], _LEAST)).mean() for probs in calibrated]
    explained = np.maximum(1 + np.array(logs) / max(entropy, _LEAST), _LEAST)
    return np.asarray(explained / explained.max(), np.float64)


def _votes(probs: NDArray[np.float32], transition: Floats | None) -> Codes:
    """Return class + n_classes · level of every row, where the level is a quantile of the confidence."""
    if transition is not None:
        probs = early_posterior(probs, transition.astype(np.float32))
    confidence = probs.max(axis=1)
    levels = np.digitize(confidence, np.quantile(confidence, np.arange(1, LEVELS) / LEVELS))
    return np.asarray(probs.argmax(axis=1) + probs.shape[1] * levels)


def _count(voice: Codes, posterior: Floats) -> Floats:
    """Return how often a voice says what in each class: (n_classes, n_classes · levels)."""
    n_rows, n_classes = posterior.shape
    shape = (int(voice.max()) // n_classes + 1) * n_classes, n_rows
    said = sparse.csc_array((np.ones(n_rows), voice, np.arange(n_rows + 1)), shape=shape)
    return np.asarray((said @ posterior).T)


def _log_likelihoods(counts: Floats, worth: float) -> Floats:
    """Return log P(class named | true class) + worth · log P(level | both), (n_classes · levels, n_classes).

    To its counts each true class adds one more vote like those of all classes together.
    """
    n_classes, rows = len(counts), counts + counts.sum(axis=0) / counts.sum()
    joint = (rows / rows.sum(axis=1, keepdims=True)).reshape(n_classes, -1, n_classes) + _LEAST**2
    named = joint.sum(axis=1, keepdims=True)
    logs = np.log(named) + worth * np.log(joint / named)
    return np.asarray(logs.reshape(n_classes, -1).T)


def pooled_posterior(calibrated: Members, labels: Codes, transition: Floats, heard: Voices | None) -> Floats:
    """Return P(true class | models, given label), the log-linear pool of three opinions: (n_samples, n_classes).

    Bayes' rule through T on the mean of the models; a weighted model with a matrix of its own (`_stacked`); and, where
    the class may be determined by the example, what the voices say (`heard`), as far as they are believed.
    """
    opinions = [(1.0, _bayes(calibrated, labels, transition)), (1.0, _stacked(calibrated, labels, transition))]
    if heard is not None:
        opinions.append((heard.belief, heard.posterior))
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
    flat = some.reshape(n_models, -1)
    weights, bias = np.full(n_models, 1 / n_models, np.float32), np.zeros(n_classes, np.float32)
    matrix = np.maximum(transition, _LEAST)
    for _ in range(_STACKED_STEPS):
        model = softmax(np.tensordot(weights, some, 1) + bias)
        clean = model * matrix.T[given]
        clean /= clean.sum(axis=1, keepdims=True)
        # A Newton step for the weights, with a unit ridge to their mean; then proportional fitting for the bias.
        expected = some * model
        means = expected.sum(axis=2)
        slope = flat @ (clean - model).ravel() - (weights - 1 / n_models)
        curvature = expected.reshape(n_models, -1) @ flat.T - means @ means.T
        step = np.linalg.solve(curvature + (1 + _LEAST) * np.eye(n_models), slope)
        weights = np.clip(weights + step, 0, 5).astype(np.float32)
        model = softmax(np.tensordot(weights, some, 1) + bias)
        bias += 0.9 * (np.log(clean.sum(axis=0) + 1) - np.log(model.sum(axis=0) + 1))
        counts = _count(given, clean) + 1e-3  # no label is impossible
        matrix = counts / counts.sum(axis=1, keepdims=True)
    clean = softmax(np.tensordot(weights, logs, 1) + bias) * matrix.T[labels]
    return np.asarray(clean / clean.sum(axis=1, keepdims=True))


def _some_rows(n_rows: int, n_classes: int) -> Codes:
    size = max(_ROWS, _ROWS_PER_CLASS * n_classes)
    return np.arange(n_rows) if n_rows <= size else np.sort(stream(0, "views").permutation(n_rows)[:size])

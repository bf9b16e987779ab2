"""Count the given labels among the examples whose *true* class is clear, and read what the others may mean."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualt.estimators._counts import match_rows, surest_few
from dualt.estimators._layers import LIKELY, Sureness, counted_rows, fit_layers
from dualt.estimators.confident_joint import confident_joint_of_sample, count_confident
from dualt.labels import Codes
from dualt.results.fit import Fit, Matrix
from dualt.rows.confidence import FAR_TOO_SURE, calibration_of_sample, power_to_read, raised, too_sure
from dualt.rows.counts import count_pairs
from dualt.rows.floats import surest
from dualt.rows.posterior import NoisyPosterior
from dualt.rows.summary import PosteriorSummary
from dualt.transition import EarlyPosterior
from dualt.validation import check_fraction

# A class that is seldom clear still counts its clearest members: this share, and this many, of them.
_LEAST_SHARE, _LEAST_MEMBERS = 0.1, 100
# So many examples of the sample count however doubtful they are: the surest of all classes together.
_FEWEST_SURE = 30
# The sample stands for the data in all rounds but the last if it has this many rows for each class.
_ENOUGH_PER_CLASS = 100
_BALANCED_ROUNDS, _BALANCE_STEPS = 3, 5
# Thresholds and a first matrix need no more rows of the sample than so many, and so many for each class; a matrix that
# is going to be counted anew, a quarter of them.
_FEW_ROWS, _FEW_ROWS_PER_CLASS = 8_192, 500
# Of a class that nothing resembles no weight may overflow.
_LEAST_MEAN = 1e-6
_ROUNDING = 1e-5
# A mean sureness below which a calibrated classifier is weak.
_WEAK = 0.45
# Above this the counts of several layers take too much memory, and only the surest examples are counted.
_MANY_CLASSES = 2_000


def clean_count(posterior: NoisyPosterior, *, confidence: float = 0.9, shrink: bool = True) -> Fit:
    """T̂[i, j] = share of given label j among the examples whose clean class is i with `confidence`.

    dual-T with a better intermediate class: not the prediction, which follows the noise, but the most
    probable *clean* class under a first estimate (the confident joint), among examples that are sure of
    it. T♣ is then the identity, and the counted T♠ is the whole transition. Six rounds, each of which reads
    the clean class with the matrix of the one before, all but the last on a sample of the data. Where there
    are too many classes for a sample, one round on all of it, with the rows of the confident joint drawn to their mean.

    Of few examples and much noise, a class whose first row is poor may lose its examples to another. So in the
    first three rounds each class gets as large a share as its label has (later ones are free to leave it), and
    rows that have changed places are put back: see `match_rows`.

    The last round counts the examples in layers of sureness; a classifier that says far less than it knows is sharpened
    for it, one that is far too sure, or weak and too sure, softened: see `calibration`. The mean of the rows counted at
    `confidence` and at twice its doubt is what the sure examples say. Doubtful ones may add to it: see `_layers`. What
    the layers say of the least and the most noise goes with the estimate, as `Readings`.

    Needs out-of-fold probabilities: counting is honest only if the choice has not seen the labels.

    Parameters
    ----------
    posterior
    confidence
        Clean posterior that makes a class clear. In a class where few examples reach it, the clearest tenth,
        and at least a hundred, count, unless the classifier is so weak that its clearest are not clear.
    shrink
        Draw noise rates to their mean and off-diagonals towards uniform by as much as chance explains; see
        `pooled_rows`.
    """
    check_fraction(confidence, "confidence")
    reader = EarlyPosterior(_rough(posterior, confidence, shrink), posterior.dtype)
    likely = min(LIKELY, confidence)
    levels = np.array([likely, max(2 * confidence - 1, likely), confidence])
    if posterior.n_classes > _MANY_CLASSES:
        levels = levels[-1:]
    few = _few(posterior.summary)
    fitting = calibration_of_sample(posterior.summary)
    power = power_to_read(fitting)
    clean, sureness = reader.clearest(raised(few.sample_rows, power), posterior.n_jobs)
    calibrated = sureness
    if fitting < power:
        fitted, calibrated = reader.clearest(raised(few.sample_rows, fitting), posterior.n_jobs)
        if calibrated.mean() < _WEAK:  # a weak one that is too sure: its own errors would be most of the noise
            power, clean, sureness = fitting, fitted, calibrated
    limits = _thresholds(clean, sureness, few, levels)
    sure = sureness >= limits[-1][clean]
    surely = float(sureness[sure].mean()) if sure.any() else confidence
    doubt = most_doubt = full_doubt = min(1 - confidence, 1 - surely)
    if fitting <= 1 and sure.any():  # one that says less than it knows has less doubt than it says
        undue = too_sure(fitting) * (surely - float(calibrated[sure].mean()))
        most_doubt, full_doubt = doubt + undue, 1 - surely + undue
    # Of few examples those that count may not be sure enough to show noise.
    surest = surest_few(few) if posterior.n_samples < 3 * _LEAST_MEMBERS * posterior.n_classes else (0, 0)
    if fitting < FAR_TOO_SURE or sureness.mean() < LIKELY:  # what contradicts it does not show that a label is wrong
        surest = (0, _FEWEST_SURE)
    about = Sureness(float(sureness.mean()), doubt, most_doubt, full_doubt, surest, power)
    return fit_layers(_count_layers(posterior, reader, limits, power), shrink, about)


def _rough(posterior: NoisyPosterior, confidence: float, shrink: bool) -> Matrix:
    """Return the matrix of all rounds but the last."""
    summary = posterior.summary
    n_sampled = len(summary.sample_rows)
    if n_sampled < summary.n_samples and n_sampled < _ENOUGH_PER_CLASS * summary.n_classes:
        return counted_rows(count_confident(posterior).T, shrink)
    rough = confident_joint_of_sample(summary)
    few, fewer = _few(summary), _few(summary, share=4)
    for balanced in [True] * _BALANCED_ROUNDS + [False]:
        rough = _round_on_sample(fewer, rough, confidence, shrink, balanced=balanced, n_jobs=posterior.n_jobs)
    return _round_on_sample(few, rough, confidence, shrink, balanced=False, n_jobs=posterior.n_jobs)


def _few(summary: PosteriorSummary, share: int = 1) -> PosteriorSummary:
    """Return the summary with one in k rows of its sample, which leaves enough, or one in `share` of these."""
    n_rows = len(summary.sample_rows)
    return summary.thinned(n_rows // max(1, share * n_rows // max(_FEW_ROWS, _FEW_ROWS_PER_CLASS * summary.n_classes)))


def _round_on_sample(
    summary: PosteriorSummary, transition: Matrix, confidence: float, shrink: bool, *, balanced: bool, n_jobs: int
) -> Matrix:
    """Return the rows counted over those of the sample that are sure of their clean class."""
    rows, counts = summary.sample_rows, summary.label_counts
    reader = EarlyPosterior(transition, rows.dtype)
    clean, sureness = surest(_balance(reader(rows, n_jobs), counts)) if balanced else reader.clearest(rows, n_jobs)
    limits = _thresholds(clean, sureness, summary, np.array([confidence]), floored=not balanced)[0]
    clear = sureness >= limits[clean]
    keys = clean[clear] * summary.n_classes + summary.sample_labels[clear]
    return match_rows(counted_rows(count_pairs([keys], summary.n_classes), shrink))[0]


def _balance(posterior: NDArray[Any], label_counts: NDArray[np.int64]) -> NDArray[Any]:
    """Weigh the classes until the mean of each is the share of its label, and normalise the rows again."""
    shares = (label_counts + 1) / (label_counts.sum() + len(label_counts))
    weights = np.ones(len(shares), posterior.dtype)
    tiny = np.finfo(posterior.dtype).tiny
    for _ in range(_BALANCE_STEPS):
        means = weights * ((1 / np.maximum(posterior @ weights, tiny)) @ posterior) / len(posterior)
        weights *= (shares / np.maximum(means, _LEAST_MEAN)).astype(posterior.dtype)
    weighted = posterior * weights
    weighted /= np.maximum(posterior @ weights, tiny)[:, None]
    return weighted


def _thresholds(
    clean: NDArray[np.intp],
    sureness: NDArray[Any],
    summary: PosteriorSummary,
    levels: NDArray[np.float64],
    *,
    floored: bool = True,
) -> NDArray[np.float64]:
    """Return the sureness that counts at each level in each class: the level, or less where too few reach it.

    If `floored`, no example counts that is less sure than one minus the mean sureness: doubtful examples of a good
    classifier are hard ones, those of a classifier that is seldom sure say nothing of the labels. Only the surest few
    of all classes count even if they are less sure: without any, no noise would be found. The balanced rounds count
    doubtful examples all the same, lest a class lose its examples before it has a row.
    """
    classes = np.arange(summary.n_classes)
    # The members of each class together, the surest first: a sureness is at most one, up to rounding.
    members = np.sort(2.0 * clean - sureness)
    starts = np.searchsorted(members, 2.0 * np.append(classes, len(classes)) - 1.5)
    sizes = np.diff(starts)
    least = _LEAST_MEMBERS * len(clean) / summary.n_samples
    needed = np.ceil(np.maximum(least, _LEAST_SHARE * sizes)).astype(np.intp)
    last = np.maximum(starts[:-1] + np.minimum(needed, sizes) - 1, 0)
    reached = np.where(sizes > 0, 2.0 * classes - members[last], 1)
    floor = min(1 - float(sureness.mean()), float(np.sort(sureness)[-_FEWEST_SURE:][0])) if floored else 0.0
    thresholds = np.minimum(levels[:, None], np.maximum(floor, reached))
    # The member that sets a threshold must reach it although its sureness is rounded anew in each pass.
    return np.asarray(thresholds - _ROUNDING)


def _count_layers(
    posterior: NoisyPosterior, reader: EarlyPosterior, limits: NDArray[np.float64], power: float
) -> NDArray[np.int64]:
    """Count (clean class, given label) over all examples, by how many of the `limits` of its class each reaches.

    Returns (len(limits) + 1, n_classes, n_classes); the first layer is of the examples that reach none, and is left
    empty if there is only one limit.
    """
    n_classes, n_layers = posterior.n_classes, len(limits) + 1

    def pairs(probs: NDArray[Any], labels: Codes) -> NDArray[np.intp]:
        clean, sureness = reader.clearest(raised(probs, power))
        reached = [sureness >= limit[clean] for limit in limits]
        if n_layers == 2:
            kept = np.flatnonzero(reached[0])
            return np.asarray(clean[kept] * n_classes + labels[kept])
        layers = np.zeros(len(clean), np.int8)  # a byte each, which is added in no time
        for one in reached:
            layers += one
        keys = np.multiply(layers, n_classes, dtype=np.intp)
        keys += clean
        keys *= n_classes
        keys += labels
        return keys

    counted = posterior.count(pairs, n_layers) if n_layers > 2 else posterior.count(pairs)
    return counted if n_layers > 2 else np.stack([np.zeros_like(counted), counted])

"""The default with one model: count given labels among examples whose *true* class is clear."""

from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dualt.estimators._counts import pooled_rows, resample_counts
from dualt.estimators.confident_joint import calibrated_joint, confident_pairs, with_diagonal
from dualt.labels import Codes
from dualt.results.fit import Fit, Matrix
from dualt.rows.chunks import add_counts, count_pairs, entries_at
from dualt.rows.posterior import NoisyPosterior
from dualt.rows.scaling import apply_power
from dualt.rows.summary import PosteriorSummary
from dualt.transition import EarlyPosterior, clean_prior

# Together with TAIL in `dualt.rows.scaling` and the EM steps of `EarlyPosterior`, these are its tuned constants.
# A row whose likeliest true class has at least this probability gets weight 1; below it, (probability / SURE)^FADE.
SURE, FADE = 0.9, 8
ROUNDS = 6
# An amount of noise is rejected if it explains the labels worse than another by this many standard errors.
Z = 3.0

# These affect cost only: all rounds but the last, and the likelihood, use a sample of this many rows. With many classes
# the rounds use at least this many rows per class, and the likelihood at most this many probabilities in all; for each
# amount of noise it takes this many EM steps more, which is nearly to convergence.
_ROWS, _ROWS_PER_CLASS, _FIT_ENTRIES, _FIT_STEPS = 4_096, 100, 1 << 19, 6
# These affect resolution only: the shares m of the counted noise that are compared, and the unit of weights.
_SHARES = np.array([0, 1, 2, 4, 6, 8, 10, 12, 14, 16]) / 16
_UNIT = 1 / 1024
# Stop the rounds if even the surest row is nearly uniform (0 is a uniform guess, 1 is certainty): with random labels,
# every further round would multiply rounding errors by a hundred.
_LEAST_SURE = 0.3


def clean_count(posterior: NoisyPosterior, *, determined: bool | None = None) -> Fit:
    """T̂ = I + m(N − I): N counts labels by the likeliest true class, m is the share of that noise the labels support.

    1. Calibrate the probabilities to the given labels by one power.
    2. Six rounds: read q, the clean posterior through the present N (the confident joint at first); count
       (argmax q, given label) with the weight min(1, max q / 0.9)^8; let classes with few labels borrow from the others
       (`pooled_rows`). All rounds but the last on a sample.
    3. With q_m the clean posterior under T_m = I + m(N − I), labels drawn from q_m T_m have a likelihood. An m is
       rejected against another if it explains the labels worse by more than three standard errors (Vuong's test) plus
       9/2 (three standard errors of m itself).

    The lower end of the claimed rate is the smaller of two figures: the noise rate of the smallest m that is not
    rejected against the likeliest, and how much more often counted rows disagree with their labels than their own
    probabilities predict, less three standard errors.

    Needs out-of-fold probabilities: counting is honest only if the classifier has not seen the labels.

    Parameters
    ----------
    determined
        Whether an expert could always tell the class from the example. True: what disagrees is noise (m = 1). False:
        classes overlap, and m is the likeliest. None, if that is not known: m is the largest that is not rejected
        against m = 0 or m / 2, the most noise that explains the labels no worse than none or half as much.
    """
    summary = posterior.summary
    power, few = posterior.power, calibrated_sample(posterior)
    reader = EarlyPosterior(_rounds(few.sample_rows, few.sample_labels, posterior.n_jobs), posterior.dtype)
    counted = _count(posterior, reader, power, _full(reader.clearest(few.sample_rows, posterior.n_jobs)[1]))
    matrix = pooled_rows(counted.counts)
    shares = supported_shares(few, matrix, posterior.n_jobs)
    share = shares.most if determined is None else 1.0 if determined else shares.likeliest
    least = part_of(matrix, shares.least)
    least_rate = float(clean_prior(least, summary.label_counts) @ (1 - np.diagonal(least)))
    return Fit(
        part_of(matrix, share),
        np.rint(counted.counts.sum(axis=1)).astype(np.int64),
        partial(_resample, counted.counts, share),
        rate_interval=(min(counted.least(), least_rate), 1.0),
        determined=determined,
    )


class Shares(NamedTuple):
    """Shares m of the noise in a matrix that the labels support: the smallest, the likeliest and the largest."""

    least: float  # not rejected against the likeliest
    likeliest: float
    most: float  # not rejected against m = 0 or m / 2


def calibrated_sample(posterior: NoisyPosterior) -> PosteriorSummary:
    """Return the summary with a sample for the rounds, its rows calibrated."""
    few = posterior.summary.thinned(max(_ROWS, _ROWS_PER_CLASS * posterior.n_classes))
    return replace(few, sample_rows=apply_power(few.sample_rows, posterior.power))


def supported_shares(sample: PosteriorSummary, matrix: Matrix, n_jobs: int) -> Shares:
    """Return how much of the noise in `matrix` the labels of a calibrated sample support, by their likelihood."""
    fewer = sample.thinned(min(_ROWS, _FIT_ENTRIES // len(matrix)))
    fits = _log_likelihoods(fewer.sample_rows, fewer.sample_labels, matrix, n_jobs)
    likeliest = int(fits.sum(axis=1).argmax())
    halves = np.searchsorted(_SHARES, _SHARES / 2, side="right") - 1
    least = _SHARES[_not_refuted(fits, fits[likeliest])].min()
    most = _SHARES[_not_refuted(fits, fits[0]) | _not_refuted(fits, fits[halves])].max()
    return Shares(float(least), float(_SHARES[likeliest]), float(most))


def _resample(counts: NDArray[np.float64], share: float, rng: np.random.Generator) -> Matrix:
    return part_of(pooled_rows(resample_counts(counts, rng)), share)


def part_of(matrix: Matrix, share: float) -> Matrix:
    """Return I + share · (matrix − I)."""
    part = share * matrix
    part[np.diag_indices(len(part))] += 1 - share
    return part


def _rounds(rows: NDArray[Any], labels: Codes, n_jobs: int) -> Matrix:
    """Return the matrix of all rounds but the last."""
    n_classes = rows.shape[1]
    label_counts = np.bincount(labels, minlength=n_classes)
    own = np.bincount(labels, entries_at(rows, labels), n_classes)
    thresholds = np.where(label_counts > 0, own / np.maximum(label_counts, 1), np.inf).astype(rows.dtype)
    counts = with_diagonal(count_pairs([confident_pairs(thresholds, rows, labels)], n_classes))
    matrix = calibrated_joint(counts, label_counts)
    for _ in range(ROUNDS - 1):
        clean, sureness = EarlyPosterior(matrix, rows.dtype).clearest(rows, n_jobs)
        if (sureness.max() - 1 / n_classes) / (1 - 1 / n_classes) < _LEAST_SURE:
            break
        counted = np.bincount(clean * n_classes + labels, _weigh(sureness, _full(sureness)), n_classes**2)
        matrix = pooled_rows(counted.reshape(n_classes, n_classes))
    return matrix


def _full(sureness: NDArray[Any]) -> float:
    """Return the sureness from which a row counts in full: where none is as sure as `SURE`, that of the surest."""
    return min(SURE, float(sureness.max()))


def _weigh(sureness: NDArray[Any], full: float) -> NDArray[Any]:
    """Return min(1, sureness / full)^FADE in whole multiples of a unit, whose sums do not depend on their order."""
    weights = np.minimum(sureness / sureness.dtype.type(full), 1) ** FADE
    return np.asarray(np.rint(weights / _UNIT) * _UNIT)


class _Counted(NamedTuple):
    """Weighted counts[clean, given] of all rows, and the sums of weights, their squares and weighted sureness."""

    counts: NDArray[np.float64]
    weight: float
    squares: float
    sure: float

    def least(self) -> float:
        """Return (disagreement − doubt) / (1 − doubt), less `Z` standard errors."""
        disagree = 1 - float(np.trace(self.counts)) / self.weight
        doubt, n_counted = 1 - self.sure / self.weight, self.weight**2 / self.squares
        error = float(np.sqrt((disagree * (1 - disagree) + 1 / n_counted) / n_counted))
        return max(0.0, (disagree - doubt) / (1 - doubt) - Z * error)


def _count(posterior: NoisyPosterior, reader: EarlyPosterior, power: float, full: float) -> _Counted:
    """Count (clean class, given label) over all rows, in one pass."""
    n_classes = posterior.n_classes

    def read(probs: NDArray[Any], labels: Codes) -> tuple[NDArray[np.intp], NDArray[Any], NDArray[Any]]:
        clean, sureness = reader.clearest(apply_power(probs, power))
        return clean * n_classes + labels, _weigh(sureness, full), np.minimum(sureness, 1)

    counts, sums = np.zeros(n_classes**2), np.zeros(3)
    for keys, weights, sureness in posterior.map(read):
        add_counts(counts, keys, weights)
        exact = weights.astype(np.float64)
        sums += exact.sum(), exact @ exact, exact @ sureness
    return _Counted(counts.reshape(n_classes, n_classes), *(max(float(value), 1e-9) for value in sums))


def _log_likelihoods(rows: NDArray[Any], labels: Codes, matrix: Matrix, n_jobs: int) -> NDArray[np.float64]:
    """Return the log-likelihood of every label under each of `_SHARES` of the noise, (n_shares, n_rows)."""
    found, clean, ones = np.empty((len(_SHARES), len(rows))), rows, np.ones(len(matrix), rows.dtype)
    for fits, share in zip(found, _SHARES.tolist(), strict=True):
        part = part_of(matrix, share).astype(rows.dtype)
        if share:  # little more noise than in the last one: its posterior is a good start
            clean = EarlyPosterior(part, rows.dtype, _FIT_STEPS)(rows, n_jobs, start=clean)
        ways = np.ascontiguousarray(part.T).take(labels, axis=0)
        ways *= clean
        np.log(np.maximum(ways @ ones, 1e-12), out=fits)
    return found


def _not_refuted(fits: NDArray[np.float64], against: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return which shares explain the labels no worse, by `Z` standard errors, than `against` does."""
    gain = fits - against
    total = gain.sum(axis=1)
    gain -= total[:, None] / gain.shape[1]
    error = np.sqrt(np.einsum("ij,ij->i", gain, gain))
    return np.asarray(total >= -Z * error - Z**2 / 2)

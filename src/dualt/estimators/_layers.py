"""What labels mean that were counted in layers, by how sure their examples are of the clean class."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dualt.estimators._counts import alikeness, pooled_rates, pooled_rows, resample_counts, spread_concentration
from dualt.results.fit import Fit, Matrix
from dualt.results.readings import Readings
from dualt.rows.counts import normalize_counts

# A class likelier than all others together.
LIKELY = 0.5
# Noise of doubtful examples is taken to add at most this share to that of the sure ones, and half of it is believed.
_MOST_GROWTH, _BELIEVED = 0.75, 0.5
# If less of all disagreement than this is there among the surest examples, the labels may all be right.
_MAYBE_NONE = 1 / 4


def counted_rows(counts: NDArray[np.int64], shrink: bool, concentration: float | None = None) -> Matrix:
    """Return the rows of counts, perhaps pooled."""
    return pooled_rows(counts, concentration) if shrink else normalize_counts(counts)


class _Counted(NamedTuple):
    """Rows counted among all examples, likely ones, sure ones and the surest."""

    everyone: Matrix
    likely: Matrix
    sure: Matrix
    surest: Matrix


def _reaching(layers: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the counts of the examples of each layer and of those above it."""
    return np.asarray(layers[::-1].cumsum(axis=0)[::-1])


def _counted(counts: NDArray[np.int64], shrink: bool, concentrations: NDArray[np.float64]) -> _Counted:
    rows = [counted_rows(count, shrink, own) for count, own in zip(counts, concentrations, strict=True)]
    if len(rows) == 2:  # of many classes only the surest were counted
        return _Counted(*[rows[-1]] * 4)
    return _Counted(rows[0], rows[1], (rows[2] + rows[3]) / 2, rows[3])


class Sureness(NamedTuple):
    """How sure a classifier is of the clean class.

    mean
        Over all examples.
    doubt
        How often the sure may be of another class, as the classifier says, but at most what `confidence` allows.
    most_doubt
        The same with what it is too sure of.
    full_doubt
        The same without that limit, as where classes overlap.
    surest, power
        As in `Readings`.
    """

    mean: float
    doubt: float
    most_doubt: float
    full_doubt: float
    surest: tuple[int, int]
    power: float


def fit_layers(layers: NDArray[np.int64], shrink: bool, sureness: Sureness) -> Fit:
    """Return the fit of counted layers, with the readings between which it lies."""
    counts = _reaching(layers)
    concentrations = np.array([spread_concentration(count) for count in counts])
    counted = _counted(counts, shrink, concentrations)
    support = counts[-1].sum(axis=1)
    # How far the doubtful examples err in the way of the sure ones.
    alike = alikeness(counted.surest, counts[0] - counts[-1])
    grown = _growth(counted, alike, sureness.mean)
    rate_of_sure, rate_of_all = (1 - np.trace(count) / max(count.sum(), 1) for count in (counts[-1], counts[0]))
    # The share of all disagreement that even the surest examples show.
    evidence, cautious = (
        min(1.0, float(_beyond(rate_of_sure, doubt)) / max(rate_of_all, 1e-9))
        for doubt in (sureness.doubt, sureness.full_doubt)
    )
    least = _beyond(pooled_rates(counts[-1]), sureness.most_doubt)
    if cautious < _MAYBE_NONE:
        least = np.zeros_like(least)
    most = np.maximum(least, 1 - (np.diagonal(counted.likely) + np.diagonal(counted.everyone)) / 2)
    readings = Readings(
        least=least,
        most=most,
        least_support=support,
        most_support=counts[min(1, len(counts) - 1)].sum(axis=1),
        seldom_sure=sureness.mean < LIKELY,
        trust=_trust(evidence, alike),
        surest=sureness.surest,
        power=sureness.power,
    )
    transition = _blend(counted, grown)
    resample = partial(_resampled, layers, shrink, concentrations, grown)
    return Fit(transition, support, resample, readings=readings)


def _beyond(rates: Any, doubt: float) -> NDArray[np.float64]:
    """Return what is left of rates of contradicted labels if examples are of another class with probability `doubt`."""
    return np.asarray(np.maximum(0, (rates - doubt) / (1 - doubt)))


def _growth(counted: _Counted, alike: float, mean_sureness: float) -> NDArray[np.float64]:
    """Return how far each row goes from what the sure examples say towards what all of them say.

    Only as far as doubtful examples err alike, and not for a classifier that is seldom sure. Noise is taken to grow
    to 1.75 times that of the sure examples at most, and half of that is believed: it is between two readings.
    """
    able = min(1.0, max(0.0, 4 * mean_sureness - 2))
    rates = 1 - np.diagonal(counted.sure)
    room = np.maximum(np.diagonal(counted.sure) - np.diagonal(counted.everyone), 1e-9)
    return np.asarray(_BELIEVED * able * max(0.0, 2 * alike - 1) * np.minimum(1, _MOST_GROWTH * rates / room))


def _blend(counted: _Counted, grown: NDArray[np.float64]) -> Matrix:
    return np.asarray((1 - grown)[:, None] * counted.sure + grown[:, None] * counted.everyone)


def _resampled(
    layers: NDArray[np.int64],
    shrink: bool,
    concentrations: NDArray[np.float64],
    grown: NDArray[np.float64],
    rng: np.random.Generator,
) -> Matrix:
    drawn = resample_counts(layers.reshape(-1, layers.shape[-1]), rng).reshape(layers.shape)
    return _blend(_counted(_reaching(drawn), shrink, concentrations), grown)


def _trust(evidence: float, alike: float) -> float:
    """Return how far the matrix may decide which labels are wrong, 0 to 1.

    `evidence` e is the share of all disagreement that even the surest examples show: e²/(e² + (1−e)²) makes it a vote.
    Where doubtful examples err in the way of the sure ones, the probabilities know that structure already.
    """
    vote = evidence**2 / (evidence**2 + (1 - evidence) ** 2)
    return vote * min(1.0, 2 * (1 - alike))

"""Which labels to check: draws with known inclusion probabilities, batches that add up, and how many are needed.

Every row has a permanent random number, made from the seed and the row's number alone. A draw of m_h rows of stratum
h takes the m_h rows with the smallest numbers. A later, larger draw with the same seed and strata therefore contains
the earlier one: together they are one simple random sample of each stratum, and the inclusion probability of a row is
m_h/N_h.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dualt.rng import stream

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.intp]

# Groups of predicted wrongness. More gain hardly anything, and need rows for a variance of their own.
N_STRATA = 5
# A variance needs two rows; a few more make it worth something.
FLOOR = 5
# Share of the draw that is spread evenly whatever the predictions say: if they mislead, no row weighs more than
# twice as much as in a uniform draw.
EVEN_SHARE = 0.5


@dataclass(frozen=True, eq=False)
class Draw:
    """Rows to verify, in random order, and how they were drawn.

    Attributes
    ----------
    rows : (n_drawn,)
    strata : (n_drawn,)
        Stratum of each row.
    sizes : (n_strata,)
        Number of rows of the data in each stratum.
    """

    rows: Ints
    strata: Ints
    sizes: Ints

    @property
    def probability(self) -> Floats:
        """Inclusion probability of each drawn row, m_h/N_h."""
        return (np.bincount(self.strata, minlength=len(self.sizes)) / np.maximum(self.sizes, 1))[self.strata]


class Weights(NamedTuple):
    """How much each verified row stands for.

    `weight` sums to one; `probability` is the row's inclusion probability; rows of one stratum were drawn alike.
    """

    weight: Floats
    probability: Floats
    strata: Ints

    @property
    def n_strata(self) -> int:
        """Number of strata that have verified rows."""
        return len(np.unique(self.strata))

    @classmethod
    def uniform(cls, n_verified: int, n_samples: int) -> Weights:
        """Every row of the data had the same chance."""
        return cls.stratified(np.zeros(n_verified, np.intp), np.array([n_samples]))

    @classmethod
    def stratified(cls, strata: Ints, sizes: Ints) -> Weights:
        """Weigh by N_h/m_h, with m_h the rows of stratum h that *were* verified, not those that were to be.

        Strata with fewer than two verified rows are merged with their neighbour: nothing is known of their variance.
        """
        strata, sizes = merge_thin(strata, sizes)
        counts = np.bincount(strata, minlength=len(sizes))
        weight = (sizes / sizes.sum() / np.maximum(counts, 1))[strata]
        return cls(weight, (counts / np.maximum(sizes, 1))[strata], strata)

    @classmethod
    def unequal(cls, probability: Floats) -> Weights:
        """Weigh by the inverse of any inclusion probability (Hájek); nothing is known of strata."""
        inverse = 1 / probability
        return cls(inverse / inverse.sum(), probability, np.zeros(len(probability), np.intp))


def merge_thin(strata: Ints, sizes: Ints) -> tuple[Ints, Ints]:
    """Return strata and sizes in which every stratum has at least two verified rows, by merging neighbours."""
    counts = np.bincount(strata, minlength=len(sizes))
    new, group, seen = np.empty(len(sizes), np.intp), 0, 0
    for stratum, count in enumerate(counts):
        new[stratum] = group
        seen += count
        if seen >= 2:
            group, seen = group + 1, 0
    new[new == group] = max(group - 1, 0)
    return new[strata], np.bincount(new, weights=sizes).astype(np.intp)


def wrongness_strata(wrong: Floats) -> Ints:
    """Return each row's stratum: fifths of the predicted probability to be wrong.

    Ties are split by row number, so that a stratum is never empty while there are as many rows as strata.
    """
    ranks = np.empty(len(wrong), np.intp)
    ranks[np.argsort(wrong, kind="stable")] = np.arange(len(wrong))
    return ranks * N_STRATA // max(len(wrong), 1)


def predicted_spread(wrong: Floats, strata: Ints) -> Floats:
    """Return the standard deviation of the residual (is wrong) − (predicted) in each stratum, √mean f(1 − f)."""
    sizes = np.bincount(strata)
    return np.sqrt(np.bincount(strata, weights=wrong * (1 - wrong)) / np.maximum(sizes, 1))


def observed_spread(predicted: Floats, residuals: Floats, strata: Ints) -> Floats:
    """Return each stratum's spread after a batch: √mean residual², the prediction counted as `FLOOR` rows."""
    n_strata = len(predicted)
    counts = np.bincount(strata, minlength=n_strata)
    squares = np.bincount(strata, weights=residuals**2, minlength=n_strata)
    return np.sqrt((FLOOR * predicted**2 + squares) / (FLOOR + counts))


def allocate(sizes: Ints, spread: Floats, total: int, *, taken: Ints | None = None) -> Ints:
    """Return m_h ∝ ½·N_h + ½·N_h·S_h (Neyman), at least `FLOOR` (or N_h), at least `taken`, Σ m_h = total.

    Parameters
    ----------
    sizes, spread : (n_strata,)
        Number of rows, and standard deviation of what is to be estimated.
    total
        Rows to draw in all, with those of earlier batches.
    taken : (n_strata,), optional
        Rows of earlier batches.
    """
    least = np.minimum(sizes, FLOOR if total >= FLOOR * len(sizes) else total // len(sizes))
    if taken is not None:
        least = np.maximum(least, taken)
    neyman = sizes * spread
    by_size = sizes / sizes.sum()
    share = EVEN_SHARE * by_size + (1 - EVEN_SHARE) * (neyman / neyman.sum() if neyman.sum() > 0 else by_size)
    return _fill(share, least, sizes, max(total, int(least.sum())))


def _fill(share: Floats, least: Ints, most: Ints, total: int) -> Ints:
    """Return whole numbers near c·share, between `least` and `most`, that sum to the total (at most Σ most)."""
    total = min(total, int(most.sum()))
    low, high = 0.0, float(most.sum()) / max(float(share[share > 0].min(initial=1.0)), 1e-12)
    for _ in range(100):  # c, by bisection: the sum only grows with it
        middle = (low + high) / 2
        low, high = (middle, high) if np.clip(middle * share, least, most).sum() < total else (low, middle)
    exact = np.clip(high * share, least, most)
    whole = np.floor(exact + 1e-6).astype(np.intp)
    by_remainder = np.argsort(whole - exact, kind="stable")
    candidates = by_remainder[whole[by_remainder] < most[by_remainder]]
    whole[candidates[: total - int(whole.sum())]] += 1
    return whole


def draw_rows(strata: Ints, counts: Ints, seed: int) -> Draw:
    """Return the `counts[h]` rows of each stratum with the smallest permanent random numbers, in random order.

    The same seed and strata with larger counts give a draw that contains this one.
    """
    # The permanent numbers, and others to shuffle what was drawn. Neither may be those that the labels were made with.
    numbers, shuffled = (stream(seed, f"audit {purpose}").random(len(strata)) for purpose in ("rows", "order"))
    order = np.lexsort((numbers, strata))
    sizes = np.bincount(strata, minlength=len(counts))
    starts = np.cumsum(sizes) - sizes
    rows = np.concatenate([order[start : start + count] for start, count in zip(starts, counts, strict=True)])
    rows = rows[np.argsort(shuffled[rows], kind="stable")]
    return Draw(rows, strata[rows], sizes)


def required_size(half_width: float, sizes: Ints, spread: Floats, drawn_by: Floats | None = None) -> int:
    """Return the fewest rows, allocated by `allocate`, with t·√(Σ (N_h/N)²·(1 − m_h/N_h)·S_h²/m_h) ≤ half_width.

    All rows if no fewer will do. `drawn_by` are the spreads that rows are allocated by, if they are others.
    """
    drawn_by = spread if drawn_by is None else drawn_by
    low, high = 2 * len(sizes), int(sizes.sum())
    if low >= high:
        return high
    while low < high:
        middle = (low + high) // 2
        if expected_half_width(allocate(sizes, drawn_by, middle), sizes, spread) <= half_width:
            high = middle
        else:
            low = middle + 1
    return low


def expected_half_width(counts: Ints, sizes: Ints, spread: Floats) -> float:
    """Return t·√(Σ (N_h/N)²·(1 − m_h/N_h)·S_h²/m_h), the half-width at 95 % that a draw promises."""
    from scipy.special import stdtrit

    share = sizes / sizes.sum()
    variance = (share**2 * (1 - counts / np.maximum(sizes, 1)) * spread**2 / np.maximum(counts, 1)).sum()
    freedom = max(int(counts.sum()) - len(sizes), 1)
    return float(stdtrit(freedom, 0.975) * np.sqrt(variance))

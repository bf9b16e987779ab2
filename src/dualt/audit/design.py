"""Which labels to check: draws with known inclusion probabilities, batches that add up, and how many are needed.

Every row has a permanent random number, made from the seed and the row's position alone. A draw of m_h rows of stratum
h takes the m_h rows with the smallest numbers. A later, larger draw with the same seed and strata therefore contains
the earlier one: together they are one simple random sample of each stratum, with inclusion probability m_h/N_h.

Later batches are allocated to the strata like the first, by the predictions, and not by the labels found so far: a
stratum that got more rows because wrong labels were found in it would bias the estimate (with noise that the
classifier had learned, a 95 % interval covered in 89 of 100 draws). What a batch has shown only decides how many labels
are missing.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dualt.errors import InputError
from dualt.rng import stream
from dualt.validation import check_count

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.intp]
Design: TypeAlias = Literal["uniform", "stratified"]

# Groups of predicted wrongness. More gain hardly anything, and need rows for a variance of their own.
N_STRATA = 5
# A variance needs two rows; a few more make it worth something.
FLOOR = 5
# Share of the draw that is spread evenly whatever the predictions say: if they mislead, no row weighs more than
# twice as much as in a uniform draw.
EVEN_SHARE = 0.5
# The largest standard deviation of an indicator, where nothing is known about it.
_LARGEST_SPREAD = 0.5


class Draw(NamedTuple):
    """Rows to verify, in random order, the stratum of each, and the number of rows of the data in every stratum."""

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


def predicted_spread(wrong: Floats, strata: Ints) -> Floats:
    """Return the standard deviation of the residual (is wrong) − (predicted) in each stratum, √mean f(1 − f)."""
    return np.sqrt(np.bincount(strata, weights=wrong * (1 - wrong)) / np.maximum(np.bincount(strata), 1))


def allocate(sizes: Ints, spread: Floats, total: int, taken: Ints | int = 0) -> Ints:
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
    least = np.maximum(np.minimum(sizes, FLOOR if total >= FLOOR * len(sizes) else total // len(sizes)), taken)
    total = min(max(total, int(least.sum())), int(sizes.sum()))
    by_size, neyman = sizes / sizes.sum(), sizes * spread
    share = EVEN_SHARE * by_size + (1 - EVEN_SHARE) * (neyman / neyman.sum() if neyman.sum() > 0 else by_size)
    low, high = 0.0, float(sizes.sum()) / max(float(share[share > 0].min(initial=1.0)), 1e-12)
    for _ in range(100):  # c in m_h = c·share, by bisection: the sum only grows with it
        middle = (low + high) / 2
        low, high = (middle, high) if np.clip(middle * share, least, sizes).sum() < total else (low, middle)
    exact = np.clip(high * share, least, sizes)
    whole: Ints = np.floor(exact + 1e-6).astype(np.intp)
    by_remainder = np.argsort(whole - exact, kind="stable")
    candidates = by_remainder[whole[by_remainder] < sizes[by_remainder]]
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
    """Return the fewest rows, allocated by `allocate`, that are expected to reach the half-width; all if none fewer do.

    `drawn_by` are the spreads that rows are allocated by, if they are others.
    """
    drawn_by, least, most = spread if drawn_by is None else drawn_by, 2 * len(sizes), int(sizes.sum())

    def reached(total: int) -> bool:
        return expected_half_width(allocate(sizes, drawn_by, total), sizes, spread) <= half_width

    return min(least + bisect_left(range(least, most), True, key=reached), most)


def expected_half_width(counts: Ints, sizes: Ints, spread: Floats) -> float:
    """Return t·√(Σ (N_h/N)²·(1 − m_h/N_h)·S_h²/m_h), the expected half-width at 95 %."""
    from scipy.special import stdtrit

    share = sizes / sizes.sum()
    variance = (share**2 * (1 - counts / np.maximum(sizes, 1)) * spread**2 / np.maximum(counts, 1)).sum()
    freedom = max(int(counts.sum()) - len(sizes), 1)
    return float(stdtrit(freedom, 0.975) * np.sqrt(variance))


@dataclass(frozen=True, eq=False)
class Plan:
    """Strata to draw from, and how much the labels of each are expected to vary.

    Attributes
    ----------
    strata : (n_samples,)
    spread : (n_strata,)
        Predicted standard deviation of 1[label is wrong] − P(label is wrong): rows are allocated by it.
    taken : (n_strata,)
        Rows of earlier batches.
    observed : (n_strata,), optional
        The spread that verified rows have shown.
    """

    strata: Ints
    spread: Floats
    taken: Ints
    observed: Floats | None = None

    @classmethod
    def of(cls, n_samples: int, design: Design, wrong: Floats | None = None) -> Plan:
        """Plan the first batch; `wrong` is the predicted probability of each label to be wrong, if there is one."""
        if design == "uniform":
            strata = np.zeros(n_samples, np.intp)
        elif wrong is None:
            raise InputError("Expected probabilities to stratify by, got none. Pass --probs, or --design uniform.")
        else:  # fifths; ties are split by row number, so that no stratum is empty
            strata = np.argsort(np.argsort(wrong, kind="stable")) * N_STRATA // n_samples
        n_strata = int(strata.max()) + 1
        spread = np.full(n_strata, _LARGEST_SPREAD) if wrong is None else predicted_spread(wrong, strata)
        return cls(strata, spread, np.zeros(n_strata, np.intp))

    @property
    def sizes(self) -> Ints:
        """Number of rows of the data in each stratum."""
        return np.bincount(self.strata, minlength=len(self.spread))

    def after(self, rows: Ints, strata: Ints, stratum_sizes: Ints) -> Plan:
        """Return the plan of a batch after one with these rows, whose strata must be those of this plan."""
        outside = rows.max() >= len(self.strata) or strata.max() >= len(self.spread)
        if outside or (self.strata[rows] != strata).any() or (self.sizes[strata] != stratum_sizes).any():
            raise InputError(
                "Expected the strata of the earlier batch, got others. Pass the same labels, probabilities and"
                " --design as before, or begin a new audit in another file."
            )
        once = np.unique(rows, return_index=True)[1]
        return replace(self, taken=np.bincount(strata[once], minlength=len(self.spread)))

    def with_observed(self, residuals: Floats, rows: Ints, wrong: Floats | None = None) -> Plan:
        """Return the plan with the spreads that verified rows have shown: √mean residual² in each stratum.

        The prediction, by `wrong` if there is one that the rows have calibrated, counts as `FLOOR` rows.
        """
        predicted = self.spread if wrong is None else predicted_spread(wrong, self.strata)
        counts, squares = (
            np.bincount(self.strata[rows], values, minlength=len(predicted)) for values in (None, residuals**2)
        )
        return replace(self, observed=np.sqrt((FLOOR * predicted**2 + squares) / (FLOOR + counts)))

    def draw(self, total: int, seed: int) -> Draw:
        """Draw `total` rows, including those of earlier batches."""
        if not 1 <= total <= len(self.strata):
            raise InputError(f"Expected a sample of 1 to {len(self.strata):,} rows, got {total}.")
        counts = allocate(self.sizes, self.spread, total, self.taken)
        return draw_rows(self.strata, counts, check_count(seed, "a random state", least=0))

    def needed(self, half_width: float) -> tuple[int, int]:
        """Return how many labels an interval of the noise rate needs before any was verified.

        The first number holds if the predictions are right, the second if they say nothing.
        """
        most = required_size(half_width, np.array([len(self.strata)]), np.array([_LARGEST_SPREAD]))
        return min(required_size(half_width, self.sizes, self.spread), most), most

    def needed_after(self, reached: float, target: float, strata: Ints) -> int:
        """Return how many labels the half-width `target` needs in all, where verified rows in `strata` reached one.

        That follows from the spreads that the batch showed, times the factor by which the interval is wider than they
        predict (with few wrong labels it is cautious).
        """
        if reached <= target:
            return len(strata)
        spread = self.spread if self.observed is None else self.observed
        expected = expected_half_width(np.bincount(strata, minlength=len(spread)), self.sizes, spread)
        caution = max(1.0, reached / expected) if expected > 0 else 1.0
        needed = required_size(target, self.sizes, spread * caution, self.spread)
        return min(max(needed, len(strata) + 1), len(self.strata))

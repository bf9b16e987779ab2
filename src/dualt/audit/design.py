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

from dataclasses import dataclass, replace
from math import ceil
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
    """How much each verified row stands for (sums to one), its inclusion probability, and its stratum."""

    weight: Floats
    probability: Floats
    strata: Ints

    @classmethod
    def uniform(cls, n_verified: int, n_samples: int) -> Weights:
        """Return equal weights."""
        return cls.stratified(np.zeros(n_verified, np.intp), np.array([n_samples]))

    @classmethod
    def stratified(cls, strata: Ints, sizes: Ints) -> Weights:
        """Weigh by N_h/m_h, with m_h the rows of stratum h that *were* verified, not those that were to be."""
        strata, sizes = merge_thin(strata, sizes)
        counts = np.bincount(strata, minlength=len(sizes))
        weight = (sizes / sizes.sum() / np.maximum(counts, 1))[strata]
        return cls(weight, (counts / np.maximum(sizes, 1))[strata], strata)

    @classmethod
    def unequal(cls, probability: Floats) -> Weights:
        """Weigh by the inverse of any inclusion probability (Hájek)."""
        inverse = 1 / probability
        return cls(inverse / inverse.sum(), probability, np.zeros(len(probability), np.intp))


def merge_thin(strata: Ints, sizes: Ints) -> tuple[Ints, Ints]:
    """Merge neighbouring strata until each has the two verified rows that a variance needs."""
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


def allocation(sizes: Ints, spread: Floats) -> Floats:
    """Return the share of each stratum in a draw: half in proportion to N_h, half to N_h·S_h (Neyman).

    The even half limits the weight of a row, if the predictions mislead, to twice that in a uniform draw.
    """
    by_size, neyman = sizes / sizes.sum(), sizes * spread
    return np.asarray((by_size + (neyman / neyman.sum() if neyman.sum() > 0 else by_size)) / 2)


def allocate(sizes: Ints, spread: Floats, total: int, taken: Ints | int = 0) -> Ints:
    """Return the rows to draw from each stratum, by `allocation`, `total` in all.

    Every stratum gets at least `FLOOR` rows, or all that it has, and as many as earlier batches have `taken`.
    """
    from scipy.optimize import brentq

    least = np.maximum(np.minimum(sizes, FLOOR if total >= FLOOR * len(sizes) else total // len(sizes)), taken)
    total = min(max(total, int(least.sum())), int(sizes.sum()))
    share = allocation(sizes, spread)
    highest = float(sizes.sum()) / float(share[share > 0].min())
    factor = brentq(lambda factor: np.clip(factor * share, least, sizes).sum() - total, 0, highest, xtol=1e-9)
    exact = np.clip(factor * share, least, sizes)
    whole: Ints = np.floor(exact + 1e-6).astype(np.intp)
    by_remainder = np.argsort(whole - exact, kind="stable")
    candidates = by_remainder[whole[by_remainder] < sizes[by_remainder]]
    whole[candidates[: total - int(whole.sum())]] += 1
    return whole


def draw_rows(strata: Ints, counts: Ints, seed: int) -> Draw:
    """Return the `counts[h]` rows of each stratum with the smallest permanent random numbers, in random order."""
    # The permanent numbers, and others to shuffle what was drawn. Neither may be those that the labels were made with.
    numbers, shuffled = (stream(seed, f"audit {purpose}").random(len(strata)) for purpose in ("rows", "order"))
    order = np.lexsort((numbers, strata))
    sizes = np.bincount(strata, minlength=len(counts))
    starts = np.cumsum(sizes) - sizes
    rows = np.concatenate([order[start : start + count] for start, count in zip(starts, counts, strict=True)])
    rows = rows[np.argsort(shuffled[rows], kind="stable")]
    return Draw(rows, strata[rows], sizes)


@dataclass(frozen=True, eq=False)
class Plan:
    """The stratum of each row, how much the labels of each stratum vary, and the rows `taken` in earlier batches.

    `spread` is the predicted standard deviation of 1[label is wrong] − P(label is wrong), by which rows are allocated.
    """

    strata: Ints
    spread: Floats
    taken: Ints

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

    def draw(self, total: int, seed: int) -> Draw:
        """Draw `total` rows, including those of earlier batches."""
        if not 1 <= total <= len(self.strata):
            raise InputError(f"Expected a sample of 1 to {len(self.strata):,} rows, got {total}.")
        counts = allocate(self.sizes, self.spread, total, self.taken)
        return draw_rows(self.strata, counts, check_count(seed, "a random state", least=0))

    def needed(self, half_width: float) -> tuple[int, int]:
        """Return how many labels a 95 % interval needs: if the predictions are right, and if they say nothing."""
        n_samples, least = len(self.strata), FLOOR * len(self.spread)
        by_size, share = self.sizes / n_samples, allocation(self.sizes, self.spread)
        # The variance of a draw of m rows is a/m − b/N.
        a, b = (by_size**2 * self.spread**2 / share).sum(), (by_size * self.spread**2).sum()
        wanted = (half_width / 1.96) ** 2
        most = min(ceil(_LARGEST_SPREAD**2 / (wanted + _LARGEST_SPREAD**2 / n_samples)), n_samples)
        return min(max(ceil(a / (wanted + b / n_samples)), least), most), most

    def needed_after(self, reached: float, target: float, n_verified: int) -> int:
        """Return how many labels the half-width `target` needs, if `n_verified` have reached another.

        It falls with the number m of labels as √(1/m − 1/N).
        """
        if reached <= target:
            return n_verified
        least = 1 / len(self.strata)
        return ceil(1 / ((target / reached) ** 2 * (1 / n_verified - least) + least))

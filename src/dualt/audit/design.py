"""Which labels to check: draws with known inclusion probabilities, batches that add up, and how many are needed.

Every row has a permanent random number, made from the seed and the row's position alone. A draw takes the m_h rows of
stratum h with the smallest numbers. A later, larger draw with the same seed and strata therefore contains the earlier
one: together they are one simple random sample of each stratum, with inclusion probability m_h/N_h.

Later batches are allocated by the predictions like the first, not by the labels found so far: a stratum that got more
rows because wrong labels were found in it would bias the estimate (with noise that the classifier had learned, a 95 %
interval covered in 89 of 100 draws).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dualt.errors import InputError
from dualt.rng import stream

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


def allocate(sizes: Ints, spread: Floats, total: int, taken: Ints | int = 0) -> Ints:
    """Return the rows to draw from each stratum: half in proportion to N_h, half to N_h·S_h (Neyman), `total` in all.

    The even half limits the weight of a row, if the predictions mislead, to twice that in a uniform draw. Every stratum
    gets at least `FLOOR` rows, or all that it has, and as many as earlier batches have `taken`.
    """
    counts: Ints = np.maximum(np.minimum(sizes, FLOOR if total >= FLOOR * len(sizes) else total // len(sizes)), taken)
    by_size, neyman = sizes / sizes.sum(), sizes * spread
    share = (by_size + (neyman / neyman.sum() if neyman.sum() > 0 else by_size)) / 2
    for _ in range(min(total, int(sizes.sum())) - int(counts.sum())):
        counts[np.where(counts < sizes, share / (counts + 0.5), -1).argmax()] += 1  # by highest averages
    return counts


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
    """The stratum of each row, and the predicted standard deviation of 1[wrong] − P(wrong) in each stratum."""

    strata: Ints
    spread: Floats

    @classmethod
    def of(cls, n_samples: int, design: Design, wrong: Floats | None = None) -> Plan:
        """Return the plan; `wrong` is the predicted probability of each label to be wrong, if there is one."""
        if design == "uniform":
            strata = np.zeros(n_samples, np.intp)
        elif wrong is None:
            raise InputError("Expected probabilities to stratify by, got none. Pass --probs, or --design uniform.")
        else:  # fifths; ties are split by row number, so that no stratum is empty
            strata = np.argsort(np.argsort(wrong, kind="stable")) * N_STRATA // n_samples
        variance = np.full(n_samples, _LARGEST_SPREAD**2) if wrong is None else wrong * (1 - wrong)
        return cls(strata, np.sqrt(np.bincount(strata, variance) / np.maximum(np.bincount(strata), 1)))

    @property
    def sizes(self) -> Ints:
        """Number of rows of the data in each stratum."""
        return np.bincount(self.strata, minlength=len(self.spread))

    def draw(self, total: int, seed: int, earlier: Ints | None = None) -> Draw:
        """Draw `total` rows, including those of `earlier` batches with the same seed and strata."""
        taken = 0 if earlier is None else np.bincount(self.strata[np.unique(earlier)], minlength=len(self.spread))
        return draw_rows(self.strata, allocate(self.sizes, self.spread, total, taken), seed)

    def needed(self, target: float, reached: float | None = None, n_verified: int = 0) -> int:
        """Return how many labels the half-width `target` of a 95 % interval needs; it falls as √(1/m − 1/N).

        Known is the half-width that `n_verified` labels have `reached`; before that, the largest that is possible.
        """
        if reached is not None and reached <= target:
            return n_verified
        all_rows = 1 / len(self.strata)
        step = (1.96 * _LARGEST_SPREAD) ** -2 if reached is None else reached**-2 * (1 / n_verified - all_rows)
        return min(ceil(1 / (target**2 * step + all_rows)), len(self.strata))

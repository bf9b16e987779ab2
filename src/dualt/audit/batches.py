"""An audit in batches, which together are one draw.

Later batches are allocated to the strata like the first, by what was predicted, and not by what the first has shown:
a stratum that got more rows because wrong labels were found in it, or fewer because none was, would bias the estimate
(measured on made data whose noise the classifier had learned: an interval of 95 % held in 89 of 100 draws, most others
too low). What a batch has shown tells only how many labels are missing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import numpy as np

from dualt.audit.design import (
    Draw,
    Floats,
    Ints,
    Weights,
    allocate,
    draw_rows,
    expected_half_width,
    observed_spread,
    predicted_spread,
    required_size,
    wrongness_strata,
)
from dualt.audit.prediction_powered import Intervals, share_intervals
from dualt.audit.sheet import Sheet
from dualt.errors import InputError
from dualt.validation import check_count

Design = Literal["uniform", "stratified"]
# The spread of a share of which nothing is known: no share has more.
_LARGEST_SPREAD = 0.5


class Progress(NamedTuple):
    """The rows that a target needs in all, and how many of them are missing."""

    needed: int
    missing: int


@dataclass(frozen=True, eq=False)
class Plan:
    """Strata to draw from, and how much the labels of each are expected to tell.

    Attributes
    ----------
    strata : (n_samples,)
    spread : (n_strata,)
        Standard deviation of (label is wrong) − (predicted to be wrong), as it is predicted: rows are drawn by it.
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
        """Plan the first batch; `wrong` is the predicted probability of each label to be wrong, if one is known."""
        if design == "uniform":
            strata = np.zeros(n_samples, np.intp)
        elif wrong is None:
            raise InputError("Expected probabilities to stratify by, got none. Pass --probs, or --design uniform.")
        else:
            strata = wrongness_strata(wrong)
        n_strata = int(strata.max()) + 1
        spread = np.full(n_strata, _LARGEST_SPREAD) if wrong is None else predicted_spread(wrong, strata)
        return cls(strata, spread, np.zeros(n_strata, np.intp))

    @property
    def sizes(self) -> Ints:
        """Number of rows of the data in each stratum."""
        return np.bincount(self.strata, minlength=len(self.spread))

    def after(self, sheet: Sheet) -> Plan:
        """Return the plan of a batch after `sheet`, whose strata must be those of this plan."""
        if sheet.strata is None or sheet.stratum_sizes is None:
            raise InputError("Expected a sheet that tells how its rows were drawn, got one without. Draw a new one.")
        outside = sheet.rows.max() >= len(self.strata) or sheet.strata.max() >= len(self.spread)
        same = not outside and (self.strata[sheet.rows] == sheet.strata).all()
        if not same or (self.sizes[sheet.strata] != sheet.stratum_sizes).any():
            raise InputError(
                "Expected the strata of the earlier batch, got others. Pass the same labels, probabilities and"
                " --design as before, or begin a new audit in another file."
            )
        once = np.unique(sheet.rows, return_index=True)[1]
        return replace(self, taken=np.bincount(sheet.strata[once], minlength=len(self.spread)))

    def with_observed(self, residuals: Floats, rows: Ints, wrong: Floats | None = None) -> Plan:
        """Return the plan with the spreads that verified rows have shown, and predictions calibrated by them."""
        spread = self.spread if wrong is None else predicted_spread(wrong, self.strata)
        return replace(self, observed=observed_spread(spread, residuals, self.strata[rows]))

    def draw(self, total: int, seed: int) -> Draw:
        """Draw `total` rows, those of earlier batches among them."""
        if not 1 <= total <= len(self.strata):
            raise InputError(f"Expected a sample of 1 to {len(self.strata):,} rows, got {total}.")
        counts = allocate(self.sizes, self.spread, total, taken=self.taken)
        return draw_rows(self.strata, counts, check_count(seed, "a random state", least=0))

    def needed(self, half_width: float) -> tuple[int, int]:
        """Return how many labels the half-width of the noise rate's interval needs before any was verified.

        The first number holds if the predictions are right, the second if they say nothing.
        """
        most = required_size(half_width, np.array([len(self.strata)]), np.array([_LARGEST_SPREAD]))
        return min(required_size(half_width, self.sizes, self.spread), most), most

    def progress(self, reached: float, target: float, verified: Ints) -> Progress:
        """Return how far the verified rows, whose interval has the half-width `reached`, are from the `target`.

        The rows that it needs come from the spreads that the batch showed, raised by what the interval is wider than
        they promise (few wrong labels make it cautious).
        """
        if reached <= target:
            return Progress(len(verified), 0)
        counts = np.bincount(self.strata[verified], minlength=len(self.spread))
        spread = self.spread if self.observed is None else self.observed
        promised = expected_half_width(counts, self.sizes, spread)
        caution = max(1.0, reached / promised) if promised > 0 else 1.0
        needed = max(required_size(target, self.sizes, spread * caution, self.spread), len(verified) + 1)
        needed = min(needed, len(self.strata))
        return Progress(needed, needed - len(verified))


def counted_rate(is_wrong: Floats, weights: Weights) -> Intervals:
    """Return the share of wrong labels as the verified rows alone tell it, without predictions."""
    return share_intervals(is_wrong[:, None], np.zeros((len(is_wrong), 1)), np.zeros(1), weights)

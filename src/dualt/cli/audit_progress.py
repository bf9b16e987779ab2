"""What an audit has reached so far, and how many labels its target still needs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from dualt.cli.terminal import say

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from dualt.audit import Sheet
    from dualt.audit.design import Plan


class Reached(NamedTuple):
    """The interval of the noise rate that the verified rows give, and which rows these are."""

    low: float
    high: float
    rows: NDArray[np.intp]

    @property
    def half_width(self) -> float:
        """Half the width of the interval."""
        return (self.high - self.low) / 2


class Told(NamedTuple):
    """What a batch has reached, and what is still missing."""

    plan: Plan
    sheet: Sheet
    reached: Reached | None
    target: float | None

    def needed(self) -> tuple[int, int] | None:
        """Return how many verified labels the target needs in all: at least, and at most."""
        if self.target is None:
            return None
        if self.reached is None:
            return self.plan.needed(self.target)
        needed = self.plan.needed_after(self.reached.half_width, self.target, self.reached.rows)
        return needed, needed

    def as_dict(self) -> dict[str, Any]:
        """Return it for machines."""
        reached, needed = self.reached, self.needed()
        known: dict[str, Any] = {"drawn": len(self.sheet.rows), "verified": len(self.sheet.filled)}
        if reached is not None:
            known["reached"] = {"low": reached.low, "high": reached.high, "half_width": reached.half_width}
        if needed is not None:
            verified = 0 if reached is None else len(reached.rows)
            missing = max(needed[1] - verified, 0)
            known["target"] = {"half_width": self.target, "needed": needed[0], "at_most": needed[1], "missing": missing}
        return known

    def show(self) -> None:
        """Say what was reached and how many labels are missing."""
        reached, needed, verified = self.reached, self.needed(), 0
        if reached is not None:
            verified = len(reached.rows)
            say(
                f"{reached.low:.1%} to {reached.high:.1%} of the labels are wrong: {verified:,} verified labels"
                f" tell the noise rate to ±{100 * reached.half_width:.1f} percentage points."
            )
        if needed is None or self.target is None:
            return
        wish = f"±{100 * self.target:g} percentage points"
        if reached is None:
            least = f"{needed[0]:,} if the predictions are right, " if needed[0] < needed[1] else ""
            say(f"{wish} need {least}at most {needed[1]:,} verified labels. The first batch will tell.")
        elif reached.half_width <= self.target:
            say(f"{wish} are reached.")
        else:
            missing = needed[1] - verified
            is_or_are = "is" if missing == 1 else "are"
            say(f"{wish} need about {needed[1]:,} verified labels: {missing:,} {is_or_are} missing.")

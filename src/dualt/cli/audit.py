"""`dualt audit`: draw a few labels for a person to check."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, cast

import typer

from dualt.cli.groups import Data, Page, with_groups
from dualt.cli.options import Classes, Header, Json, LabelColumn, RandomState, check_targets, print_json
from dualt.cli.plain import say

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from dualt.audit import Sheet
    from dualt.audit.batches import Plan
    from dualt.issues import LabelIssues
    from dualt.rows import NoisyPosterior

_SIZE = 200


@with_groups
def audit(
    labels: Annotated[Path, typer.Argument(metavar="LABELS", help="Given labels: .npy, .npz, .csv, .parquet, .txt.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="CSV to fill in: index, given, true, how drawn.")],
    page: Page,
    size: Annotated[int | None, typer.Option("--size", help=f"How many labels to check. Default: {_SIZE}.")] = None,
    more: Annotated[
        int | None, typer.Option("--more", help="Add this many to the file of --output, which keeps its true labels.")
    ] = None,
    design: Annotated[
        str | None,
        typer.Option(help="uniform, or stratified by predicted wrongness. Default: stratified if --probs is given."),
    ] = None,
    target: Annotated[
        float | None, typer.Option(help="Wished half-width of the noise rate's interval, such as 0.02.")
    ] = None,
    random_state: RandomState = 0,
    label: LabelColumn = None,
    header: Header = None,
    id_column: Annotated[str | None, typer.Option("--id", help="Column of LABELS that names the rows.")] = None,
    probs: Annotated[Path | None, typer.Option("--probs", help="Predicted probabilities, to draw by.")] = None,
    classes: Classes = None,
    as_json: Json = False,
) -> None:
    """Draw labels to check by hand: a few hundred settle how noisy all of them are.

    Fill in the column `true`, or check them on the page of --report and download it from there; then pass the
    file to `dualt estimate --verified`, or add a batch with --more. Every row has a known chance of being drawn.
    Labels that were checked because they looked suspect will not do: they overstate the noise.

    Example: `dualt audit labels.npy --probs probs.npy --size 200 -o audit.csv --report audit.html --target 0.02`
    """
    from dualt import io
    from dualt.audit import Sheet
    from dualt.errors import InputError
    from dualt.labels import as_label_array
    from dualt.validation import check_fraction

    if page.report is not None and probs is None:
        raise InputError("Expected --probs with --report: the page shows what each example probably is.")
    if more is not None and size is not None:
        raise InputError("Expected --size for a new audit, or --more for a later batch, got both.")
    if target is not None:
        check_fraction(target, "--target")
    check_targets(output, page.report)
    given = as_label_array(io.load_labels(labels, column=label, header=header))
    given = given.argmax(axis=1) if given.ndim == 2 else given
    ids = None if id_column is None else as_label_array(io.load_labels(labels, column=id_column, header=header))
    earlier = _earlier(output, given, adding=more is not None)
    design = _design(design, earlier, probs)
    if probs is None:
        plan, found, reached = _plan(given, design, earlier)
    else:
        with Data(probs, labels, label=label, header=header, classes=classes).opened() as posterior:
            plan, found, reached = _plan(given, design, earlier, posterior)
    n_earlier = 0 if earlier is None else len(earlier.rows)
    total = n_earlier + more if more is not None else size or (_SIZE if size is None else 0)
    sheet = Sheet.of_draw(given, plan.draw(total, random_state), ids)
    sheet = sheet if earlier is None else sheet.with_true_of(earlier)
    if found is not None:
        page.write(found.transition_estimate, found, audit=sheet)
    sheet.save(output)
    told = _Told(plan, sheet, reached, target)
    if as_json:
        written = {"output": str(output), "report": page.report and str(page.report), "design": design}
        print_json(written | {"indices": sheet.rows.tolist()} | told.as_dict())
        return
    told.show()
    say(f"{len(sheet.rows) - len(sheet.filled):,} labels to check in {output}: fill in the column 'true', then")
    say(f" dualt estimate {probs or 'PROBS'} {labels} --verified {output}")
    if page.report is not None:
        say(f"Or check them in a browser, {page.report}, and pass its download, audit-review.csv, instead.")


class _Reached(NamedTuple):
    """The interval of the noise rate that the verified rows give, and which rows these are."""

    low: float
    high: float
    rows: NDArray[np.intp]

    @property
    def half_width(self) -> float:
        return (self.high - self.low) / 2


class _Told(NamedTuple):
    """What a batch has reached, and what is still missing."""

    plan: Plan
    sheet: Sheet
    reached: _Reached | None
    target: float | None

    def needed(self) -> tuple[int, int] | None:
        """Return how many verified labels the target needs in all: at least, and at most."""
        if self.target is None:
            return None
        if self.reached is None:
            return self.plan.needed(self.target)
        needed = self.plan.progress(self.reached.half_width, self.target, self.reached.rows).needed
        return needed, needed

    def as_dict(self) -> dict[str, Any]:
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
            say(f"{wish} need about {needed[1]:,} verified labels: {needed[1] - verified:,} are missing.")


def _earlier(output: Path, given: NDArray[Any], *, adding: bool) -> Sheet | None:
    """Return the sheet to add to; refuse to write over one that a person has worked on."""
    from dualt.audit import read_sheet
    from dualt.audit.verified_labels import check_digest, labels_digest
    from dualt.errors import DualtError, InputError

    if adding:
        sheet = read_sheet(output)
        if sheet.draw is None:
            raise InputError(f"Expected a file of `dualt audit` to add to, got {output} without the column 'draw'.")
        check_digest(sheet.draw.split("-")[1], labels_digest(given), len(given))
        return sheet
    try:
        n_filled = len(read_sheet(output).filled) if output.exists() else 0
    except DualtError:
        return None
    if n_filled:
        raise InputError(
            f"Expected a new file to draw into, got {output} with {n_filled:,} verified labels, which would be lost."
            " Add a batch with --more, or choose another name."
        )
    return None


def _design(wanted: str | None, earlier: Sheet | None, probs: Path | None) -> Literal["uniform", "stratified"]:
    """Return the design that is wanted, else that of the earlier batch, else the best that can be had."""
    from dualt.errors import UnknownNameError

    if wanted is not None:
        if wanted not in ("uniform", "stratified"):
            raise UnknownNameError("design", wanted, ("uniform", "stratified"))
        return cast("Literal['uniform', 'stratified']", wanted)
    if earlier is not None and earlier.strata is not None:
        return "stratified" if earlier.strata.any() else "uniform"
    return "uniform" if probs is None else "stratified"


def _plan(
    given: NDArray[Any],
    design: Literal["uniform", "stratified"],
    earlier: Sheet | None,
    posterior: NoisyPosterior | None = None,
) -> tuple[Plan, LabelIssues | None, _Reached | None]:
    """Return the plan of the next batch, what is predicted of the labels, and what the batches before have reached."""
    from dualt.audit.batches import Plan, counted_rate
    from dualt.audit.verified_labels import LEAST
    from dualt.estimators import estimate_verified
    from dualt.issues import find_posterior_issues

    found = None if posterior is None else find_posterior_issues(posterior)
    plan = Plan.of(len(given), design, None if found is None else 1 - found.probability_right.astype(float))
    if earlier is None:
        return plan, found, None
    plan = plan.after(earlier)
    if len(earlier.filled) < LEAST:
        return plan, found, None
    verified = earlier.audit()
    if posterior is None or found is None or found.transition_estimate is None:
        wrong = (verified.true.astype(str) != given[verified.rows].astype(str)).astype(float)
        interval = counted_rate(wrong, verified.weights(len(given)))
        reached = _Reached(float(interval.low[0]), float(interval.high[0]), verified.rows)
        return plan.with_observed(wrong - wrong.mean(), verified.rows), None, reached
    corrected = estimate_verified(posterior, found.transition_estimate, verified)
    calibrated = find_posterior_issues(posterior, corrected)
    shown = corrected.audit
    if shown is None:
        return plan, found, None
    reached = _Reached(*shown.noise_rate_interval(), shown.rows)
    wrong = 1 - calibrated.probability_right.astype(float)
    return plan.with_observed(shown.residuals(), shown.rows, wrong), found, reached

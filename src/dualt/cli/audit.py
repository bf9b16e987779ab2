"""`dualt audit`: draw a few labels for a person to check."""

from __future__ import annotations

import glob
import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, cast

import typer

from dualt.cli.audit_progress import Reached, Told
from dualt.cli.inputs import opened, read_column, warn_missing
from dualt.cli.options import Classes, Data, Json, LabelColumn, Learning, RandomState, output_option, shared
from dualt.cli.terminal import print_json, say
from dualt.errors import DualtError, InputError, LabelsError, UnknownNameError
from dualt.files import keep_backup

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from dualt.audit import Sheet
    from dualt.audit.design import Design, Plan
    from dualt.issues import LabelIssues
    from dualt.rows import NoisyPosterior

_SIZE = 200


@shared
def audit(
    labels: Annotated[
        Path, typer.Argument(metavar="LABELS", help="Given labels: a table, .npy, .npz, .txt, or a folder per class.")
    ],
    output: Annotated[Path, output_option(help="CSV to fill in: index, given, true, how drawn.")],
    report: Annotated[Path | None, typer.Option(help="Write a page to check them on: audit.html.")] = None,
    images: Annotated[
        Path | None, typer.Option(help="Images for the page: a folder of files named by id or row, or a .npy.")
    ] = None,
    text: Annotated[str | None, typer.Option(help="Texts to show: a column, or a file of one line each.")] = None,
    size: Annotated[
        int | None, typer.Option(help=f"How many labels to check. Default: {_SIZE}, or all if these are fewer.")
    ] = None,
    more: Annotated[
        int | None, typer.Option(help="Add this many to the file of --output, which keeps its true labels.")
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
    id_column: Annotated[str | None, typer.Option("--id", help="Column of LABELS that names the rows.")] = None,
    probs: Annotated[
        Path | None, typer.Option(help="Predicted probabilities, to draw by: a file, or columns of LABELS.")
    ] = None,
    classes: Classes = None,
    n_jobs: Annotated[int, typer.Option(help="Number of threads that read the probabilities.")] = 1,
    as_json: Json = False,
) -> None:
    """Draw labels to check by hand: a few hundred settle how noisy all of them are.

    Fill in the column `true`, or check them on the page of --report and download it from there; then pass the
    file to `dualt estimate --verified`, or add a batch with --more. Every row has a known chance of being drawn.
    Labels that were checked because they looked suspect will not do: they overstate the noise.

    Example: `dualt audit labels.npy --probs probs.npy --size 200 -o audit.csv --report audit.html --target 0.02`
    """
    _check_options(size, more, target, report, probs)
    data = _data(labels, probs, label=label, classes=classes, id_column=id_column, n_jobs=n_jobs)
    learning = Learning(text)
    rows = _Rows.read(data, learning)
    earlier = _earlier(output, rows.given, adding=more is not None)
    design = _design(design, earlier, probs)
    if probs is None:
        warn_missing(rows.labelled, len(rows.given))
        plan, found, reached = _plan(rows, design, earlier)
    else:
        with opened(data, learning) as examples:
            plan, found, reached = _plan(rows, design, earlier, examples.posterior)
            found = examples.find_issues(found.transition_estimate) if found is not None else None
    sheet = rows.sheet(plan, _total(size, more, earlier, len(rows.labelled)), random_state, earlier)
    if found is not None and report is not None:
        texts = Path(text) if text and learning.text_column is None else None
        pictures = images or (None if text else data.image_folder)
        found.to_report(report, images=pictures, texts=texts, audit=sheet)
    backup = None if earlier is None else keep_backup(output)  # a person may have added columns
    sheet.save(output)
    told = Told(plan, sheet, reached, target)
    if as_json:
        written = {"output": str(output), "report": report and str(report), "design": design}
        written |= {} if backup is None else {"backup": str(backup)}
        ids = {} if sheet.ids is None else {"ids": sheet.ids.tolist()}
        texts = {} if sheet.texts is None else {"texts": sheet.texts}
        print_json(written | {"indices": sheet.rows.tolist()} | ids | texts | told.as_dict())
        return
    told.show()
    if backup is not None:
        say(f"{output} as it was is {backup}.")
    n_open = len(sheet.rows) - len(sheet.filled)
    wish = f"{n_open:,} label{'' if n_open == 1 else 's'} to check in {output}: fill in the column 'true'"
    say(wish if n_open else f"All {len(sheet.rows):,} labels of {output} are verified", nl=False)
    next_step = shlex.join(["dualt", "estimate", *_inputs(data, learning.text_column), "--verified", str(output)])
    say(f"{', then' if n_open else ':'}\n {next_step}")
    if report is not None and n_open:
        say(f"Or check them in a browser, {report}, and pass its download, audit-review.csv, instead.")


def _total(size: int | None, more: int | None, earlier: Sheet | None, n_labelled: int) -> int:
    """Return how many rows are to be drawn, those of earlier batches among them."""
    n_before = 0 if earlier is None else len(earlier.rows)
    if more is not None:
        if not 0 <= more <= n_labelled - n_before:
            left = f"{n_labelled - n_before:,} of {n_labelled:,} labels that are not drawn yet"
            raise InputError(f"Expected --more from 0 to the {left}, got {more:,}.")
        return n_before + more
    if size is not None and not 1 <= size <= n_labelled:
        raise InputError(f"Expected --size from 1 to {n_labelled:,}, the number of labels, got {size:,}.")
    return min(_SIZE, n_labelled) if size is None else size


def _data(labels: Path, probs: Path | None, **named: Any) -> Data:
    """Return the labels and their probabilities, which `probs` names: a file or several, or columns of the labels."""
    from dualt.files import check_readable
    from dualt.io.load import FORMATS, TABLES

    if probs is None or glob.glob(str(probs)):  # noqa: PTH207
        return Data(probs or labels, labels, **named)
    if probs.suffix.lower() in FORMATS or labels.suffix.lower() not in TABLES:
        check_readable(probs)  # no column, but a file that is not there
    return Data(labels, **named, columns=str(probs))


def _inputs(data: Data, text: str | None) -> list[str]:
    """Return the data as `dualt estimate` takes them: without probabilities where these can be made of them."""
    labels = data.labels or data.probs
    options = {"--label": data.label, "--probs": data.columns, "--id": data.id_column, "--classes": data.classes}
    words = [word for name, value in options.items() if value is not None for word in (name, str(value))]
    if data.columns is not None:
        return [str(labels), *words]
    if data.labels is not None and data.probs != data.labels:
        return [str(data.probs), str(labels), *words]
    if text is not None:
        return [str(labels), *words, "--text", text]
    return [*([] if data.image_folder else ["PROBS"]), str(labels), *words]


def _check_options(
    size: int | None, more: int | None, target: float | None, report: Path | None, probs: Path | None
) -> None:
    from dualt.validation import check_fraction

    if report is not None and probs is None:
        raise InputError("Expected --probs with --report: the page shows what each example probably is.")
    if more is not None and size is not None:
        raise InputError("Expected --size for a new audit, or --more for a later batch, got both.")
    if target is not None:
        check_fraction(target, "--target")


class _Rows(NamedTuple):
    """The given labels of all rows, the numbers of those that have one, and what the rows are called and say."""

    given: NDArray[Any]
    labelled: NDArray[np.intp]
    ids: Sequence[str] | None
    texts: Sequence[str] | None

    @classmethod
    def read(cls, data: Data, learning: Learning) -> _Rows:
        import numpy as np

        from dualt import io
        from dualt.labels import as_label_array, is_missing

        path = data.labels or data.probs
        given = as_label_array(io.load_labels(path, column=data.label, missing=True))
        given = given.argmax(axis=1) if given.ndim == 2 else given
        labelled = np.flatnonzero(~is_missing(given))
        if not len(labelled):
            raise LabelsError(f"Expected at least one label in {path}, got none.")
        if given.dtype.kind == "f" and len(labelled) < len(given):
            # Beside NaN, whole numbers came as floats; in the sheet they are whole again.
            given = np.array(["" if np.isnan(one) else f"{one:.0f}" for one in given.tolist()])
        folder = data.image_folder
        ids = read_column(data, data.id_column, len(given)) if folder is None else io.read_class_folder(folder).files
        texts = read_column(data, learning.text_column, len(given))
        return cls(given, labelled, ids, texts)

    def sheet(self, plan: Plan, total: int, random_state: int, earlier: Sheet | None) -> Sheet:
        """Draw, and return the sheet to fill in, with what was filled in before."""
        import numpy as np

        from dualt.audit import Sheet

        drawn = plan.draw(total, random_state)
        drawn = replace(drawn, rows=self.labelled[drawn.rows])
        sheet = Sheet.of_draw(self.given, drawn, None if self.ids is None else np.array(self.ids, dtype=object))
        texts = None if self.texts is None else [self.texts[row] for row in sheet.rows.tolist()]
        sheet = replace(sheet, texts=texts)
        return sheet if earlier is None else sheet.with_true_of(earlier)


def _earlier(output: Path, given: NDArray[Any], *, adding: bool) -> Sheet | None:
    """Return the sheet to add to; refuse to write over one that a person has worked on."""
    import numpy as np

    from dualt.audit import read_sheet

    if adding:
        sheet = read_sheet(output)
        if sheet.strata is None:
            raise InputError(f"Expected a file of `dualt audit` to add to, got {output} without the column 'stratum'.")
        inside = sheet.rows < len(given)
        now = np.where(inside, given[np.where(inside, sheet.rows, 0)].astype(str), "no such row")
        if (changed := np.flatnonzero(now != sheet.given)).size:
            at = changed[0]
            raise LabelsError(
                f"Expected the labels that {output} was drawn from, got {now[at]!r} in row {sheet.rows[at]}, not"
                f" {sheet.given[at]!r}. Pass these labels, or draw a new audit into another file."
            )
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


def _design(wanted: str | None, earlier: Sheet | None, probs: Path | None) -> Design:
    """Return the design that is wanted, else that of the earlier batch, else the best that can be had."""
    stratified = earlier is not None and earlier.strata is not None and bool(earlier.strata.any())
    if stratified and probs is None:
        raise InputError("Expected --probs, by which the rows of the earlier batch were drawn, got none.")
    if wanted is not None:
        if wanted not in ("uniform", "stratified"):
            raise UnknownNameError("design", wanted, ("uniform", "stratified"))
        return cast("Design", wanted)
    if earlier is not None and earlier.strata is not None:
        return "stratified" if stratified else "uniform"
    return "uniform" if probs is None else "stratified"


def _plan(
    rows: _Rows, design: Design, earlier: Sheet | None, posterior: NoisyPosterior | None = None
) -> tuple[Plan, LabelIssues | None, Reached | None]:
    """Return the plan of the next batch, what is predicted of the labels, and what the batches before have reached."""
    import numpy as np

    from dualt.audit.design import Plan
    from dualt.audit.intervals import share_intervals
    from dualt.audit.verified import LEAST
    from dualt.estimators import estimate_verified
    from dualt.issues import find_posterior_issues

    found = None if posterior is None else find_posterior_issues(posterior)
    given = rows.given[rows.labelled]
    plan = Plan.of(len(given), design, None if found is None else 1 - found.probability_right.astype(float))
    if earlier is None:
        return plan, found, None
    earlier = replace(earlier, rows=rows.labelled.searchsorted(earlier.rows))
    plan = plan.after(earlier.rows, earlier.strata, earlier.stratum_sizes)
    untouched = earlier.strata is not None and len({*earlier.strata[earlier.filled]}) < len({*earlier.strata})
    if len(earlier.filled) < LEAST or untouched:  # nothing can be told yet
        return plan, found, None
    verified = earlier.audit()
    if posterior is None or found is None or found.transition_estimate is None:
        wrong = (verified.true.astype(str) != given[verified.rows].astype(str)).astype(float)
        nothing = np.zeros((len(wrong), 1)), np.zeros(1)
        interval = share_intervals((wrong[:, None], *nothing), verified.weights(len(given)))
        reached = Reached(float(interval.low[0]), float(interval.high[0]), verified.rows)
        return plan.with_observed(wrong - wrong.mean(), verified.rows), None, reached
    corrected = estimate_verified(posterior, found.transition_estimate, verified)
    calibrated = find_posterior_issues(posterior, corrected)
    shown = corrected.audit
    if shown is None:
        return plan, found, None
    reached = Reached(*shown.noise_rate_interval(), shown.rows)
    wrong = 1 - calibrated.probability_right.astype(float)
    return plan.with_observed(shown.residuals(), shown.rows, wrong), found, reached

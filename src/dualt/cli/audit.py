"""`dualt audit`: draw a few labels for a person to check."""

from __future__ import annotations

import glob
import shlex
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

import dualt
from dualt.cli import options
from dualt.cli.terminal import again, print_json, say
from dualt.errors import InputError, LabelsError
from dualt.files import check_readable

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from pandas import DataFrame


def audit(
    labels: Annotated[Path, Argument(help="Given labels: a table, .npy, .npz, .txt, or a folder per class.")],
    output: Annotated[Path, options.output_option(help="CSV to fill in: index, given, true.")],
    report: Annotated[Path | None, Option(help="Write a page to check them on: audit.html.")] = None,
    images: options.Images = None,
    text: options.Text = None,
    features: options.Features = None,
    size: Annotated[int, Option(min=1, help="How many labels to check; all if there are fewer.")] = 200,
    more: Annotated[int | None, Option(min=0, help="Add this many to --output, which keeps its true labels.")] = None,
    random_state: options.RandomState = 0,
    label: options.LabelColumn = None,
    id_column: options.IdColumn = None,
    probs: Annotated[Path | None, Option(help="Probabilities: a file, or columns of LABELS.")] = None,
    classes: options.Classes = None,
    n_jobs: options.Jobs = 1,
    as_json: options.Json = False,
) -> None:
    """Draw labels to check by hand: a few hundred determine how noisy all of them are.

    Fill in the column `true`, or check them on the page of --report and download it from there; then pass the file to
    `dualt estimate --verified` (`dualt votes --verified` if they are a consensus), or add a batch with --more. Every
    row has the same chance of being drawn.
    Labels that were checked because they looked suspect are refused: they overstate the noise.

    The page needs probabilities: those of --probs, else made from --text, --features or images as `dualt issues` makes
    them. Those of --probs also make what is said of the verified labels more precise.

    Example: `dualt audit data.csv --label label --text title --size 200 -o audit.csv --report audit.html`
    """
    from dualt.cli.inputs import is_raw, opened, warn_missing

    dualt.files.check_ending(output, dualt.io.tables.TABLES)
    if more is None and output.exists():  # a person may have worked on it
        raise InputError(f"There is a file {output} already. Add a batch with --more 100, or choose another name.")
    learning = options.Learning(text, features)
    data = _data(labels, probs, label=label, classes=classes, id_column=id_column, n_jobs=n_jobs)
    has_probs = probs is not None or bool(features) or is_raw(data, learning)
    if report is not None and not has_probs:
        raise InputError("Expected --probs, columns or images to learn from with --report: the page shows predictions.")
    given, labelled, ids, texts = _read_rows(data, learning)
    earlier = None if more is None else _read_earlier(output, given)
    found = None
    if probs is not None or report is not None:
        with opened(data, learning, options.Estimation()) as examples:
            found = examples.find_issues()
            reached = _reached(given[labelled], labelled, earlier, examples.posterior, found.transition_estimate)
    else:
        warn_missing(labelled, len(given))
        reached = _reached(given[labelled], labelled, earlier)
    before = None if earlier is None else earlier["index"].to_numpy()
    drawn = dualt.audit.design.draw_rows(labelled, size if more is None else more, random_state, before)
    sheet = dualt.audit.new_sheet(drawn, given, ids, texts, earlier)
    command = partial(_next_command, data, probs, has_probs)
    if found is not None and report is not None:
        found.to_report(
            report,
            images=images or (None if text else data.image_folder),
            columns=examples.columns,
            audit=sheet,
            command=command("audit-review.csv"),
            title=f"Labels of {labels.name}",
        )
    dualt.io.write_table(output, sheet, guarded=True)
    n_drawn, n_verified = len(sheet), int((sheet["true"] != "").sum())
    if as_json:
        written = {"output": str(output), "report": report and str(report), "indices": sheet["index"].tolist()}
        print_json({**written, "drawn": n_drawn, "verified": n_verified, "reached": reached})
        return
    n_open, sentences = n_drawn - n_verified, []
    if reached is not None:
        low, high = reached
        sentences.append(
            f"{low:.1%} to {high:.1%} of the labels are wrong: {n_verified:,} verified labels determine the noise rate"
            f" to ±{50 * (high - low):.1f} percentage points. Four times as many would halve that."
        )
    wish = f"{n_open:,} label{'s' * (n_open != 1)} to check in {output}: fill in the column 'true', then"
    sentences += [wish if n_open else f"All {n_drawn:,} labels of {output} are verified:", f" {command(str(output))}"]
    if report is not None and n_open:
        sentences.append(f"Or check them in a browser, {report}, and pass its download, audit-review.csv, instead.")
    say("\n".join(sentences))


def _next_command(data: options.Data, probs: Path | None, has_probs: bool, sheet: str) -> str:
    """Return the command that takes the labels checked in `sheet`."""
    from dualt.votes.result import CONSENSUS_COLUMNS

    path = data.labels or data.probs
    is_table = path.suffix.lower() in dualt.io.tables.TABLES and path.is_file()
    if is_table and {*CONSENSUS_COLUMNS} <= {*(next(dualt.io.table_columns.table_parts(path)).names or ())}:
        return shlex.join(["dualt", "votes", "VOTES", "--verified", sheet])  # they say more of the votes
    first, without = None if has_probs else "PROBS", ["-o", "--json"]
    if data.labels is not None:  # `dualt estimate` takes files of probabilities first
        first, without = str(probs), [*without, "--probs"]
    return again("estimate", "--verified", sheet, first=first, without=without)


def _data(labels: Path, probs: Path | None, **named: Any) -> options.Data:
    """Return the labels and their probabilities, which `probs` names: a file or several, or columns of the labels."""
    if probs is None:
        return options.Data(labels, **named)
    if all(glob.glob(str(file)) for file in options.Data(probs).files):  # noqa: PTH207
        return options.Data(probs, labels, **named)
    if probs.suffix.lower() in dualt.io.load.FORMATS or labels.suffix.lower() not in dualt.io.tables.TABLES:
        check_readable(probs)  # not a column, but a file that does not exist
    return options.Data(labels, **named, columns=str(probs))


def _read_rows(data: options.Data, learning: options.Learning) -> tuple[NDArray[Any], Any, Any, Any]:
    """Return the labels of all rows, the numbers of those that have one, and their ids and texts, if any."""
    import numpy as np

    from dualt.cli.inputs import read_column, read_raw, read_texts
    from dualt.labels import LabelCoder, as_label_array, is_missing
    from dualt.validation import class_name

    path, folder = data.labels or data.probs, data.image_folder
    if folder is not None and data.labels is None:  # without the images that cannot be read
        raw = read_raw(data, learning)
        return raw.labels, np.arange(len(raw.labels)), raw.beside[dualt.io.image_folder.FILE_COLUMN], None
    given = as_label_array(dualt.io.load_labels(path, column=data.label, missing=True))
    given = LabelCoder.found_in(given).encode(given) if given.ndim == 2 else given
    labelled = np.flatnonzero(~is_missing(given))
    if not len(labelled):
        raise LabelsError(f"Expected at least one label in {path}, got none.")
    if given.dtype.kind == "f":  # a person, and the page, write the class 1.0 as 1
        given = np.array(["" if np.isnan(one) else class_name(one) for one in given.tolist()])
    ids = dualt.io.read_class_folder(folder).files if folder else read_column(data, data.id_column, len(given))
    return given, labelled, ids, read_texts(data, learning, len(given))


def _read_earlier(output: Path, given: NDArray[Any]) -> DataFrame:
    """Return the sheet to add to, drawn from these labels."""
    sheet = dualt.audit.read_sheet(output)
    for row, before in zip(sheet["index"], sheet["given"], strict=True):
        now = str(given[row]).strip() if row < len(given) else "no such row"  # blanks are lost in the sheet
        if now != before:
            raise LabelsError(
                f"Expected the labels that {output} was drawn from, got {now!r} in row {row}, not {before!r}. Pass"
                " these labels, or draw a new audit into another file."
            )
    return sheet


def _reached(
    given: NDArray[Any],
    labelled: NDArray[Any],
    earlier: DataFrame | None,
    posterior: dualt.rows.NoisyPosterior | None = None,
    estimate: dualt.TransitionEstimate | None = None,
) -> tuple[float, float] | None:
    """Return the interval of the noise rate by the labels that are verified so far, None if there are too few."""
    if earlier is None or (earlier["true"] != "").sum() < dualt.audit.verified.LEAST:
        return None
    verified = dualt.audit.audit_of(earlier)
    if posterior is not None and estimate is not None:
        return dualt.estimators.estimate_verified(posterior, estimate, verified).noise_rate_interval()
    verified = verified.among(labelled)
    is_wrong = (verified.true.astype(str) != given[verified.rows].astype(str)).astype(float)[:, None]
    interval = dualt.audit.intervals.share_intervals((is_wrong, 0 * is_wrong, 0 * is_wrong[0]), len(given))
    return float(interval.low[0]), float(interval.high[0])

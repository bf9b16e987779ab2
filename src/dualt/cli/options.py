"""Arguments and options that several commands share."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from dualt.issues import LabelIssues
    from dualt.results import TransitionEstimate
    from dualt.rows import NoisyPosterior
    from dualt.rows.posterior import Progress

Probs = Annotated[
    Path,
    typer.Argument(
        metavar="PROBS",
        help="Predicted probabilities: .npy, .npz, .csv, .tsv or .parquet; many as a folder or a quoted 'pattern*'.",
    ),
]
Labels = Annotated[
    Path | None,
    typer.Argument(metavar="[LABELS]", help="Given labels: the same, or .txt. Default: PROBS with --label."),
]
Format = Annotated[str | None, typer.Option("--format", help="Which files of a folder to read, such as parquet.")]
ProbsColumns = Annotated[
    str | None,
    typer.Option("--probs-columns", help="Columns of probabilities, such as 'p_*'; the star stands for the class."),
]
Jobs = Annotated[int, typer.Option("--n-jobs", help="How many threads read the rows; results do not change.")]
EstimatorName = Annotated[
    str | None, typer.Option("--estimator", "-e", help="How the matrix is found; --compare shows all of them.")
]
Dask = Annotated[
    str | None,
    typer.Option("--dask", help="Let a Dask cluster read the files: tcp://host:8786, or local for two workers here."),
]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="An option of the estimator, such as anchor=quantile."),
]
Level = Annotated[float, typer.Option("--level", help="Level of the confidence intervals.")]
Classes = Annotated[
    Path | None, typer.Option("--classes", help="Class names in column order, one a line. Default: the header's.")
]
LabelColumn = Annotated[str | None, typer.Option("--label", help="Name of the label column in a table.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for machines instead.")]
Report = Annotated[Path | None, typer.Option("--report", help="Write a page to look at and review: report.html.")]
Images = Annotated[
    Path | None, typer.Option("--images", help="What to show in the report: a folder of images, or a .npy of them.")
]
Text = Annotated[Path | None, typer.Option("--text", help="What to show in the report: a line an example.")]
DataDir = Annotated[
    Path | None,
    typer.Option("--data-dir", help="Folder of the data sets. Default: $DUALT_DATA, else ~/.cache/dualt."),
]
RandomState = Annotated[int, typer.Option("--random-state", help="Seed of everything random.")]


def read_posterior(
    probs: Path,
    labels: Path | None,
    label: str | None,
    classes: Path | None,
    *,
    columns: str | None = None,
    ending: str | None = None,
    n_jobs: int = 1,
    on_progress: Progress | None = None,
    dask: str | None = None,
) -> NoisyPosterior:
    """Open the probabilities and labels that a command was given: arrays, or shards to be streamed.

    With `dask`, workers will read the files, by their whole paths.
    """
    from dualt import io
    from dualt.errors import InputError
    from dualt.rows import NoisyPosterior, as_posterior

    if labels is None and label is None:
        raise InputError(f"Expected a file of labels, or --label with a column of {probs}, got neither.")
    names = io.load_class_names(classes) if classes else None
    if dask is not None:
        from dualt.rows.dask import DaskPosterior

        whole = labels and labels.absolute()
        shards = io.open_shards(probs.absolute(), whole, label=label, columns=columns, ending=ending)
        divided = NoisyPosterior.from_blocks(
            io.divide(shards.blocks), shards.class_names if names is None else names, on_progress=on_progress
        )
        return DaskPosterior.of(divided)
    if io.is_sharded(probs) or (labels is not None and io.is_sharded(labels)) or probs.suffix.lower() == ".parquet":
        shards = io.open_shards(probs, labels, label=label, columns=columns, ending=ending)
        return NoisyPosterior.from_blocks(
            shards.blocks, shards.class_names if names is None else names, n_jobs=n_jobs, on_progress=on_progress
        )
    loaded = io.load_probabilities(probs, exclude=[label] if label and labels in (None, probs) else [], columns=columns)
    given = io.load_labels(labels or probs, column=label)
    return as_posterior(
        loaded.values, given, loaded.class_names if names is None else names, n_jobs=n_jobs, on_progress=on_progress
    )


def shown_inputs(
    probs: Path, labels: Path | None, label: str | None, columns: str | None = None, ending: str | None = None
) -> str:
    """Return the arguments that name the data, to be typed again."""
    options = {"--label": label, "--probs-columns": columns, "--format": ending}
    given = [word for option, value in options.items() if value is not None for word in (option, value)]
    return shlex.join([str(probs), *([] if labels is None else [str(labels)]), *given])


def save_report(
    path: Path,
    estimate: TransitionEstimate | None,
    issues: LabelIssues | None = None,
    *,
    comparison: Sequence[TransitionEstimate] = (),
    audit: NDArray[np.intp] | None = None,
    images: Any = None,
    text: Path | None = None,
    level: float = 0.95,
    title: str = "Label report",
) -> None:
    """Write the page of an estimate and its issues, with what there is to look at."""
    from dualt.errors import InputError
    from dualt.report import image_previews, listed, report_data, text_previews, write_report

    if images is not None and text is not None:
        raise InputError("Expected --images or --text, got both.")
    previews = None
    if issues is not None:
        shown = {*listed(issues).tolist(), *([] if audit is None else audit.tolist())}
        if images is not None:
            previews = image_previews(images, shown, n_samples=len(issues))
        elif text is not None:
            previews = text_previews(text, shown, n_samples=len(issues))
    data = report_data(
        estimate, issues, comparison=comparison, audit=audit, previews=previews, level=level, title=title
    )
    write_report(path, data)


def parse_settings(settings: Sequence[str]) -> dict[str, Any]:
    """Return the options that `--set NAME=VALUE` gives; a value that is no Python literal is a word."""
    import ast

    from dualt.errors import InputError

    options: dict[str, Any] = {}
    for setting in settings:
        name, equals, value = setting.partition("=")
        if not equals:
            raise InputError(f"Expected --set NAME=VALUE, got {setting!r}.")
        try:
            options[name] = ast.literal_eval(value)
        except (ValueError, SyntaxError):
            options[name] = value
    return options


def print_json(content: Any) -> None:
    """Print `content` as JSON on stdout."""
    typer.echo(json.dumps(content, indent=1))

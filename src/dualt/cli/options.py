"""Arguments and options that several commands share."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dualt.estimators import NoisyPosterior, TransitionEstimate
    from dualt.issues import LabelIssues

Probs = Annotated[
    Path, typer.Argument(metavar="PROBS", help="Predicted probabilities: .npy, .npz, .csv, .tsv or .parquet.")
]
Labels = Annotated[
    Path | None,
    typer.Argument(metavar="[LABELS]", help="Given labels: the same formats, or .txt. Default: PROBS with --label."),
]
Method = Annotated[str | None, typer.Option("--method", "-m", help="Estimator; see --compare for all of them.")]
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
Seed = Annotated[int, typer.Option("--seed", help="Seed of everything random.")]


def read_posterior(probs: Path, labels: Path | None, label: str | None, classes: Path | None) -> NoisyPosterior:
    """Open the probabilities and labels that a command was given."""
    from dualt import io
    from dualt.errors import InputError
    from dualt.estimators import NoisyPosterior

    if labels is None and label is None:
        raise InputError(f"Expected a file of labels, or --label with a column of {probs}, got neither.")
    loaded = io.load_probabilities(probs, exclude=[label] if label and labels in (None, probs) else [])
    given = io.load_labels(labels or probs, column=label)
    names = io.load_class_names(classes) if classes else loaded.class_names
    return NoisyPosterior.from_arrays(loaded.values, given, names)


def save_report(
    path: Path,
    estimate: TransitionEstimate | None,
    issues: LabelIssues | None = None,
    *,
    comparison: Sequence[TransitionEstimate] = (),
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
    if issues is not None and images is not None:
        previews = image_previews(images, listed(issues), n_samples=len(issues))
    elif issues is not None and text is not None:
        previews = text_previews(text, listed(issues), n_samples=len(issues))
    data = report_data(estimate, issues, comparison=comparison, previews=previews, level=level, title=title)
    write_report(path, data)


def print_json(content: Any) -> None:
    """Print `content` as JSON on stdout."""
    typer.echo(json.dumps(content, indent=1))

"""Arguments and options that several commands share."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from dualt.estimators import NoisyPosterior

Probs = Annotated[
    Path, typer.Argument(metavar="PROBS", help="Predicted probabilities: .npy, .npz, .csv, .tsv or .parquet.")
]
Labels = Annotated[
    Path | None,
    typer.Argument(
        metavar="[LABELS]", help="Given labels: the same formats, or .txt. Default: PROBS with --label."
    ),
]
Method = Annotated[str | None, typer.Option("--method", "-m", help="Estimator; see --compare for all of them.")]
Level = Annotated[float, typer.Option("--level", help="Level of the confidence intervals.")]
Classes = Annotated[
    Path | None, typer.Option("--classes", help="Class names in column order, one a line. Default: the header's.")
]
LabelColumn = Annotated[str | None, typer.Option("--label", help="Name of the label column in a table.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for machines instead.")]
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


def print_json(content: Any) -> None:
    """Print `content` as JSON on stdout."""
    typer.echo(json.dumps(content, indent=1))

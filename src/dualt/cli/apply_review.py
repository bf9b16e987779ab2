"""`dualt apply-review`: put the decisions of a review into the labels."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dualt.cli.options import Classes, Header, Json, LabelColumn, print_json


def apply_review(
    labels: Annotated[Path, typer.Argument(metavar="LABELS", help="The labels that were reviewed.")],
    review: Annotated[Path, typer.Argument(metavar="REVIEW.csv", help="The review, as the report downloads it.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="File for the corrected labels: .npy, .csv or .txt.")],
    label: LabelColumn = None,
    header: Header = None,
    classes: Classes = None,
    as_json: Json = False,
) -> None:
    """Put the decisions of a review into a label file; each label must still be the one that was reviewed.

    Example: `dualt apply-review labels.npy suspects-review.csv -o corrected.npy`
    """
    from dualt import io, issues

    given = io.load_labels(labels, column=label, header=header)
    decisions = issues.read_review(review)
    names = io.load_class_names(classes) if classes else None
    io.save_labels(output, issues.apply_review(given, decisions, class_names=names))
    changed = sum(decision.old != decision.new for decision in decisions)
    result = {"reviewed": len(decisions), "changed": changed, "output": str(output)}
    if as_json:
        print_json(result)
    else:
        typer.echo(f"{len(decisions):,} labels reviewed, {changed:,} changed; written to {output}")

"""`dualt apply-review`: put the decisions of a review into the labels."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dualt.cli.options import Classes, Header, IdColumn, Json, LabelColumn, check_targets, print_json


def apply_review(
    labels: Annotated[
        Path, typer.Argument(metavar="LABELS", help="The file whose labels were reviewed: a table, .npz, .npy or .txt.")
    ],
    review: Annotated[Path, typer.Argument(metavar="REVIEW.csv", help="The review, as the report downloads it.")],
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="The corrected file: of the same format, or the labels alone as .npy."),
    ] = None,
    in_place: Annotated[
        bool, typer.Option("--in-place", help="Correct LABELS itself; a copy is kept as LABELS.bak.")
    ] = False,
    label: LabelColumn = None,
    id_column: IdColumn = None,
    classes: Classes = None,
    header: Header = None,
    as_json: Json = False,
) -> None:
    """Put the decisions of a review into the file of labels; each label must still be the one that was reviewed.

    A table comes back with every column, row and cell it had, other labels aside.

    Example: `dualt apply-review data.csv suspects-review.csv --label label -o corrected.csv`
    """
    from dualt import io, issues
    from dualt.errors import InputError
    from dualt.files import keep_backup

    if (output is None) != in_place:
        raise InputError("Expected either -o with a name for the corrected file, or --in-place.")
    target = labels if output is None else output
    check_targets(target)
    given = io.load_labels(labels, column=label, header=header, missing=True)
    decisions = issues.read_review(review)
    names = io.load_class_names(classes) if classes else None
    ids = io.load_texts(labels, id_column, header=header) if id_column else None
    corrected = issues.apply_review(given, decisions, class_names=names, ids=ids)
    backup = keep_backup(labels) if in_place else None
    io.save_corrected(target, corrected, labels, given, column=label, header=header)
    changed = sum(decision.old != decision.new for decision in decisions)
    if as_json:
        kept = {} if backup is None else {"backup": str(backup)}
        print_json({"reviewed": len(decisions), "changed": changed, "output": str(target), **kept})
    else:
        kept_as = "" if backup is None else f"; as it was: {backup}"
        typer.echo(f"{len(decisions):,} labels reviewed, {changed:,} changed; written to {target}{kept_as}")

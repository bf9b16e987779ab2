"""`dualt apply-review`: put the decisions of a review into the labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dualt.cli.guard import shared
from dualt.cli.options import Classes, Header, IdColumn, Json, LabelColumn, output_option, print_json
from dualt.cli.plain import say
from dualt.errors import InputError
from dualt.files import check_writable_target, keep_backup

if TYPE_CHECKING:
    from dualt.issues import Decision


@shared
def apply_review(
    labels: Annotated[
        Path,
        typer.Argument(
            metavar="LABELS", help="What was reviewed: a table, .npz, .npy, .txt, or images in a folder per class."
        ),
    ],
    review: Annotated[
        Path,
        typer.Argument(
            metavar="REVIEW", help="The review: the page's download, or an export of Label Studio, Argilla or datasets."
        ),
    ],
    output: Annotated[
        Path | None,
        output_option(
            help="The corrected file: of the same format, or the labels alone as .npy. Of images: a CSV of moves."
        ),
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

    Rows that were moved since are found by --id, if each has an id of its own.

    A table comes back with every row, column and cell value, other labels aside. Images are not touched: the CSV says
    which to move where.

    Example: `dualt apply-review data.csv suspects-review.csv --label label -o corrected.csv`
    """  # fmt: skip
    from dualt import io, issues
    from dualt.labels import labels_digest

    if io.is_class_folder(labels):
        if in_place or output is None:
            raise InputError("Expected -o with a name for the CSV of moves, for a folder of images.")
        _move_images(labels, review, output, classes, as_json=as_json)
        return
    if (output is None) != in_place:
        raise InputError("Expected either -o with a name for the corrected file, or --in-place.")
    target = labels if output is None else output
    check_writable_target(target)
    given = io.load_labels(labels, column=label, header=header, missing=True)
    decisions: Sequence[Decision] = issues.read_review(review)
    names = io.load_class_names(classes) if classes else None
    ids = io.load_texts(labels, id_column, header=header) if id_column else None
    decisions = decisions if ids is None else _follow_ids(decisions, ids, labels_digest(given))
    corrected = issues.apply_review(given, decisions, class_names=names, ids=ids)
    backup = keep_backup(labels) if in_place else None
    io.save_corrected(target, corrected, labels, given, column=label, header=header)
    _tell(decisions, target, backup, as_json=as_json)


def _follow_ids(decisions: Sequence[Decision], ids: Sequence[str], digest: str) -> Sequence[Decision]:
    """Return the decisions at the rows that have their ids now, if rows were moved since the review.

    Not of labels that are as they were, by their digest, and not of ids that two rows or decisions share, or that are
    gone or missing: those decisions come back as they are, to be compared with what is there.
    """
    rows = {each: row for row, each in enumerate(ids)}
    places = [rows.get(decision.id) if decision.id else None for decision in decisions]
    known = len(rows) == len(ids) and None not in places and len({*places}) == len(places)
    known = known and digest not in {decision.labels for decision in decisions}
    if not known or places == [decision.index for decision in decisions]:
        return decisions
    # The digest is that of another order; each label must still be the old one.
    return [replace(decision, index=rows[decision.id], labels="") for decision in decisions]


def _move_images(folder: Path, review: Path, output: Path, classes: Path | None, *, as_json: bool) -> None:
    """Write the table of moves that a review asks for."""
    from dualt import io, issues

    images, decisions = io.read_class_folder(folder), issues.read_review(review)
    names = io.load_class_names(classes) if classes else images.names
    corrected = issues.apply_review(images.labels, decisions, class_names=names, ids=images.files)
    io.save_moves(output, io.plan_moves(images, corrected.tolist()))
    _tell(decisions, output, as_json=as_json)


def _tell(decisions: Sequence[Decision], target: Path, backup: Path | None = None, *, as_json: bool) -> None:
    changed = sum(decision.old != decision.new for decision in decisions)
    if as_json:
        kept = {} if backup is None else {"backup": str(backup)}
        print_json({"reviewed": len(decisions), "changed": changed, "output": str(target), **kept})
    else:
        kept_as = "" if backup is None else f"; as it was: {backup}"
        plural = "" if len(decisions) == 1 else "s"
        say(f"{len(decisions):,} label{plural} reviewed, {changed:,} changed; written to {target}{kept_as}")

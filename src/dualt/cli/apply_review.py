"""`dualt apply-review`: put the decisions of a review into the labels."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Argument

import dualt
from dualt.cli.options import Classes, IdColumn, Json, LabelColumn, output_option
from dualt.cli.terminal import print_json, say


def apply_review(
    labels: Annotated[Path, Argument(help="What was reviewed: a table, .npy, .npz, .txt, or a folder per class.")],
    review: Annotated[Path, Argument(help="The page's download, or an export of Label Studio or Argilla.")],
    output: Annotated[Path, output_option(help="The corrected file; for images, a CSV of moves.")],
    label: LabelColumn = None,
    id_column: IdColumn = None,
    classes: Classes = None,
    as_json: Json = False,
) -> None:
    """Put the decisions of a review into the labels; each label must still be the one that was reviewed.

    A table comes back with every row, column and cell value, except for the corrected labels. Rows that have moved are
    found by --id. Images stay where they are: -o names a table of the files (from) and where they belong (to).

    Example: `dualt apply-review data.csv suspects-review.csv --label label -o corrected.csv`
    """
    import pandas as pd

    from dualt.cli.inputs import warn_labels

    io, decisions = dualt.io, dualt.issues.read_review(review)
    names = io.load_class_names(classes) if classes else None
    if io.is_class_folder(labels):
        images = io.read_class_folder(labels)
        moved = dualt.issues.apply_review(images.labels, decisions, class_names=names or images.names, ids=images.files)
        moves = pd.DataFrame(io.plan_moves(images, moved.tolist()), columns=["from", "to"], dtype=str)
        io.write_table(output, moves, guarded=True)
    else:
        given = io.load_labels(labels, column=label, missing=True)
        ids = io.open_table(labels, id_column).read_texts(id_column) if id_column else None
        corrected = dualt.issues.apply_review(given, decisions, class_names=names, ids=ids)
        warn_labels(corrected, remedy="Those that were not reviewed stay so.")
        io.save_corrected(output, corrected, labels, given, column=label)
    changed = sum(decision.old != decision.new for decision in decisions)
    if as_json:
        print_json({"reviewed": len(decisions), "changed": changed, "output": str(output)})
        return
    say(f"{len(decisions):,} label{'s' * (len(decisions) != 1)} reviewed, {changed:,} changed; written to {output}")

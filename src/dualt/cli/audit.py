"""`dualt audit`: draw a few labels for a person to check."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dualt.cli.options import Json, LabelColumn, Seed, print_json


def audit(
    labels: Annotated[Path, typer.Argument(metavar="LABELS", help="Given labels: .npy, .npz, .csv, .parquet, .txt.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="CSV to fill in: index, given, true.")],
    size: Annotated[int, typer.Option("--size", help="How many labels to check.")] = 200,
    seed: Seed = 0,
    label: LabelColumn = None,
    as_json: Json = False,
) -> None:
    """Draw a random sample of labels to check by hand; a few hundred tell which estimate to trust.

    Fill in the column `true`, then pass the file to `dualt estimate --verified`. Only a random sample will do:
    labels that were checked because they looked suspect overstate the noise.

    Example: `dualt audit labels.npy --size 200 -o audit.csv`
    """
    from dualt import io
    from dualt.labels import as_label_array

    given = as_label_array(io.load_labels(labels, column=label))
    given = given.argmax(axis=1) if given.ndim == 2 else given
    rows = io.draw_audit(given, size, rng=seed)
    io.save_audit(output, given, rows)
    if as_json:
        print_json({"output": str(output), "indices": rows.tolist()})
    else:
        typer.echo(f"{len(rows):,} labels to check in {output}: fill in the column 'true', then")
        typer.echo(f" dualt estimate PROBS {labels} --verified {output}")

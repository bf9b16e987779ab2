"""`dualt corrupt`: give labels a known noise, to test with."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dualt.cli.options import Json, LabelColumn, Seed, print_json


def corrupt(
    labels: Annotated[Path, typer.Argument(metavar="LABELS", help="Labels: .npy, .npz, .csv, .tsv, .parquet or .txt.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="Where the noisy labels go: .npy, .csv or .txt.")],
    noise: Annotated[
        str | None, typer.Option("--noise", help="sym-0.2, pair-0.45 (or pair-45, in per cent), random-0.3, clean.")
    ] = None,
    transition: Annotated[
        Path | None, typer.Option("--transition", help="A matrix instead: .json, .npy or .csv.")
    ] = None,
    n_classes: Annotated[
        int | None, typer.Option("--n-classes", help="Number of classes, if the labels do not show them all.")
    ] = None,
    exact: Annotated[bool, typer.Option("--exact", help="Realise each rate to the nearest label.")] = False,
    seed: Seed = 0,
    label: LabelColumn = None,
    as_json: Json = False,
) -> None:
    """Give labels a known noise: each becomes another class with the probability its row says.

    Example: `dualt corrupt labels.npy --noise pair-0.45 -o noisy.npy`
    """
    import numpy as np

    from dualt import io
    from dualt import noise as noises
    from dualt.errors import InputError
    from dualt.labels import as_label_array

    if (noise is None) == (transition is None):
        raise InputError("Expected either --noise or --transition, got both or neither.")
    given = as_label_array(io.load_labels(labels, column=label))
    if transition is not None:
        matrix = io.load_transition(transition)
    else:
        matrix = noises.from_name(noise or "", n_classes or _count_classes(given), rng=seed)
    noisy = noises.corrupt(given, matrix, rng=seed, exact=exact)
    io.save_labels(output, noisy)
    changed = int((noisy != given).any(axis=1).sum() if given.ndim == 2 else np.count_nonzero(noisy != given))
    result = {"n_samples": len(given), "n_changed": changed, "output": str(output), "transition": matrix.tolist()}
    if as_json:
        print_json(result)
    else:
        typer.echo(f"{changed:,} of {len(given):,} labels changed ({changed / len(given):.1%}); written to {output}")


def _count_classes(labels: object) -> int:
    import numpy as np

    array = np.asarray(labels)
    if array.ndim == 2:
        return int(array.shape[1])
    return len(np.unique(array)) if array.dtype.kind not in "iuf" else int(array.max()) + 1

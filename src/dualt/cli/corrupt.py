"""`dualt corrupt`: put known noise into labels, to test with."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dualt.cli.guard import shared
from dualt.cli.options import Header, Json, LabelColumn, RandomState, output_option, print_json
from dualt.cli.plain import say
from dualt.errors import InputError, LabelsError

if TYPE_CHECKING:
    from numpy.typing import NDArray

# A larger label is an identifier, not a class number: its matrix would not fit in memory.
_MOST_CLASSES = 10_000


@shared
def corrupt(
    labels: Annotated[
        Path, typer.Argument(metavar="LABELS", help="Labels: .npy, .npz, .csv, .tsv, .parquet, .jsonl or .txt.")
    ],
    output: Annotated[
        Path,
        output_option(help="The same file with noisy labels if it ends as LABELS, else these alone: .npy, .csv, .txt."),
    ],
    noise: Annotated[
        str | None, typer.Option(help="sym-0.2, pair-0.45 (or pair-45, in percent), random-0.3, clean.")
    ] = None,
    transition: Annotated[Path | None, typer.Option(help="A matrix instead: .json, .npy or .csv.")] = None,
    n_classes: Annotated[int | None, typer.Option(help="Number of classes, if not all of them occur.")] = None,
    exact: Annotated[bool, typer.Option("--exact", help="Meet each rate exactly, up to rounding.")] = False,
    random_state: RandomState = 0,
    label: LabelColumn = None,
    header: Header = None,
    as_json: Json = False,
) -> None:
    """Corrupt labels with known noise: label i becomes j with probability transition[i, j].

    A table comes back with every column and row it had if OUTPUT is of its format.

    Example: `dualt corrupt labels.npy --noise pair-0.45 -o noisy.npy`
    """
    from dualt import io
    from dualt import noise as noises
    from dualt.label_arrays import as_label_array

    if (noise is None) == (transition is None):
        raise InputError("Expected either --noise or --transition, got both or neither.")
    if n_classes is not None and n_classes < 2:
        raise InputError(f"Expected --n-classes to name at least two classes, got {n_classes}.")
    given = as_label_array(io.load_labels(labels, column=label, header=header))
    if transition is not None:
        matrix, names = io.load_named_transition(transition)
    else:
        counted = _count_classes(given)
        names = _names_without_zero(given) if n_classes is None else None
        n_classes = n_classes or (counted if names is None else len(names))
        matrix = noises.from_name(noise or "", n_classes, random_state=random_state)
    noisy = noises.corrupt(given, matrix, random_state=random_state, exact=exact, class_names=names)
    if output.suffix.lower() == labels.suffix.lower():
        io.save_corrected(output, noisy, labels, given, column=label, header=header)
    else:
        io.save_labels(output, noisy)
    differs = noisy != given
    changed = int((differs.any(axis=1) if differs.ndim == 2 else differs).sum())
    result = {"n_samples": len(given), "n_changed": changed, "output": str(output), "transition": matrix.tolist()}
    if as_json:
        print_json(result)
    else:
        say(f"{changed:,} of {len(given):,} labels changed ({changed / len(given):.1%}); written to {output}")


def _names_without_zero(labels: NDArray[Any]) -> tuple[str, ...] | None:
    """Return class numbers that do not start at 0, one to five stars or −1 and 1, as names: no label 0 is made up."""
    import numpy as np

    if labels.ndim == 2 or labels.dtype.kind not in "iuf" or labels.min() == 0:
        return None
    return tuple(f"{number:.0f}" for number in np.unique(labels).tolist())


def _count_classes(labels: NDArray[Any]) -> int:
    """Return the number of classes: columns of one-hot labels, distinct names, or the largest class number plus one."""
    if labels.ndim == 2:
        return int(labels.shape[1])
    if labels.dtype.kind not in "iuf":
        return len(set(labels.tolist()))
    # Beside other numbers, −1 stands for a label that is missing.
    if set(labels.tolist()) == {-1, 1}:
        return 2
    usable = (labels >= 0) & (labels < _MOST_CLASSES)
    if not usable.all():
        row = int(usable.argmin())
        raise LabelsError(
            f"Expected class numbers from 0 to {_MOST_CLASSES - 1}, got {labels[row]} at row {row}."
            " Pass names as text, or a matrix with --transition."
        )
    return int(labels.max()) + 1

"""`dualt predict`: classes and probabilities from a trained model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dualt.cli.options import Json, print_json

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def predict(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="Folder that `dualt train` wrote.")],
    data: Annotated[
        str,
        typer.Argument(metavar="DATA", help="Samples: .npy, .npz (X), a table, a folder of images, or a data set."),
    ],
    output: Annotated[
        Path, typer.Option("-o", "--output", help="Classes and probabilities as .csv, or probabilities as .npy.")
    ],
    label: Annotated[
        str | None,
        typer.Option("--label", help="Column of a table that is no feature; needless where columns match by name."),
    ] = None,
    size: Annotated[int | None, typer.Option("--size", help="Resize images to this many pixels a side.")] = None,
    data_dir: Annotated[Path | None, typer.Option("--data-dir", help="Where named data sets live.")] = None,
    device: Annotated[str, typer.Option("--device", help="auto, cpu, cuda, ...")] = "auto",
    as_json: Json = False,
) -> None:
    """Predict the clean class of every sample.

        Columns of a table are matched by name with those of training; others are ignored. Of a named data set the test
    part is used.

    Example: `dualt predict model/ new.csv -o predictions.csv`
    """
    from dualt.errors import FileError
    from dualt.files import check_writable_target
    from dualt.nn.training import Machine
    from dualt.nn.training.model import Model

    if output.suffix not in (".csv", ".npy"):
        raise FileError(f"Expected a name that ends in .csv or .npy, got {output.name!r}.")
    check_writable_target(output)
    loaded = Model.load(model)
    samples, labels = _read(data, loaded.feature_names, label, size, data_dir)
    probs = loaded.predict_probs(samples, Machine(device))
    _write(output, probs, loaded.class_names)
    chosen = probs.argmax(axis=1)
    content: dict[str, Any] = {"n_samples": len(probs), "output": str(output)}
    content["counts"] = {name: int((chosen == number).sum()) for number, name in enumerate(loaded.class_names)}
    if labels is not None:
        content["accuracy"] = float((chosen == labels).mean())
    if as_json:
        print_json(content)
    else:
        known = f"; {content['accuracy']:.2%} of the labels it came with agree" if labels is not None else ""
        typer.echo(f"{len(probs):,} samples predicted, written to {output}{known}")


def _read(
    data: str, features: tuple[str, ...] | None, label: str | None, size: int | None, data_dir: Path | None
) -> tuple[Any, NDArray[np.int64] | None]:
    """Return samples, and their clean labels if they come with a data set."""
    import numpy as np

    from dualt.datasets import load_dataset
    from dualt.io.arrays import read_npy, read_npz
    from dualt.io.load import TABLES

    path = Path(data).expanduser()
    if path.suffix.lower() == ".npy":
        return np.array(read_npy(path)), None
    if path.suffix.lower() == ".npz":
        return read_npz(path, ("X", "arr_0")), None
    if path.suffix.lower() in TABLES:
        return _read_table(path, features, label), None
    dataset = load_dataset(data, data_dir, **({} if size is None else {"size": size}))
    if dataset.test_x is None:
        return dataset.train_x, None
    return dataset.test_x, dataset.test_y


def _read_table(path: Path, features: tuple[str, ...] | None, label: str | None) -> NDArray[np.float32]:
    """Return the columns that the model was trained on, by name where it knows their names, else by place."""
    import numpy as np

    from dualt.errors import InputError
    from dualt.io.load import choose_columns, open_table

    table = open_table(path, features[0] if features else label)
    if features is not None and table.names is not None:
        missing = [name for name in features if name not in table.names]
        if missing:
            raise InputError(f"Expected the columns of training in {path}, got none of the name {', '.join(missing)}.")
        twice = [name for name in features if table.names.count(name) > 1]
        if twice:
            raise InputError(f"Expected one column of each name in {path}, got several of the name {', '.join(twice)}.")
        places = [table.names.index(name) for name in features]
    elif features is not None:
        raise InputError(f"Expected a header that names the columns of training in {path}, got a table without one.")
    else:
        places, _ = choose_columns(table, [] if label is None else [label])
    with np.errstate(over="ignore"):
        return np.asarray(table.read_numbers(places), np.float32)


def _write(path: Path, probs: NDArray[np.float32], names: tuple[str, ...]) -> None:
    import csv

    import numpy as np

    from dualt.files import atomic_write
    from dualt.io.cells import guard_cell

    if path.suffix == ".npy":
        with atomic_write(path, "wb") as stream:
            np.save(stream, probs, allow_pickle=False)
        return
    with atomic_write(path) as stream:
        writer = csv.writer(stream, lineterminator="\n")
        cells = [guard_cell(name) for name in names]
        writer.writerow(["prediction", *cells])
        for row in probs:
            writer.writerow([cells[int(row.argmax())], *(f"{value:.6g}" for value in row)])

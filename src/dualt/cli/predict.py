"""`dualt predict`: classes and probabilities from a trained model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from dualt.cli.options import Json, output_option, shared
from dualt.cli.terminal import print_json, say
from dualt.errors import FileError, InputError
from dualt.files import atomic_write

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from dualt.nn.saved_model import Model


@shared
def predict(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="Folder that `dualt train` wrote.")],
    data: Annotated[
        str, typer.Argument(metavar="DATA", help="Samples: .npy, .npz (X), a table, a folder of images, or a data set.")
    ],
    output: Annotated[Path, output_option(help="Classes and probabilities as .csv, or probabilities as .npy.")],
    label: Annotated[
        str | None, typer.Option(help="Column of a table that is not a feature; not needed if columns match by name.")
    ] = None,
    size: Annotated[int | None, typer.Option(help="Resize images to this many pixels a side.")] = None,
    data_dir: Annotated[Path | None, typer.Option(help="Where named data sets live.")] = None,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, ...")] = "auto",
    as_json: Json = False,
) -> None:
    """Predict the clean class of every sample.

    Columns of a table are matched by name with those of training; other columns are ignored. Images may be in one
    folder or in a folder per class; the output has their file names. Data sets with a test part are represented by it.

    Example: `dualt predict model/ new.csv -o predictions.csv`
    """
    from dualt.nn.saved_model import Model

    if output.suffix not in (".csv", ".npy"):
        raise FileError(f"Expected a name that ends in .csv or .npy, got {output.name!r}.")
    loaded = Model.load(model)
    samples = _read(data, loaded, label, size, data_dir)
    probs, labels = loaded.predict_probs(samples.values, device), samples.labels
    _write(output, probs, loaded.class_names, samples.files)
    chosen = probs.argmax(axis=1)
    content: dict[str, Any] = {"n_samples": len(probs), "output": str(output)}
    content["counts"] = {name: int((chosen == number).sum()) for number, name in enumerate(loaded.class_names)}
    if labels is not None:
        content["accuracy"] = float((chosen == labels).mean())
    if as_json:
        print_json(content)
    else:
        known = f"; {content['accuracy']:.2%} agree with the given labels" if labels is not None else ""
        say(f"{len(probs):,} sample{'s' * (len(probs) != 1)} predicted, written to {output}{known}")


class _Samples(NamedTuple):
    """Samples to predict, with their labels as class numbers and their file names, if they have any."""

    values: Any
    labels: NDArray[np.int64] | None = None
    files: Sequence[str] | None = None


def _read(data: str, model: Model, label: str | None, size: int | None, data_dir: Path | None) -> _Samples:
    import numpy as np

    from dualt.datasets.catalog import REGISTRY, load_dataset
    from dualt.datasets.dataset import channels_first
    from dualt.io.load import read_npy, read_npz
    from dualt.io.tables import TABLES

    path = Path(data).expanduser()
    if path.suffix.lower() == ".npy":
        return _Samples(channels_first(np.array(read_npy(path))))
    if path.suffix.lower() == ".npz":
        return _Samples(channels_first(read_npz(path, ("X", "arr_0"))))
    if path.suffix.lower() in TABLES:
        return _Samples(_read_table(path, model.feature_names, label))
    if path.is_dir() and data not in REGISTRY:
        return _read_images(path, model, size)
    dataset = load_dataset(data, data_dir, **({} if size is None else {"size": size}))
    if dataset.test_x is None:
        return _Samples(dataset.train_x)
    return _Samples(dataset.test_x, dataset.test_y)


def _read_images(folder: Path, model: Model, size: int | None) -> _Samples:
    """Return the images in a folder (or its `test/`, if there is one), in the size and mode of training."""
    import numpy as np

    from dualt.datasets.images import LazyImages, image_size_and_mode
    from dualt.io import is_class_folder, list_images, read_class_folder

    if len(model.input_shape) != 3:
        raise InputError(f"Expected samples of shape {model.input_shape}, as in training, got images.")
    if (folder / "train").is_dir() and (folder / "test").is_dir():
        folder = folder / "test"
    paths, labels = list_images(folder), None
    if is_class_folder(folder) and {*(given := read_class_folder(folder).labels.tolist())} <= {*model.class_names}:
        labels = np.array([model.class_names.index(name) for name in given], np.int64)
    channels, height, width = model.input_shape
    if size is None and any(image_size_and_mode(path)[0] != (height, width) for path in paths):
        size = min(height, width)
    shape = (height, width) if size is None else (size, size)
    images = LazyImages(paths, shape, mode="L" if channels == 1 else "RGB", shorter_side=size)
    return _Samples(images, labels, [path.relative_to(folder).as_posix() for path in paths])


def _read_table(path: Path, features: tuple[str, ...] | None, label: str | None) -> NDArray[np.float64]:
    """Return the columns that the model was trained on: by name if they had names, else by position."""
    from dualt.io.table_columns import choose_columns, open_table

    table = open_table(path, features[0] if features else label)
    if features is not None and table.names is not None:
        missing = [name for name in features if name not in table.names]
        if missing:
            raise InputError(f"Expected the columns of training in {path}, got none named {', '.join(missing)}.")
        twice = [name for name in features if table.names.count(name) > 1]
        if twice:
            raise InputError(f"Expected one column of each name in {path}, got several named {', '.join(twice)}.")
        places = [table.names.index(name) for name in features]
    elif features is not None:
        raise InputError(f"Expected a header that names the columns of training in {path}, got a table without one.")
    else:
        places, _ = choose_columns(table, [] if label is None else [label])
    return table.read_numbers(places)


def _write(path: Path, probs: NDArray[np.float32], names: tuple[str, ...], files: Sequence[str] | None = None) -> None:
    import numpy as np
    import pandas as pd

    from dualt.io.image_folder import FILE_COLUMN
    from dualt.io.tables import write_table

    if path.suffix == ".npy":
        with atomic_write(path, "wb") as stream:
            np.save(stream, probs, allow_pickle=False)
        return
    columns = [pd.Series([names[number] for number in probs.argmax(axis=1)], name="prediction", dtype=object)]
    if files is not None:
        columns.insert(0, pd.Series(list(files), name=FILE_COLUMN, dtype=object))
    written = pd.DataFrame(np.char.mod("%.6g", probs), columns=list(names))
    write_table(path, pd.concat([*columns, written], axis=1), guarded=True)

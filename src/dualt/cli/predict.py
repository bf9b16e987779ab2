"""`dualt predict`: classes and probabilities from a trained model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from typer import Argument

import dualt
from dualt.cli.options import Json, output_option
from dualt.cli.terminal import print_json, say
from dualt.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from pandas import DataFrame

    from dualt.nn.storage import Model

_PREDICTED, _PROBABILITY = "predicted", "probability"


def predict(
    model: Annotated[Path, Argument(help="Folder that `dualt train` wrote.")],
    data: Annotated[str, Argument(help="Samples: a table, .npy, .npz (X), a folder of images, or a data set.")],
    output: Annotated[Path, output_option(help="The table with two more columns, or all probabilities as .npy.")],
    as_json: Json = False,
) -> None:
    """Predict the clean class of every sample.

    A table comes back with all its columns, and with the columns `predicted` and `probability`, how probable that class
    is. Columns are matched by name with those of training. Images may be in one folder or in a folder per class; the
    output has their file names. Data sets with a test part are represented by it.

    Example: `dualt predict model/ new.csv -o predictions.csv`
    """
    from dualt.crossfit.table_model import MODEL_FILE, TableModel

    tables = dualt.io.tables.TABLES
    dualt.files.check_ending(output, (*dualt.io.tables.TABLES, ".npy"))
    names: Sequence[str]
    probs: NDArray[Any]
    if (model / MODEL_FILE).exists():
        table_model = TableModel.load(model)
        if Path(data).suffix.lower() not in tables:
            columns = ", ".join(table_model.features)
            raise InputError(f"Expected a table with the columns of training ({columns}), got {data}.")
        samples = _read_table(Path(data).expanduser(), table_model.features, numbers=False)
        names, probs = table_model.predict_probs(samples.values)
    else:
        from dualt.nn.storage import Model

        network = Model.load(model)
        samples = _read(data, network)
        names, probs = network.class_names, network.predict_probs(samples.values)
    _write(output, probs, names, samples)
    chosen = probs.argmax(axis=1)
    counts = {name: int((chosen == number).sum()) for number, name in enumerate(names)}
    if as_json:
        print_json({"n_samples": len(probs), "output": str(output), "counts": counts})
    else:
        say(f"{len(probs):,} sample{'s' * (len(probs) != 1)} predicted, written to {output}")


class _Samples(NamedTuple):
    """Samples to predict, and the table or the files that they came in, if any."""

    values: Any
    table: DataFrame | None = None
    files: Sequence[str] | None = None


def _read(data: str, model: Model) -> _Samples:
    """Return the samples of a file, a folder of images or a data set, for networks."""
    path = Path(data).expanduser()
    if path.suffix.lower() in (".npy", ".npz"):
        samples = dualt.io.load.load_array(path, ("X", "arr_0"))
        return _Samples(dualt.datasets.dataset.channels_first(samples.copy()))
    if path.suffix.lower() in dualt.io.tables.TABLES:
        return _read_table(path, model.feature_names, numbers=True)
    if path.is_dir() and data not in dualt.datasets.REGISTRY:
        return _read_images(path, model)
    dataset = dualt.datasets.load_dataset(data)
    return _Samples(dataset.train_x if dataset.test_x is None else dataset.test_x)


def _read_images(folder: Path, model: Model) -> _Samples:
    """Return the images in a folder (or its `test/`, if there is one), in the size and mode of training."""
    from dualt.datasets.images import LazyImages, image_size_and_mode

    if len(model.input_shape) != 3:
        raise InputError(f"Expected samples of shape {model.input_shape}, as in training, got images.")
    if (folder / "train").is_dir() and (folder / "test").is_dir():
        folder = folder / "test"
    paths = dualt.io.list_images(folder)
    channels, height, width = model.input_shape
    resized = any(image_size_and_mode(path)[0] != (height, width) for path in paths)
    side = min(height, width) if resized else None
    shape = (height, width) if side is None else (side, side)
    images = LazyImages(paths, shape, mode="L" if channels == 1 else "RGB", shorter_side=side)
    return _Samples(images, files=[path.relative_to(folder).as_posix() for path in paths])


def _read_table(path: Path, features: Sequence[str] | None, *, numbers: bool) -> _Samples:
    """Return the columns that the model was trained on, by name if they had names: as numbers, or a frame of texts."""
    import pandas as pd

    table = dualt.io.open_table(path, features[0] if features else None)
    names = table.names or ()
    if features is None:
        places, _ = dualt.io.table_columns.choose_columns(table)
    else:
        wrong = [name for name in features if names.count(name) != 1]
        if wrong:
            got = "several" if wrong[0] in names else "none"
            raise InputError(f"Expected each column of training once in {path}, got {got} named {', '.join(wrong)}.")
        places = [names.index(name) for name in features]
    for name in (_PREDICTED, _PROBABILITY):
        if name in names:
            raise InputError(f"There is a column {name!r} in {path} already. Rename it.")
    whole = dualt.io.read_table(path, header=table.names is not None)
    if numbers:
        return _Samples(table.read_numbers(places), table=whole)
    return _Samples(pd.DataFrame({name: table.read_texts(name) for name in features or ()}), table=whole)


def _write(path: Path, probs: NDArray[Any], names: Sequence[str], samples: _Samples) -> None:
    import numpy as np
    import pandas as pd

    if path.suffix.lower() == ".npy":
        dualt.io.load.save_probabilities(path, probs, names, {})
        return
    files = {} if samples.files is None else {dualt.io.image_folder.FILE_COLUMN: samples.files}
    frame = pd.DataFrame(files, index=range(len(probs))) if samples.table is None else samples.table
    predicted = pd.Series([names[number] for number in probs.argmax(axis=1)], name=_PREDICTED, dtype=object)
    probability = pd.Series(probs.max(axis=1).astype(np.float64).round(6), name=_PROBABILITY)
    dualt.io.write_table(path, pd.concat([frame, predicted, probability], axis=1), guarded=samples.table is None)

"""Examples and labels of files without probabilities, as `cross_fit` takes them."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from dualt.errors import DualtError, InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dualt.cli.groups import Data
    from dualt.cli.learning import Learning
    from dualt.crossfit.out_of_fold import Kind

# Images of one size up to this are taken as they are, others resized to so many pixels a side.
_LARGEST_SIDE, _USUAL_SIDE = 48, 32


class Raw(NamedTuple):
    """Examples and labels as `cross_fit` takes them, and what names the rows."""

    data: Any
    labels: Any
    groups: Any
    kind: Kind
    beside: Mapping[str, Sequence[Any]]


def load_raw(data: Data, text: str | None, learning: Learning) -> Raw:
    """Read what is learnt from: images in a folder per class, or columns of one table."""
    from dualt import io

    if io.is_class_folder(data.probs):
        if text or learning.features or learning.group:
            raise InputError("Expected --text, --features and --group with a table, got one with a folder of images.")
        return _load_images(data.probs, learning.size)
    if io.is_sharded(data.probs):
        raise InputError(f"Expected one table, or images in a folder per class, got {data.probs}.")
    return _load_table(data, text, learning.features, learning.group)


def _load_images(folder: Path, size: int | None) -> Raw:
    from dualt import io
    from dualt.datasets.folder import load_images
    from dualt.datasets.images import image_size_and_mode
    from dualt.io.image_folder import FILE_COLUMN

    if io.is_class_folder(folder / "train"):
        raise InputError(f"Expected a folder per class in {folder}, got train. Pass {folder / 'train'}.")
    images = io.read_class_folder(folder)
    paths = [folder / file for file in images.files]
    if size is None:
        sizes = {image_size_and_mode(path)[0] for path in paths}
        size = None if len(sizes) == 1 and max(*sizes.pop()) <= _LARGEST_SIDE else _USUAL_SIDE
    return Raw(
        load_images(paths, size=size), images.labels, None, "images",
        {FILE_COLUMN: images.files, "label": images.labels.tolist()},
    )  # fmt: skip


def _load_table(data: Data, text: str | None, features: str | None, group: str | None) -> Raw:
    import numpy as np

    from dualt import io
    from dualt.io.load import choose_columns, label_place

    table = io.open_table(data.probs, data.label or text or data.id_column, data.header)
    at = label_place(table, data.label)
    label = table.names[at] if table.names else ""
    labels = io.load_labels(data.probs, column=data.label, header=data.header, missing=True)
    groups = None if group is None else np.array(table.read_texts(table.position(group)), dtype=object)
    if features is not None:
        others = [name for name in (label, data.id_column, group) if name]
        places, _ = choose_columns(table, others, features)
        _refuse_label(at in places, label)
        inputs: Any = _typed(table.read_columns(places))
    elif text is not None:
        _refuse_label(table.position(text) == at, label)
        inputs = table.read_texts(table.position(text))
    else:
        raise InputError(
            f"Expected a column of {table.path} to learn from, got none. Name it with --text, or columns of numbers"
            " and categories with --features."
        )
    beside: dict[str, Any] = {"index": range(len(labels))}
    if data.id_column is not None:
        beside[data.id_column] = table.read_texts(table.position(data.id_column))
    beside[label or "label"] = table.read_texts(at)
    return Raw(inputs, labels, groups, "text" if features is None else "table", beside)


def _refuse_label(is_learnt_from: bool, label: str) -> None:
    if is_learnt_from:
        raise InputError(f"Expected other columns to learn from than the labels, got {label!r}, which tells them all.")


def _typed(columns: Sequence[Sequence[str]]) -> NDArray[Any]:
    """Return columns of texts as numbers if all are, else as objects: numbers and texts."""
    import numpy as np

    from dualt.crossfit.columns import encode_columns

    encoded = encode_columns(range(len(columns)), [np.array(column, dtype=object) for column in columns])
    values: NDArray[Any] = encoded.values
    if encoded.categorical.any():
        values = values.astype(object)
        for place in np.flatnonzero(encoded.categorical).tolist():
            values[:, place] = columns[place]
    return values


def has_probabilities(data: Data, text: str) -> bool:
    """Tell whether the other columns of a table are probabilities: numbers, of which those of a row sum to one."""
    import numpy as np

    from dualt import io
    from dualt.io.load import TABLES, choose_columns, label_place

    if io.is_sharded(data.probs) or data.probs.suffix.lower() not in TABLES:
        return True
    table = io.open_table(data.probs, data.label or text, data.header)
    table.position(text)
    label = (table.names or ())[label_place(table, data.label)]
    try:
        places, _ = choose_columns(table, [label, text, *([data.id_column] if data.id_column else [])])
        sums = table.read_numbers(places).sum(axis=1)
    except DualtError:
        return False
    return len(places) > 1 and bool(np.mean(np.abs(sums - 1) < 0.05) > 0.5)


def load_model(spec: str) -> Any:
    """Return the classifier that `module:factory` makes; modules of the working folder are found."""
    from dualt.crossfit.folds import check_classifier

    module, colon, name = spec.partition(":")
    if not (module and colon and name):
        raise InputError(f"Expected --model module:factory, such as my_models:make, got {spec!r}.")
    if "" not in sys.path:
        sys.path.insert(0, "")
    try:
        factory = getattr(import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise InputError(f"Expected {name} in the module {module} for --model: {error}.") from error
    if not callable(factory):
        raise InputError(f"Expected a function or class in --model {spec}, got {type(factory).__name__}.")
    try:
        made = factory()
    except TypeError as error:
        raise InputError(f"Expected a factory without arguments in --model {spec}: {error}.") from error
    return check_classifier(made)

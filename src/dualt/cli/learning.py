"""Data without probabilities: what a model may learn from, and its out-of-fold probabilities, kept by content."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from dualt.cli.groups import Data
from dualt.cli.options import RandomState
from dualt.cli.progress import steps_progress

if TYPE_CHECKING:
    from dualt.crossfit.fit import Kind
    from dualt.io.tables import Table

_log = logging.getLogger(__name__)
CACHE_VARIABLE = "DUALT_CACHE"
# So many of the newest results are kept.
_KEPT = 20
# Images of one size up to this are taken as they are, others resized to so many pixels a side.
_LARGEST_SIDE, _USUAL_SIDE = 48, 32


class Raw(NamedTuple):
    """Examples and labels as `cross_fit` takes them, and what names the rows."""

    data: Any
    labels: Any
    groups: Any
    kind: Kind
    beside: Mapping[str, Sequence[Any]]


class Made(NamedTuple):
    """Probabilities in two files, an array and a description of it."""

    probs: Path
    description: Path

    def describe(self) -> dict[str, Any]:
        """Return the class names, the model, the number of folds and the agreement with the given labels."""
        from dualt.files import read_json

        content: dict[str, Any] = read_json(self.description)
        return content


@dataclass(frozen=True)
class Learning:
    """How probabilities are made, out of fold, of data that have none."""

    features: Annotated[
        str | None,
        typer.Option("--features", help="Columns to learn from, numbers and categories: 'x_*' or 'price,colour'."),
    ] = None
    group: Annotated[
        str | None, typer.Option("--group", help="Column of groups: rows of one group stay in one fold.")
    ] = None
    model: Annotated[
        str | None,
        typer.Option("--model", metavar="MODULE:FACTORY", help="What returns your own scikit-learn classifier."),
    ] = None
    folds: Annotated[int, typer.Option("--folds", help="Number of folds of the model that is fitted.")] = 5
    size: Annotated[
        int | None, typer.Option("--size", help="Resize images to this many pixels a side. Default: 32 if larger.")
    ] = None
    no_cache: Annotated[bool, typer.Option("--no-cache", help="Fit the model anew, and keep nothing of it.")] = False
    random_state: RandomState = 0

    def completed(self, data: Data, text: str | None) -> Data:
        """Return the data as they are if they have probabilities, else with those of a model of them."""
        if not self._is_needed(data, text):
            return data.in_order()
        if data.labels is not None or data.columns is not None or data.dask is not None:
            raise _error(
                "Expected one table or folder with labels to learn from, got LABELS, --probs or --dask as well."
                " Leave out --features, --group and --model where there are probabilities."
            )
        made = self.make(data, text)
        told = made.describe()
        _log.warning(
            "%s has no probabilities: they were made out of fold, in %s folds, by %s, which agrees with %.0f%% of the"
            " labels.", data.probs, told["folds"], told["model"], 100 * told["agreement"],
        )  # fmt: skip
        if told["agreement"] <= told["most_frequent"]:
            _log.warning(
                "That is no better than always naming the most frequent class: what follows means little. Give it more"
                " to learn from (--text, --features), or a better model (--model)."
            )
        return replace(data, probs=made.probs, labels=data.probs, classes=data.classes or made.description)

    def _is_needed(self, data: Data, text: str | None) -> bool:
        from dualt.io import is_class_folder

        if self.features or self.group or self.model:
            return True
        if data.labels is not None or data.columns is not None:
            return False
        return is_class_folder(data.probs) or (text is not None and not _has_probabilities(data, text))

    def as_typed(self, data: Data, text: str | None) -> str:
        """Return the arguments that name the data and what is learnt from them, to be typed again."""
        words = [] if text is None else ["--text", text]
        for field in fields(self):
            value = getattr(self, field.name)
            if value is not None and value != field.default:
                words += [f"--{field.name.replace('_', '-')}", *([] if value is True else [str(value)])]
        return " ".join(filter(None, [data.as_typed(), shlex.join(words)]))

    def make(self, data: Data, text: str | None, raw: Raw | None = None) -> Made:
        """Return the probabilities of a model of the data, which may have been read; the newest are kept by content."""
        import click

        if self.model is not None or self.no_cache:  # of a model of yours the code may change
            import tempfile

            used_up = tempfile.TemporaryDirectory(prefix="dualt-")
            folder, name = Path(click.get_current_context().with_resource(used_up)), "probs"
        else:
            folder, name = _cache_folder(), self._digest(data, text)
        made = Made(folder / f"{name}.npy", folder / f"{name}.json")
        if made.probs.is_file() and made.description.is_file():
            _log.info("Probabilities of the same data and options are in %s.", made.probs)
            return made
        self._fit(raw or self.load(data, text), data.n_jobs, made)
        return made

    def _digest(self, data: Data, text: str | None) -> str:
        """Return what tells these data and options from others: a checksum of the options and of every byte."""
        import sklearn

        import dualt
        from dualt import io
        from dualt.files import open_input

        options = [repr(self), data.label, data.header, text, dualt.__version__, sklearn.__version__]
        digest = hashlib.sha256(json.dumps(options).encode())
        images = io.read_class_folder(data.probs).files if io.is_class_folder(data.probs) else []
        files = {name: data.probs / name for name in images} or {data.probs.suffix: data.probs}
        for name, path in files.items():
            content = hashlib.sha256()
            with open_input(path) as stream:
                while part := stream.read(1 << 20):
                    content.update(part)
            digest.update(f"{name}\0{content.hexdigest()}\0".encode())
        return digest.hexdigest()[:32]

    def _fit(self, raw: Raw, n_jobs: int, made: Made) -> None:
        import numpy as np

        from dualt.crossfit import cross_fit
        from dualt.files import atomic_write

        model = None if self.model is None else _load_model(self.model)
        with steps_progress() as on_progress:
            try:
                found = cross_fit(
                    raw.data, raw.labels, kind=raw.kind, model=model, cv=self.folds, groups=raw.groups,
                    n_jobs=n_jobs, random_state=self.random_state, on_progress=on_progress,
                )  # fmt: skip
            except (ValueError, TypeError, AttributeError) as error:
                if self.model is None or type(error).__module__.startswith("dualt"):
                    raise
                raise _error(f"The model of {self.model} could not be fitted: {error}") from error
        counts = np.bincount(found.given[found.labelled])
        content = {
            "class_names": list(found.class_names),
            "model": " ".join(found.model.split()),
            "folds": int(found.fold.max()) + 1,
            "agreement": found.agreement,
            "most_frequent": float(counts.max() / counts.sum()),
            "n_samples": len(found),
            "n_labelled": int(counts.sum()),
        }
        try:
            made.probs.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise _error(
                f"Cannot keep probabilities in {made.probs.parent}: {error.strerror}. Name another folder with"
                f" {CACHE_VARIABLE}, or pass --no-cache."
            ) from error
        with atomic_write(made.probs, "wb") as stream:
            np.save(stream, found.pred_probs, allow_pickle=False)
        with atomic_write(made.description) as stream:
            json.dump(content, stream)
        _forget_oldest(made.probs.parent)

    def load(self, data: Data, text: str | None) -> Raw:
        """Read what is learnt from: images in a folder per class, or columns of one table."""
        from dualt import io

        if io.is_class_folder(data.probs):
            return self._load_images(data.probs)
        if io.is_sharded(data.probs):
            raise _error(f"Expected one table, or images in a folder per class, got {data.probs}.")
        table = io.open_table(data.probs, data.label or text or data.id_column, data.header)
        return self._load_table(table, data, text)

    def _load_images(self, folder: Path) -> Raw:
        from dualt import io
        from dualt.datasets.folder import load_images
        from dualt.datasets.images import image_size_and_mode
        from dualt.io.image_folder import FILE_COLUMN

        if self.features or self.group:
            raise _error("Expected --features and --group with a table, got them with a folder of images.")
        if io.is_class_folder(folder / "train"):
            raise _error(f"Expected a folder per class in {folder}, got train. Pass {folder / 'train'}.")
        images = io.read_class_folder(folder)
        paths = [folder / file for file in images.files]
        size = self.size
        if size is None:
            sizes = {image_size_and_mode(path)[0] for path in paths}
            size = None if len(sizes) == 1 and max(*sizes.pop()) <= _LARGEST_SIDE else _USUAL_SIDE
        return Raw(
            load_images(paths, size=size), images.labels, None, "images",
            {FILE_COLUMN: images.files, "label": images.labels.tolist()},
        )  # fmt: skip

    def _load_table(self, table: Table, data: Data, text: str | None) -> Raw:
        import numpy as np

        from dualt import io
        from dualt.io.load import choose_columns, label_place

        at = label_place(table, data.label)
        label = table.names[at] if table.names else ""
        labels = io.load_labels(data.probs, column=data.label, header=data.header, missing=True)
        groups = None if self.group is None else np.array(table.read_texts(table.position(self.group)), dtype=object)
        if self.features is not None:
            others = [name for name in (label, data.id_column, self.group) if name]
            places, _ = choose_columns(table, others, self.features)
            columns = table.read_columns(places)
            inputs: Any = np.array(columns, dtype=object).T.reshape(len(labels), len(places))
        elif text is not None:
            inputs = table.read_texts(table.position(text))
        else:
            raise _error(
                f"Expected a column of {table.path} to learn from, got none. Name it with --text, or columns of numbers"
                " and categories with --features."
            )
        beside: dict[str, Any] = {"index": range(len(labels))}
        if data.id_column is not None:
            beside[data.id_column] = table.read_texts(table.position(data.id_column))
        beside[label or "label"] = table.read_texts(at)
        return Raw(inputs, labels, groups, "text" if self.features is None else "table", beside)


def _has_probabilities(data: Data, text: str) -> bool:
    """Tell whether the other columns of a table are probabilities: numbers, of which those of a row sum to one."""
    import numpy as np

    from dualt import io
    from dualt.errors import DualtError
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


def _load_model(spec: str) -> Any:
    """Return the classifier that `module:factory` makes; modules of the working folder are found."""
    from dualt.crossfit.folds import check_classifier

    module, colon, name = spec.partition(":")
    if not (module and colon and name):
        raise _error(f"Expected --model module:factory, such as my_models:make, got {spec!r}.")
    if "" not in sys.path:
        sys.path.insert(0, "")
    try:
        factory = getattr(import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise _error(f"Expected {name} in the module {module} for --model: {error}.") from error
    if not callable(factory):
        raise _error(f"Expected a function or class in --model {spec}, got {type(factory).__name__}.")
    try:
        made = factory()
    except TypeError as error:
        raise _error(f"Expected a factory without arguments in --model {spec}: {error}.") from error
    return check_classifier(made)


def _cache_folder() -> Path:
    """Return where probabilities are kept: $DUALT_CACHE, else dualt/probs in the user's folder of caches."""
    chosen = os.environ.get(CACHE_VARIABLE)
    if chosen:
        return Path(chosen).expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "dualt" / "probs"


def _forget_oldest(folder: Path) -> None:
    kept = sorted(folder.glob("*.json"), key=lambda path: path.stat().st_mtime, reverse=True)
    for description in kept[_KEPT:]:
        description.unlink(missing_ok=True)
        description.with_suffix(".npy").unlink(missing_ok=True)


def _error(message: str) -> Exception:
    from dualt.errors import InputError

    return InputError(message)

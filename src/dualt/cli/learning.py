"""Data without probabilities: what a model may learn from, and its out-of-fold probabilities, kept by content."""

from __future__ import annotations

import atexit
import hashlib
import json
import logging
import os
import shutil
import tempfile
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from dualt.cli.grouping import typed
from dualt.cli.groups import Data
from dualt.cli.options import check_random_state
from dualt.cli.progress import steps_progress
from dualt.cli.raw_data import Raw, check_id_column, has_probabilities, load_model, load_raw
from dualt.errors import InputError

_log = logging.getLogger(__name__)
CACHE_VARIABLE = "DUALT_CACHE"
# So many of the newest results are kept.
_KEPT = 20


_option = partial(typer.Option, rich_help_panel="Making probabilities of data without any")


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
        _option("--features", help="Columns to learn from, numbers and categories: 'x_*' or 'price,colour'."),
    ] = None
    group: Annotated[str | None, _option("--group", help="Column of groups: rows of one group stay in one fold.")] = (
        None
    )
    model: Annotated[
        str | None, _option("--model", metavar="MODULE:FACTORY", help="What makes your own scikit-learn classifier.")
    ] = None
    folds: Annotated[int, _option("--folds", help="Number of folds.")] = 5
    size: Annotated[
        int | None, _option("--size", help="Resize images to this many pixels a side. Default: 32 if larger than 48.")
    ] = None
    no_cache: Annotated[bool, _option("--no-cache", help="Fit the model anew, and keep nothing of it.")] = False
    random_state: Annotated[
        int, _option("--random-state", callback=check_random_state, help="Seed of the folds and of the model.")
    ] = 0

    def completed(self, data: Data, text: str | None) -> Data:
        """Return the data as they are if they have probabilities, else with those of a model of them."""
        if not self._is_needed(data, text):
            return data.in_order()
        if data.labels is not None or data.columns is not None or data.dask is not None:
            raise InputError(
                "Expected one table or folder with labels to learn from, got LABELS, --probs or --dask as well."
                " Leave out --features, --group and --model where there are probabilities."
            )
        check_id_column(data)
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
        return is_class_folder(data.probs) or (text is not None and not has_probabilities(data, text))

    def as_typed(self, data: Data, text: str | None) -> str:
        """Return the arguments that name the data and what is learnt from them, to be typed again."""
        own = {field.name: getattr(self, field.name) for field in fields(self)}
        changed = {name: value for name, value in own.items() if value != getattr(Learning, name)}
        options = {"--text": text} | {f"--{name.replace('_', '-')}": value for name, value in changed.items()}
        return f"{data.as_typed()} {typed(options)}".rstrip()

    def load(self, data: Data, text: str | None) -> Raw:
        """Read what is learnt from."""
        return load_raw(data, text, self.features, self.group, self.size)

    def make(self, data: Data, text: str | None, raw: Raw | None = None) -> Made:
        """Return the probabilities of a model of the data, which may have been read; the newest are kept by content."""
        if self.model is not None or self.no_cache:  # of a model of yours the code may change
            folder, name = Path(tempfile.mkdtemp(prefix="dualt-")), "probs"
            atexit.register(shutil.rmtree, folder, ignore_errors=True)
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

        model = None if self.model is None else load_model(self.model)
        with steps_progress() as on_progress:
            try:
                found = cross_fit(
                    raw.data, raw.labels, kind=raw.kind, model=model, cv=self.folds, groups=raw.groups,
                    n_jobs=n_jobs, random_state=self.random_state, on_progress=on_progress,
                )  # fmt: skip
            except (ValueError, TypeError, AttributeError) as error:
                if self.model is None or type(error).__module__.startswith("dualt"):
                    raise
                raise InputError(f"The model of {self.model} could not be fitted: {error}") from error
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
            raise InputError(
                f"Cannot keep probabilities in {made.probs.parent}: {error.strerror}. Name another folder with"
                f" {CACHE_VARIABLE}, or pass --no-cache."
            ) from error
        with atomic_write(made.probs, "wb") as stream:
            np.save(stream, found.pred_probs, allow_pickle=False)
        with atomic_write(made.description) as stream:
            json.dump(content, stream)
        _forget_oldest(made.probs.parent)


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

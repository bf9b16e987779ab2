"""Data without probabilities: what a model may learn from, and its out-of-fold probabilities, kept by content."""

from __future__ import annotations

import atexit
import hashlib
import json
import logging
import os
import shutil
import tempfile
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from dualt.cli.groups import Data
from dualt.cli.options import check_random_state
from dualt.cli.plain import typed
from dualt.cli.progress import steps_progress
from dualt.cli.raw_data import Raw, has_probabilities, load_model, load_raw
from dualt.errors import InputError
from dualt.files import atomic_write, open_input, read_json

_log = logging.getLogger(__name__)
CACHE_VARIABLE = "DUALT_CACHE"
# So many of the newest results are kept.
_KEPT = 20
_option = partial(typer.Option, rich_help_panel="Making probabilities of data without any")


@dataclass(frozen=True)
class Learning:
    """How probabilities are made, out of fold, of data that have none."""

    features: Annotated[
        str | None,
        _option(help="Columns to learn from instead of --text, numbers and categories: 'x_*' or 'price,colour'."),
    ] = None
    group: Annotated[str | None, _option(help="Column of groups: rows of one group stay in one fold.")] = None
    model: Annotated[
        str | None, _option(metavar="MODULE:FACTORY", help="What makes your own scikit-learn classifier.")
    ] = None
    folds: Annotated[int, _option(help="Number of folds.")] = 5
    size: Annotated[
        int | None, _option(help="Resize images to this many pixels a side. Default: 32 if larger than 48.")
    ] = None
    no_cache: Annotated[bool, _option("--no-cache", help="Fit the model anew, and keep nothing of it.")] = False
    random_state: Annotated[int, _option(callback=check_random_state, help="Seed of the folds and of the model.")] = 0

    def completed(self, data: Data, text: str | None) -> Data:
        """Return the data as they are if they have probabilities, else with those of a model of them."""
        from dualt import io

        if not self._is_needed(data, text):
            return data.in_order()
        if data.labels is not None or data.columns is not None or data.dask is not None:
            raise InputError(
                "Expected one table or folder with labels to learn from, got LABELS, --probs or --dask as well."
                " Leave out --features, --group and --model where there are probabilities."
            )
        if data.id_column is not None and not io.is_class_folder(data.probs):
            # Refused here if the table has it not: where probabilities are kept, it may not be read again.
            io.open_table(data.probs, data.id_column, data.header).position(data.id_column)
        probs = self.make(data, text)
        description = probs.with_suffix(".json")
        told = read_json(description)
        _log.warning(
            "%s has no probabilities: they were made out of fold, in %s folds, by %s, which agrees with %.0f%% of the"
            " labels.", data.probs, told["folds"], told["model"], 100 * told["agreement"],
        )  # fmt: skip
        if told["agreement"] <= told["most_frequent"]:
            _log.warning(
                "That is no better than always naming the most frequent class: what follows means little. Give it more"
                " to learn from (--text, --features), or a better model (--model)."
            )
        names = None if data.classes is None else io.load_class_names(data.classes)
        # The same names in another order are no other names: nobody has seen the order of these columns.
        is_same = names is None or {*names} == {*told["class_names"]}
        return replace(data, probs=probs, labels=data.probs, classes=description if is_same else data.classes)

    def _is_needed(self, data: Data, text: str | None) -> bool:
        from dualt.io import is_class_folder

        if self.features or self.group or self.model:
            return True
        if data.labels is not None or data.columns is not None:
            return False
        return is_class_folder(data.probs) or (text is not None and not has_probabilities(data, text))

    def as_typed(self, data: Data, text: str | None) -> str:
        """Return the arguments that name the data and what is learnt from them, to be typed again."""
        changed = {name: value for name, value in vars(self).items() if value != getattr(Learning, name)}
        options = {"--text": text} | {f"--{name.replace('_', '-')}": value for name, value in changed.items()}
        return f"{data.as_typed()} {typed(options)}".rstrip()

    def make(self, data: Data, text: str | None, raw: Raw | None = None) -> Path:
        """Return the array of probabilities of a model of the data, which may have been read.

        Beside it is a .json that names the classes and the model. The newest are kept by content.
        """
        if self.model is not None or self.no_cache:  # of a model of yours the code may change
            folder, name = Path(tempfile.mkdtemp(prefix="dualt-")), "probs"
            atexit.register(shutil.rmtree, folder, ignore_errors=True)
        else:
            folder, name = _cache_folder(), self._digest(data, text)
        probs = folder / f"{name}.npy"
        if probs.is_file() and probs.with_suffix(".json").is_file():
            _log.info("Probabilities of the same data and options are in %s.", probs)
        else:
            self._fit(raw or load_raw(data, text, self), data.n_jobs, probs)
        return probs

    def _digest(self, data: Data, text: str | None) -> str:
        """Return what tells these data and options from others: a checksum of the options and of every byte."""
        import sklearn

        import dualt
        from dualt import io

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

    def _fit(self, raw: Raw, n_jobs: int, probs: Path) -> None:
        import numpy as np

        from dualt.crossfit import cross_fit

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
            probs.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(
                f"Cannot keep probabilities in {probs.parent}: {error.strerror}. Name another folder with"
                f" {CACHE_VARIABLE}, or pass --no-cache."
            ) from error
        with atomic_write(probs, "wb") as stream:
            np.save(stream, found.pred_probs, allow_pickle=False)
        with atomic_write(probs.with_suffix(".json")) as stream:
            json.dump(content, stream)
        _forget_oldest(probs.parent)


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

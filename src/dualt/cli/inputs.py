"""Opens the data of a command: probabilities and labels, or raw data from which probabilities are made."""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from dualt.cli.options import Data, Estimation, Learning, parse_settings
from dualt.cli.terminal import progress, warn_labels, warn_repeated
from dualt.errors import DualtError, InputError, LabelsError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from pandas import DataFrame

    from dualt.audit import Sheet
    from dualt.crossfit import OutOfFold
    from dualt.issues import LabelIssues
    from dualt.results import TransitionEstimate
    from dualt.rows import NoisyPosterior

_log = logging.getLogger(__name__)
# Rows that a notice lists.
_LISTED = 12
# Columns that a page shows of a row unless --show names others.
_SHOWN_COLUMNS = 12
# What is said of the answer that a kind of data suggests, by the answer.
_ASSUMED = {
    True: "Assumed that an expert could always tell the class from the example; if not, pass --overlapping.",
    False: "Assumed that classes overlap; if an expert could always tell the class of a row, pass --determined.",
}
# Data frames write 7 as 7.0 where one value of the column is missing.
_WHOLE = re.compile(r"^(-?\d+)\.0$", re.ASCII)


@dataclass(frozen=True, eq=False)
class Examples:
    """The rows of a command: their posterior, and what they are called and show.

    The posterior has the rows with a label; `labelled` are their positions among all `n_rows` (None: all have one).
    `images` is the folder per class that they came in, `columns` what else a page shows of each row,
    `written` the labels as they are in the file where some were merged.
    """

    posterior: NoisyPosterior
    n_rows: int
    labelled: NDArray[np.intp] | None = None
    ids: Sequence[str] | None = None
    texts: Sequence[str] | None = None
    images: Path | None = None
    columns: Mapping[str, Sequence[str]] = field(default_factory=dict)
    written: Sequence[str] | None = None

    def find_issues(self, source: Any = None, **options: Any) -> LabelIssues:
        """Return the label issues of all rows; `source` is an estimate or a matrix."""
        from dualt.issues import find_posterior_issues

        found = find_posterior_issues(self.posterior, source, **options)
        if self.labelled is not None:
            found = found.spread(self.labelled, self.n_rows)
        return replace(found, ids=self.ids, texts=self.texts)


@contextmanager
def opened(data: Data, learning: Learning | None = None, determined: bool | None = None) -> Iterator[Examples]:
    """Open the data; within the block, progress is shown and the cluster of `--dask` is connected.

    `determined` is whether an expert could always tell the class from the example; by default as the data suggest.
    """
    from dualt.rows.dask import connected

    learning = learning or Learning()
    with progress() as advance, connected(data.dask) if data.dask else nullcontext():
        on_rows = advance and partial(advance, "reading rows")
        if _needs_model(data, learning):
            examples = _learnt(data, learning, advance, on_rows)
            if determined is None and examples.posterior.determined is not None:
                _log.warning("%s", _ASSUMED[examples.posterior.determined])
        else:
            examples = _given(data, learning, on_rows)
        if determined is not None:
            examples = replace(examples, posterior=replace(examples.posterior, determined=determined))
        yield examples


def estimate_examples(examples: Examples, estimation: Estimation) -> TransitionEstimate:
    """Estimate the matrix, corrected by verified labels where there are any."""
    from dualt.audit import read_sheet
    from dualt.estimators import estimate_posterior, estimate_verified

    posterior = examples.posterior
    chosen = estimate_posterior(posterior, estimation.estimator, **parse_settings(estimation.settings))
    if estimation.verified is None:
        return chosen
    sheet = read_sheet(estimation.verified)
    audit = sheet.audit()
    if examples.labelled is not None:
        audit = audit.among(examples.labelled)
    corrected = estimate_verified(posterior, chosen, audit)
    warn_verified(len(corrected.audit or ()), sheet, estimation.verified)
    return corrected


def warn_missing(labelled: NDArray[np.intp], n_rows: int) -> None:
    """Say on stderr which rows, if any, have no label and are left out."""
    import numpy as np

    missing = np.setdiff1d(np.arange(n_rows), labelled).tolist()
    if missing:
        shown = ", ".join(map(str, missing[:_LISTED])) + (", …" if len(missing) > _LISTED else "")
        _log.warning("%s of %s rows have no label and are left out: %s", f"{len(missing):,}", f"{n_rows:,}", shown)


def warn_verified(n_verified: int, sheet: Sheet, path: Path | None) -> None:
    """Say on stderr how many rows of an audit's file are filled in."""
    _log.warning("%s of %s rows of %s are verified.", f"{n_verified:,}", f"{len(sheet.rows):,}", path)


def _given(data: Data, learning: Learning, on_progress: Any) -> Examples:
    """Return the examples of files that have probabilities."""
    import numpy as np

    from dualt import io
    from dualt.io.image_folder import check_array_order
    from dualt.rows import NoisyPosterior

    members = _read_members(data.probs)
    if members is not None:
        return _several(members, data, learning, on_progress)
    folder = data.image_folder
    if folder is not None:
        check_array_order(data.probs, folder)
    # Dask's workers look for the files from their own working folder.
    probs, labels = (path.absolute() if data.dask and path else path for path in (data.probs, data.labels))
    ignored = [name for name in (data.id_column, *learning.text_columns) if name]
    # With images, --id names the column of DATA that has their files.
    label = data.label if folder is None else data.id_column
    shards = io.open_shards(probs or data.probs, labels, label=label, columns=data.columns, ignored=ignored)
    names = shards.class_names
    names = names if data.classes is None else _rename_classes(data.classes, names, data.probs)
    blocks = io.divide(shards.blocks) if data.dask else shards.blocks
    posterior = NoisyPosterior.from_blocks(blocks, names, n_jobs=data.n_jobs, on_progress=on_progress)
    labelled, n_rows = posterior.labelled, posterior.n_given
    if labelled is not None:
        warn_missing(labelled, n_rows)
    if data.dask:
        from dualt.rows.dask import DaskPosterior

        if labelled is not None:
            raise LabelsError("Expected a label in every row with --dask, got rows without.")
        posterior = DaskPosterior.of(posterior)
    ids = read_column(data, data.id_column, n_rows) if folder is None else io.read_class_folder(folder).files
    warn_repeated(ids, data.id_column)
    warn_labels(np.array(posterior.coder.names), raw=False)
    texts = [read_column(data, name, n_rows) or [] for name in learning.text_columns]
    return Examples(posterior, n_rows, labelled, ids, joined_texts(texts), folder)


def _read_members(path: Path) -> Any:
    """Return the probabilities of several models: one array with three dimensions, or files with commas between."""
    from dualt.io.load import load_array, read_npy

    if "," in path.name and not path.exists():
        return [load_array(Path(name.strip())) for name in str(path).split(",")]
    if path.suffix.lower() == ".npy" and path.is_file():
        array = read_npy(path)
        return array if array.ndim == 3 else None
    return None


def _several(members: Any, data: Data, learning: Learning, on_progress: Any) -> Examples:
    """Return the examples of several models' probabilities, with the labels of a file of their own."""
    from dualt import io
    from dualt.rows import as_posterior

    if data.labels is None:
        raise InputError("Expected a file of LABELS beside the probabilities of several models, got none.")
    if data.dask or data.columns:
        raise InputError("Expected --dask and --probs with the probabilities of one model, got several.")
    labels = io.load_labels(data.labels, column=data.label, missing=True)
    names = None if data.classes is None else io.load_class_names(data.classes)
    posterior = as_posterior(members, labels, names, n_jobs=data.n_jobs, on_progress=on_progress)
    if posterior.labelled is not None:
        warn_missing(posterior.labelled, posterior.n_given)
    beside = replace(data, probs=data.labels)
    texts = [read_column(beside, name, posterior.n_given) or [] for name in learning.text_columns]
    ids = read_column(beside, data.id_column, posterior.n_given)
    return Examples(posterior, posterior.n_given, posterior.labelled, ids, joined_texts(texts))


def joined_texts(columns: Sequence[Sequence[str]]) -> list[str] | None:
    """Return one text per row from several columns, None if there are none."""
    return ["\n".join(parts) for parts in zip(*columns, strict=True)] if columns else None


def read_column(data: Data, name: str | None, n_rows: int) -> list[str] | None:
    """Return a column of ids or texts, from the tables of labels if they have it, else of probabilities.

    Ids that both have must be the same, in the same order.
    """
    from dualt import io
    from dualt.io.image_folder import FILE_COLUMN
    from dualt.io.tables import TABLES
    from dualt.validation import check_same_length

    if name is None:
        return None
    folder = data.image_folder
    sources = [source for source in dict.fromkeys((data.labels, data.probs)) if source not in (None, folder)]
    found = {source: [file for file in io.find_shards(source) if file.suffix.lower() in TABLES] for source in sources}
    tables = [files for files in found.values() if files]
    having = [files for files in tables if name in (io.open_table(files[0], name).names or ())]
    if not having:
        io.load_texts((tables or [sources])[0][0], name)  # says what it has instead
    read = [[text for file in files for text in io.load_texts(file, name)] for files in having]
    for own in read[: 2 if name == data.id_column else 1]:
        check_same_length(n_rows, len(own))
        for row, (mine, theirs) in enumerate(zip(own, read[0], strict=True)):
            if _WHOLE.sub(r"\1", mine) != _WHOLE.sub(r"\1", theirs):
                raise InputError(
                    f"Expected the same ids in the same order in {data.probs} and {data.labels}, got {mine[:80]!r} and"
                    f" {theirs[:80]!r} at row {row}. Sort both by {name!r}."
                )
    if folder is None:
        return read[0]
    # The rows of the probabilities are put in the order of the images that they name.
    files = [text for file in having[0] for text in io.load_texts(file, data.id_column or FILE_COLUMN)]
    return [text for _, text in sorted(zip(io.read_class_folder(folder).rows_of(files), read[0], strict=True))]


def _rename_classes(path: Path, header: Sequence[str] | None, table: Path) -> tuple[str, ...]:
    """Return the class names of a file, which replace those of a table's columns.

    A name that the table has for another column is refused: probabilities would pass for those of another class.
    """
    from dualt.io import load_class_names
    from dualt.labels import shorten

    names = load_class_names(path)
    if header is None or len(names) != len(header):  # another number is refused where columns are read
        return names
    for place, (name, own) in enumerate(zip(names, header, strict=True)):
        if name != own and name in header:
            raise InputError(
                f"Expected the class names of {path} in the order of the columns of {table} ({shorten(header)}), got"
                f" {name!r} for column {place}, which is {own!r}. Leave --classes out: the columns have names."
            )
    return names


class Raw(NamedTuple):
    """Examples and labels as `cross_fit` takes them, the columns that name the rows, its other options.

    `columns` are those learned from, as texts, for a page to show; `written` the labels before some were merged.
    """

    examples: Any
    labels: Any
    beside: dict[str, Sequence[Any]]
    options: dict[str, Any]
    columns: Mapping[str, Sequence[str]] = {}
    written: Sequence[str] | None = None


def _learnt(data: Data, learning: Learning, on_steps: Any, on_rows: Any) -> Examples:
    """Return the examples of raw data, with the probabilities that models make out of fold."""
    import numpy as np

    from dualt import io
    from dualt.rows import as_posterior

    if data.labels is not None or data.columns is not None or data.dask is not None:
        raise InputError(
            "Expected one table or folder with labels to learn from, got LABELS, --probs or --dask as well."
            " Leave out --features, --group and --model where there are probabilities."
        )
    raw = read_raw(data, learning)
    warn_repeated(raw.beside.get(data.id_column or ""), data.id_column)
    found = learn(raw, learning, n_jobs=data.n_jobs, on_progress=on_steps)
    models = f"{len(found.members)} models" if len(found.members) > 1 else "a model"
    _log.warning(
        "%s has no probabilities: they were made out of fold, in %s folds, by %s; they agree with %.0f%% of the"
        " labels.",
        data.probs, int(found.fold.max()) + 1, models, 100 * found.agreement,
    )  # fmt: skip
    _log.info("Models: %s", found.model)
    if found.agreement <= most_frequent(found):
        _log.warning(
            "That is no better than always naming the most frequent class: what follows means little. Give more to"
            " learn from (--text, --features), or a better model (--model)."
        )
    names = None if data.classes is None else io.load_class_names(data.classes)
    if names is None or {*names} == {*found.class_names}:
        names = found.class_names
    labelled = np.flatnonzero(found.labelled)
    warn_missing(labelled, len(found))
    labels = np.asarray(raw.labels)[labelled]
    posterior = as_posterior(found[labelled], labels, names, n_jobs=data.n_jobs, on_progress=on_rows)
    folder = data.image_folder
    ids = raw.beside.get("file") if folder else raw.beside.get(data.id_column or "")
    texts = None if learning.text_column is None else raw.beside.get(learning.text_column)
    every = labelled if len(labelled) < len(found) else None
    return Examples(posterior, len(found), every, ids, texts, folder, raw.columns, raw.written)


def most_frequent(found: OutOfFold) -> float:
    """Return the share of the most frequent label."""
    import numpy as np

    counts = np.bincount(found.given[found.labelled])
    return float(counts.max() / counts.sum())


def learn(raw: Raw, learning: Learning, **options: Any) -> OutOfFold:
    """Return out-of-fold probabilities of raw data, by our models or by one's own."""
    from dualt.crossfit import cross_fit

    own = None if learning.model is None else _load_model(learning.model)
    try:
        return cross_fit(raw.examples, raw.labels, model=own, quick=learning.quick, **raw.options, **options)
    except (ValueError, TypeError, AttributeError) as error:
        if learning.model is None or type(error).__module__.startswith("dualt"):
            raise
        raise InputError(f"The model of {learning.model} could not be fitted: {error}") from error


def read_raw(data: Data, learning: Learning) -> Raw:
    """Read what is learnt from: images in a folder per class, or columns of one table."""
    from dualt import io

    if data.image_folder is not None:
        if learning.text or learning.features or learning.group:
            raise InputError("Expected --text, --features and --group with a table, got one with a folder of images.")
        return _read_images(data.image_folder)
    if io.is_sharded(data.probs):
        raise InputError(f"Expected one table, or images in a folder per class, got {data.probs}.")
    if not learning.text_columns and learning.features is None:
        raise InputError(
            f"Expected a column of {data.probs} to learn from, got none. Name it with --text, or columns of numbers"
            " and categories with --features."
        )
    return _read_raw_table(data, learning)


def _read_images(folder: Path) -> Raw:
    from dualt import io
    from dualt.datasets.own_files import load_readable
    from dualt.io.image_folder import FILE_COLUMN
    from dualt.labels import as_text_array

    if io.is_class_folder(folder / "train"):
        raise InputError(f"Expected a folder per class in {folder}, got train. Pass {folder / 'train'}.")
    images = io.read_class_folder(folder)
    paths, pixels = load_readable([folder / file for file in images.files])
    files = [path.relative_to(folder).as_posix() for path in paths]
    if len(files) < len(images.files):
        skipped, count = sorted({*images.files} - {*files}), len(images.files)
        _log.warning(
            "%s of %s images cannot be read and are skipped:\n  %s",
            f"{len(skipped):,}",
            f"{count:,}",
            "\n  ".join(skipped),
        )
    labels = as_text_array([file.partition("/")[0] for file in files])
    return Raw(pixels, labels, {FILE_COLUMN: files, "label": labels.tolist()}, {"kind": "images"})


def _read_raw_table(data: Data, learning: Learning) -> Raw:
    import numpy as np
    import pandas as pd

    from dualt import io
    from dualt.io.load import read_npy
    from dualt.io.table_columns import label_place
    from dualt.labels import merge_labels

    texts, chosen = learning.text_columns, learning.features
    is_array = chosen is not None and chosen.endswith(".npy")
    table = io.open_table(data.probs, data.label or (texts[0] if texts else data.id_column))
    at = label_place(table, data.label)
    label = table.names[at] if table.names else "label"
    features = [] if chosen is None or is_array else _feature_names(table, data, learning)
    if label in (*texts, *features):
        raise InputError(f"The features include the label column {label!r}. Choose other columns to learn from.")
    columns = {name: table.read_texts(table.position(name)) for name in texts}
    beside: dict[str, Sequence[Any]] = {"index": range(len(table.frame))}
    if data.id_column is not None:
        beside[data.id_column] = table.read_texts(table.position(data.id_column))
    if learning.text_column is not None:
        beside[learning.text_column] = joined_texts([*columns.values()]) or []
    beside[label] = table.read_texts(at)
    options: dict[str, Any] = {}
    if learning.group is not None:
        options["groups"] = np.array(table.read_texts(table.position(learning.group)), dtype=object)
    columns |= dict(zip(features, table.read_columns([table.position(name) for name in features]), strict=True))
    examples: Any = pd.DataFrame(columns)
    if is_array and texts:
        raise InputError("Expected --text or an array of --features, got both.")
    if is_array:
        examples, options["kind"] = read_npy(str(chosen)), "embedding"
    elif not features and len(texts) == 1:
        examples, options["kind"] = columns[texts[0]], "text"
    elif texts:
        options["text"] = texts
    elif learning.model is not None:
        examples = _as_numbers(examples)
    labels = table.read_column(at)
    warn_labels(labels, merged=learning.merge_labels)
    labels = merge_labels(labels) if learning.merge_labels else labels
    written, beside[label] = (beside[label], labels.tolist()) if learning.merge_labels else (None, beside[label])
    return Raw(examples, labels, beside, options, _shown_columns(columns, texts), written)


def _shown_columns(columns: Mapping[str, Sequence[str]], texts: Sequence[str]) -> dict[str, Sequence[str]]:
    """Return the columns that a page shows by name: the first of those learned from; a single text stands by itself."""
    named = [name for name in columns if [name] != texts]
    return {name: columns[name] for name in named[:_SHOWN_COLUMNS]}


def _feature_names(table: Any, data: Data, learning: Learning) -> list[str]:
    from dualt.io.table_columns import choose_columns

    texts = learning.text_columns
    others = [name for name in (data.label, data.id_column, learning.group, *texts) if name]
    places, _ = choose_columns(table, others, learning.features)
    return [table.names[place] for place in places if table.names and table.names[place] not in texts]


def _as_numbers(table: DataFrame) -> Any:
    """Return an array for a user's model: of numbers if all cells are, else of objects."""
    import pandas as pd

    numbers = {name: pd.to_numeric(table[name], errors="coerce") for name in table}
    whole = {name: column.notna() | (table[name] == "") for name, column in numbers.items()}
    return pd.DataFrame({name: numbers[name] if whole[name].all() else table[name] for name in table}).to_numpy()


def _needs_model(data: Data, learning: Learning) -> bool:
    """Whether there are no probabilities, and so a model has to make them."""
    if learning.features or learning.group or learning.model:
        return True
    if data.labels is not None or data.columns is not None:
        return False
    if data.image_folder is not None:
        return True
    return learning.text_column is not None and not _has_probabilities(data, learning)


def _has_probabilities(data: Data, learning: Learning) -> bool:
    """Whether the other columns of a table are probabilities: numbers that sum to one in most rows."""
    import numpy as np

    from dualt import io
    from dualt.io.table_columns import choose_columns, label_place
    from dualt.io.tables import TABLES

    if io.is_sharded(data.probs) or data.probs.suffix.lower() not in TABLES:
        return True
    texts = learning.text_columns
    table = io.open_table(data.probs, data.label or texts[0])
    for name in texts:
        table.position(name)
    label = (table.names or ())[label_place(table, data.label)]
    try:
        places, _ = choose_columns(table, [label, *texts, *([data.id_column] if data.id_column else [])])
        sums = table.read_numbers(places).sum(axis=1)
    except DualtError:
        return False
    return len(places) > 1 and bool(np.mean(np.abs(sums - 1) < 0.05) > 0.5)


def _load_model(spec: str) -> Any:
    """Return the classifier that `module:factory` makes; modules of the working folder are found."""
    from dualt.crossfit.folds import check_classifier

    module, _, name = spec.partition(":")
    if not (module and name):
        raise InputError(f"Expected --model module:factory, such as my_models:make, got {spec!r}.")
    if "" not in sys.path:
        sys.path.insert(0, "")
    try:
        factory: Callable[[], Any] = getattr(import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise InputError(f"Expected {name} in the module {module} for --model: {error}.") from error
    try:
        made = factory()
    except TypeError as error:
        raise InputError(f"Expected a factory without arguments in --model {spec}: {error}.") from error
    return check_classifier(made)

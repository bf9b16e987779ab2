"""Opens the data of a command: probabilities and labels, or raw data from which probabilities are made."""

from __future__ import annotations

import logging
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Sized
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import dualt
from dualt import io
from dualt.audit import audit_of, read_sheet
from dualt.cli.options import Data, Estimation, Learning, parse_settings
from dualt.cli.terminal import progress, running
from dualt.datasets.images import load_readable
from dualt.errors import InputError, LabelsError, ProbabilitiesError
from dualt.estimators import estimate_posterior, estimate_verified
from dualt.files import open_input
from dualt.io.image_folder import FILE_COLUMN, match_names
from dualt.io.load import load_array
from dualt.io.table_columns import INDEX_COLUMNS, Table, choose_columns, has_probabilities, label_place, table_parts
from dualt.io.tables import TABLES, TEXT
from dualt.issues import LabelIssues, find_posterior_issues
from dualt.labels import as_text_array, look_alike, merge_labels, shorten
from dualt.results import TransitionEstimate
from dualt.rows import NoisyPosterior, as_posterior
from dualt.rows.dask import DaskPosterior, connected
from dualt.validation import check_same_length

_log = logging.getLogger(__name__)
# Rows or ids that a notice lists, and columns that a page shows unless --show names others.
_LISTED = 12
_ASSUMED = {
    True: "Assumed that an expert could always tell the class from the example; if not, pass --overlapping.",
    False: "Assumed that classes overlap; if an expert could always tell the class of a row, pass --determined.",
}


@dataclass(frozen=True, eq=False)
class Examples:
    """The rows of a command: their posterior, and what all rows, with and without a label, are called and show.

    `columns` is what else a page shows of each row, `written` the labels as they are in the file, if some were merged.
    """

    posterior: NoisyPosterior
    ids: Sequence[str] | None = None
    texts: Sequence[str] | None = None
    columns: Mapping[str, Sequence[str]] = field(default_factory=dict)
    written: Sequence[str] | None = None

    def find_issues(self, source: Any = None, **options: Any) -> LabelIssues:
        """Return the label issues of all rows; `source` is an estimate or a matrix."""
        found = find_posterior_issues(self.posterior, source, **options)
        return replace(found, ids=self.ids, texts=self.texts, written=self.written)


@contextmanager
def opened(data: Data, learning: Learning, estimation: Estimation) -> Iterator[Examples]:
    """Open the data; within the block, progress is shown and the cluster of `--dask` is connected.

    Labels of `--verified` are read first: models are not fitted for an audit that nobody has filled in.
    """
    determined = estimation.determined
    if estimation.verified is not None:
        audit_of(read_sheet(estimation.verified))
    with progress() as advance, connected(data.dask) if data.dask else nullcontext():
        if learning.features or learning.group or is_raw(data, learning):
            examples = _learned(data, learning, advance)
            if determined is None and examples.posterior.determined is not None:
                _log.warning("%s", _ASSUMED[examples.posterior.determined])
        else:
            posterior = _read_posterior(data, learning, partial(advance, "reading rows"))
            n_rows, folder = posterior.n_given, data.image_folder
            ids = read_column(data, data.id_column, n_rows) if folder is None else io.read_class_folder(folder).files
            examples = Examples(posterior, ids, read_texts(data, learning, n_rows))
        warn_missing(examples.posterior.labelled, examples.posterior.n_given)
        repeated = [name for name, times in Counter(examples.ids or ()).items() if times > 1]
        if repeated:
            column, shown = repr(data.id_column), _listed(map(repr, repeated))
            _log.warning("Several rows have the same id in %s, and are named by row number instead: %s", column, shown)
        if determined is not None:
            examples = replace(examples, posterior=replace(examples.posterior, determined=determined))
        try:
            yield examples
        except ProbabilitiesError as error:  # rows are checked where they are summarised
            if data.columns is not None or io.is_sharded(data.probs):
                raise
            instead = "--features '*'" if data.labels is None else f"{data.labels} --features {data.probs}"
            raise ProbabilitiesError(f"{error} If these are features, not probabilities, pass {instead}.") from None


def is_raw(data: Data, learning: Learning) -> bool:
    """Return whether the data have no probabilities: images, texts, or one table with other columns."""
    if data.labels is not None or data.columns is not None or len(data.files) > 1:
        return False
    if learning.text_columns or data.image_folder is not None:
        return True
    path = data.probs
    if data.dask is not None or path.suffix.lower() not in TABLES or not path.is_file():
        return False
    table = next(table_parts(path, data.label or data.id_column))
    if table.names is None or not len(table.frame):
        return False
    at = label_place(table, data.label)
    exclude = [name for name in (table.names[at], data.id_column) if name]
    alone = {*table.names} <= {*exclude, *INDEX_COLUMNS}
    return not alone and not has_probabilities(table, exclude, table.read_column(at))


def estimate_examples(examples: Examples, estimation: Estimation) -> TransitionEstimate:
    """Estimate the matrix, corrected by verified labels where there are any."""
    posterior = examples.posterior
    chosen = estimate_posterior(posterior, estimation.estimator, **parse_settings(estimation.settings))
    if estimation.verified is None:
        return chosen
    sheet = read_sheet(estimation.verified)
    corrected = estimate_verified(posterior, chosen, audit_of(sheet))
    warn_verified(len(corrected.audit or ()), sheet, estimation.verified)
    return corrected


def _listed(names: Any) -> str:
    names = list(names)
    return ", ".join(names[:_LISTED]) + (" …" if len(names) > _LISTED else "")


def warn_missing(labelled: NDArray[Any] | None, n_rows: int) -> None:
    """Say on stderr which rows, if any, have no label and are left out; None: all have one."""
    missing = [] if labelled is None else np.delete(np.arange(n_rows), labelled).tolist()
    if missing:
        shown = _listed(map(str, missing))
        _log.warning("%s of %s rows have no label and are left out: %s", f"{len(missing):,}", f"{n_rows:,}", shown)


def warn_verified(n_verified: int, sheet: Sized | None, path: Path | None) -> None:
    """Say on stderr how many rows of an audit's file, if there is one, are filled in."""
    if sheet is not None:
        _log.warning("%s of %s rows of %s are verified.", f"{n_verified:,}", f"{len(sheet):,}", path)


def warn_labels(labels: NDArray[Any], *, merged: bool = False, remedy: str = "Correct the table first.") -> None:
    """Say on stderr which labels look like one class, and which like missing ones."""
    if labels.dtype.kind != "U":
        return
    counts = Counter(labels.tolist())
    spellings, markers = look_alike(counts)
    remedy = "Pass --merge-labels." if "merge_labels" in running.get().params else remedy
    alike = "are taken as one class." if merged else f"differ only by case, accents or blanks. {remedy}"
    missing = "are taken as missing." if merged else f"look like missing labels, and are taken as classes. {remedy}"
    for names, notice in [*((names, alike) for names in spellings), *([(markers, missing)] if markers else [])]:
        _log.warning("The labels %s %s", ", ".join(f"{name!r} ({counts[name]:,})" for name in names), notice)


def _read_posterior(data: Data, learning: Learning, on_progress: Any) -> NoisyPosterior:
    """Return the probabilities of one model, in one file or several, or of several models."""
    if data.probs.suffix.lower() == ".npy" and data.probs.is_file() and load_array(data.probs).ndim == 3:
        if data.labels is None or data.dask or data.columns:
            raise InputError("Expected a file of LABELS beside an array of several models, without --dask and --probs.")
        names = None if data.classes is None else io.load_class_names(data.classes)
        given = io.load_labels(data.labels, column=data.label, missing=True)
        return as_posterior(load_array(data.probs), given, names, n_jobs=data.n_jobs, on_progress=on_progress)
    files, labels = data.files, data.labels
    if labels and labels not in files:
        _check_no_second_model(files[0], labels)
    # Dask's workers look for the files from their own working folder.
    if data.dask:
        files, labels = [path.absolute() for path in files], labels and labels.absolute()
    # With images, --id names the column of DATA that has their files.
    label = data.label if data.image_folder is None else data.id_column
    ignored = [name for name in (data.id_column, data.label, *learning.text_columns) if name]
    options: dict[str, Any] = {"columns": data.columns, "ignored": ignored, "keep": not data.dask}
    models = [io.open_shards(path, labels, label=label, **options) for path in files]
    blocks, header = models[0]
    names = header if data.classes is None else io.load_class_names(data.classes)
    pairs = zip(names or (), header or (), strict=False)
    moved = [name for name, own in pairs if name != own and name in (header or ())]
    if moved:
        raise InputError(
            f"Expected the class names of {data.classes} in the order of the columns of {data.probs}"
            f" ({shorten(header or ())}), got {moved[0]!r} elsewhere. Leave --classes out: the columns have names."
        )
    if len(models) > 1:
        if data.dask:
            raise InputError("Expected the probabilities of one model with --dask, got several.")
        members, given = _read_members(files, models)
        return as_posterior(members, given, names, n_jobs=data.n_jobs, on_progress=on_progress)
    if not data.dask:
        return NoisyPosterior.from_blocks(blocks, names, n_jobs=data.n_jobs, on_progress=on_progress)
    posterior = NoisyPosterior.from_blocks(blocks, names, on_progress=on_progress)
    if posterior.labelled is not None:
        raise LabelsError("Expected a label in every row with --dask, got rows without.")
    return DaskPosterior.of(posterior)


def _check_no_second_model(probs: Path, labels: Path) -> None:
    """Refuse a CSV of labels with the header of the probabilities: a comma was meant."""
    if labels.suffix.lower() in TEXT and labels.is_file() and probs.is_file() and not labels.samefile(probs):
        with open_input(probs) as first, open_input(labels) as second:
            if first.readline(1 << 20) == second.readline(1 << 20):
                hint = f"Pass two models as {probs},{labels}, or one of the two."
                raise InputError(f"Expected labels in {labels}, got the header of {probs}. {hint}")


def _read_members(files: Sequence[Path], models: Sequence[Any]) -> tuple[list[NDArray[Any]], NDArray[Any]]:
    """Return the probabilities of each model, and the labels, which all of their files must have alike."""
    parts = [[*zip(*(part[:2] for block in own for part in block.source()), strict=True)] for own, _ in models]
    members, given = ([np.concatenate(some) for some in each] for each in zip(*parts, strict=True))
    for path, (_, names), labels in zip(files, models, given, strict=True):
        if names != models[0][1] and None not in (names, models[0][1]):
            raise InputError(f"Expected the same classes, in one order, in {files[0]} and {path}.")
        one, two = np.split(np.concatenate([given[0], labels]).astype(str), [len(given[0])])  # 1 and 1.0 are one label
        other = next((row for row, pair in enumerate(zip_longest(one, two)) if pair[0] != pair[1]), None)
        if other is not None:
            raise InputError(f"Expected the same labels in {files[0]} and {path}, got another at row {other:,}.")
    return members, given[0]


def read_texts(data: Data, learning: Learning, n_rows: int) -> list[str] | None:
    """Return one text per row from the columns of `--text`, None if it names none."""
    columns = [read_column(data, name, n_rows) or [] for name in learning.text_columns]
    return [*map("\n".join, zip(*columns, strict=True))] or None


def read_column(data: Data, name: str | None, n_rows: int) -> list[str] | None:
    """Return a column of ids or texts, from the tables of labels if they have it, else of probabilities.

    Ids that both have must be the same, in the same order.
    """
    if name is None:
        return None
    folder = data.image_folder
    sources = [source for source in dict.fromkeys((data.labels, *data.files)) if source and source != folder]
    found = [[file for file in io.find_shards(source) if file.suffix.lower() in TABLES] for source in sources]
    tables = [files for files in found if files]
    having = [files for files in tables if name in (next(table_parts(files[0], name)).names or ())]
    if not having:
        next(table_parts((tables or [sources])[0][0], name)).position(name)  # raises an error with those there are
    columns = [_read_texts(files, name) for files in having]
    for column in columns if folder is None else ():
        check_same_length(n_rows, len(column))
    first, *others = columns
    for other in others if name == data.id_column else ():
        row = next((row for row, (one, two) in enumerate(zip(other, first, strict=True)) if one != two), None)
        if row is not None:
            raise InputError(
                f"Expected the same ids in the same order in {' and '.join(map(str, reversed(sources)))}, got"
                f" {other[row][:80]!r} and {first[row][:80]!r} at row {row}. Sort both by {name!r}."
            )
    if folder is None:
        return first
    # The rows of the probabilities are put in the order of the images that they name.
    files = _read_texts(having[0], data.id_column or FILE_COLUMN)
    rows = match_names(folder, io.read_class_folder(folder).files, files)
    texts = dict(zip(rows, first, strict=True))
    return [texts.get(row, "") for row in range(n_rows)]


def _read_texts(files: Sequence[Path], name: str) -> list[str]:
    return [text for file in files for table in table_parts(file, name) for text in table.read_texts(name)]


class Raw(NamedTuple):
    """Examples and labels as `cross_fit` takes them, with its options `kind`, `text` and `groups`.

    `beside` are the columns that name the rows, the labels last; `columns` those learned from, as texts, and
    `text_columns` which of them are texts; `texts` one text per row from these; `written` the labels before some were
    merged.
    """

    examples: Any
    options: dict[str, Any]
    labels: NDArray[Any]
    beside: dict[str, Sequence[Any]]
    columns: Mapping[str, Sequence[str]] = {}
    text_columns: Sequence[str] = ()
    texts: Sequence[str] | None = None
    written: Sequence[str] | None = None


def _learned(data: Data, learning: Learning, advance: Any) -> Examples:
    """Return the examples of raw data, with the probabilities that models make out of fold."""
    if data.labels is not None or data.columns is not None or data.dask is not None:
        raise InputError(
            "Expected one table or folder with labels to learn from, got LABELS, --probs or --dask as well."
            " Leave out --features and --group where there are probabilities."
        )
    raw = read_raw(data, learning)
    found = learn(raw, learning, n_jobs=data.n_jobs, on_progress=advance)
    several = f"{len(found.members)} models, each judged on rows it was not trained on, agree"
    models = several if len(found.members) > 1 else "A model, judged on rows it was not trained on, agrees"
    _log.warning("%s with %s of the labels.", models, f"{found.agreement:.0%}")
    _log.info("Models: %s", found.model)
    names = None if data.classes is None else io.load_class_names(data.classes)
    if names is None or {*names} == {*found.class_names}:
        names = found.class_names
    on_rows = partial(advance, "reading rows")
    posterior = as_posterior(found, raw.labels, names, n_jobs=data.n_jobs, on_progress=on_rows)
    ids = raw.beside.get(FILE_COLUMN if data.image_folder else data.id_column or "")
    # A page shows a single text by itself, other columns by name.
    shown = [name for name in raw.columns if [name] != [*raw.text_columns]][:_LISTED]
    return Examples(posterior, ids, raw.texts, {name: raw.columns[name] for name in shown}, raw.written)


def learn(raw: Raw, learning: Learning, **options: Any) -> dualt.OutOfFold:
    """Return out-of-fold probabilities of raw data."""
    return dualt.cross_fit(raw.examples, raw.labels, quick=learning.quick, **raw.options, **options)


def read_raw(data: Data, learning: Learning) -> Raw:
    """Read what is learned from: images in a folder per class, or columns of one table."""
    if data.image_folder is not None:
        if learning.text or learning.features or learning.group:
            raise InputError("Expected --text, --features and --group with a table, got one with a folder of images.")
        return _read_images(data.image_folder)
    if io.is_sharded(data.probs):
        raise InputError(f"Expected one table, or images in a folder per class, got {data.probs}.")
    if data.probs.suffix.lower() not in TABLES and (learning.features or "").endswith(".npy"):
        labels = io.load_labels(data.probs, missing=True)
        beside = {"index": range(len(labels)), "label": [*labels]}
        return Raw(*_as_examples({}, [], learning), labels, beside)
    return _read_table(data, learning)


def _read_images(folder: Path) -> Raw:
    if io.is_class_folder(folder / "train"):
        raise InputError(f"Expected a folder per class in {folder}, got train. Pass {folder / 'train'}.")
    listed = io.read_class_folder(folder).files
    paths, pixels = load_readable([folder / file for file in listed])
    files = [path.relative_to(folder).as_posix() for path in paths]
    skipped = sorted({*listed} - {*files})
    if skipped:
        counts = f"{len(skipped):,} of {len(listed):,}"
        _log.warning("%s images cannot be read and are skipped:\n  %s", counts, "\n  ".join(skipped))
    labels = as_text_array([file.partition("/")[0] for file in files])
    return Raw(pixels, {"kind": "images"}, labels, {FILE_COLUMN: files, "label": labels.tolist()})


def _read_table(data: Data, learning: Learning) -> Raw:
    texts, chosen = learning.text_columns, learning.features or ""
    table = io.open_table(data.probs, data.label or (texts[0] if texts else data.id_column))
    at = label_place(table, data.label)
    label = table.names[at] if table.names else "label"
    if data.label is None and table.n_columns > 1:
        _log.warning("Labels are those of the column %s; --label takes another.", label)
    features: list[str] = []
    others = [name for name in (label, data.id_column, learning.group, *texts) if name]
    if not texts and not chosen:
        texts, features = _columns_to_learn(table, others, data.id_column)
    elif chosen and not chosen.endswith(".npy"):
        places, _ = choose_columns(table, others if table.names else (), chosen)
        features = [table.names[place] for place in places if table.names and table.names[place] not in texts]
    if label in (*texts, *features):
        raise InputError(f"The features include the label column {label!r}. Choose other columns to learn from.")
    columns = {name: table.read_texts(name) for name in texts}
    joined = [*map("\n".join, zip(*columns.values(), strict=True))] or None
    columns |= {name: table.read_texts(name) for name in features}
    examples, options = _as_examples(columns, texts, learning)
    if learning.group is not None:
        options["groups"] = np.array(table.read_texts(learning.group), dtype=object)
    labels, written = table.read_column(at), None
    beside: dict[str, Sequence[Any]] = {"index": range(len(labels))}
    if data.id_column is not None:
        beside[data.id_column] = table.read_texts(data.id_column)
    beside[label] = table.read_texts(at)
    warn_labels(labels, merged=learning.merge_labels)
    if learning.merge_labels:
        labels, written = merge_labels(labels), beside[label]
        beside[label] = labels.tolist()
    return Raw(examples, options, labels, beside, columns, texts, joined, written)


def _columns_to_learn(table: Table, others: Sequence[str], named_by: str | None) -> tuple[list[str], list[str]]:
    """Return the columns of texts, and the other columns, that are learned from unless the user names some."""
    import pandas as pd

    from dualt.crossfit.examples import learnable_columns
    from dualt.votes.result import CONSENSUS_COLUMNS

    about = CONSENSUS_COLUMNS if {*CONSENSUS_COLUMNS} <= {*(table.names or ())} else ()  # about the label, not the row
    named = [name for name in table.names or () if name not in (*others, *INDEX_COLUMNS, *about)]
    texts, features, ids = learnable_columns(pd.DataFrame({name: table.read_texts(name) for name in named}))
    if not texts and not features:
        known = _listed(others)
        raise InputError(f"Expected columns to learn from in {table.path}, got only {known}. Pass --features emb.npy.")
    counts = f"{len(texts) + len(features)} column{'s' * (len(texts) + len(features) != 1)}"
    shown = _listed(f"{name} (text)" if name in texts else name for name in named if name not in ids)
    _log.warning("%s has no probabilities. Learning from %s: %s", table.path, counts, shown)
    if ids:
        remedy = "" if named_by else f" To name the rows by it, pass --id {shlex.quote(ids[0])}."
        _log.warning("Not learning from %s, which is different in every row.%s", _listed(ids), remedy)
    return texts, features


def _as_examples(columns: Mapping[str, Sequence[str]], texts: list[str], learning: Learning) -> tuple[Any, Any]:
    """Return columns as `cross_fit` takes them, and its options."""
    import pandas as pd

    if (learning.features or "").endswith(".npy"):
        if texts:
            raise InputError("Expected --text or an array of --features, got both.")
        return load_array(Path(learning.features or "")), {"kind": "embedding"}
    if [*columns] == texts and len(texts) == 1:
        return columns[texts[0]], {"kind": "text"}
    return pd.DataFrame(columns), {"text": texts or None}

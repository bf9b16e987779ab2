"""Groups of options that several commands share: the data, the estimate, the report.

A command takes a group as one parameter (`data: Data`); see `dualt.cli.guard`. Each option is thus written once, and a
command that takes a group offers all of its options.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dualt.cli.columns import Tables, rename_classes
from dualt.cli.labelled import tell_missing, tell_verified
from dualt.cli.options import Classes, Header, IdColumn, LabelColumn, Level, Settings, parse_settings, save_report
from dualt.cli.plain import typed
from dualt.cli.progress import rows_progress
from dualt.errors import DualtError, InputError, LabelsError

if TYPE_CHECKING:
    from dualt.issues import LabelIssues
    from dualt.results import TransitionEstimate
    from dualt.rows import NoisyPosterior
    from dualt.rows.posterior import Progress


@dataclass(frozen=True)
class Data:
    """Probabilities and given labels, and how to read them."""

    probs: Annotated[
        Path,
        typer.Argument(
            metavar="PROBS",
            help="Probabilities: .npy, .npz, .csv, .tsv, .parquet or .jsonl; several by a folder or 'pattern*'.",
        ),
    ]
    labels: Annotated[
        Path | None,
        typer.Argument(
            metavar="[LABELS]",
            help="Given labels: the same, .txt, or images in a folder per class. Default: PROBS with --label.",
        ),
    ] = None
    label: LabelColumn = None
    header: Header = None
    classes: Classes = None
    columns: Annotated[
        str | None,
        typer.Option("--probs", help="Columns of probabilities: 'p_*', where * is the class, or a list: 'cat,dog'."),
    ] = None
    id_column: IdColumn = None
    ending: Annotated[str | None, typer.Option("--format", help="Which files of a folder to read: parquet.")] = None
    n_jobs: Annotated[int, typer.Option(help="Number of threads that read the rows.")] = 1
    dask: Annotated[
        str | None, typer.Option(help="Dask cluster that reads the files: tcp://host:8786, or local for two workers.")
    ] = None

    @contextmanager
    def opened(self, *ignored: str | None) -> Iterator[NoisyPosterior]:
        """Open the files; inside the block, progress is shown and the cluster of `--dask` is connected.

        Columns in `ignored` are no probabilities.
        """
        from dualt.rows.cluster import connected

        with rows_progress() as on_progress, connected(self.dask) if self.dask else nullcontext():
            yield self._posterior(on_progress, [name for name in (self.id_column, *ignored) if name])

    def _posterior(self, on_progress: Progress | None, ignored: list[str]) -> NoisyPosterior:
        import numpy as np

        from dualt import io
        from dualt.rows import NoisyPosterior

        probs, labels = self.probs, self.labels
        if self.dask:
            # Workers look for the files from their own working folder.
            probs, labels = probs.absolute(), labels and labels.absolute()
        # Of images, --id names the column of PROBS that has their files.
        label = self.label if self.image_folder is None else self.id_column
        shards = io.open_shards(
            probs, labels, label=label, columns=self.columns, ending=self.ending, header=self.header,
            ignored=ignored,
        )  # fmt: skip
        if self.id_column is not None and self.image_folder is None:
            self._tables.check_ids(self.id_column)
        names = shards.class_names
        names = names if self.classes is None else rename_classes(self.classes, names, self.probs)
        labelled, n_rows = io.labelled_rows(shards.blocks)
        if labelled is not None and self.dask:
            first = np.setdiff1d(np.arange(n_rows), labelled)[0]
            raise LabelsError(f"Expected a label in every row with --dask, got none at row {first}.")
        if labelled is not None:
            tell_missing(labelled, n_rows)
        if not self.dask:
            return NoisyPosterior.from_blocks(shards.blocks, names, n_jobs=self.n_jobs, on_progress=on_progress)
        from dualt.rows.dask import DaskPosterior

        blocks = io.divide(shards.blocks)
        return DaskPosterior.of(NoisyPosterior.from_blocks(blocks, names, on_progress=on_progress))

    @property
    def image_folder(self) -> Path | None:
        """The folder of labels, if they are images in a folder per class."""
        from dualt.io import is_class_folder

        return self.labels if self.labels is not None and is_class_folder(self.labels) else None

    def in_order(self) -> Data:
        """Return the data, unless nothing tells which image a row of probabilities belongs to."""
        from dualt.io.image_folder import check_array_order

        if self.image_folder is not None:
            check_array_order(self.probs, self.image_folder)
        return self

    def describe(self, found: LabelIssues, posterior: NoisyPosterior, page: Page) -> LabelIssues:
        """Return issues under the row numbers of the files, with the ids, texts and images of their rows."""
        from dualt import io

        rows, n_rows = io.labelled_rows(posterior.blocks)
        if rows is not None:
            found = found.spread(rows, n_rows)
        found = replace(found, ids=self.ids(n_rows), texts=self.column(page.text_column, n_rows))
        return replace(found, images=page.image_names(found))

    def ids(self, n_rows: int) -> Sequence[str] | None:
        """Return what the rows are called: the images of a folder, or the column of `--id`."""
        from dualt.io import read_class_folder

        folder = self.image_folder
        return read_class_folder(folder).files if folder else self.column(self.id_column, n_rows)

    def column(self, name: str | None, n_rows: int) -> list[str] | None:
        """Return a column of the tables, those of labels if they have it."""
        from dualt.io.image_folder import FILE_COLUMN, read_class_folder
        from dualt.validation import check_same_length

        if name is None:
            return None
        texts = self._tables.read(name)
        check_same_length(n_rows, len(texts))
        if self.image_folder is None:
            return texts
        # The rows of PROBS are put in the order of the images that they name.
        files = self._tables.read(self.id_column or FILE_COLUMN)
        rows = read_class_folder(self.image_folder).rows_of(files)
        return [text for _, text in sorted(zip(rows, texts, strict=True))]

    @property
    def _tables(self) -> Tables:
        return Tables(self.probs, self.labels, self.ending, self.header)

    def as_typed(self) -> str:
        """Return the arguments that name the data, to be typed again."""
        paths = shlex.join(map(str, filter(None, (self.probs, self.labels))))
        header = {} if self.header is None else {"--header" if self.header else "--no-header": True}
        options = {"--label": self.label, "--probs": self.columns, "--id": self.id_column, "--classes": self.classes}
        return f"{paths} {typed(options | {'--format': self.ending} | header)}".rstrip()


@dataclass(frozen=True)
class Estimation:
    """How the transition matrix is found."""

    estimator: Annotated[
        str | None,
        typer.Option("--estimator", "-e", help="Estimator of the matrix; `dualt estimate --compare` lists all."),
    ] = None
    settings: Settings = None
    verified: Annotated[Path | None, typer.Option(help="The labels checked by hand; see `dualt audit`.")] = None
    level: Level = 0.95

    def __post_init__(self) -> None:
        from dualt.validation import check_fraction

        check_fraction(self.level, "--level")

    @property
    def is_default(self) -> bool:
        """Whether the user left the choice to us."""
        return self.estimator is None and self.verified is None

    def as_typed(self) -> str:
        """Return the options that were given, to be typed again."""
        level = None if self.level == Estimation.level else self.level
        options = {"-e": self.estimator, "--set": self.settings, "--verified": self.verified, "--level": level}
        return typed(options)

    def estimate(self, posterior: NoisyPosterior) -> TransitionEstimate:
        """Estimate the matrix; if labels were verified, correct it by them and say how many of them counted."""
        from dualt.audit import read_sheet
        from dualt.estimators import estimate_posterior, estimate_verified
        from dualt.io import labelled_rows

        chosen = estimate_posterior(posterior, self.estimator, **parse_settings(self.settings or []))
        if self.verified is None:
            return chosen
        sheet = read_sheet(self.verified)
        audit, (labelled, _) = sheet.audit(), labelled_rows(posterior.blocks)
        if labelled is not None:
            audit = audit.among(labelled)
        corrected = estimate_verified(posterior, chosen, audit)
        tell_verified(len(corrected.audit or ()), sheet, self.verified)
        return corrected


@dataclass(frozen=True)
class Page:
    """The report, and what it shows beside each label."""

    report: Annotated[Path | None, typer.Option(help="Write a page to look at and review: report.html.")] = None
    images: Annotated[
        Path | None, typer.Option(help="Images for the report: a folder of files named by id or row, or a .npy.")
    ] = None
    text: Annotated[
        Path | None, typer.Option(help="Texts to show: a column of the table, or a file of one line each.")
    ] = None

    reviewed: Annotated[
        Path | None, typer.Option(help="An earlier review, as the page downloads it: the page opens with it.")
    ] = None

    @property
    def text_column(self) -> str | None:
        """The column of texts, if `--text` names no file."""
        return None if self.text is None or self.text.exists() else str(self.text)

    def image_names(self, found: LabelIssues) -> list[str] | None:
        """Return the file of each row in the folder of `--images`, if it is one."""
        from dualt.report.matching import match_files

        if self.images is None or not self.images.is_dir():
            return None
        files = match_files(self.images, len(found), found.ids, found.given_names)
        return [files[row].relative_to(self.images).as_posix() for row in range(len(found))]

    def decided(self, found: LabelIssues) -> dict[int, str]:
        """Return what the earlier review decided, by row number."""
        from dualt.issues.review import decided_labels, read_review

        if self.reviewed is None:
            return {}
        try:
            decisions = read_review(self.reviewed)
        except InputError:
            if not _is_audit(self.reviewed):
                raise
            raise InputError(
                f"Expected a review of flagged labels for --reviewed, got {self.reviewed}, which is an audit. Use it by"
                f" {typed({'--verified': self.reviewed})}; go on with it, on a new page too, by `dualt audit LABELS"
                f" {typed({'--more': 0, '-o': self.reviewed})}`, where --more draws so many rows more."
            ) from None
        return decided_labels(decisions, found.given_names, found.ids)

    def write(self, found: LabelIssues, folder: Path | None = None, **options: Any) -> None:
        """Write the page, if one is wanted; `folder` has the images if `--images` names no others."""
        if self.report is not None:
            options["reviewed"] = self.decided(found)
            save_report(self.report, found, images=self.images or folder, text=self.text, **options)


def _is_audit(path: Path) -> bool:
    from dualt.audit import read_sheet

    try:
        read_sheet(path)
    except DualtError:
        return False
    return True

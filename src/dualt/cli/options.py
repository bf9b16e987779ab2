"""Options that several commands share, and the base of every command."""

from __future__ import annotations

import ast
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, is_dataclass
from functools import partial, wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any, get_type_hints

from typer import Argument, Option
from typer.core import TyperCommand, TyperGroup

import dualt
from dualt.cli.terminal import notices, running
from dualt.errors import DualtError, InputError
from dualt.files import check_outputs, check_writable_target

# Parameters with these names are files to be written, except the last, a folder that is written into.
_OUTPUTS = ("output", "report", "annotators", "folder")
_CONSTANTS = {"true": "True", "false": "False", "none": "None"}

output_option = partial(Option, "-o", "--output")
Classes = Annotated[Path | None, Option("--classes", help="Class names in column order, one per line.")]
LabelColumn = Annotated[str | None, Option("--label", help="Name of the label column in a table.")]
IdColumn = Annotated[str | None, Option("--id", help="Name of the id column in a table.")]
Text = Annotated[str | None, Option("--text", help="Columns of texts to learn from and show: 'subject,message'.")]
Features = Annotated[str | None, Option("--features", help="Columns of numbers, categories: 'x_*', 'a,b'; or emb.npy.")]
Images = Annotated[Path | None, Option("--images", help="For the page: a folder of files named by id or row, or .npy.")]
Jobs = Annotated[int, Option("--n-jobs", help="Number of threads or processes.")]
RandomState = Annotated[int, Option("--random-state", min=0, max=2**32 - 1, help="Seed of everything random.")]
Json = Annotated[bool, Option("--json", help="Print JSON for machines instead.")]


class _PlainFlags:
    """Shows flags in the help as flags, not as options that take a bool."""

    def get_params(self, ctx: Any) -> list[Any]:
        parameters: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        for parameter in parameters:
            if getattr(parameter, "is_flag", False):
                parameter.metavar = ""
        return parameters


class Group(_PlainFlags, TyperGroup):
    """A command with commands below it."""


class Command(_PlainFlags, TyperCommand):
    """A command: its outputs are checked before anything is read, and the library's notices go to stderr."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Keep what was typed, for the commands to type next."""
        ctx.meta["typed"] = list(args)
        return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        running.set(ctx)
        with notices(logging.INFO if ctx.find_root().params.get("verbose") else logging.WARNING):
            _check_paths(ctx.params)
            return super().invoke(ctx)


def _check_paths(values: dict[str, Any]) -> None:
    """Refuse an output that is an input or another output, or that cannot be written."""
    written = {name: Path(values[name]).expanduser() for name in _OUTPUTS if values.get(name)}
    # A text may be a path too: DATA of train and predict is the name of a data set or a path.
    given = [value for name, value in values.items() if name not in _OUTPUTS and isinstance(value, (str, Path))]
    read = [Path(value).expanduser() for value in given if written]
    for path in [*read]:
        with suppress(DualtError, OSError):  # refused where it is read
            read += dualt.io.find_shards(path)
    check_outputs(written.values(), read)
    for name, path in written.items():
        if name != "folder":
            check_writable_target(path)
        if name == "report" and path.suffix.lower() not in (".html", ".htm"):
            raise InputError(f"Expected --report to end in .html or .htm, got {path}.")


def shared(command: Callable[..., None]) -> Callable[..., None]:
    """Return the command with an option for every field of its groups: parameters whose type is a dataclass."""
    hints = get_type_hints(command, include_extras=True)
    groups: dict[str, Any] = {name: hint for name, hint in hints.items() if is_dataclass(hint)}
    parameters: list[Parameter] = []
    for name, parameter in signature(command).parameters.items():
        own = [*signature(groups[name]).parameters.values()] if name in groups else [parameter]
        known = get_type_hints(groups[name], include_extras=True) if name in groups else hints
        parameters += [each.replace(annotation=known[each.name], kind=Parameter.KEYWORD_ONLY) for each in own]

    @wraps(command)
    def run(**values: Any) -> None:
        for name, group in groups.items():
            values[name] = group(**{each: values.pop(each) for each in signature(group).parameters})
        command(**values)

    run.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run


def parse_settings(settings: Sequence[str] | None) -> dict[str, Any]:
    """Return the options given by `--set NAME=VALUE`; a value that is not a Python literal is taken as text."""
    options: dict[str, Any] = {}
    for setting in settings or ():
        name, equals, value = setting.partition("=")
        if not equals:
            raise InputError(f"Expected --set NAME=VALUE, got {setting!r}.")
        try:
            options[name] = ast.literal_eval(_CONSTANTS.get(value.lower(), value))
        except (ValueError, SyntaxError):
            options[name] = value
    return options


_learning = partial(Option, rich_help_panel="Making probabilities from raw data")
in_estimate = partial(Option, rich_help_panel="The estimate")


@dataclass(frozen=True)
class Data:
    """Probabilities and given labels, or raw data with labels."""

    probs: Annotated[
        Path,
        Argument(
            metavar="DATA",
            help="Probabilities (.npy, .npz, .csv, .tsv, .parquet, .jsonl), a table with labels, or images in a folder"
            " per class; several files by a folder or 'pattern*'.",
        ),
    ]
    labels: Annotated[Path | None, Argument(metavar="[LABELS]", help="Given labels, if not in DATA.")] = None
    label: LabelColumn = None
    columns: Annotated[str | None, Option("--probs", help="Columns of probabilities: 'p_*', or 'cat,dog'.")] = None
    id_column: IdColumn = None
    classes: Classes = None
    n_jobs: Jobs = 1
    dask: Annotated[str | None, Option(help="Dask cluster that reads the files: tcp://host:8786, or local.")] = None

    @property
    def files(self) -> list[Path]:
        """The probabilities, those of several models by name: "probs.npy,second.npy"."""
        names = [str(self.probs)] if self.probs.exists() else str(self.probs).split(",")
        return [Path(name.strip()) for name in names]

    @property
    def image_folder(self) -> Path | None:
        """The folder of images, if the labels are a folder per class."""
        folder = self.labels or self.probs
        return folder if dualt.io.is_class_folder(folder) else None


@dataclass(frozen=True)
class Learning:
    """What a model learns from to make probabilities, out of fold, where DATA has none."""

    text: Text = None
    features: Features = None
    group: Annotated[str | None, _learning(help="Column of groups: rows of one group stay in one fold.")] = None
    quick: Annotated[bool, _learning("--quick", help="Fit one plain model instead of several.")] = False
    merge_labels: Annotated[
        bool, Option("--merge-labels", help="Merge labels that differ by case, accents or blanks; N/A is missing.")
    ] = False

    @property
    def text_columns(self) -> list[str]:
        """The columns that `--text` names."""
        return [] if self.text is None else list(dict.fromkeys(map(str.strip, self.text.split(","))))


@dataclass(frozen=True)
class Estimation:
    """How the transition matrix is found."""

    estimator: Annotated[str | None, in_estimate("--estimator", "-e", help="See `dualt estimate --compare`.")] = None
    settings: Annotated[
        list[str] | None, in_estimate("--set", metavar="NAME=VALUE", help="Of the estimator, such as anchor=quantile.")
    ] = None
    verified: Annotated[Path | None, in_estimate(help="Labels checked by hand; see `dualt audit`.")] = None
    determined: Annotated[
        bool | None,
        in_estimate(
            "--determined/--overlapping",
            help="Could an expert always tell the class from the example? Default: yes for texts, images, embeddings.",
        ),
    ] = None

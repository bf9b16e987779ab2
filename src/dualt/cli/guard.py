"""What all commands share: options in groups, checks of paths, `-` for standard streams, `--verbose` and `--quiet`."""

from __future__ import annotations

import logging
import shutil
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, redirect_stdout
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import wraps
from inspect import Parameter, Signature, signature
from io import StringIO
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer
from typer.core import TyperCommand, TyperGroup

from dualt.cli.plain import clean, standard_streams
from dualt.errors import DualtWarning, InputError
from dualt.files import check_outputs, check_writable_target

_OUTPUTS = ("output", "outputs", "report", "folder")
_DASH = Path("-")
_PAGES = (".html", ".htm")
_TEXT_TABLES = (".csv", ".tsv", ".jsonl", ".ndjson")


class PlainFlags:
    """Lets the help of a command show flags as flags, not as options that take a bool."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters of the command."""
        parameters: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        for parameter in parameters:
            if getattr(parameter, "is_flag", False):
                parameter.metavar = ""
        return parameters


class Command(PlainFlags, TyperCommand):
    """A command."""


class Group(PlainFlags, TyperGroup):
    """A command with commands below it."""


@dataclass(frozen=True)
class _Said:
    """How much is said on stderr."""

    verbose: Annotated[bool, typer.Option("-v", "--verbose", help="Say more on stderr.")] = False
    quiet: Annotated[bool, typer.Option("--quiet", help="Nothing on stderr but errors.")] = False


def shared(command: Callable[..., None]) -> Callable[..., None]:
    """Return the command with all that commands share, and an option for every field of its groups.

    A group is a parameter whose type is a dataclass. Paths called output or report are files to be written, one called
    folder is written into.
    """
    hints = get_type_hints(command, include_extras=True)
    groups: dict[str, Any] = {name: hint for name, hint in hints.items() if is_dataclass(hint)}
    parameters: list[Parameter] = []
    for name, parameter in signature(command).parameters.items():
        if name in groups:
            parameters += _parameters_of(groups[name])
        else:
            parameters.append(parameter.replace(annotation=hints[name], kind=Parameter.KEYWORD_ONLY))
    parameters += _parameters_of(_Said)

    @wraps(command)
    def run(*, verbose: bool = False, quiet: bool = False, **values: Any) -> None:
        with ExitStack() as stack:
            stack.enter_context(_notices(logging.ERROR if quiet else logging.INFO if verbose else logging.WARNING))
            page = values.get("report")
            if _DASH in values.values():
                stack.enter_context(_standard_streams(values, quiet=quiet))
            _check_paths(values)
            if page not in (None, _DASH) and page.suffix.lower() not in _PAGES:  # no browser would open it
                raise InputError(f"Expected --report to end in {' or '.join(_PAGES)}, got {page}.")
            for name, group in groups.items():
                values[name] = group(**{field.name: values.pop(field.name) for field in fields(group)})
            command(**values)

    run.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run


def _parameters_of(group: Any) -> Iterator[Parameter]:
    hints = get_type_hints(group, include_extras=True)
    for field in fields(group):
        default = Parameter.empty if field.default is MISSING else field.default
        yield Parameter(field.name, Parameter.KEYWORD_ONLY, default=default, annotation=hints[field.name])


class _Notices(logging.StreamHandler):  # type: ignore[type-arg]
    """Shows notices without control characters, each once: what reads a file again says the same of it again."""

    def __init__(self) -> None:
        super().__init__(sys.stderr)
        self.shown: set[str] = set()

    def filter(self, record: logging.LogRecord) -> bool:
        said, n_shown = record.getMessage(), len(self.shown)
        self.shown.add(said)
        return len(self.shown) > n_shown

    def format(self, record: logging.LogRecord) -> str:
        return clean(super().format(record))


@contextmanager
def _notices(level: int) -> Iterator[None]:
    """Show what the library logs from this level on stderr, and what it warns of, as lines without code."""
    log, handler = logging.getLogger("dualt"), _Notices()
    before, propagated = log.level, log.propagate
    log.addHandler(handler)
    log.setLevel(level)
    log.propagate = False
    try:
        with warnings.catch_warnings():
            others = warnings.showwarning

            def show(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
                if issubclass(category, DualtWarning):
                    log.warning("%s", message)
                else:
                    others(message, category, *where, **more)

            warnings.simplefilter("always", DualtWarning)
            warnings.showwarning = show
            yield
    finally:
        log.removeHandler(handler)
        log.setLevel(before)
        log.propagate = propagated


@contextmanager
def _standard_streams(values: dict[str, Any], *, quiet: bool) -> Iterator[None]:
    """Put temporary files in the place of `-`: a CSV from standard input, and one that is printed in the end.

    What a command prints besides goes to stderr then, or nowhere if that is to be quiet.
    """
    dashes = [name for name, value in values.items() if value == _DASH]
    read, written = ([name for name in dashes if (name in _OUTPUTS) == output] for output in (False, True))
    if len(read) > 1 or len(written) > 1:
        raise InputError("Expected - once for standard input and once for standard output, got more.")
    with tempfile.TemporaryDirectory(prefix="dualt-") as folder, ExitStack() as stack:
        standard_streams[:] = []  # not at the end: how a command failed is said after it
        for name in read:
            values[name] = Path(folder, "standard-input.csv")
            standard_streams.append(str(values[name]))
            with values[name].open("wb") as stream:
                shutil.copyfileobj(sys.stdin.buffer, stream)
        if written:
            ending = Path(str(values.get("labels") or "")).suffix.lower()
            target = Path(folder, f"standard-output{ending if ending in _TEXT_TABLES else '.csv'}")
            values[written[0]] = target
            standard_streams.append(str(target))
            stack.enter_context(redirect_stdout(StringIO() if quiet else sys.stderr))
        yield
        if written:
            stack.close()
            typer.echo(target.read_bytes(), nl=False)


def _check_paths(values: dict[str, Any]) -> None:
    """Refuse an output that is an input or another output, or a file that cannot be written, before any is read."""
    written = [path for name in _OUTPUTS for path in _paths(values.get(name))]
    if written:
        read = (path.expanduser() for name, value in values.items() if name not in _OUTPUTS for path in _paths(value))
        check_outputs([path.expanduser() for path in written], [file for path in read for file in _files(path)])
    for path in written:
        if path != values.get("folder"):
            check_writable_target(path)


def _paths(value: Any) -> list[Path]:
    # DATA of train and predict is a text: the name of a data set, or a path.
    return [Path(each) for each in (value if isinstance(value, list) else [value]) if isinstance(each, (Path, str))]


def _files(path: Path) -> list[Path]:
    """Return the files that a path stands for, or itself if it will be refused later."""
    from dualt.io import find_shards

    try:
        return [path, *find_shards(path)]
    except (InputError, OSError):
        return [path]

"""What all commands share: a check of their paths, `-` for standard input and output, `--verbose` and `--quiet`."""

from __future__ import annotations

import logging
import shutil
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, redirect_stdout
from functools import wraps
from inspect import Parameter, signature
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from dualt.cli.plain import clean, standard_streams

_OUTPUTS = ("output", "outputs", "report")
_DASH = Path("-")
_PAGES = (".html", ".htm")
_TEXT_TABLES = (".csv", ".tsv", ".jsonl", ".ndjson")
_VERBOSE = Annotated[bool, typer.Option("-v", "--verbose", help="Say more on stderr.")]
_QUIET = Annotated[bool, typer.Option("--quiet", help="No notices and no progress on stderr.")]


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


def shared(command: Callable[..., None]) -> Callable[..., None]:
    """Return the command with all that commands share; its paths called output or report are written."""
    own = signature(command, eval_str=True)
    more = [
        Parameter(name, Parameter.KEYWORD_ONLY, default=False, annotation=annotation)
        for name, annotation in (("verbose", _VERBOSE), ("quiet", _QUIET))
    ]

    @wraps(command)
    def run(*, verbose: bool = False, quiet: bool = False, **values: Any) -> None:
        with ExitStack() as stack:
            stack.enter_context(_notices(logging.ERROR if quiet else logging.INFO if verbose else logging.WARNING))
            page = values.get("report")
            if _DASH in values.values():
                stack.enter_context(_standard_streams(values))
            _check_paths(values)
            _check_page(page)
            command(**values)

    keyword_only = [parameter.replace(kind=Parameter.KEYWORD_ONLY) for parameter in own.parameters.values()]
    run.__signature__ = own.replace(parameters=[*keyword_only, *more])  # type: ignore[attr-defined]
    run.__annotations__ = {each.name: each.annotation for each in [*keyword_only, *more]}
    return run


class _Once(logging.Filter):
    """Lets each notice pass once: what reads a file again says the same of it again."""

    def __init__(self) -> None:
        super().__init__()
        self.passed: set[str] = set()

    def filter(self, record: logging.LogRecord) -> bool:
        said = record.getMessage()
        known = said in self.passed
        self.passed.add(said)
        return not known


class _Cleaned(logging.Formatter):
    """Notices without control characters."""

    def format(self, record: logging.LogRecord) -> str:
        return clean(super().format(record))


@contextmanager
def _notices(level: int) -> Iterator[None]:
    """Show what the library logs from this level on stderr, and what it warns of, as lines without code."""
    from dualt.errors import DualtWarning

    log, handler = logging.getLogger("dualt"), logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Cleaned())
    handler.addFilter(_Once())
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
def _standard_streams(values: dict[str, Any]) -> Iterator[None]:
    """Put temporary files in the place of `-`: a CSV from standard input, and one that is printed in the end.

    What a command prints besides goes to stderr then.
    """
    from dualt.errors import InputError

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
            stack.enter_context(redirect_stdout(sys.stderr))
        yield
        if written:
            stack.close()
            typer.echo(target.read_bytes(), nl=False)


def _check_page(path: Path | None) -> None:
    """Refuse a name of a page by which no browser would open it."""
    from dualt.errors import InputError

    if path is not None and path != _DASH and path.suffix.lower() not in _PAGES:
        raise InputError(f"Expected --report to end in {' or '.join(_PAGES)}, got {path}.")


def _check_paths(values: dict[str, Any]) -> None:
    """Refuse an output that is an input or another output."""
    from dualt.files import check_outputs

    written = [path for name in _OUTPUTS for path in _paths(values.get(name))]
    if written:
        read = (path for name, value in values.items() if name not in _OUTPUTS for path in _paths(value))
        check_outputs(written, [file for path in read for file in _files(path)])


def _paths(value: Any) -> Iterator[Path]:
    for each in value if isinstance(value, list) else [value]:
        # DATA of train and predict is a text: the name of a data set, or a path.
        if isinstance(each, (Path, str)):
            yield Path(each).expanduser()


def _files(path: Path) -> list[Path]:
    """Return the files that a path stands for, or itself if it will be refused later."""
    from dualt.errors import InputError
    from dualt.io import find_shards

    try:
        return [path, *find_shards(path)]
    except (InputError, OSError):
        return [path]

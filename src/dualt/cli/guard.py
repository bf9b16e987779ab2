"""What all commands share: no output is an input or another output."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import wraps
from pathlib import Path
from typing import Any

_OUTPUTS = ("output", "outputs", "report")


def guarded(command: Callable[..., None]) -> Callable[..., None]:
    """Return the command with a check of its paths before it: those called output or report are written."""

    @wraps(command)
    def run(**values: Any) -> None:
        from dualt.files import check_outputs

        written = [path for name in _OUTPUTS for path in _paths(values.get(name))]
        if written:
            read = (path for name, value in values.items() if name not in _OUTPUTS for path in _paths(value))
            check_outputs(written, [file for path in read for file in _files(path)])
        command(**values)

    return run


def _paths(value: Any) -> Iterator[Path]:
    for each in value if isinstance(value, list) else [value]:
        if isinstance(each, Path):
            yield each


def _files(path: Path) -> list[Path]:
    """Return the files that a path stands for, or itself if it will be refused later."""
    from dualt.errors import InputError
    from dualt.io import find_shards

    try:
        return [path, *find_shards(path)]
    except (InputError, OSError):
        return [path]

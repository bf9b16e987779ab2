"""The command line's reference as Markdown, from the commands themselves."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from typer.main import get_command

from dualt.cli import app


def commands() -> str:
    """Return a section for every command, in the order of `dualt --help`."""
    return "\n\n".join(_sections("dualt", get_command(app)))


def _sections(path: str, group: Any) -> Iterator[str]:
    for name, command in group.commands.items():
        below = f"{path} {name}"
        if hasattr(command, "commands"):
            yield from _sections(below, command)
        else:
            yield f"## {below}\n\n{_help(command)}\n\n```text\n{_usage(below, command)}\n```\n\n{_table(command)}"


def _help(command: Any) -> str:
    """Return the docstring of a command, each paragraph on one line."""
    return re.sub(r"(?<!\n)\n(?!\n)", " ", (command.help or "").strip())


def _usage(path: str, command: Any) -> str:
    arguments = [_metavar(parameter) for parameter in command.params if not _flags(parameter)]
    return " ".join([path, *arguments, "[OPTIONS]"])


def _table(command: Any) -> str:
    rows = [f"| {_name(parameter)} | {_text(parameter)} |" for parameter in command.params if parameter.name != "help"]
    return "\n".join(["| argument or option | what it is |", "| --- | --- |", *rows])


def _flags(parameter: Any) -> list[str]:
    return sorted((flag for flag in parameter.opts if flag.startswith("-")), key=len)


def _metavar(parameter: Any) -> str:
    return str(parameter.metavar or parameter.name.upper())


def _name(parameter: Any) -> str:
    words = [*_flags(parameter), *getattr(parameter, "secondary_opts", [])] or [_metavar(parameter)]
    return ", ".join(f"`{word}`" for word in words)


def _text(parameter: Any) -> str:
    words = (getattr(parameter, "help", None) or "").replace("|", "\\|")
    default = parameter.default
    shown = isinstance(default, (str, int, float)) and default is not False and "Default:" not in words
    needed = " Needed." if parameter.required and _flags(parameter) else ""
    value = parameter.opts[0] if default is True else default
    return f"{words}{needed}" + (f" Default: `{value}`." if shown else "")

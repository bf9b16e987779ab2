"""Progress of reading and fitting: a bar on a terminal, nothing elsewhere."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dualt.crossfit.folds import OnProgress
    from dualt.rows.posterior import Progress


def is_quiet() -> bool:
    """Tell whether nothing is to be said on stderr but errors."""
    return not logging.getLogger("dualt").isEnabledFor(logging.WARNING)


def terminal() -> Any:
    """Return the console of stderr; None if it is no terminal, or if nothing is to be said."""
    from rich.console import Console

    console = Console(stderr=True)
    return console if console.is_terminal and not is_quiet() else None


@contextmanager
def steps_progress() -> Iterator[OnProgress | None]:
    """Yield a function to call with what is done, how much of it and of how much; None without a terminal."""
    console = terminal()
    if console is None:
        yield None
        return
    from rich import progress

    columns = (
        progress.TextColumn("{task.description}"), progress.BarColumn(), progress.MofNCompleteColumn(),
        progress.TimeElapsedColumn(), progress.TimeRemainingColumn(),
    )  # fmt: skip
    with progress.Progress(*columns, console=console, transient=True) as bars:
        task = bars.add_task("preparing", total=None)

        def advance(what: str, done: int, total: int) -> None:
            if bars.tasks[0].description != what:
                bars.reset(task, total=total, description=what)
            bars.update(task, completed=done)

        yield advance


@contextmanager
def rows_progress() -> Iterator[Progress | None]:
    """Yield a function to call with rows read, which moves a bar for each pass; None if stderr is not a terminal."""
    console = terminal()
    if console is None:
        yield None
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[rate]}"), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as bars:
        task, passes = bars.add_task("reading", total=None, rate=""), 0

        def advance(done: int, total: int) -> None:
            nonlocal passes
            if not passes or bars.tasks[0].finished:
                passes += 1
                bars.reset(task, total=total, description=f"pass {passes}", rate=f"{total:,} rows")
            speed = bars.tasks[0].speed
            rate = f"{done:,} of {total:,} rows" + (f", {speed:,.0f} rows/s" if speed else "")
            bars.update(task, completed=done, rate=rate)

        yield advance

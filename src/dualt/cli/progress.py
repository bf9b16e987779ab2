"""Progress of reading: a bar on a terminal, nothing elsewhere."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dualt.rows.posterior import Progress


@contextmanager
def rows_progress() -> Iterator[Progress | None]:
    """Yield a function to call with rows read, which moves a bar for each pass; None if stderr is not a terminal."""
    from rich.console import Console

    console = Console(stderr=True)
    if not console.is_terminal or not logging.getLogger("dualt").isEnabledFor(logging.WARNING):
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

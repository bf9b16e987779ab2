"""What commands print: lines, JSON, notices, progress, tables, and the command to type next."""

from __future__ import annotations

import json
import logging
import re
import shlex
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from dualt.errors import DualtWarning
from dualt.files import json_text

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from dualt.issues import LabelIssues
    from dualt.results import TransitionEstimate

_log = logging.getLogger(__name__)
# All but tabs and line ends: names of files and classes may carry commands to a terminal. Lone surrogates stand for
# bytes of a file name that are not UTF-8, and cannot be written.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
# Larger matrices do not fit a terminal; their largest confusions do.
_MATRIX_CLASSES = 14
_LISTED = 12
# Columns taken by a noise rate, and by a class name at least.
_RATE_WIDTH, _LEAST_NAME = 8, 7
_SECONDS_BETWEEN_LINES = 10.0
# The context of the command that runs, and what was typed after `dualt`.
_running: ContextVar[Any] = ContextVar("running")
_typed: ContextVar[list[str]] = ContextVar("typed")


def clean(text: str) -> str:
    """Return a text with each control character replaced by �."""
    return _CONTROL.sub("�", text)


def say(text: str, *, err: bool = False, nl: bool = True, **style: Any) -> None:
    """Print a line on stdout or stderr, without control characters."""
    typer.secho(clean(text), err=err, nl=nl, **style)


def print_json(content: Any) -> None:
    """Print `content` as JSON on stdout; numbers that are not finite become null, with a notice."""
    text = json_text(content)
    if text != json.dumps(content, indent=1):
        _log.warning("Numbers that are infinite, or not numbers, are null in the JSON.")
    say(text)


class _CleanConsole(Console):
    def print(self, *objects: Any, **options: Any) -> None:
        super().print(*(clean(each) if isinstance(each, str) else each for each in objects), **options)


def console() -> Console:
    """Return a console on stdout without control characters, 120 columns wide where stdout is not a terminal."""
    out = _CleanConsole(highlight=False)
    return out if out.is_terminal else _CleanConsole(highlight=False, width=120)


class _Notices(logging.StreamHandler):  # type: ignore[type-arg]
    """Prints each log message once, without control characters."""

    def __init__(self) -> None:
        super().__init__(sys.stderr)
        self.shown: set[str] = set()

    def filter(self, record: logging.LogRecord) -> bool:
        message, n_shown = record.getMessage(), len(self.shown)
        self.shown.add(message)
        return len(self.shown) > n_shown

    def format(self, record: logging.LogRecord) -> str:
        return clean(super().format(record))


@contextmanager
def notices(level: int) -> Iterator[None]:
    """Within the block, print the library's log from `level` on, and its warnings, as lines on stderr."""
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


def warn_repeated(ids: Sequence[Any] | None, column: str | None) -> None:
    """Say on stderr which ids, if any, are those of several rows."""
    repeated = [name for name, times in Counter(ids or ()).items() if times > 1]
    if repeated:
        shown = ", ".join(map(repr, repeated[:_LISTED])) + (", …" if len(repeated) > _LISTED else "")
        _log.warning("Several rows have the same id in %r, and are named by row number instead: %s", column, shown)


def warn_labels(labels: NDArray[Any], *, merged: bool = False, raw: bool = True) -> None:
    """Say on stderr which labels look like one class, and which like missing ones; `raw`: a model is still to learn."""
    from dualt.labels import look_alike

    if labels.dtype.kind != "U":
        return
    counts = Counter(labels.tolist())
    spellings, markers = look_alike(counts)

    def listed(names: Sequence[str]) -> str:
        return ", ".join(f"{name!r} ({counts[name]:,})" if raw else repr(name) for name in names)

    remedy = "Merge them with --merge-labels." if raw else "Merge them before a model learns them."
    for alike in spellings:
        done = "are taken as one class." if merged else f"differ only by case, accents or blanks. {remedy}"
        _log.warning("The labels %s %s", listed(alike), done)
    if markers:
        remedy = "Empty these cells, or pass --merge-labels." if raw else "Leave such rows without a label."
        done = "are taken as missing." if merged else f"look like missing labels, and are taken as classes. {remedy}"
        _log.warning("The labels %s %s", listed(markers), done)


@contextmanager
def progress(*, shown: bool = True) -> Iterator[Callable[..., None] | None]:
    """Yield `advance(what, done, total, note="")`: a bar on a terminal, elsewhere a line on stderr now and then.

    A new `what`, or less done than before, starts a new bar. None is yielded unless `shown`.
    """
    err = Console(stderr=True)
    if not shown:
        yield None
    elif err.is_terminal:
        from rich import progress as bars

        columns = (
            bars.TextColumn("{task.description}"), bars.BarColumn(), bars.TextColumn("{task.fields[note]}"),
            bars.TimeElapsedColumn(), bars.TimeRemainingColumn(),
        )  # fmt: skip
        with bars.Progress(*columns, console=err, transient=True) as bar:
            task = bar.add_task("starting", total=None, note="")

            def advance(what: str, done: float, total: float, note: str = "") -> None:
                current = bar.tasks[0]
                if current.description != what or current.total != total or done < current.completed:
                    bar.reset(task, total=total, description=what)
                bar.update(task, completed=done, note=clean(note) or f"{done:,} of {total:,}")

            yield advance
    else:
        last = time.monotonic()

        def print_line(what: str, done: float, total: float, note: str = "") -> None:
            nonlocal last
            if time.monotonic() - last >= _SECONDS_BETWEEN_LINES:
                last = time.monotonic()
                say(f"{what}: {note or f'{done:,} of {total:,}'}", err=True)

        yield print_line


def remember_typed(words: Sequence[str]) -> None:
    """Keep what was typed after `dualt`, for `again`."""
    _typed.set(list(words))


def remember_running(context: Any) -> None:
    """Keep the context of the command that runs, for `again`."""
    _running.set(context)


def again(command: str | None = None, *more: str, without: Sequence[str] = ()) -> str:
    """Return what was typed as a line for `command` (default: the same), with `more` at the end.

    Options in `without`, and those that `command` does not have, are left out; so are those that `more` repeats.
    """
    context = _running.get()
    root = context.find_root()
    own = {name: each for each in context.command.params for name in (*each.opts, *each.secondary_opts)}
    target = context.command if command is None else root.command.get_command(root, command)
    known = {name for each in target.params for name in (*each.opts, *each.secondary_opts)}
    dropped = {*without, *more}
    kept: list[str] = []
    words = iter(_typed.get()[_typed.get().index(context.info_name) + 1 :])
    for word in words:
        name = word.partition("=")[0]
        if name not in own:  # an argument
            kept.append(word)
            continue
        takes_value = "=" not in word and not getattr(own[name], "is_flag", False)
        value = [next(words, "")] if takes_value else []
        names = {*own[name].opts, *own[name].secondary_opts}
        if known & names and not dropped & names:
            kept += [word, *value]
    return shlex.join(["dualt", command or context.info_name, *kept, *more])


def show_next(out: Console, steps: Mapping[str, str]) -> None:
    """Print what to do next: commands that can be copied, with what each is for, and sentences."""
    if steps:
        out.print("\n[bold]Next[/]")
    for step, what in steps.items():
        out.print(f" {escape(step)}" + (f"   [dim]{what}[/]" if what else ""), soft_wrap=True)


def show_estimate(out: Console, estimate: TransitionEstimate, level: float = 0.95) -> None:
    """Print the headline, the matrix (or its largest confusions) and the notices."""
    from dualt.results.claims import footnote, headline

    n_classes = len(estimate.class_names)
    out.print(
        f"\n[bold]{headline(estimate, level)}[/]"
        f"   [dim]{estimate.n_samples:,} rows, {n_classes:,} classes, estimator {estimate.estimator}[/]\n"
    )
    if n_classes <= _MATRIX_CLASSES and _LEAST_NAME + 5 * n_classes + _RATE_WIDTH <= out.width:
        out.print(matrix_table(estimate, out.width))
    else:
        rates = _table("Noisiest classes", "true class", "wrong>", "labels>")
        for row in (-estimate.noise_rates).argsort()[:_LISTED]:
            count = f"{estimate.diagnostics.label_counts[row]:,}"
            rates.add_row(_name(estimate.class_names[row]), f"{estimate.noise_rates[row]:.1%}", count)
        out.print(rates)
        confusions = _table("\nLargest confusions", "true class", "is given as", "how often>")
        for true, given, share in _largest_off_diagonal(estimate.transition):
            confusions.add_row(_name(estimate.class_names[true]), _name(estimate.class_names[given]), f"{share:.1%}")
        out.print(confusions)
    out.print(f"\n[dim]{footnote(estimate)}[/]")
    show_notices(out, estimate)


def show_notices(out: Console, estimate: TransitionEstimate) -> None:
    """Print the warnings of an estimate, each with its advice."""
    if estimate.warnings:
        out.print("\n[bold]Worth knowing[/]")
    for notice in estimate.warnings:
        out.print(Padding(f"[yellow]•[/] {escape(notice.message)} [dim]{escape(notice.advice)}[/]", (0, 0, 0, 1)))


def matrix_table(estimate: TransitionEstimate, width: int = 120) -> Table:
    """Return the matrix in per cent, shaded, with each class's noise rate, in `width` columns."""
    from dualt.labels import visible_name

    n_classes = len(estimate.class_names)
    names = [
        shorten(visible_name(name), min(10, width - _RATE_WIDTH - 5 * n_classes - 1)) for name in estimate.class_names
    ]
    first = max(_LEAST_NAME, 1 + max(map(len, names)))
    short = [shorten(name, max(min(10, (width - _RATE_WIDTH - first) // n_classes - 1), 4)) for name in names]
    table = Table(title="P(given label | true class), %", title_justify="left", box=None, padding=(0, 0))
    table.add_column("true ╲ given ", justify="right", style="bold", min_width=first)
    for name in short:
        table.add_column(Text(f"{name} "), justify="right", min_width=5, no_wrap=True)
    table.add_column("  wrong", justify="left", no_wrap=True)
    for row, name in enumerate(names):
        cells = [_shaded(value, diagonal=row == column) for column, value in enumerate(estimate.transition[row])]
        table.add_row(Text(f"{name} ", no_wrap=True), *cells, f"  {estimate.noise_rates[row]:.1%}")
    return table


def comparison_table(estimates: Mapping[str, TransitionEstimate]) -> Table:
    """Return each estimator's noise rate, its distance from the first, its rates by class, and what it does."""
    import numpy as np

    from dualt.estimators import ESTIMATORS

    first = next(iter(estimates.values()))
    names = first.class_names if len(first.class_names) <= _MATRIX_CLASSES else ()
    title = "Estimators side by side: share of wrong labels" + (", and by class in %" if names else "")
    table = Table(title=title, title_justify="left", box=None, padding=(0, 0))
    table.add_column("estimator  ", style="bold", no_wrap=True)
    table.add_column("wrong  ", justify="right", no_wrap=True)
    table.add_column("Σ|A − B| / C  ", justify="right", no_wrap=True)
    for name in names:
        table.add_column(Text(f"{shorten(name, 5)} "), justify="right", min_width=5)
    table.add_column("", style="dim")
    for name, estimate in estimates.items():
        distance = float(np.abs(estimate.transition - first.transition).sum() / len(first.transition))
        cells = [_shaded(float(rate), diagonal=False) for rate in estimate.noise_rates[: len(names)]]
        about = f"  {ESTIMATORS[name].summary}" if name in ESTIMATORS else ""
        table.add_row(f"{name}  ", f"{estimate.noise_rate:.1%}  ", f"{distance:.2f}  ", *cells, about)
    return table


def show_issues(out: Console, found: LabelIssues, level: float = 0.95) -> None:
    """Print the headline, the most suspect labels, the pairs of classes they are in, and the notices."""
    from dualt.results import claims

    estimate, n_flagged, n_labelled = found.transition_estimate, len(found.indices), f"{found.n_labelled:,}"
    if estimate is None:
        headline = f"About {found.expected_count:,.0f} of {n_labelled} labels look wrong."
    else:
        headline = claims.headline(estimate, level)
    out.print(f"\n[bold]{headline}[/]")
    if n_flagged:
        n_wrong = int(found.probably_wrong.sum())
        doubtful = f"; {n_flagged - n_wrong:,} are doubtful, with no clear alternative" if n_flagged > n_wrong else ""
        out.print(f"{n_wrong:,} of {n_labelled} labels are probably wrong{doubtful}.\n")
        out.print(issues_table(found))
        pairs = _table("\nWhere they are", "given", "should be", "about>")
        for given, true, count in _largest_off_diagonal(found.by_pair):
            if count >= 0.5:
                pairs.add_row(_name(found.class_names[given]), _name(found.class_names[true]), f"{count:,.0f}")
        if pairs.row_count:
            out.print(pairs)
    else:
        out.print(f"None of the {n_labelled} labels is flagged.")
    if estimate is not None:
        show_notices(out, estimate)


def issues_table(found: LabelIssues) -> Table:
    """Return the most suspect labels and the class each should have."""
    named = [] if found.ids is None else ["id"]
    table = _table("Most suspect", "row>", *named, "given", "right with>", "should be", "with>")
    for row in found.indices[:_LISTED].tolist():
        given, suggested = found.given[row], found.suggested[row]
        likelier = _name(found.class_names[suggested]), f"{found.suggested_probability[row]:.1%}"
        table.add_row(
            str(row),
            *([] if found.ids is None else [Text(shorten(found.ids[row], 30), style="not bold")]),
            _name(found.class_names[given]),
            f"{found.probability_right[row]:.1%}",
            *(likelier if suggested != given else (Text("doubtful", style="not bold dim"), "")),
        )
    return table


def error_table(estimates: Mapping[str, TransitionEstimate], errors: Mapping[str, float]) -> Table:
    """Return each estimator's error against the known matrix, best first, as a number and a bar."""
    table = _table("", "estimator", "finds wrong>", "error Σ|T − T̂| / C>", "")
    for name in sorted(errors, key=lambda name: errors[name]):
        bar = "█" * max(1, round(40 * errors[name] / max(errors.values())))
        table.add_row(name, f"{estimates[name].noise_rate:.1%}", f"{errors[name]:.3f}", Text(bar, style="blue"))
    return table


def shorten(name: str, width: int = 10) -> str:
    """Return a name that fits a column."""
    name = clean(name).replace("\n", "�").replace("\t", "�")
    return name if len(name) <= width else name[: width - 1] + "…"


def _name(class_name: str) -> Text:
    from dualt.labels import visible_name

    return Text(shorten(visible_name(class_name), 24))


def _table(title: str, *headers: str) -> Table:
    """Return an empty table without lines: names bold, columns whose header ends in ">" right-aligned."""
    table = Table(title=title, title_justify="left", box=None, padding=(0, 2, 0, 0))
    for header in headers:
        if header.endswith(">"):
            table.add_column(header[:-1], justify="right")
        else:
            table.add_column(header, style="bold")
    return table


def _shaded(value: float, *, diagonal: bool) -> Text:
    """Return a percentage on a background that deepens with it: blue on the diagonal, red off it."""
    text = f"{100 * value:.1f} " if value >= 0.0005 else "· "
    if value < 0.005:
        return Text(text, style="dim")
    depth = value if diagonal else value**0.5
    strong = (43, 95, 173) if diagonal else (190, 52, 40)
    red, green, blue = (round(30 + (channel - 30) * depth) for channel in strong)
    return Text(text, style=f"white on rgb({red},{green},{blue})")


def _largest_off_diagonal(matrix: NDArray[np.float64]) -> Iterator[tuple[int, int, float]]:
    """Yield row, column and value of the largest entries off the diagonal, largest first."""
    import numpy as np

    off = np.array(matrix)
    np.fill_diagonal(off, 0)
    for place in np.argsort(-off, axis=None)[:_LISTED]:
        row, column = divmod(int(place), len(off))
        yield row, column, float(off[row, column])

"""What commands print: lines, JSON, notices, progress, tables, and the command to type next."""

from __future__ import annotations

import logging
import re
import shlex
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

import dualt
from dualt.errors import DualtWarning
from dualt.files import json_text

# All but tabs and line ends: names of files and classes may carry commands to a terminal. Lone surrogates stand for
# bytes of a file name that are not UTF-8, and cannot be written.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
# Larger matrices do not fit a terminal; their largest confusions do.
_MATRIX_CLASSES = 14
_LISTED = 12
# Columns taken by a noise rate, and by a class name at least and at most.
_RATE_WIDTH, _NAME_WIDTHS = 8, (4, 10)
# Columns of a suspect label without its text.
_ISSUE_WIDTH = 72
_SECONDS_BETWEEN_LINES = 10.0
# The context of the command that runs.
running: ContextVar[Any] = ContextVar("running")


def clean(text: str) -> str:
    """Return a text with each control character replaced by �."""
    return _CONTROL.sub("�", text)


def say(text: str, *, err: bool = False, **style: Any) -> None:
    """Print a line on stdout or stderr, without control characters."""
    typer.secho(clean(text), err=err, **style)


def print_json(content: Any) -> None:
    """Print `content` as JSON on stdout; numbers that are not finite become null."""
    say(json_text(content))


class _CleanConsole(Console):
    def print(self, *objects: Any, **options: Any) -> None:
        super().print(*(clean(each) if isinstance(each, str) else each for each in objects), **options)


def console() -> Console:
    """Return a console on stdout without control characters, 120 columns wide where stdout is not a terminal."""
    out = _CleanConsole(highlight=False)
    return out if out.is_terminal else _CleanConsole(highlight=False, width=120)


class _Notices(logging.Handler):
    """Prints each log message once on stderr."""

    def __init__(self) -> None:
        super().__init__()
        self.shown: set[str] = set()

    def emit(self, record: logging.LogRecord) -> None:
        message = record.getMessage()
        if message not in self.shown:
            self.shown.add(message)
            say(message, err=True)


@contextmanager
def notices(level: int) -> Iterator[None]:
    """Within the block, print the library's log from `level` on, and its warnings, as lines on stderr."""
    log, handler, others = logging.getLogger("dualt"), _Notices(), warnings.showwarning
    before = log.level

    def show(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
        if issubclass(category, DualtWarning):
            log.warning("%s", message)
        else:
            others(message, category, *where, **more)

    log.addHandler(handler)
    log.setLevel(level)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("always", DualtWarning)
            warnings.showwarning = show
            yield
    finally:
        log.removeHandler(handler)
        log.setLevel(before)


@contextmanager
def progress() -> Iterator[Callable[..., None]]:
    """Yield `advance(what, done, total, note="")`: a bar on a terminal, elsewhere a line on stderr now and then.

    A new `what`, or less done than before, starts a new bar.
    """
    if sys.stderr.isatty():  # rich also draws bars into pipes, where FORCE_COLOR is set
        from rich import progress as bars

        columns = (
            bars.TextColumn("{task.description}"), bars.BarColumn(), bars.TextColumn("{task.fields[note]}"),
            bars.TimeElapsedColumn(), bars.TimeRemainingColumn(),
        )  # fmt: skip
        with bars.Progress(*columns, console=Console(stderr=True), transient=True) as bar:
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


def again(command: str | None = None, *more: str, first: str | None = None, without: Sequence[str] = ()) -> str:
    """Return what was typed as a line for `command` (default: the same), with `first` before it and `more` at the end.

    Options in `without`, and those that `command` does not have, are left out; so are those that `more` repeats.
    """
    context = running.get()
    root = context.find_root()
    target = context.command if command is None else root.command.get_command(root, command)
    known = {name for each in target.params for name in each.opts}
    own = {name: each for each in context.command.params for name in (*each.opts, *each.secondary_opts)}
    kept = [] if first is None else [first]
    words = iter(context.meta["typed"])
    for word in words:
        option = own.get(word.partition("=")[0])
        if option is None:  # an argument
            kept.append(word)
            continue
        value = [] if "=" in word or getattr(option, "is_flag", False) else [next(words, "")]
        if known & {*option.opts} and not {*without, *more} & {*option.opts}:
            kept += [word, *value]
    return shlex.join(["dualt", command or context.info_name, *kept, *more])


def words_of(**options: Any) -> list[str]:
    """Return options as they are typed, without those that are None."""
    named = {f"--{name}": value for name, value in options.items() if value is not None}
    return [word for name, value in named.items() for word in (name, str(value))]


def show_next(out: Console, steps: Mapping[str, str], *written: Path | None) -> None:
    """Print which files were written, and what to do next: commands that can be copied, with what each is for."""
    files = [escape(str(path)) for path in written if path is not None]
    if files:
        out.print(f"\nWritten: {', '.join(files)}", soft_wrap=True)
    if steps:
        out.print("\n[bold]Next[/]")
    for step, what in steps.items():
        out.print(f" {escape(step)}   [dim]{what}[/]", soft_wrap=True)


def show_estimate(out: Console, estimate: dualt.TransitionEstimate) -> None:
    """Print the headline, the matrix (or its largest confusions) and the notices."""
    names, n_classes = estimate.class_names, len(estimate.class_names)
    out.print(
        f"\n[bold]{dualt.results.claims.headline(estimate)}[/]"
        f"   [dim]{estimate.n_samples:,} rows, {n_classes:,} classes, estimator {estimate.estimator}[/]\n"
    )
    if n_classes <= _MATRIX_CLASSES and (n_classes + 1) * (_NAME_WIDTHS[0] + 1) + _RATE_WIDTH <= out.width:
        out.print(_matrix_table(estimate, out.width))
    else:
        rates = plain_table("Noisiest classes", "true class", "wrong>", "labels>")
        for row in (-estimate.noise_rates).argsort()[:_LISTED]:
            count = f"{estimate.diagnostics.label_counts[row]:,}"
            rates.add_row(_name(names[row]), f"{estimate.noise_rates[row]:.1%}", count)
        confusions = plain_table("\nLargest confusions", "true class", "is given as", "how often>")
        for true, given, share in dualt.report.page.largest_confusions(estimate.transition):
            confusions.add_row(_name(names[true]), _name(names[given]), f"{share:.1%}")
        out.print(rates, confusions)
    out.print(f"\n[dim]{dualt.results.claims.footnote(estimate)}[/]")
    show_notices(out, estimate.warnings)


def show_notices(out: Console, found: Sequence[Any]) -> None:
    """Print warnings of an estimate, each with its advice."""
    if found:
        out.print("\n[bold]Worth knowing[/]")
    for notice in found:
        out.print(Padding(f"[yellow]•[/] {escape(notice.message)} [dim]{escape(notice.advice)}[/]", (0, 0, 0, 1)))


def _matrix_table(estimate: dualt.TransitionEstimate, width: int) -> Table:
    """Return the matrix in per cent, shaded, with each class's noise rate, in `width` columns."""
    least, most = _NAME_WIDTHS
    room = min(max((width - _RATE_WIDTH) // (len(estimate.class_names) + 1) - 1, least), most)
    names = [Text(f"{shorten(dualt.labels.visible_name(name), room)} ", no_wrap=True) for name in estimate.class_names]
    table = Table(title="P(given label | true class), %", title_justify="left", box=None, padding=(0, 0))
    table.add_column("true ╲ given ", justify="right", style="bold")
    for name in names:
        table.add_column(name, justify="right", min_width=least + 1, no_wrap=True)
    table.add_column("  wrong", no_wrap=True)
    for row, name in enumerate(names):
        cells = [_shaded(value, diagonal=row == column) for column, value in enumerate(estimate.transition[row])]
        table.add_row(name, *cells, f"  {estimate.noise_rates[row]:.1%}")
    return table


def show_issues(out: Console, found: dualt.LabelIssues) -> None:
    """Print the headline, the most suspect labels, the pairs of classes they are in, and the notices."""
    estimate, n_flagged, n_labelled = found.transition_estimate, len(found.indices), f"{found.n_labelled:,}"
    headline = f"About {found.expected_count:,.0f} of {n_labelled} labels look wrong."
    out.print(f"\n[bold]{headline if estimate is None else dualt.results.claims.headline(estimate)}[/]")
    if n_flagged:
        groups = "probably wrong (another class is likelier)", "doubtful (no clear alternative)"
        numbers = (n_wrong := int(found.probably_wrong.sum())), n_flagged - n_wrong
        counts = ", ".join(f"{number:,} {group}" for number, group in zip(numbers, groups, strict=True) if number)
        out.print(f"{n_flagged:,} of {n_labelled} labels {'is' if n_flagged == 1 else 'are'} flagged: {counts}.\n")
        out.print(issues_table(found, out.width))
        pairs = plain_table("\nWrong labels by pair", "given", "should be", "about>")
        for given, true, count in dualt.report.page.largest_confusions(found.by_pair):
            if count >= 0.5:
                pairs.add_row(_name(found.class_names[given]), _name(found.class_names[true]), f"{count:,.0f}")
        if pairs.row_count and (estimate is None or estimate.doubt is None):
            out.print(pairs)
    else:
        out.print(f"None of the {n_labelled} labels is flagged.")
    show_notices(out, () if estimate is None else estimate.warnings)


def issues_table(found: dualt.LabelIssues, width: int = 120) -> Table:
    """Return the most suspect labels, the class each should have and, where there is room, the start of its text."""
    room = min(width - _ISSUE_WIDTH, 60)
    named, texts = [] if found.ids is None else ["id"], found.texts if room >= 20 else None
    said = [] if texts is None else ["text"]
    table = plain_table("Most suspect", "row>", *named, "given", "likely right>", "should be", "likely>", *said)
    for row in found.indices[:_LISTED].tolist():
        given, suggested = found.given[row], found.suggested[row]
        likelier = _name(found.class_names[suggested]), f"{found.suggested_probability[row]:.1%}"
        table.add_row(
            str(row),
            *([] if found.ids is None else [Text(shorten(found.ids[row], 30), style="not bold")]),
            _name(found.class_names[given]),
            f"{found.probability_right[row]:.1%}",
            *(likelier if suggested != given else (Text("doubtful", style="not bold dim"), "")),
            *([] if texts is None else [Text(shorten(" ".join(texts[row].split()), room), style="not bold dim")]),
        )
    return table


def plain_table(title: str, *headers: str) -> Table:
    """Return an empty table without lines: names bold, columns whose header ends in ">" right-aligned."""
    table = Table(title=title, title_justify="left", box=None, padding=(0, 2, 0, 0))
    for header in headers:
        if header.endswith(">"):
            table.add_column(header[:-1], justify="right")
        else:
            table.add_column(header, style="bold")
    return table


def shorten(name: str, width: int = 10) -> str:
    """Return a name that fits a column."""
    name = clean(name).replace("\n", "�").replace("\t", "�")
    return name if len(name) <= width else name[: width - 1] + "…"


def _name(class_name: str) -> Text:
    return Text(shorten(dualt.labels.visible_name(class_name), 24))


def _shaded(value: float, *, diagonal: bool) -> Text:
    """Return a percentage on a background that deepens with it: blue on the diagonal, red off it."""
    text = f"{100 * value:.1f} " if value >= 0.0005 else "· "
    if value < 0.005:
        return Text(text, style="dim")
    depth = value if diagonal else value**0.5
    strong = (43, 95, 173) if diagonal else (190, 52, 40)
    red, green, blue = (round(30 + (channel - 30) * depth) for channel in strong)
    return Text(text, style=f"white on rgb({red},{green},{blue})")

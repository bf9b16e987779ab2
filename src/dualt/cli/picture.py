"""Matrices, rates and notices as a terminal shows them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.padding import Padding, PaddingDimensions
from rich.table import Table
from rich.text import Text

from dualt.cli.plain import clean, is_standard_stream
from dualt.results.notebook import coverage
from dualt.results.readings import basis, finding, rate_range, rates_range

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dualt.issues import LabelIssues
    from dualt.results import TransitionEstimate
    from dualt.results.notices import Notice

# A matrix of more classes does not fit a terminal; its largest confusions do.
WIDE = 14
_LISTED = 12
# Columns that a noise rate with its interval takes, and the name of a class at least.
_RATES, _LEAST_NAME = 23, 7


def console() -> Console:
    """Return a console on stdout, wide enough for a matrix where the output is not a terminal."""
    out = _CleanConsole(highlight=False)
    return out if out.is_terminal else _CleanConsole(highlight=False, width=120)


class _CleanConsole(Console):
    """A console that prints no control characters of others."""

    def print(self, *objects: Any, **options: Any) -> None:
        super().print(*(clean(each) if isinstance(each, str) else each for each in objects), **options)


def show_estimate(out: Console, estimate: TransitionEstimate, level: float) -> None:
    """Print the headline, the matrix (or its largest confusions) and the notices."""
    n_classes = len(estimate.class_names)
    out.print(
        f"\n[bold]{finding(estimate, level)}[/] ({basis(estimate, level)})"
        f"   [dim]{estimate.n_samples:,} rows, {n_classes:,} classes, estimator {estimate.estimator}[/]\n"
    )
    if n_classes <= WIDE and _LEAST_NAME + 5 * n_classes + _RATES <= out.width:
        out.print(matrix_table(estimate, level, out.width))
    else:
        out.print(rates_table(estimate, level))
        out.print(confusions_table(estimate))
    out.print(f"\n[dim]{coverage(estimate)}[/]")
    show_notices(out, estimate.warnings)


def matrix_table(estimate: TransitionEstimate, level: float, width: int = 120) -> Table:
    """Return the matrix in per cent, shaded, with each class's noise rate and its range, in `width` columns."""
    n_classes = len(estimate.class_names)
    names = [shorten(name, min(10, width - _RATES - 5 * n_classes - 1)) for name in estimate.class_names]
    first = max(_LEAST_NAME, 1 + max(map(len, names)))
    short = [shorten(name, max(min(10, (width - _RATES - first) // n_classes - 1), 4)) for name in names]
    table = Table(title="P(given label | true class), %", title_justify="left", box=None, padding=(0, 0))
    table.add_column("true ╲ given ", justify="right", style="bold", min_width=first)
    for name in short:
        table.add_column(Text(f"{name} "), justify="right", min_width=5, no_wrap=True)
    table.add_column("  wrong", justify="left", no_wrap=True)
    low, high = rates_range(estimate, level)
    for row, name in enumerate(names):
        cells = [shaded(value, diagonal=row == column) for column, value in enumerate(estimate.transition[row])]
        wrong = f"  {estimate.noise_rates[row]:6.1%}  [dim]{low[row]:.1%} – {high[row]:.1%}[/]"
        table.add_row(Text(f"{name} ", no_wrap=True), *cells, wrong)
    return table


def shaded(value: float, *, diagonal: bool) -> Text:
    """Return a percentage on a background that deepens with it: blue on the diagonal, red off it."""
    text = f"{100 * value:.1f} " if value >= 0.0005 else "· "
    if value < 0.005:
        return Text(text, style="dim")
    depth = float(np.sqrt(value)) if not diagonal else value
    strong = (43, 95, 173) if diagonal else (190, 52, 40)
    red, green, blue = (round(30 + (channel - 30) * depth) for channel in strong)
    return Text(text, style=f"white on rgb({red},{green},{blue})")


def rates_table(estimate: TransitionEstimate, level: float) -> Table:
    """Return the noisiest classes with their ranges."""
    low, high = rates_range(estimate, level)
    table = _table("Noisiest classes", "true class", "wrong>", f"{level:.0%} range", "labels>")
    counts = estimate.diagnostics.label_counts
    for row in np.argsort(-estimate.noise_rates)[:_LISTED]:
        span = f"[not bold dim]{low[row]:.1%} – {high[row]:.1%}[/]"
        name = _name(estimate.class_names[row])
        table.add_row(name, f"{estimate.noise_rates[row]:.1%}", span, f"{counts[row]:,}")
    return table


def confusions_table(estimate: TransitionEstimate) -> Table:
    """Return the largest off-diagonal entries."""
    table = _table("\nLargest confusions", "true class", "is given as", "how often>")
    names = estimate.class_names
    for true, given, share in _largest_off_diagonal(estimate.transition):
        table.add_row(_name(names[true]), _name(names[given]), f"{share:.1%}")
    return table


def show_issues(out: Console, found: LabelIssues, level: float) -> None:
    """Print the headline, the most suspect labels, the pairs of classes they are in, and the notices."""
    estimate, n_flagged, n_labelled = found.transition_estimate, len(found.indices), f"{found.n_labelled:,}"
    if estimate is None:
        headline = f"About {found.expected_count:,.0f} of {n_labelled} labels are wrong"
        reason = f"{found.expected_count / found.n_labelled:.1%}"
    else:
        headline, reason = finding(estimate, level), basis(estimate, level)
    out.print(f"\n[bold]{headline}[/] ({reason}).")
    if n_flagged:
        n_unclear = int((found.suggested == found.given)[found.indices].sum())
        unclear = f"; for {n_unclear:,} of them no other class is likelier" if n_unclear else ""
        out.print(f"{n_flagged:,} of {n_labelled} are flagged, most suspect first{unclear}.\n")
        for table in (issues_table(found), pairs_table(found)):
            if table.row_count:
                out.print(table)
    else:
        out.print(f"None of the {n_labelled} labels is flagged.")
    if estimate is not None:
        show_notices(out, estimate.warnings)


def issues_table(found: LabelIssues) -> Table:
    """Return the most suspect labels and the class each should have: unclear where none is likelier than its label."""
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
            *(likelier if suggested != given else (Text("unclear", style="not bold dim"), "")),
        )
    return table


def pairs_table(found: LabelIssues) -> Table:
    """Return the pairs of classes with the most wrong labels."""
    table = _table("\nWhere they are", "given", "should be", "about>")
    names = found.class_names
    for given, true, count in _largest_off_diagonal(found.by_pair):
        if count >= 0.5:
            table.add_row(_name(names[given]), _name(names[true]), f"{count:,.0f}")
    return table


def _table(title: str, *headers: str, padding: PaddingDimensions = (0, 2, 0, 0)) -> Table:
    """Return an empty table without lines: names bold, columns whose header ends in ">" right-aligned."""
    table = Table(title=title, title_justify="left", box=None, padding=padding)
    for header in headers:
        if header.endswith(">"):
            table.add_column(header[:-1], justify="right")
        else:
            table.add_column(header, style="bold")
    return table


def _largest_off_diagonal(matrix: NDArray[np.float64]) -> Iterator[tuple[int, int, float]]:
    """Yield row, column and value of the largest entries outside the diagonal, largest first."""
    off = np.array(matrix)
    np.fill_diagonal(off, 0)
    for place in np.argsort(-off, axis=None)[:_LISTED]:
        row, column = divmod(int(place), len(off))
        yield row, column, float(off[row, column])


def show_notices(out: Console, found: Sequence[Notice]) -> None:
    """Print what is worth knowing, and what to do about it."""
    if found:
        out.print("\n[bold]Worth knowing[/]")
    for notice in found:
        out.print(Padding(f"[yellow]•[/] {escape(notice.message)} [dim]{escape(notice.advice)}[/]", (0, 0, 0, 1)))


def show_next(out: Console, steps: Mapping[str, str]) -> None:
    """Print what to do next: commands, each on a line that can be copied whole with what it is for, and sentences.

    What came by a pipe is gone by then.
    """
    shown = {step: what for step, what in steps.items() if not is_standard_stream(step)}
    if shown:
        out.print("\n[bold]Next[/]")
    for step, what in shown.items():
        out.print(f" {escape(step)}" + (f"   [dim]{what}[/]" if what else ""), soft_wrap=True)


def show_comparison(out: Console, estimates: Mapping[str, TransitionEstimate], level: float) -> None:
    """Print estimates side by side, how far apart they are, and what each estimator does."""
    from dualt.estimators import ESTIMATORS

    out.print()
    out.print(comparison_table(estimates, level))
    out.print(disagreement_table(estimates))
    summaries = Table(box=None, padding=(0, 2, 0, 0), show_header=False)
    for name in filter(ESTIMATORS.__contains__, estimates):
        summaries.add_row(name, Text(ESTIMATORS[name].summary, style="dim"))
    out.print()
    out.print(summaries)


def comparison_table(estimates: Mapping[str, TransitionEstimate], level: float) -> Table:
    """Return every estimator's noise rate with its range and, where they fit, its shaded rates by class."""
    names = next(iter(estimates.values())).class_names
    names = names if len(names) <= WIDE else ()
    title = "Estimators side by side: share of wrong labels" + (", and by class in %" if names else "")
    table = Table(title=title, title_justify="left", box=None, padding=(0, 0))
    table.add_column("estimator  ", style="bold", no_wrap=True)
    table.add_column("wrong", justify="right")
    table.add_column(f"  {level:.0%} range   ", style="dim", no_wrap=True)
    for name in names:
        table.add_column(Text(f"{shorten(name, 5)} "), justify="right", min_width=5)
    for name, estimate in estimates.items():
        low, high = rate_range(estimate, level)
        cells = [shaded(float(rate), diagonal=False) for rate in estimate.noise_rates[: len(names)]]
        table.add_row(f"{name}  ", f"{estimate.noise_rate:.1%}", f"  {low:.1%} – {high:.1%}", *cells)
    return table


def disagreement_table(estimates: Mapping[str, TransitionEstimate]) -> Table:
    """Return the mean row distance Σ|A − B| / C between every two estimates, shaded."""
    names = [f"{name}>" for name in estimates]
    table = _table("\nHow far apart they are: Σ|A − B| / C, from 0 to 2", "", *names, padding=(0, 1))
    for name, a in estimates.items():
        cells = []
        for b in estimates.values():
            distance = float(np.abs(a.transition - b.transition).sum() / len(a.transition))
            style = shaded(distance / 2, diagonal=False).style
            cells.append(Text(f" {distance:.2f} ", style=style if distance else "dim"))
        table.add_row(name, *cells)
    return table


def error_table(estimates: Mapping[str, TransitionEstimate], errors: Mapping[str, float]) -> Table:
    """Return each estimator's error against the known matrix, best first, as a number and a bar."""
    table = _table("", "estimator", "finds wrong>", "error Σ|T − T̂| / C>", "")
    for name in sorted(errors, key=lambda name: errors[name]):
        bar = "█" * max(1, round(40 * errors[name] / max(errors.values())))
        table.add_row(name, f"{estimates[name].noise_rate:.1%}", f"{errors[name]:.3f}", Text(bar, style="blue"))
    return table


def _name(class_name: str) -> Text:
    return Text(shorten(class_name, 24))


def shorten(name: str, width: int = 10) -> str:
    """Return a name that fits a column."""
    name = clean(name).replace("\n", "�").replace("\t", "�")
    return name if len(name) <= width else name[: width - 1] + "…"

"""Matrices, rates and notices as a terminal shows them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from dualt.issues import LabelIssues
    from dualt.results import TransitionEstimate
    from dualt.results.diagnostics import Notice

# A matrix of more classes does not fit a terminal; its largest confusions do.
WIDE = 14
_LISTED = 12


def console() -> Console:
    """Return a console on stdout, wide enough for a matrix where the output is not a terminal."""
    out = Console(highlight=False)
    return out if out.is_terminal else Console(highlight=False, width=120)


def show_estimate(out: Console, estimate: TransitionEstimate, level: float) -> None:
    """Print the headline, the matrix (or its largest confusions) and the notices."""
    low, high = estimate.noise_rate_interval(level)
    out.print(
        f"\n[bold]{estimate.noise_rate:.1%} of the labels are wrong[/] ({level:.0%} interval {low:.1%} to {high:.1%})"
        f"   [dim]{estimate.n_samples:,} rows, {len(estimate.class_names)} classes, estimator {estimate.estimator}[/]\n"
    )
    if len(estimate.class_names) <= WIDE:
        out.print(matrix_table(estimate, level))
    else:
        out.print(rates_table(estimate, level))
        out.print(confusions_table(estimate))
    out.print("\n[dim]Intervals tell what chance does to the estimate, not what poor probabilities do.[/]")
    show_notices(out, estimate.warnings)


def matrix_table(estimate: TransitionEstimate, level: float) -> Table:
    """Return the matrix in per cent, shaded, with each class's noise rate and its interval."""
    names = [shorten(name) for name in estimate.class_names]
    table = Table(title="P(given label | true class), %", title_justify="left", box=None, padding=(0, 0))
    table.add_column("true ╲ given ", justify="right", style="bold")
    for name in names:
        table.add_column(Text(f"{name} "), justify="right", min_width=5)
    table.add_column("  wrong", justify="left", no_wrap=True)
    low, high = estimate.noise_rates_interval(level)
    for row, name in enumerate(names):
        cells = [shaded(value, diagonal=row == column) for column, value in enumerate(estimate.transition[row])]
        wrong = f"  {estimate.noise_rates[row]:6.1%}  [dim]{low[row]:.1%} – {high[row]:.1%}[/]"
        table.add_row(Text(f"{name} "), *cells, wrong)
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
    """Return the noisiest classes with their intervals."""
    low, high = estimate.noise_rates_interval(level)
    table = Table(title="Noisiest classes", title_justify="left", box=None, padding=(0, 2, 0, 0))
    table.add_column("true class", style="bold")
    table.add_column("wrong", justify="right")
    table.add_column(f"{level:.0%} interval", style="dim")
    table.add_column("labels", justify="right")
    for row in np.argsort(-estimate.noise_rates)[:_LISTED]:
        table.add_row(
            Text(shorten(estimate.class_names[row], 24)),
            f"{estimate.noise_rates[row]:.1%}",
            f"{low[row]:.1%} – {high[row]:.1%}",
            f"{estimate.diagnostics.label_counts[row]:,}",
        )
    return table


def confusions_table(estimate: TransitionEstimate) -> Table:
    """Return the largest off-diagonal entries."""
    off = np.array(estimate.transition)
    np.fill_diagonal(off, 0)
    table = Table(title="\nLargest confusions", title_justify="left", box=None, padding=(0, 2, 0, 0))
    table.add_column("true class", style="bold")
    table.add_column("is given as")
    table.add_column("how often", justify="right")
    for place in np.argsort(-off, axis=None)[:_LISTED]:
        true, given = divmod(int(place), len(off))
        names = estimate.class_names
        table.add_row(Text(shorten(names[true], 24)), Text(shorten(names[given], 24)), f"{off[true, given]:.1%}")
    return table


def issues_table(found: LabelIssues, limit: int) -> Table:
    """Return the most suspect labels and the class each should have."""
    table = Table(title="Most suspect", title_justify="left", box=None, padding=(0, 2, 0, 0))
    table.add_column("row", justify="right")
    table.add_column("given", style="bold")
    table.add_column("right with", justify="right")
    table.add_column("should be", style="bold")
    table.add_column("with", justify="right")
    for row in found.indices[:limit]:
        table.add_row(
            str(row),
            Text(shorten(found.class_names[found.given[row]], 24)),
            f"{found.probability_right[row]:.1%}",
            Text(shorten(found.class_names[found.suggested[row]], 24)),
            f"{found.suggested_probability[row]:.1%}",
        )
    return table


def pairs_table(found: LabelIssues, limit: int) -> Table:
    """Return the pairs of classes with the most wrong labels."""
    off = np.array(found.by_pair)
    np.fill_diagonal(off, 0)
    table = Table(title="\nWhere they are", title_justify="left", box=None, padding=(0, 2, 0, 0))
    table.add_column("given", style="bold")
    table.add_column("should be", style="bold")
    table.add_column("about", justify="right")
    for place in np.argsort(-off, axis=None)[:limit]:
        given, true = divmod(int(place), len(off))
        if off[given, true] >= 0.5:
            names = [Text(shorten(found.class_names[c], 24)) for c in (given, true)]
            table.add_row(*names, f"{off[given, true]:,.0f}")
    return table


def show_notices(out: Console, found: Sequence[Notice]) -> None:
    """Print what is worth knowing, and what to do about it."""
    if found:
        out.print("\n[bold]Worth knowing[/]")
    for notice in found:
        out.print(Padding(f"[yellow]•[/] {escape(notice.message)} [dim]{escape(notice.advice)}[/]", (0, 0, 0, 1)))


def show_comparison(out: Console, estimates: Mapping[str, TransitionEstimate], level: float) -> None:
    """Print estimates side by side, how far apart they are, and what each estimator does."""
    from dualt.estimators import ESTIMATORS

    out.print()
    out.print(comparison_table(estimates, level))
    out.print(disagreement_table(estimates))
    out.print()
    out.print(methods_table({name: ESTIMATORS[name].summary for name in estimates if name in ESTIMATORS}))


def comparison_table(estimates: Mapping[str, TransitionEstimate], level: float) -> Table:
    """Return every estimator's noise rate with its interval and, where they fit, its shaded rates by class."""
    names = next(iter(estimates.values())).class_names
    names = names if len(names) <= WIDE else ()
    title = "Estimators side by side: share of wrong labels" + (", and by class in %" if names else "")
    table = Table(title=title, title_justify="left", box=None, padding=(0, 0))
    table.add_column("estimator  ", style="bold", no_wrap=True)
    table.add_column("wrong", justify="right")
    table.add_column(f"  {level:.0%} interval   ", style="dim", no_wrap=True)
    for name in names:
        table.add_column(Text(f"{shorten(name, 5)} "), justify="right", min_width=5)
    for name, estimate in estimates.items():
        low, high = estimate.noise_rate_interval(level)
        cells = [shaded(float(rate), diagonal=False) for rate in estimate.noise_rates[: len(names)]]
        table.add_row(f"{name}  ", f"{estimate.noise_rate:.1%}", f"  {low:.1%} – {high:.1%}", *cells)
    return table


def methods_table(summaries: Mapping[str, str]) -> Table:
    """Return what each estimator does, in a line."""
    table = Table(box=None, padding=(0, 2, 0, 0), show_header=False)
    for name, summary in summaries.items():
        table.add_row(name, Text(summary, style="dim"))
    return table


def disagreement_table(estimates: Mapping[str, TransitionEstimate]) -> Table:
    """Return the mean row distance Σ|A − B| / C between every two estimates, shaded."""
    table = Table(title="\nHow far apart they are: Σ|A − B| / C, from 0 to 2", title_justify="left", box=None)
    table.add_column("", style="bold")
    for name in estimates:
        table.add_column(name, justify="right")
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
    table = Table(box=None, padding=(0, 2, 0, 0))
    table.add_column("estimator", style="bold")
    table.add_column("finds wrong", justify="right")
    table.add_column("error Σ|T − T̂| / C", justify="right")
    table.add_column("")
    for name in sorted(errors, key=lambda name: errors[name]):
        bar = "█" * max(1, round(40 * errors[name] / max(errors.values())))
        table.add_row(name, f"{estimates[name].noise_rate:.1%}", f"{errors[name]:.3f}", Text(bar, style="blue"))
    return table


def shorten(name: str, width: int = 10) -> str:
    """Return a name that fits a column."""
    name = "".join(character if character.isprintable() else "�" for character in name)
    return name if len(name) <= width else name[: width - 1] + "…"

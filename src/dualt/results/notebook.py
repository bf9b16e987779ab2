"""An estimate as notebooks and terminals show it: a headline and a small table, without scripts or style sheets."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

import numpy as np

from dualt.results.readings import basis, finding

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dualt.results.estimate import TransitionEstimate

_SHOWN, _SHOWN_AS_TEXT = 20, 12
_LONGEST_NAME = 16
# A tint over the page's own background, under the page's own text colour: readable on light and dark.
_TINT = "rgba(59, 130, 246, {:.2f})"
_DARKEST = 0.6
_CELL = "padding: .15em .5em; text-align: right; border: 0"
_HEAD = f"{_CELL}; font-weight: 600"


def estimate_text(estimate: TransitionEstimate) -> str:
    """Return the headline and the matrix in per cent, as plain text."""
    chosen = _shown_classes(estimate.noise_rates, _SHOWN_AS_TEXT)
    names = [estimate.class_names[place][:_LONGEST_NAME] for place in chosen]
    cells = [["true \\ given", *names]]
    cells += [
        [name, *(f"{100 * value:.1f}" for value in estimate.transition[place, chosen])]
        for place, name in zip(chosen, names, strict=True)
    ]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    rows = ["  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in cells]
    first = f"{finding(estimate)} ({estimate.n_samples:,} rows, {estimate.estimator})"
    return "\n".join([first, _caption(estimate, chosen), *rows])


def estimate_html(estimate: TransitionEstimate) -> str:
    """Return the headline, the matrix in per cent, and the notices, as one escaped HTML fragment."""
    chosen = _shown_classes(estimate.noise_rates, _SHOWN)
    return (
        '<div style="overflow-x: auto">'
        f"<p><b>{escape(finding(estimate))}</b> ({escape(basis(estimate))}) &middot;"
        f" {estimate.n_samples:,} rows &middot; {escape(estimate.estimator)}</p>"
        f"{_table(estimate, chosen)}{_notices(estimate)}</div>"
    )


def _shown_classes(rates: NDArray[np.float64], limit: int) -> NDArray[np.intp]:
    """Return the classes with the highest noise rates, at most `limit`, in their order."""
    return np.sort(np.argsort(-rates, kind="stable")[:limit])


def _caption(estimate: TransitionEstimate, chosen: NDArray[np.intp]) -> str:
    total = len(estimate.class_names)
    part = "" if len(chosen) == total else f"; the {len(chosen)} of {total} classes whose labels are wrong most often"
    return f"P(given label | true class), %{part}"


def _table(estimate: TransitionEstimate, chosen: NDArray[np.intp]) -> str:
    names = [escape(estimate.class_names[place]) for place in chosen]
    head = "".join(f'<th scope="col" style="{_HEAD}">{name}</th>' for name in names)
    body = "".join(
        f'<tr><th scope="row" style="{_HEAD}">{name}</th>'
        + "".join(_cell(value) for value in estimate.transition[place, chosen])
        + f'<td style="{_CELL}; opacity: .75">{estimate.noise_rates[place]:.1%}</td></tr>'
        for place, name in zip(chosen, names, strict=True)
    )
    return (
        '<table style="border-collapse: collapse; border: 0; color: inherit">'
        f'<caption style="text-align: left">{_caption(estimate, chosen)}</caption>'
        f'<tr><th style="{_HEAD}">true \\ given</th>{head}<th scope="col" style="{_HEAD}">wrong</th></tr>{body}</table>'
    )


def _cell(value: float) -> str:
    return f'<td style="{_CELL}; background: {_TINT.format(_DARKEST * value)}">{100 * value:.1f}</td>'


def _notices(estimate: TransitionEstimate) -> str:
    items = "".join(f"<li>{escape(str(notice))}</li>" for notice in estimate.warnings)
    return f"<ul>{items}</ul>" if items else ""


def coverage(estimate: TransitionEstimate) -> str:
    """Return what the ranges of an estimate cover and what they do not, as terminals and pages say it."""
    if estimate.audit is not None:
        return "Ranges cover chance, and hold whatever the classifier gets wrong: that was measured on checked labels."
    covered, others = (
        ("chance", "noise that depends on the example or poor probabilities")
        if estimate.fit.readings is None
        else ("chance and what else these data can mean", "poor probabilities")
    )
    return (
        f"Ranges cover {covered}; they do not cover {others}. Errors that the classifier repeats, as those of a"
        " labelling rule, show only in checked labels: dualt audit."
    )

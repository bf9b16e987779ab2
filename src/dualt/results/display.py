"""An estimate as notebooks, terminals and matplotlib show it."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dualt.errors import naming_extra
from dualt.validation import ClassNames, check_class_names, check_transition

if TYPE_CHECKING:
    from dualt.results.estimate import TransitionEstimate

_SHOWN, _SHOWN_AS_TEXT, _LONGEST_NAME = 20, 12, 16
# Numbers, and names, are drawn for up to this many classes.
_NUMBERS_UP_TO, _NAMES_UP_TO = 12, 40
# A tint over the page's own background, under the page's own text colour: readable on light and dark.
_TINT, _DARKEST = "rgba(59, 130, 246, {:.2f})", 0.6
_CELL = "padding: .15em .5em; text-align: right; border: 0"
_HEAD = f"{_CELL}; font-weight: 600"


def estimate_text(estimate: TransitionEstimate) -> str:
    """Return the headline and the matrix in per cent, as plain text."""
    chosen = _noisiest(estimate.noise_rates, _SHOWN_AS_TEXT)
    names = [estimate.class_names[place][:_LONGEST_NAME] for place in chosen]
    cells = [["true \\ given", *names]]
    for name, row in zip(names, estimate.transition[np.ix_(chosen, chosen)], strict=True):
        cells.append([name, *(f"{100 * value:.1f}" for value in row)])
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    rows = ["  ".join(map(str.rjust, row, widths)) for row in cells]
    first = f"{estimate.summary} ({estimate.n_samples:,} rows, {estimate.estimator})"
    return "\n".join([first, _caption(estimate, chosen), *rows])


def estimate_html(estimate: TransitionEstimate) -> str:
    """Return the headline, the matrix in per cent, and the notices, as one escaped HTML fragment."""
    chosen = _noisiest(estimate.noise_rates, _SHOWN)
    names = [escape(estimate.class_names[place]) for place in chosen]
    head = "".join(f'<th scope="col" style="{_HEAD}">{name}</th>' for name in names)
    body = "".join(
        f'<tr><th scope="row" style="{_HEAD}">{name}</th>'
        + "".join(
            f'<td style="{_CELL}; background: {_TINT.format(_DARKEST * value)}">{100 * value:.1f}</td>'
            for value in estimate.transition[place, chosen]
        )
        + f'<td style="{_CELL}; opacity: .75">{estimate.noise_rates[place]:.1%}</td></tr>'
        for place, name in zip(chosen, names, strict=True)
    )
    items = "".join(f"<li>{escape(str(notice))}</li>" for notice in estimate.warnings)
    return (
        '<div style="overflow-x: auto">'
        f"<p><b>{escape(estimate.summary)}</b> {estimate.n_samples:,} rows &middot; {escape(estimate.estimator)}</p>"
        '<table style="border-collapse: collapse; border: 0; color: inherit">'
        f'<caption style="text-align: left">{_caption(estimate, chosen)}</caption>'
        f'<tr><th style="{_HEAD}">true \\ given</th>{head}<th scope="col" style="{_HEAD}">wrong</th></tr>{body}</table>'
        + (f"<ul>{items}</ul>" if items else "")
        + "</div>"
    )


def _noisiest(rates: NDArray[np.float64], limit: int) -> NDArray[np.intp]:
    """Return the classes with the highest noise rates, at most `limit`, in their order."""
    return np.sort(np.argsort(-rates, kind="stable")[:limit])


def _caption(estimate: TransitionEstimate, chosen: NDArray[np.intp]) -> str:
    total = len(estimate.class_names)
    part = "" if len(chosen) == total else f"; the {len(chosen)} of {total} classes whose labels are wrong most often"
    return f"P(given label | true class), %{part}"


def plot_transition(
    transition: ArrayLike, class_names: ClassNames | None = None, *, ax: Any = None, title: str | None = None
) -> Any:
    """Draw a transition matrix as a heat map, in per cent for up to twelve classes, and return its Axes.

    Parameters
    ----------
    transition : (n_classes, n_classes)
        Rows are true classes and sum to one.
    class_names
        In the order of the rows; their numbers by default.
    ax
        Where to draw; a new figure by default.

    Examples
    --------
    >>> import dualt
    >>> plot_transition(dualt.noise.pair(3, 0.3), ["cat", "dog", "fox"]).get_xlabel()
    'given label'
    """
    matrix = check_transition(transition)
    n_classes = len(matrix)
    names = check_class_names(range(n_classes) if class_names is None else class_names, n_classes)
    if ax is None:
        with naming_extra("Drawing a transition matrix"):
            from matplotlib import pyplot

        side = float(np.clip(1.6 + 0.42 * n_classes, 3.2, 9))
        ax = pyplot.subplots(figsize=(side * 1.15, side), layout="constrained")[1]
    ax.imshow(matrix, cmap="Blues", vmin=0, vmax=1)
    if n_classes <= _NAMES_UP_TO:
        slanted = {"rotation": 40, "ha": "right", "rotation_mode": "anchor"} if max(map(len, names)) > 4 else {}
        ax.set_xticks(range(n_classes), names, **slanted)
        ax.set_yticks(range(n_classes), names)
    if n_classes <= _NUMBERS_UP_TO:
        for (row, column), value in np.ndenumerate(matrix):
            colour = "white" if value > 0.55 else "black"
            ax.text(column, row, f"{100 * value:.0f}", ha="center", va="center", color=colour, fontsize=9)
    ax.set(xlabel="given label", ylabel="true class")
    if title:
        ax.set_title(title)
    return ax

"""An estimate as notebooks, terminals and matplotlib show it."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from dualt.errors import naming_extra
from dualt.transition import named_classes
from dualt.validation import ClassNames, check_class_names, check_transition

if TYPE_CHECKING:
    from dualt.results.estimate import TransitionEstimate

_SHOWN, _SHOWN_AS_TEXT, _LONGEST_NAME = 20, 12, 16
# Numbers, and names, are drawn for up to this many classes.
_NUMBERS_UP_TO, _NAMES_UP_TO = 12, 40
# A tint that leaves the page's background and text colour as they are: readable on light and dark.
_TINT = "background: rgba(59, 130, 246, {:.2f})"


def estimate_text(estimate: TransitionEstimate) -> str:
    """Return the headline and the matrix in per cent, as plain text."""
    table, caption = _per_cent(estimate, _SHOWN_AS_TEXT)
    first = f"{estimate.summary} ({estimate.n_samples:,} rows, {estimate.estimator})"
    table = table.rename(index=lambda name: name[:_LONGEST_NAME], columns=lambda name: name[:_LONGEST_NAME])
    return "\n".join([first, caption, table.to_string(float_format="{:.1f}".format)])


def estimate_html(estimate: TransitionEstimate) -> str:
    """Return the headline, the matrix in per cent, and the notices, as one escaped HTML fragment."""
    table, caption = _per_cent(estimate, _SHOWN)
    styled = table.style.format("{:.1f}").map(lambda value: _TINT.format(0.006 * value)).set_caption(caption)
    styled = styled.format_index(escape="html").format_index(escape="html", axis="columns")
    items = "".join(f"<li>{escape(str(notice))}</li>" for notice in estimate.warnings)
    return (
        f"<p><b>{escape(estimate.summary)}</b> {estimate.n_samples:,} rows &middot; {escape(estimate.estimator)}</p>"
        f'<div style="overflow-x: auto">{styled.to_html()}</div>{f"<ul>{items}</ul>" if items else ""}'
    )


def _per_cent(estimate: TransitionEstimate, limit: int) -> tuple[Any, str]:
    """Return the rows and columns of at most `limit` classes, the noisiest, as a data frame, and what it shows."""
    chosen = np.sort(np.argsort(-estimate.noise_rates, kind="stable")[:limit])
    total = len(estimate.class_names)
    part = "" if len(chosen) == total else f"; the {len(chosen)} of {total} classes whose labels are wrong most often"
    table = 100 * estimate.to_frame().iloc[chosen, chosen].rename_axis(index=None, columns="true \\ given")
    return table, f"P(given label | true class), %{part}"


def plot_transition(
    transition: ArrayLike, class_names: ClassNames | None = None, *, ax: Any = None, title: str | None = None
) -> Any:
    """Draw a transition matrix as a heat map, in per cent for up to twelve classes, and return its Axes.

    Parameters
    ----------
    transition : (n_classes, n_classes)
        Rows are true classes and sum to one.
    class_names
        In the order of the rows; by default those of an estimate or a data frame, else numbers.
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
    class_names = named_classes(transition) if class_names is None else class_names
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

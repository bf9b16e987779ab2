"""A transition matrix drawn with matplotlib."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dualt.errors import naming_extra
from dualt.validation import ClassNames, check_class_names, check_transition

_NUMBERS_UP_TO = 12
_NAMES_UP_TO = 40


def plot_transition(
    transition: ArrayLike,
    class_names: ClassNames | None = None,
    *,
    ax: Any = None,
    title: str | None = None,
    cmap: str = "Blues",
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
    title, cmap
        Of the picture; the map of colours is matplotlib's.

    Examples
    --------
    >>> import dualt
    >>> plot_transition(dualt.noise.pair(3, 0.3), ["cat", "dog", "fox"]).get_xlabel()
    'given label'
    """
    matrix = check_transition(transition)
    n_classes = len(matrix)
    names = check_class_names(range(n_classes) if class_names is None else class_names, n_classes)
    ax = _axes(ax, "Drawing a transition matrix", side=float(np.clip(1.6 + 0.42 * n_classes, 3.2, 9)))
    ax.imshow(matrix, cmap=cmap, vmin=0, vmax=1)
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


def _axes(ax: Any, what: str, side: float) -> Any:
    """Return the Axes that were given, or those of a new figure."""
    if ax is not None:
        return ax
    with naming_extra(what):
        from matplotlib import pyplot

    return pyplot.subplots(figsize=(side * 1.15, side), layout="constrained")[1]

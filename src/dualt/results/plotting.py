"""Pictures with matplotlib: a transition matrix, and the accuracies of a training run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dualt.errors import InputError, naming_extra
from dualt.validation import ClassNames, check_class_names, check_transition

_NUMBERS_UP_TO = 12
_NAMES_UP_TO = 40
_CURVES = {"validation_accuracy": "validation, given labels", "test_accuracy": "test, clean labels"}


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


def plot_curves(curves: Mapping[str, Sequence[float | None]], *, ax: Any = None, title: str | None = None) -> Any:
    """Draw the accuracy of every epoch, on given and on clean labels where they are known, and return the Axes.

    Parameters
    ----------
    curves
        One list a column, an entry an epoch, with `validation_accuracy` or `test_accuracy` or both, as in
        `RobustNetClassifier.history_["forward"]`, the stages of a `run.json`, and the `curves` of a record.
    ax
        Where to draw; a new figure by default.
    title

    Examples
    --------
    >>> plot_curves({"validation_accuracy": [0.4, 0.6], "test_accuracy": [0.5, 0.8]}).get_xlabel()
    'epoch'
    """
    known = {name: _numbers(curves[name]) for name in _CURVES if name in curves}
    known = {name: values for name, values in known.items() if np.isfinite(values).any()}
    if not known:
        raise InputError(
            f"Expected curves with {' or '.join(_CURVES)}, got {', '.join(curves) or 'none'}, or no figures in them."
        )
    ax = _axes(ax, "Drawing curves", side=4.0)
    for name, values in known.items():
        ax.plot(np.arange(1, len(values) + 1), values, label=_CURVES[name], marker="." if len(values) < 20 else None)
    from matplotlib.ticker import MaxNLocator, PercentFormatter

    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    ax.set(xlabel="epoch", ylabel="accuracy")
    ax.legend(frameon=False)
    if title:
        ax.set_title(title)
    return ax


def _numbers(values: Sequence[float | None]) -> Any:
    return np.array([np.nan if value is None else value for value in values], dtype=np.float64)


def _axes(ax: Any, what: str, side: float) -> Any:
    """Return the Axes that were given, or those of a new figure."""
    if ax is not None:
        return ax
    with naming_extra(what):
        from matplotlib import pyplot

    return pyplot.subplots(figsize=(side * 1.15, side), layout="constrained")[1]

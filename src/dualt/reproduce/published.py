"""The accuracies of the paper's Tables 1 and 2, as printed."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from importlib.resources import files


@dataclass(frozen=True)
class Cell:
    """Which cell of a table: data set, noise, estimator (or none) and method."""

    dataset: str
    noise: str
    estimator: str | None
    method: str


@dataclass(frozen=True)
class Published:
    """Mean accuracy in percent, its deviation over 5 repeats (or none), and how the paper sets it."""

    mean: float
    sd: float | None
    bold: bool
    star: bool


@cache
def published_values() -> dict[Cell, Published]:
    """Return every value of Tables 1 and 2.

    Examples
    --------
    >>> published_values()[Cell("mnist", "sym-20", None, "ce")].mean
    95.77
    """
    text = (files("dualt.reproduce") / "published.json").read_text(encoding="utf-8")
    content = json.loads(text)
    return {
        Cell(row["dataset"], row["noise"], row["estimator"], row["method"]): Published(
            row["mean"], row["sd"], row["bold"], row["star"]
        )
        for row in (*content["table1"], *content["table2"])
    }

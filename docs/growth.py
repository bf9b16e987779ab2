"""The picture of how cost grows, drawn from what `bench/estimate.py` printed."""

from __future__ import annotations

import re
from pathlib import Path

from explained import BLUE, GREY
from matplotlib.figure import Figure

RESULTS = Path(__file__).resolve().parent.parent / "bench" / "results" / "estimate.md"
_ROW = re.compile(r"^\| ([\d,]+) × ([\d,]+) \| ([\d.]+) \| ([\d.]+) \| [\d.]+ \|$", re.MULTILINE)


def growth() -> Figure:
    """Draw the time of finding wrong labels over rows, and over classes at one number of entries."""
    _, by_rows, by_classes, _ = re.split(
        r"^(?:Growth|The same|Time) .*$", RESULTS.read_text(encoding="utf-8"), flags=re.MULTILINE
    )
    figure = Figure(figsize=(7.2, 2.9), layout="constrained")
    for ax, text, place, name in zip(
        figure.subplots(1, 2), (by_rows, by_classes), (0, 1), ("rows of 10 classes", "classes of ten million entries"),
        strict=True,
    ):  # fmt: skip
        found = [tuple(float(cell.replace(",", "")) for cell in row) for row in _ROW.findall(text)]
        sizes, ours, peers = ([row[column] for row in found] for column in (place, 2, 3))
        ax.loglog(sizes, peers, color=GREY, marker="o", label="cleanlab")
        ax.loglog(sizes, ours, color=BLUE, marker="o", label="dualt")
        ax.loglog(sizes, [size / sizes[0] for size in sizes], color=GREY, ls=":", label="linear")
        ax.set(xlabel=name, ylabel="time, the first as 1")
    figure.axes[0].legend()
    return figure


PICTURES = (growth,)

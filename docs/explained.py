"""The pictures of the explanation pages, each computed from what it shows.

Backgrounds are transparent and colours of middle brightness, so that one file serves light and dark pages.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

import dualt
from dualt.files import atomic_write

FOLDER = Path(__file__).parent / "pictures"
BLUE, ORANGE, GREEN, RED, GREY = "#3b82f6", "#e8833a", "#2a9d67", "#e0524a", "#7d838c"
_STYLE = {
    "font.size": 10,
    "font.family": "sans-serif",
    "svg.fonttype": "none",
    "svg.hashsalt": "dualt",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
    "savefig.transparent": True,
    **dict.fromkeys(("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color"), GREY),
}


def draw_all(pictures: Iterable[Callable[[], Figure | None]]) -> None:
    """Draw pictures into docs/pictures; one whose data are not here stays as it is."""
    FOLDER.mkdir(exist_ok=True)
    for draw in pictures:
        with mpl.rc_context(_STYLE):
            figure = draw()
            if figure is None:
                continue
            with atomic_write(FOLDER / f"{draw.__name__.replace('_', '-')}.svg", "wb") as stream:
                # No date: the same numbers give the same file.
                figure.savefig(stream, format="svg", metadata={"Date": None})


def matrix() -> Figure:
    """Draw a matrix of three classes and what it does to a hundred examples of each."""
    transition = np.array([[0.80, 0.20, 0.00], [0.05, 0.90, 0.05], [0.00, 0.30, 0.70]])
    names = ["cat", "dog", "fox"]
    figure = Figure(figsize=(7.2, 2.9), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(1, 1.5))
    dualt.plot_transition(transition, names, ax=left, title="T, in per cent")
    start = np.zeros(3)
    for place, (name, colour) in enumerate(zip(names, (BLUE, ORANGE, GREEN), strict=True)):
        right.barh(names, 100 * transition[:, place], left=start, color=colour, label=f"called {name}", height=0.6)
        start += 100 * transition[:, place]
    right.invert_yaxis()
    right.set(xlabel="labels of 100 examples of each true class", xlim=(0, 100))
    figure.legend(*right.get_legend_handles_labels(), loc="outside upper right", ncols=3)
    return figure


def anchors() -> Figure:
    """Draw a clean posterior, the noisy one, and where the rows of T are read off it."""
    transition = np.array([[0.8, 0.2], [0.3, 0.7]])
    x = np.linspace(-5, 5, 400)
    clean = 1 / (1 + np.exp(-2 * x))
    noisy = np.column_stack([1 - clean, clean]) @ transition
    figure = Figure(figsize=(7.2, 3.2), layout="constrained")
    ax = figure.subplots()
    ax.plot(x, clean, color=GREY, linestyle="--", label="P(true class is 1 | x)")
    ax.plot(x, noisy[:, 1], color=BLUE, linewidth=2, label="P(given label is 1 | x)")
    for place, row in ((-4.6, 0), (4.6, 1)):
        ax.plot(place, transition[row, 1], "o", color=ORANGE, markersize=8)
        ax.annotate(
            f"anchor of class {row}:\nT[{row}, 1] = {transition[row, 1]}",
            (place, transition[row, 1]),
            xytext=(place * 0.62, transition[row, 1] + (0.14 if row == 0 else -0.22)),
            ha="center",
            color=ORANGE,
            arrowprops={"arrowstyle": "-", "color": ORANGE},
        )
    ax.set(xlabel="x", ylabel="probability", ylim=(-0.02, 1.02))
    ax.legend(loc="upper left")
    return figure


def two_readings() -> Figure:
    """Draw two worlds that give the same labels: a sure class with noise, an unsure one without."""
    x = np.linspace(-4, 4, 300)
    sure = 1 / (1 + np.exp(-3 * x))
    noise = dualt.noise.symmetric(2, 0.25)
    seen = np.column_stack([1 - sure, sure]) @ noise
    figure = Figure(figsize=(7.2, 2.9), layout="constrained")
    panels = figure.subplots(1, 2, sharey=True)
    for ax, clean, title in zip(
        panels,
        (sure, seen[:, 1]),
        ("the class is clear, 25% wrong labels", "the class is unsure, none wrong"),
        strict=True,
    ):
        ax.plot(x, seen[:, 1], color=BLUE, linewidth=5, alpha=0.5, label="P(given label is 1 | x)")
        ax.plot(x, clean, color=ORANGE, linestyle="--", label="P(true class is 1 | x)")
        ax.set_title(title, fontsize=10)
        ax.set_xlabel("x")
    panels[0].set_ylabel("probability")
    panels[0].legend(loc="upper left", fontsize=9)
    return figure


def sample(n_samples: int, seed: int, spread: float = 2.6) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return exact clean posteriors of five classes on a circle, and the true classes."""
    rng = np.random.default_rng(seed)
    turn = 2 * np.pi * np.arange(5) / 5
    centres = spread * np.column_stack([np.cos(turn), np.sin(turn)])
    true = rng.integers(5, size=n_samples)
    points = centres[true] + rng.normal(size=(n_samples, 2))
    logits = -0.5 * ((points[:, None] - centres) ** 2).sum(axis=2)
    clean = np.exp(logits - logits.max(axis=1, keepdims=True))
    return clean / clean.sum(axis=1, keepdims=True), true


def sharpness() -> Figure:
    """Draw each estimator's error as exact probabilities are made less, and more, confident than they should be."""
    transition = dualt.noise.pair(5, 0.3)
    clean, true = sample(20_000, seed=0)
    given = dualt.noise.corrupt(true, transition, random_state=1)
    powers = np.array([0.5, 0.7, 1, 1.5, 2, 3, 5, 8, 12])
    figure = Figure(figsize=(7.2, 3.4), layout="constrained")
    ax = figure.subplots()
    for estimator, colour in (("t", GREY), ("dual-t", BLUE), ("spade", ORANGE), ("clean-count", GREEN)):
        errors = []
        for power in powers:
            probs = (clean @ transition) ** power
            found = dualt.estimate_transition(probs / probs.sum(axis=1, keepdims=True), given, estimator)
            errors.append(dualt.l1_error(found.transition, transition, normalize=True))
        ax.plot(powers, errors, color=colour, marker="o", markersize=4, label=estimator)
    ax.axvline(1, color=GREY, linewidth=0.8, linestyle=":")
    ax.set(
        xscale="log", xlabel="confidence: the exact probabilities to this power", ylabel="Σ|T − T̂| / C", ylim=(0, None)
    )
    ax.set_xticks(powers, [f"{power:g}" for power in powers])
    ax.minorticks_off()
    ax.annotate("exact", (1, ax.get_ylim()[1]), ha="center", va="bottom", fontsize=9)
    figure.legend(loc="outside upper center", ncols=4)
    return figure


def intervals() -> Figure:
    """Draw the intervals of one entry over many samples: where they cover, and where bias makes all of them miss."""
    transition = dualt.noise.pair(5, 0.3)
    figure = Figure(figsize=(7.2, 3.2), layout="constrained")
    panels = figure.subplots(1, 2, sharey=True)
    for ax, estimator in zip(panels, ("clean-count", "dual-t"), strict=True):
        covered = 0
        for number in range(30):
            clean, true = sample(2_000, seed=number, spread=5.0)
            given = dualt.noise.corrupt(true, transition, random_state=1_000 + number)
            estimate = dualt.estimate_transition(clean @ transition, given, estimator)
            low, high = (bound[0, 1] for bound in estimate.confidence_interval())
            hit = low <= transition[0, 1] <= high
            covered += hit
            ax.plot([number, number], [low, high], color=BLUE if hit else RED, linewidth=2)
            ax.plot(number, estimate.transition[0, 1], ".", color=BLUE if hit else RED)
        ax.axhline(transition[0, 1], color=GREY, linewidth=1, linestyle="--")
        ax.set_title(f"{estimator}: {covered} of 30 cover the truth", fontsize=10)
        ax.set_xlabel("sample")
    panels[0].set_ylabel("T[0, 1]")
    return figure


PICTURES = (matrix, anchors, two_readings, sharpness, intervals)

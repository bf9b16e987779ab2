"""The pictures of the page on real labels, each computed from what it shows.

That of CIFAR-10N is drawn where its file is: in the folder $DUALT_REAL_NOISE, else ../shared/data/real-noise.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
from explained import BLUE, GREY, ORANGE, RED
from matplotlib.figure import Figure
from numpy.typing import NDArray
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression

import dualt
from dualt.crossfit import out_of_fold_probabilities

ROOT = Path(__file__).resolve().parent.parent
REAL = Path(os.environ.get("DUALT_REAL_NOISE") or ROOT.parent / "shared" / "data" / "real-noise")
N_PARTS = 10


def hard_or_noisy() -> Figure:
    """Draw two worlds that give the same labels: hard examples with even noise, clear ones whose noise grows."""
    x = np.linspace(-3, 3, 601)
    unsure = 1 / (1 + np.exp(-2 * x))
    seen = 0.9 * unsure + 0.1 * (1 - unsure)
    growing = np.minimum(seen, 1 - seen)
    figure = Figure(figsize=(7.2, 3.4), layout="constrained")
    panels = figure.subplots(1, 2, sharey=True)
    for ax, clean, wrong, title in zip(
        panels,
        (unsure, (x > 0).astype(float)),
        (np.full_like(x, 0.1), growing),
        ("hard examples, even noise", "clear classes, noise that grows"),
        strict=True,
    ):
        ax.plot(x, seen, color=BLUE, linewidth=5, alpha=0.5, label="P(given label is 1 | x): what data show")
        ax.plot(x, clean, color=ORANGE, linestyle="--", label="P(true class is 1 | x)")
        ax.plot(x, wrong, color=RED, label="P(label is wrong | x)")
        ax.set_title(f"{title}:\n{100 * wrong.mean():.0f} in 100 labels are wrong", fontsize=10)
        ax.set_xlabel("x")
    panels[0].set_ylabel("probability")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=3, fontsize=9)
    return figure


def noise_by_confidence() -> Figure | None:
    """Draw, from unsure to sure, the labels that differ from the prediction and those that are wrong."""
    if not (REAL / "cifar10n-aggregate.npz").exists():
        return None
    figure = Figure(figsize=(7.2, 3.2), layout="constrained")
    panels = figure.subplots(1, 3, sharey=True)
    for ax, (title, probs, given, clean) in zip(panels, (*made(), people()), strict=True):
        parts = np.array_split(np.argsort(probs.max(axis=1), kind="stable"), N_PARTS)
        differ = probs.argmax(axis=1) != given
        share = 100 * (np.arange(N_PARTS) + 0.5) / N_PARTS
        ax.plot(share, [100 * differ[rows].mean() for rows in parts], color=BLUE, label="differ from the prediction")
        ax.plot(share, [100 * (given != clean)[rows].mean() for rows in parts], color=RED, label="are wrong")
        ax.axhline(100 * (given != clean).mean(), color=GREY, linewidth=0.8, linestyle=":")
        ax.set_title(title, fontsize=10)
        ax.set_xlim(0, 100)
        ax.set_xticks([15, 88], ["least sure", "surest"])
        ax.tick_params(axis="x", length=0)
    panels[0].set(ylabel="labels in 100", ylim=(0, None))
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
    return figure


def made() -> list[tuple[str, NDArray[Any], NDArray[Any], NDArray[Any]]]:
    """Return a table of examples with both noises of the same rate, and a classifier's out-of-fold probabilities."""
    features, clean = make_classification(
        12_000, n_features=20, n_informative=12, n_classes=5, n_clusters_per_class=1, class_sep=1.1, random_state=3
    )
    by_class = dualt.noise.corrupt(clean, dualt.noise.symmetric(5, 0.15))
    by_example = dualt.noise.weak_annotators(features, clean, 0.15).noisy_labels
    return [
        (title, out_of_fold_probabilities(LogisticRegression(), features, given), given, clean)
        for title, given in (("made: by class alone", by_class), ("made: weak annotators", by_example))
    ]


def people() -> tuple[str, NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Return CIFAR-10N."""
    data = np.load(REAL / "cifar10n-aggregate.npz", allow_pickle=False)
    return "people: CIFAR-10N", data["pred_probs"].astype(np.float32), data["given"], data["clean"]


PICTURES = (hard_or_noisy, noise_by_confidence)

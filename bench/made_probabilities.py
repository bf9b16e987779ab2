"""Probabilities that `dualt` makes itself, beside plain alternatives; and one training run beside folds.

    python bench/made_probabilities.py [texts] [tables] [images] [dynamics]

Every row: how often the most probable class is the true one, and the average precision with which wrong labels are
found. Real labels are read from $DUALT_REAL_NOISE, images from $DUALT_DATA.
"""

from __future__ import annotations

import csv
import importlib
import inspect
import pkgutil
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine, make_moons
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from worlds import REAL, drawn_matrix, load, read

import dualt
from dualt import noise
from dualt.transition import l1_error

PACKAGES = ("numpy", "scipy", "sklearn", "pandas", "asyncio", "email", "xml")


def docstrings(most: int = 300) -> tuple[list[str], NDArray[Any]]:
    """Return the beginnings of docstrings, the class of each being its package, whose name is taken out."""
    found: dict[str, str] = {}
    for package in PACKAGES:
        own: dict[str, str] = {}
        top = importlib.import_module(package)
        names = [package, *(module.name for module in pkgutil.iter_modules(top.__path__, f"{package}."))]
        for name in names:
            if any(word in name for word in ("test", "._", "main", "windows")):
                continue
            for thing in list(vars(importlib.import_module(name)).values()):
                text = inspect.getdoc(thing) if inspect.isroutine(thing) or inspect.isclass(thing) else None
                if text and len(text) > 30 and str(getattr(thing, "__module__", "")).startswith(package):
                    own[" ".join(text.split())[:300].lower().replace(package, "")] = package
        found |= dict(list(own.items())[:most])
    order = np.random.default_rng(0).permutation(len(found))
    texts, labels = list(found), np.array(list(found.values()))
    return [texts[row] for row in order], np.unique(labels[order], return_inverse=True)[1]


def hausa() -> tuple[list[str], NDArray[Any], NDArray[Any]]:
    with read("hausa-news.tsv").open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream, delimiter="\t", quoting=csv.QUOTE_NONE))
    names = sorted({row[key] for row in rows for key in ("given", "clean")})
    given, clean = (np.array([names.index(row[key]) for row in rows]) for key in ("given", "clean"))
    return [row["text"] for row in rows], given, clean


def noisy(clean: NDArray[Any], rate: float = 0.2) -> NDArray[Any]:
    return noise.corrupt(clean, noise.symmetric(int(clean.max()) + 1, rate), random_state=0)


def compare(name: str, data: Any, given: NDArray[Any], clean: NDArray[Any], others: dict[str, Any]) -> None:
    """Print a row of the table for the model that is chosen, and one for each alternative."""
    for label, model in {"cross_fit": None, **others}.items():
        found = dualt.cross_fit(data, given, model=model)
        chosen = found.model.split("(")[0] if model is None else ""
        show(name, f"{label} {chosen}", found.pred_probs, given, clean)


def show(name: str, what: str, source: Any, given: NDArray[Any], clean: NDArray[Any]) -> None:
    probs = source.mean_probs if isinstance(source, dualt.TrainingDynamics) else source
    issues = dualt.find_label_issues(source, given)
    precision = average_precision_score(given != clean, -issues.probability_right)
    right = (probs.argmax(axis=1) == clean).mean()
    estimate = dualt.estimate_transition(probs, given)
    error = l1_error(estimate.transition, drawn_matrix(clean, given, probs.shape[1]), normalize=True)
    print(f"| {name} | {what} | {right:.3f} | {precision:.3f} | {error:.3f} |", flush=True)


def texts() -> None:
    words, parts = TfidfVectorizer(), TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 4), min_df=2)
    others = {
        "words, C=1": make_pipeline(words, LogisticRegression()),
        "words, C=10": make_pipeline(words, LogisticRegression(C=10, max_iter=1000)),
        "parts of words, C=1": make_pipeline(parts, LogisticRegression(max_iter=1000)),
    }
    found, clean = docstrings()
    compare(f"docstrings ({len(clean):,}), 20 % noise", found, noisy(clean), clean, others)
    found, given, clean = hausa()
    compare("Hausa, 20 % noise", found, noisy(clean), clean, others)
    compare("Hausa, a rule's labels", found, given, clean, others)


def tables() -> None:
    others = {
        "LogisticRegression": make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)),
        "RandomForest": RandomForestClassifier(random_state=0),
        "HistGradientBoosting": HistGradientBoostingClassifier(random_state=0),
    }
    loaders: dict[str, Callable[[], Any]] = {
        "iris": lambda: load_iris(return_X_y=True), "wine": lambda: load_wine(return_X_y=True),
        "breast cancer": lambda: load_breast_cancer(return_X_y=True),
        "moons": lambda: make_moons(2000, noise=0.2, random_state=0),
    }  # fmt: skip
    for name, loader in loaders.items():
        features, clean = loader()
        compare(f"{name}, 20 % noise", features, noisy(clean), clean, others)


def images(rows: int = 2000) -> None:
    plain = make_pipeline(StandardScaler(), LogisticRegression(C=0.01, max_iter=1000))
    for name in ("mnist", "fashion-mnist", "cifar10"):
        data = dualt.datasets.load_dataset(name)
        chosen = np.sort(np.random.default_rng(7).permutation(len(data.train_y))[:rows])
        pixels, clean = np.asarray(data.train_x[chosen]), data.train_y[chosen]
        given = noisy(clean)
        show(f"{name}, 20 % noise", "cross_fit", dualt.cross_fit(pixels, given).pred_probs, given, clean)
        flat = dualt.cross_fit(pixels.reshape(rows, -1), given, model=plain)
        show(f"{name}, 20 % noise", "pixels", flat.pred_probs, given, clean)


def trained(epochs: int, seed: int = 0) -> Any:
    return MLPClassifier((128,), batch_size=64, max_iter=epochs, n_iter_no_change=epochs, random_state=seed)


def problems() -> Iterator[tuple[str, NDArray[Any], NDArray[Any], NDArray[Any]]]:
    if (REAL / "labelme.npz").exists():
        data = read("labelme.npz")
        features, votes, clean = (
            StandardScaler().fit_transform(data["features"]),
            data["votes"],
            data["clean"].astype(int),
        )
        rng = np.random.default_rng(0)
        yield "LabelMe, one vote", features, np.array([int(rng.choice(row[row >= 0])) for row in votes]), clean
        counts = np.stack([(votes == label).sum(axis=1) for label in range(clean.max() + 1)], axis=1)
        yield "LabelMe, majority", features, counts.argmax(axis=1), clean
    features, clean = load_digits(return_X_y=True)
    yield "digits, 20 % noise", features / 16, noisy(clean), clean
    features, clean = load("mnist", 4000)
    yield "MNIST (4,000), 20 % noise", features, noisy(clean), clean
    yield "MNIST (4,000), 50 % noise", features, noisy(clean, 0.5), clean
    pairs = noise.corrupt(clean, noise.pair(10, 0.4), random_state=0)
    yield "MNIST (4,000), 40 % to the next class", features, pairs, clean


def dynamics(epochs: int = 30) -> None:
    """Train one network for `epochs`, recorded after each; beside it folds of the same network, short and long."""
    for name, features, given, clean in problems():
        recorded = dualt.TrainingDynamics(len(given))
        network = trained(1)
        for epoch in range(epochs):
            network.partial_fit(features, given, classes=np.unique(given))
            recorded.record(epoch, network.predict_proba(features))
        show(name, f"one run, {epochs} epochs", recorded, given, clean)
        show(name, "its end", network.predict_proba(features), given, clean)
        for short in (5, epochs):
            found = dualt.cross_fit(features, given, model=trained(short))
            show(name, f"5 folds, {short} epochs", found.pred_probs, given, clean)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    parts = {"texts": texts, "tables": tables, "images": images, "dynamics": dynamics}
    print("| data | probabilities | right | AP | error of T |\n| --- | --- | --- | --- | --- |")
    for part in sys.argv[1:] or parts:
        parts[part]()

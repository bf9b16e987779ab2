"""How near each estimator comes to the floor: mean row error Σ|T − T̂| / C beside that of counting clean labels.

    python bench/floor.py [--quick] [--seeds 100 101] [--rows 12000] [--data digits tabular] [--out floor.json]

Real images are used where they are installed. Probabilities are out-of-fold; seeds are none that anything was
tuned on. Results are written as they come, and a run that finds some in its file goes on from there.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from time import process_time
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import track
from rich.table import Table
from sklearn.datasets import load_digits, make_classification
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from dualt import noise
from dualt.crossfit import out_of_fold_probabilities
from dualt.datasets import load_dataset
from dualt.errors import FileError
from dualt.estimators import ESTIMATORS, NoisyPosterior
from dualt.files import atomic_write
from dualt.transition import l1_error

Data: TypeAlias = tuple[NDArray[Any], NDArray[np.int64]]
Record: TypeAlias = dict[str, Any]

NOISES = ("clean", "sym-0.2", "sym-0.5", "pair-0.45", "random-0.3")
FLOOR = "oracle"


def digits(_: int) -> Data:
    features, labels = load_digits(return_X_y=True)
    return features, labels


def tabular(rows: int) -> Data:
    features, labels = make_classification(
        rows, n_features=20, n_informative=10, n_classes=6, n_clusters_per_class=1, class_sep=1.5, random_state=7
    )
    return features, labels


def images(name: str) -> Callable[[int], Data]:
    def load(rows: int) -> Data:
        data = load_dataset(name)
        chosen = np.random.default_rng(7).permutation(len(data.train_y))[:rows]
        pixels = np.asarray(data.train_x[np.sort(chosen)], np.float32) / np.float32(255)
        features = patch_features(pixels) if pixels.ndim == 4 else pixels.reshape(len(pixels), -1)
        return features, data.train_y[np.sort(chosen)]

    return load


def patch_features(pixels: NDArray[np.float32], n_filters: int = 160, size: int = 6) -> NDArray[np.float32]:
    """Describe colour images by how they answer to random whitened patches of themselves, pooled by quadrant.

    A layer of convolution without training (Coates, Ng and Lee 2011): pixels alone tell colour photographs
    too poorly apart for any estimator.
    """
    windows = np.lib.stride_tricks.sliding_window_view(pixels, (size, size), axis=(2, 3))[:, :, ::2, ::2]
    windows = windows.transpose(0, 2, 3, 1, 4, 5)
    side = windows.shape[1]
    image, row, column = np.random.default_rng(7).integers((len(pixels), side, side), size=(20_000, 3)).T
    some = _normalized(windows[image, row, column].reshape(len(image), -1))
    values, vectors = np.linalg.eigh(np.cov(some.T))
    whiten = (vectors / np.sqrt(values + 0.1)) @ vectors.T
    filters = (some[:n_filters] - some.mean(axis=0)) @ whiten
    filters /= np.linalg.norm(filters, axis=1, keepdims=True)
    back = (whiten @ filters.T).astype(np.float32)
    halves = (slice(None, side // 2), slice(side // 2, None))
    features = np.empty((len(pixels), 4, n_filters), np.float32)
    for own, patches in zip(features, windows, strict=True):
        centred = _normalized(patches.reshape(side * side, -1)) - some.mean(axis=0)
        answers = np.abs(centred @ back).reshape(side, side, -1)
        own[:] = [answers[a, b].mean(axis=(0, 1)) for a in halves for b in halves]
    return features.reshape(len(pixels), -1)


def _normalized(patches: NDArray[np.float32]) -> NDArray[np.float32]:
    centred = patches - patches.mean(axis=1, keepdims=True)
    return np.asarray(centred / np.sqrt(centred.var(axis=1, keepdims=True) + 0.01))


DATA: dict[str, Callable[[int], Data]] = {
    "digits": digits,
    "tabular": tabular,
    "mnist": images("mnist"),
    "fashion-mnist": images("fashion-mnist"),
    "cifar10": images("cifar10"),
}


def probabilities(features: NDArray[Any], noisy: NDArray[np.int64], seed: int) -> NDArray[np.float64]:
    """Return out-of-fold probabilities of a small network that stops when held-out labels say so."""
    network = MLPClassifier((128,), alpha=1e-2, early_stopping=True, n_iter_no_change=5, max_iter=40, random_state=seed)
    n_components = min(100, features.shape[1])
    classifier = make_pipeline(StandardScaler(), PCA(n_components, random_state=0), network)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return out_of_fold_probabilities(classifier, features, noisy, cv=3, random_state=seed)


def measure(name: str, data: Data, noise_name: str, seed: int) -> Iterator[Record]:
    """Yield the error of every estimator on one data set with one noise."""
    features, clean = data
    rng = np.random.default_rng([seed, NOISES.index(noise_name)])
    truth = noise.from_name(noise_name, int(clean.max()) + 1, rng)
    noisy = noise.corrupt(clean, truth, rng)
    probs = probabilities(features, noisy, seed)
    posterior = NoisyPosterior.from_arrays(probs, noisy)
    accuracy = float((probs.argmax(axis=1) == clean).mean())
    for method, entry in ESTIMATORS.items():
        options = {"clean_labels": clean} if entry.needs_clean_labels else {}
        began = process_time()
        error = l1_error(entry.function(posterior, **options).transition, truth, normalize=True)
        yield {
            "data": name,
            "noise": noise_name,
            "seed": seed,
            "method": method,
            "error": error,
            "seconds": round(process_time() - began, 3),
            "accuracy": accuracy,
            "rows": len(clean),
        }


def summarize(records: list[Record], by: str) -> Table:
    """Return mean (worst) errors of every estimator for each value of `by`, and over all."""
    columns = list(dict.fromkeys(record[by] for record in records))
    table = Table("estimator", *columns, "all", "seconds", title="Σ|T − T̂| / C, mean (worst)", title_justify="left")
    for method in dict.fromkeys(record["method"] for record in records):
        own = [record for record in records if record["method"] == method]
        groups = [[r["error"] for r in own if r[by] == column] for column in columns]
        cells = [f"{np.mean(errors):.3f} ({max(errors):.2f})" for errors in (*groups, [r["error"] for r in own])]
        name = f"{method} (floor)" if method == FLOOR else method
        table.add_row(name, *cells, f"{np.mean([r['seconds'] for r in own]):.2f}")
    return table


def load(name: str, rows: int, console: Console) -> Data | None:
    """Load a data set, or say that it is not installed."""
    try:
        return DATA[name](rows)
    except FileError as cause:
        console.print(f"{name} is left out: {cause}")
        return None


def main() -> None:
    """Measure, write and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="digits and a small table, one seed")
    parser.add_argument("--data", nargs="+", choices=DATA, default=list(DATA))
    parser.add_argument("--seeds", nargs="+", type=int, default=[100, 101])
    parser.add_argument("--rows", type=int, default=12_000, help="of each data set but digits")
    parser.add_argument("--out", type=Path, help="JSON file of the results")
    options = parser.parse_args()
    if options.quick:
        options.data, options.seeds, options.rows = ["digits", "tabular"], options.seeds[:1], 4_000
    console = Console(width=160)
    records: list[Record] = json.loads(options.out.read_text()) if options.out and options.out.exists() else []
    done = {(r["data"], r["noise"], r["seed"]) for r in records}
    loaded = {name: load(name, options.rows, console) for name in options.data}
    data = {name: found for name, found in loaded.items() if found is not None}
    runs = [(name, kind, seed) for name in data for kind in NOISES for seed in options.seeds]
    for name, kind, seed in track([run for run in runs if run not in done], console=console):
        records += measure(name, data[name], kind, seed)
        if options.out:
            with atomic_write(options.out) as stream:
                json.dump(records, stream, indent=1)
    for by in ("data", "noise"):
        console.print(summarize(records, by))


if __name__ == "__main__":
    main()

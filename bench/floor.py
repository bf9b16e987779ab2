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
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from measure import machine
from numpy.typing import NDArray
from rich.box import MARKDOWN
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
from dualt.crossfit import ImageFeatures, out_of_fold_probabilities
from dualt.datasets import load_dataset
from dualt.errors import FileError
from dualt.estimators import ESTIMATORS
from dualt.files import atomic_write
from dualt.rows import as_posterior
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
        pixels, labels = _subset(name, rows)
        return pixels.reshape(len(pixels), -1), labels

    return load


def patch_features(pixels: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return how images (n, channels, side, side) answer to 400 filters learnt from their patches."""
    return ImageFeatures(n_filters=400, n_components=300).fit_transform(pixels)


def cifar10(rows: int) -> Data:
    """Take twice the rows, and features learnt without labels: pixels tell photographs too poorly apart."""
    pixels, labels = _subset("cifar10", 2 * rows)
    return patch_features(pixels), labels


def _subset(name: str, rows: int) -> Data:
    data = load_dataset(name)
    chosen = chosen_rows(len(data.train_y), rows)
    return np.asarray(data.train_x[chosen], np.float32) / np.float32(255), data.train_y[chosen]


def chosen_rows(total: int, rows: int) -> NDArray[np.int64]:
    """Return the numbers of the images that take part."""
    return np.sort(np.random.default_rng(7).permutation(total)[:rows])


DATA: dict[str, Callable[[int], Data]] = {
    "digits": digits,
    "tabular": tabular,
    "mnist": images("mnist"),
    "fashion-mnist": images("fashion-mnist"),
    "cifar10": cifar10,
}


def network(name: str, n_features: int, seed: int) -> Any:
    """Return a small network that stops when held-out noisy labels say so."""
    stopping = {"early_stopping": True, "n_iter_no_change": 5, "max_iter": 40, "random_state": seed}
    if name == "cifar10":
        return MLPClassifier((256,), alpha=1, **stopping)
    components = PCA(min(100, n_features), random_state=0)
    return make_pipeline(StandardScaler(), components, MLPClassifier((128,), alpha=1e-2, **stopping))


class Problem(NamedTuple):
    """Out-of-fold probabilities, given labels and true classes of some rows, and the matrix to be found."""

    probs: NDArray[Any]
    given: NDArray[Any]
    clean: NDArray[Any]
    truth: NDArray[np.float64]


def posterior_of(name: str, features: NDArray[Any], given: NDArray[Any], seed: int) -> NDArray[np.float64]:
    """Return out-of-fold probabilities of the small network of a data set."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        classifier = network(name, features.shape[1], seed)
        return out_of_fold_probabilities(classifier, features, given, cv=3, random_state=seed)


def class_conditional(name: str, data: Data, noise_name: str, seed: int) -> Problem:
    """Return a data set with noise that depends on the class alone; the truth is the matrix it was drawn with."""
    features, clean = data
    rng = np.random.default_rng([seed, NOISES.index(noise_name)])
    truth = noise.from_name(noise_name, int(clean.max()) + 1, rng)
    given = noise.corrupt(clean, truth, rng)
    return Problem(posterior_of(name, features, given, seed), given, clean, truth)


def measure(name: str, data: Data, noise_name: str, seed: int) -> Iterator[Record]:
    """Yield the error of every estimator on one data set with one noise."""
    probs, given, clean, truth = class_conditional(name, data, noise_name, seed)
    posterior = as_posterior(probs, given)
    accuracy = float((probs.argmax(axis=1) == clean).mean())
    for estimator, entry in ESTIMATORS.items():
        if estimator == "views":
            continue  # needs several models
        options = {"clean_labels": clean} if entry.needs_clean_labels else {}
        began = process_time()
        error = l1_error(entry.function(posterior, **options).transition, truth, normalize=True)
        yield {
            "data": name,
            "noise": noise_name,
            "seed": seed,
            "estimator": estimator,
            "error": error,
            "seconds": round(process_time() - began, 3),
            "accuracy": accuracy,
            "rows": len(clean),
        }


def summarize(records: list[Record], by: str) -> Table:
    """Return mean (worst) errors of every estimator for each value of `by`, and over all."""
    columns = list(dict.fromkeys(record[by] for record in records))
    table = Table("estimator", *columns, "all", "seconds", box=MARKDOWN)
    for estimator in dict.fromkeys(record["estimator"] for record in records):
        own = [record for record in records if record["estimator"] == estimator]
        groups = [[r["error"] for r in own if r[by] == column] for column in columns]
        cells = [f"{np.mean(errors):.3f} ({max(errors):.2f})" for errors in (*groups, [r["error"] for r in own])]
        name = f"{estimator} (floor)" if estimator == FLOOR else estimator
        table.add_row(name, *cells, f"{np.mean([r['seconds'] for r in own]):.2f}")
    return table


def accuracies(records: list[Record]) -> Table:
    """Return the share of examples whose predicted class is the true one, for each noise and data set."""
    data, kinds = (list(dict.fromkeys(record[key] for record in records)) for key in ("data", "noise"))
    table = Table("accuracy", *data, box=MARKDOWN)
    for kind in kinds:
        found = [[r["accuracy"] for r in records if (r["data"], r["noise"]) == (name, kind)] for name in data]
        table.add_row(kind, *(f"{np.mean(values):.3f}" if values else "" for values in found))
    return table


def run(options: argparse.Namespace, console: Console) -> list[Record]:
    """Measure what the file of results lacks, and return all of them."""
    records: list[Record] = json.loads(options.out.read_text()) if options.out and options.out.exists() else []
    done = {(r["data"], r["noise"], r["seed"]) for r in records}
    for name in options.data:
        left = [(kind, seed) for kind in NOISES for seed in options.seeds if (name, kind, seed) not in done]
        data = load(name, options.rows, console) if left else None
        if data is None:
            continue
        for kind, seed in track(left, name, console=Console(stderr=True)):
            records += measure(name, data, kind, seed)
            if options.out:
                with atomic_write(options.out) as stream:
                    json.dump(records, stream, indent=1)
    return records


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
    parser.add_argument("--rows", type=int, default=12_000, help="of each data set but digits; twice that of CIFAR-10")
    parser.add_argument("--out", type=Path, help="JSON file of the results")
    options = parser.parse_args()
    if options.quick:
        options.data, options.seeds, options.rows = ["digits", "tabular"], options.seeds[:1], 4_000
    console = Console(width=160)
    console.print(f"{machine()}. Σ|T − T̂| / C, mean (worst).\n")
    records = run(options, console)
    for table in (summarize(records, "data"), summarize(records, "noise"), accuracies(records)):
        console.print(table, "")


if __name__ == "__main__":
    main()

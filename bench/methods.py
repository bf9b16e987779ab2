"""Which method trains best: clean test accuracy of every method, on made noise and on labels given by people.

    python bench/methods.py [--data digits ...] [--methods ce ...] [--seeds 0 1 2] [--out methods.json]

Prints Markdown tables. Results are written to --out as they come, and a run that finds some in its file goes on from
there. Data that is not installed is left out: Fashion-MNIST and CIFAR-10 from $DUALT_DATA, labels given by people from
$DUALT_REAL_NOISE. Features of photographs take minutes, and are kept in $DUALT_BENCH_CACHE if it names a folder.
"""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from functools import cache, partial
from pathlib import Path
from time import process_time
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import torch
from floor import chosen_rows
from measure import collect, machine
from numpy.typing import NDArray
from patches import patch_features
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from worlds import drawn_matrix, read

import dualt
from dualt.datasets import load_dataset
from dualt.datasets.arrays import from_arrays
from dualt.datasets.split import split_dataset
from dualt.errors import FileError
from dualt.files import atomic_write
from dualt.nn.config import TrainingConfig
from dualt.nn.methods import METHODS
from dualt.nn.pipeline import RobustRun, train_robustly, training_data
from dualt.nn.stages import Stages
from dualt.nn.training import Trained, TrainingData, as_inputs, predict_probs

Record: TypeAlias = dict[str, Any]
Rows: TypeAlias = NDArray[Any]

NOISES = ("clean", "sym-0.2", "sym-0.5", "pair-0.45", "instance-dependent")
VOTES = "votes"
RAILS = ("auto", "forward, true T", "RobustClassifier")
# The photographs' own size is beyond a benchmark of minutes.
TRAIN_ROWS, TEST_ROWS = 12_000, 3_000


class Source(NamedTuple):
    """Training and test samples with their true classes, and votes of people where there are any (−1: none)."""

    x: Rows
    y: Rows
    test_x: Rows
    test_y: Rows
    votes: Rows | None = None


def digits(seed: int) -> Source:
    x, y = load_digits(return_X_y=True)
    train, test, train_y, test_y = train_test_split(x, y, test_size=0.25, stratify=y, random_state=seed)
    return Source(train, train_y, test, test_y)


@cache
def fashion() -> Source:
    """Return pixels as their first 100 principal components, which half as much time suffices for."""
    data: Any = load_dataset("fashion-mnist")
    rows = chosen_rows(len(data.train_y), TRAIN_ROWS)
    pixels = [np.asarray(x, np.float32).reshape(len(x), -1) / 255 for x in (data.train_x[rows], data.test_x)]
    components = PCA(100, random_state=0).fit(pixels[0])
    return Source(components.transform(pixels[0]), data.train_y[rows], components.transform(pixels[1]), data.test_y)


@cache
def cifar() -> Source:
    """Return photographs by filters that no label was needed for, and the votes of CIFAR-10N."""
    data: Any = load_dataset("cifar10")
    rows, tests = chosen_rows(len(data.train_y), TRAIN_ROWS), chosen_rows(len(data.test_y), TEST_ROWS)
    try:
        votes = read("cifar10n-votes.npz")
        if (votes["clean"] != data.train_y).any():
            raise FileError("the votes are not in the order of the images")
        given = votes["votes"][rows]
    except FileError:
        given = None
    folder = os.environ.get("DUALT_BENCH_CACHE")
    path = Path(folder) / f"cifar10-filters-{TRAIN_ROWS}-{TEST_ROWS}.npy" if folder else None
    if path is not None and path.exists():
        features = np.load(path, allow_pickle=False)
    else:
        pixels = np.concatenate([data.train_x[rows], data.test_x[tests]]).astype(np.float32) / np.float32(255)
        features = patch_features(pixels)
        if path is not None:
            with atomic_write(path, "wb") as stream:
                np.save(stream, features)
    return Source(features[:TRAIN_ROWS], data.train_y[rows], features[TRAIN_ROWS:], data.test_y[tests], given)


@cache
def labelme() -> Source:
    file = read("labelme.npz")
    x, test_x = (file[name].astype(np.float32) for name in ("features", "test_features"))
    return Source(x, file["clean"].astype(int), test_x, file["test_clean"].astype(int), file["votes"])


DATA: dict[str, Callable[[int], Source]] = {
    "digits": digits,
    "labelme": lambda _: labelme(),
    "fashion-mnist": lambda _: fashion(),
    "cifar10": lambda _: cifar(),
}


def given_labels(source: Source, kind: str, seed: int) -> Rows:
    """Return labels with the noise of that name, or one person's vote for each row."""
    if kind == VOTES:
        assert source.votes is not None
        rng = np.random.default_rng(seed)
        return np.array([rng.choice(row[row >= 0]) for row in source.votes]).astype(int)
    if kind == "instance-dependent":
        return dualt.noise.weak_annotators(source.x, source.y, 0.3, seed).noisy_labels
    matrix = dualt.noise.from_name(kind, int(source.y.max()) + 1, random_state=seed)
    return dualt.noise.corrupt(source.y, matrix, random_state=seed)


def measure(source: Source, kind: str, seed: int, methods: list[str]) -> Iterator[Record]:
    """Yield clean test accuracy and CPU seconds of every method; those that need a matrix share one estimate."""
    given = given_labels(source, kind, seed)
    data = from_arrays(source.x.astype(np.float32), given, noisy=True)
    split = split_dataset(data, random_state=seed)
    parts: TrainingData = training_data(split, data)
    test = as_inputs(source.test_x.astype(np.float32), data.mean, data.std)

    def record(name: str, began: float, trained: RobustRun | Trained) -> Record:
        hits = predict_probs(trained.networks, test).argmax(1).numpy() == source.test_y
        return {"method": name, "accuracy": float(hits.mean()), "seconds": process_time() - began}

    config = TrainingConfig(n_jobs=1, random_state=seed)
    began = process_time()
    run = train_robustly(parts, data.n_classes, config, class_names=data.class_names)
    assert run.estimate is not None
    yield {
        **record("auto", began, run),
        "chosen": run.method,
        "distrust": run.distrust,
        "rate": run.estimate.noise_rate,
        "range": [float(bound) for bound in run.estimate.noise_rate_range],
        "true rate": float((given != source.y).mean()),
    }
    # What `auto` has trained already is not trained again, nor what another method starts from.
    stages = Stages(parts, data.class_names, config, trained=dict(run.stages))
    for name in methods:
        began = process_time()
        yield record(name, began, stages.train(name, run.estimate.transition))
    truth = drawn_matrix(source.y[split.train_index], split.train_noisy, data.n_classes)
    began = process_time()
    known = Stages(parts, data.class_names, config)
    yield record("forward, true T", began, known.train("forward", truth))
    began = process_time()
    base = make_pipeline(StandardScaler(), LogisticRegression(C=0.01, max_iter=300))
    robust = dualt.RobustClassifier(base).fit(source.x, given)
    score = float(robust.score(source.test_x, source.test_y))
    yield {"method": "RobustClassifier", "accuracy": score, "seconds": process_time() - began}


def cases(options: argparse.Namespace) -> Iterator[tuple[Record, Callable[[], Iterable[Record]]]]:
    """Yield every problem and what measures it, seed by seed; what is not installed is left out."""
    for seed in options.seeds:
        for name in options.data:
            try:
                source = DATA[name](seed)
            except FileError as error:
                print(f"{name} is left out: {error}", file=sys.stderr)
                continue
            for kind in (*NOISES, *([] if source.votes is None else [VOTES])):
                measuring = partial(measure, source, kind, seed, options.methods)
                yield {"data": name, "noise": kind, "seed": seed}, measuring


def mean_of(records: list[Record], data: str, kind: str, method: str) -> float:
    """Return the mean accuracy over seeds, in per cent."""
    found = [r["accuracy"] for r in records if (r["data"], r["noise"], r["method"]) == (data, kind, method)]
    return 100 * float(np.mean(found)) if found else float("nan")


def tables(records: list[Record]) -> Iterator[str]:
    """Yield a table of accuracies, and what `auto` gains over cross entropy."""
    problems = list(dict.fromkeys((record["data"], record["noise"]) for record in records))
    seeds = {problem: len({r["seed"] for r in records if (r["data"], r["noise"]) == problem}) for problem in problems}
    columns = [name for name in (*METHODS, *RAILS) if any(record["method"] == name for record in records)]
    yield "| data | noise | seeds | " + " | ".join(columns) + " |"
    yield "| --- | --- | --- |" + " --- |" * len(columns)
    for problem in problems:
        cells = " | ".join(f"{mean_of(records, *problem, column):.1f}" for column in columns)
        yield f"| {' | '.join(problem)} | {seeds[problem]} | {cells} |"
    yield ""
    gains = {p: mean_of(records, *p, "auto") - mean_of(records, *p, "ce") for p in problems}
    noisy = [gain for (_, kind), gain in gains.items() if kind != "clean"]
    votes = [f"{data} {gain:+.1f}" for (data, kind), gain in gains.items() if kind == VOTES]
    worst = min(gains, key=lambda problem: gains[problem])
    yield f"`auto` − `ce`, points: {gains[worst]:+.1f} at worst ({', '.join(worst)}), {np.mean(noisy):+.1f} in the mean"
    yield f"of all noisy problems, {', '.join(votes) or 'not measured'} on votes of people."


def main() -> None:
    """Measure, write and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--data", nargs="+", choices=DATA, default=list(DATA))
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--out", type=Path, help="JSON file of the results")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    found = collect(options.out, cases(options))
    print(f"{machine()}\n", *tables(found), sep="\n")


if __name__ == "__main__":
    main()

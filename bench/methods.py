"""Which method trains best: clean test accuracy of every method, on made noise and on labels given by people.

    python bench/methods.py [--data digits ...] [--methods ce ...] [--seeds 1 2 3] [--out methods.json]

Prints a Markdown table. Data that is not installed is left out: Fashion-MNIST and CIFAR-10 from $DUALT_DATA, labels
given by people from $DUALT_REAL_NOISE. If $DUALT_BENCH_CACHE names a folder, features of photographs, which take
minutes, are kept there, and so are results (methods.json, or --out) and checkpoints beside them: a run that was
interrupted goes on from there. Remove them to measure anew.
"""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, partial
from pathlib import Path
from time import process_time
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import torch
from floor import chosen_rows, patch_features
from measure import collect, machine
from numpy.typing import NDArray
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch import nn
from worlds import drawn_matrix, read

import dualt
from dualt.datasets import from_arrays, load_dataset, split_dataset
from dualt.errors import FileError
from dualt.files import atomic_write
from dualt.nn.config import TrainingConfig
from dualt.nn.methods import METHODS
from dualt.nn.networks import predict_probs
from dualt.nn.run import Stages, training_data
from dualt.nn.samples import Inputs, as_inputs

Record: TypeAlias = dict[str, Any]
Rows: TypeAlias = NDArray[Any]

NOISES = ("clean", "sym-0.2", "sym-0.5", "pair-0.45", "instance-dependent")
VOTES = "votes"
FOLDS, KNOWN = "ce, mean of folds", "forward, true T"
RAILS = ("auto", FOLDS, KNOWN, "RobustClassifier")
# The photographs' own size is beyond a benchmark of minutes: so many are described, and every second is trained on.
DESCRIBED, TEST_ROWS, EVERY = 12_000, 3_000, 2


class Source(NamedTuple):
    """Training and test samples with their true classes, and votes of people where there are any (−1: none)."""

    x: Rows
    y: Rows
    test_x: Rows
    test_y: Rows
    votes: Rows | None = None

    def thinned(self) -> Source:
        """Return the same with fewer training samples."""
        votes = None if self.votes is None else self.votes[::EVERY]
        return self._replace(x=self.x[::EVERY], y=self.y[::EVERY], votes=votes)


def digits(seed: int) -> Source:
    x, y = load_digits(return_X_y=True)
    train, test, train_y, test_y = train_test_split(x, y, test_size=0.25, stratify=y, random_state=seed)
    return Source(train, train_y, test, test_y)


@cache
def fashion() -> Source:
    """Return pixels as their first 100 principal components, which half as much time suffices for."""
    data: Any = load_dataset("fashion-mnist")
    rows = chosen_rows(len(data.train_y), DESCRIBED)
    pixels = [np.asarray(x, np.float32).reshape(len(x), -1) / 255 for x in (data.train_x[rows], data.test_x)]
    components = PCA(100, random_state=0).fit(pixels[0])
    return Source(components.transform(pixels[0]), data.train_y[rows], components.transform(pixels[1]), data.test_y)


@cache
def cifar() -> Source:
    """Return photographs by filters that no label was needed for, and the votes of CIFAR-10N."""
    data: Any = load_dataset("cifar10")
    rows, tests = chosen_rows(len(data.train_y), DESCRIBED), chosen_rows(len(data.test_y), TEST_ROWS)
    try:
        votes = read("cifar10n-votes.npz")
        if (votes["clean"] != data.train_y).any():
            raise FileError("the votes are not in the order of the images")
        given = votes["votes"][rows]
    except FileError:
        given = None
    folder = os.environ.get("DUALT_BENCH_CACHE")
    path = Path(folder) / f"cifar10-filters-{DESCRIBED}-{TEST_ROWS}.npy" if folder else None
    if path is not None and path.exists():
        features = np.load(path, allow_pickle=False)
    else:
        pixels = np.concatenate([data.train_x[rows], data.test_x[tests]]).astype(np.float32) / np.float32(255)
        features = patch_features(pixels)
        if path is not None:
            with atomic_write(path, "wb") as stream:
                np.save(stream, features)
    return Source(features[:DESCRIBED], data.train_y[rows], features[DESCRIBED:], data.test_y[tests], given)


@cache
def labelme() -> Source:
    file = read("labelme.npz")
    x, test_x = (file[name].astype(np.float32) for name in ("features", "test_features"))
    return Source(x, file["clean"].astype(int), test_x, file["test_clean"].astype(int), file["votes"])


DATA: dict[str, Callable[[int], Source]] = {
    "digits": digits,
    "labelme": lambda _: labelme(),
    "cifar10": lambda _: cifar().thinned(),
    "fashion-mnist": lambda _: fashion().thinned(),
}


def given_labels(source: Source, kind: str, seed: int) -> Rows:
    """Return labels with the noise of that name, or one person's vote for each row."""
    if kind == VOTES:
        assert source.votes is not None
        rng = np.random.default_rng(seed)
        return np.array([rng.choice(row[row >= 0]) for row in source.votes]).astype(int)
    if kind == "instance-dependent":
        return dualt.noise.weak_annotators(source.x, source.y, 0.3, np.random.default_rng(seed)).noisy_labels
    matrix = dualt.noise.from_name(kind, int(source.y.max()) + 1, random_state=seed)
    return dualt.noise.corrupt(source.y, matrix, random_state=seed)


class Problem(NamedTuple):
    """One draw of labels: what tells it from others, the data and labels as given, and the run in the making."""

    record: Record
    source: Source
    given: Rows
    stages: Stages
    truth: Stages
    matrix: Rows
    test: Inputs

    def accuracy(self, networks: Sequence[nn.Module]) -> float:
        """Return the share of clean test labels that the mean of the networks hits."""
        hits = predict_probs(networks, self.test).argmax(1).numpy() == self.source.test_y
        return float(hits.mean())


def posed(source: Source, record: Record, folder: Path | None) -> Problem:
    """Return a problem, whose stages are kept below `folder`; they are those of `dualt train` with its defaults."""
    seed = record["seed"]
    given = given_labels(source, record["noise"], seed)
    data = from_arrays(source.x.astype(np.float32), given)
    split = split_dataset(data, random_state=seed)
    config, parts = TrainingConfig(n_jobs=1, random_state=seed), training_data(split)

    def stages(name: str) -> Stages:
        own = None if folder is None else folder / f"{record['noise']}-{seed}-{name}"
        if own is not None:
            own.mkdir(parents=True, exist_ok=True)
        return Stages(parts, data.class_names, config, own, resume=True)

    matrix = drawn_matrix(source.y[split.train_index], split.train_noisy, data.n_classes)
    test = as_inputs(source.test_x.astype(np.float32), *data.moments)
    return Problem(record, source, given, stages("estimated"), stages("true"), matrix, test)


def measure(name: str, seeds: list[int], methods: list[str], folder: Path | None) -> Iterator[Record]:
    """Yield clean test accuracies of every method on every draw of labels.

    Methods that need a matrix share the estimate of `auto`, and what is trained for one serves the others.
    """
    problems: list[Problem] = []
    for seed in seeds:
        source = DATA[name](seed)
        kinds = (*NOISES, *([] if source.votes is None else [VOTES]))
        problems += [posed(source, {"noise": kind, "seed": seed}, folder) for kind in kinds]
    every = [problem.stages for problem in problems]

    def results(method: str, each: Iterable[Sequence[nn.Module]]) -> Iterator[Record]:
        for problem, networks in zip(problems, each, strict=True):
            yield {**problem.record, "method": method, "accuracy": problem.accuracy(networks)}
        print(f"{name}: {method}, {process_time():.0f} s", file=sys.stderr, flush=True)

    folds = list(every[0].folds)
    for stages in every:
        _ = stages.probs  # trains the folds
    yield from results(FOLDS, [[n for fold in folds for n in stages.trained[fold].networks] for stages in every])
    runs = [stages.run() for stages in every]
    for found, run, problem in zip(results("auto", [run.networks for run in runs]), runs, problems, strict=True):
        assert run.estimate is not None
        bounds = [float(bound) for bound in run.estimate.noise_rate_interval()]
        about = {"chosen": run.method, "distrust": run.distrust, "rate": run.estimate.noise_rate, "range": bounds}
        yield {**found, **about, "true rate": float((problem.given != problem.source.y).mean())}
    matrices = [run.estimate.transition for run in runs if run.estimate is not None]
    for method in methods:
        yield from results(method, [s.train(method, t).networks for s, t in zip(every, matrices, strict=True)])
    yield from results(KNOWN, [problem.truth.train("forward", problem.matrix).networks for problem in problems])
    for problem in problems:
        base = make_pipeline(StandardScaler(), LogisticRegression(C=0.01, max_iter=300))
        robust = dualt.RobustClassifier(base).fit(problem.source.x, problem.given)
        score = float(robust.score(problem.source.test_x, problem.source.test_y))
        yield {**problem.record, "method": "RobustClassifier", "accuracy": score}


def cases(options: argparse.Namespace) -> Iterator[tuple[Record, Callable[[], Iterable[Record]]]]:
    """Yield every data set and what measures it; what is not installed is left out."""
    for name in options.data:
        try:
            DATA[name](options.seeds[0])
        except FileError as error:
            print(f"{name} is left out: {error}", file=sys.stderr)
            continue
        folder = None if options.out is None else options.out.with_suffix("") / name
        yield {"data": name}, partial(measure, name, options.seeds, options.methods, folder)


class Results:
    """Accuracies in per cent by problem, method and seed."""

    def __init__(self, records: list[Record]) -> None:
        self.by_seed: dict[tuple[str, str], dict[str, dict[int, float]]] = {}
        for record in records:
            own = self.by_seed.setdefault((record["data"], record["noise"]), {})
            own.setdefault(record["method"], {})[record["seed"]] = 100 * record["accuracy"]
        self.methods = [name for name in (*METHODS, *RAILS) if any(name in own for own in self.by_seed.values())]

    def gain(self, problem: tuple[str, str], method: str) -> float:
        """Return the mean over seeds of what a method gains over cross entropy."""
        own, ce = self.by_seed[problem][method], self.by_seed[problem]["ce"]
        return float(np.mean([own[seed] - ce[seed] for seed in ce]))

    def accuracies(self) -> Iterator[str]:
        """Yield a table of means over seeds."""
        yield "| data | noise | seeds | " + " | ".join(self.methods) + " |"
        yield "| --- | --- | --- |" + " --- |" * len(self.methods)
        for problem, own in self.by_seed.items():
            cells = " | ".join(f"{np.mean([*own[method].values()]):.1f}" for method in self.methods)
            yield f"| {' | '.join(problem)} | {len(own['auto'])} | {cells} |"

    def gains(self) -> Iterator[str]:
        """Yield a table of what each method gains over cross entropy, in the mean of problems and at worst."""
        noisy = {*NOISES, VOTES} - {"clean"}
        groups = {"all noisy problems": noisy, "without pair noise": noisy - {"pair-0.45"}}
        groups |= {"votes of people": {VOTES}, "clean labels": {"clean"}}
        yield f"| gain over `ce`, points | {' | '.join(groups)} | worst problem |"
        yield "| --- |" + " --- |" * (len(groups) + 1)
        for method in (name for name in self.methods if name != "ce"):
            gains = {problem: self.gain(problem, method) for problem in self.by_seed}
            means = [[gain for (_, kind), gain in gains.items() if kind in kinds] for kinds in groups.values()]
            worst = min(gains, key=lambda problem: gains[problem])
            cells = " | ".join(f"{np.mean(found):+.1f}" if found else "–" for found in means)
            yield f"| {method} | {cells} | {gains[worst]:+.1f} ({', '.join(worst)}) |"

    def votes(self) -> Iterator[str]:
        """Yield what `auto` gains on each data set with votes, seed by seed."""
        for (data, kind), own in self.by_seed.items():
            if kind == VOTES:
                each = ", ".join(f"{own['auto'][seed] - own['ce'][seed]:+.1f}" for seed in own["ce"])
                yield f"`auto` − `ce` on the votes of {data}: {self.gain((data, kind), 'auto'):+.2f} points ({each})."


def main() -> None:
    """Measure, write and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--data", nargs="+", choices=DATA, default=list(DATA))
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--seeds", nargs="+", type=int, default=[1, 2, 3])
    cache_folder = os.environ.get("DUALT_BENCH_CACHE")
    default = Path(cache_folder) / "methods.json" if cache_folder else None
    parser.add_argument("--out", type=Path, default=default, help="JSON file of the results")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    found = collect(options.out, cases(options))
    results = Results(found)
    print(f"{machine()}\n", *results.accuracies(), sep="\n")
    if "ce" in results.methods:
        print("", *results.gains(), "", *results.votes(), sep="\n")


if __name__ == "__main__":
    main()

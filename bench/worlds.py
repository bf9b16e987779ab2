"""The problems of two worlds: labels that people gave or that depend on the example, and noise of the class alone.

Real labels are read from the folder $DUALT_REAL_NOISE, else ../shared/data/real-noise beside the repository:

    cifar10n-aggregate.npz   CIFAR-10N (Wei et al. 2022), majority of three people: pred_probs, given, clean
    cifar10n-votes.npz       the same, single votes: votes (50,000 × 3), clean, in CIFAR-10's own order
    cifar10h-counts.npy      CIFAR-10H (Peterson et al. 2019): how many of some 50 people gave each class, test images
    labelme.npz              LabelMe (Rodrigues & Pereira 2017): features, votes (−1 = none), clean
    hausa-news.tsv           news titles in Hausa (Hedderich et al. 2020): text, given by a keyword rule, clean
    cifar100-sym20.npz       CIFAR-100, made noise, a network that is right in a third: pred_probs, given, clean

What is not there is left out. The truth that an estimate is compared with is, for real labels, what happened: the
shares of given labels in each true class. Where noise was made it is the matrix expected of the draw: the mean of the
distributions that the labels of a class were drawn from.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from floor import DATA, NOISES, Data, Problem, chosen_rows, class_conditional, patch_features, posterior_of
from numpy.typing import NDArray
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from dualt import noise
from dualt.crossfit import out_of_fold_probabilities
from dualt.datasets import load_dataset
from dualt.errors import FileError
from dualt.files import atomic_write
from dualt.rows.chunks import normalize_counts

ROOT = Path(__file__).resolve().parent.parent
REAL = Path(os.environ.get("DUALT_REAL_NOISE") or ROOT.parent / "shared" / "data" / "real-noise")

INSTANCE_DATA = ("digits", "tabular", "mnist", "fashion-mnist")
INSTANCE_NOISES: dict[str, tuple[Callable[..., noise.InstanceNoise], float]] = {
    "annotators-0.1": (noise.weak_annotators, 0.1),
    "annotators-0.2": (noise.weak_annotators, 0.2),
    "annotators-0.35": (noise.weak_annotators, 0.35),
    "parts-0.2": (noise.part_dependent, 0.2),
    "parts-0.35": (noise.part_dependent, 0.35),
}


class Case(NamedTuple):
    """A problem that can be made: the group that it is averaged in, its name, the run's number, and how."""

    group: str
    name: str
    seed: int
    make: Callable[[], Problem]


def drawn_matrix(clean: NDArray[Any], given: NDArray[Any], n_classes: int) -> NDArray[np.float64]:
    """Return the transition that happened: shares of given labels in each true class."""
    counts = np.bincount(clean * n_classes + given, minlength=n_classes**2).reshape(n_classes, n_classes)
    return normalize_counts(counts)


def happened(probs: NDArray[Any], given: NDArray[Any], clean: NDArray[Any]) -> Problem:
    """Return a problem whose truth is what happened."""
    given, clean = given.astype(int), clean.astype(int)
    return Problem(probs, given, clean, drawn_matrix(clean, given, probs.shape[1]))


def read(name: str) -> Any:
    """Open a file of real labels, or say that it is not there."""
    if not (REAL / name).exists():
        raise FileError(f"there is no {name} in {REAL}; DUALT_REAL_NOISE names the folder")
    return REAL / name if name.endswith(".tsv") else np.load(REAL / name, allow_pickle=False)


def cifar10n_aggregate() -> Problem:
    data = read("cifar10n-aggregate.npz")
    return happened(_normalized(data["pred_probs"]), data["given"], data["clean"])


def cifar10n_vote(person: int, rows: int) -> Problem:
    """Return one person's votes; the classifier is the small network of CIFAR-10, which is right in two thirds."""
    data = read("cifar10n-votes.npz")
    features, clean = load("cifar10", rows)
    chosen = chosen_rows(len(data["clean"]), len(clean))
    if (data["clean"][chosen] != clean).any():
        raise FileError("the votes are not in the order of the images")
    given = data["votes"][chosen, person].astype(int)
    return happened(posterior_of("cifar10", features, given, person), given, clean)


def cifar10h(kind: str, seed: int) -> Problem:
    """Return one vote drawn per image, or the rarest of five: nothing in the library was chosen by these labels."""
    counts = read("cifar10h-counts.npy")
    shares = counts / counts.sum(axis=1, keepdims=True)
    features, clean = _cifar10_test()
    rng = np.random.default_rng(seed)
    drawn = (shares.cumsum(axis=1)[:, None] > rng.random((len(shares), 5, 1))).argmax(axis=2)
    of_same = (drawn[:, :, None] == drawn[:, None]).sum(axis=2)
    rarest = of_same.argmin(axis=1) if kind == "rarest" else np.zeros(len(drawn), np.intp)
    given = drawn[np.arange(len(drawn)), rarest]
    return happened(posterior_of("cifar10", features, given, seed), given, clean)


@cache
def _cifar10_test() -> Data:
    data = load_dataset("cifar10")
    return patch_features(np.asarray(data.test_x, np.float32) / np.float32(255)), np.asarray(data.test_y)


def cifar100_sym20() -> Problem:
    data = read("cifar100-sym20.npz")
    found = happened(_normalized(data["pred_probs"]), data["given"], data["clean"])
    return found._replace(truth=noise.symmetric(100, 0.2))


def labelme(kind: str, seed: int, *, forest: bool = False) -> Problem:
    """Return one vote drawn per row, or the most frequent (of equals the first class); `seed` also sets the folds.

    A forest agrees with the labels more often than it says, where logistic regression is nearly calibrated.
    """
    data = read("labelme.npz")
    votes, clean = data["votes"], data["clean"].astype(int)
    if kind == "vote":
        rng = np.random.default_rng(seed)
        given = np.array([rng.choice(row[row >= 0]) for row in votes])
    else:
        given = np.stack([(votes == label).sum(axis=1) for label in range(clean.max() + 1)], axis=1).argmax(axis=1)
    classifier: Any = make_pipeline(StandardScaler(), LogisticRegression(C=0.01, max_iter=2000))
    if forest:
        classifier = RandomForestClassifier(random_state=seed)
    return happened(out_of_fold_probabilities(classifier, data["features"], given, random_state=seed), given, clean)


def hausa_news() -> Problem:
    with read("hausa-news.tsv").open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream, delimiter="\t", quoting=csv.QUOTE_NONE))
    names = sorted({row[key] for row in rows for key in ("given", "clean")})
    given, clean = (np.array([names.index(row[key]) for row in rows]) for key in ("given", "clean"))
    words = TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 5), sublinear_tf=True)
    classifier = make_pipeline(words, LogisticRegression(C=10, max_iter=2000))
    texts = np.array([row["text"] for row in rows], dtype=object)
    return happened(out_of_fold_probabilities(classifier, texts, given), given, clean)


def instance_dependent(name: str, kind: str, rows: int, seed: int) -> Problem:
    """Return a data set with noise that depends on the example; the truth is the expected matrix."""
    features, clean = load(name, rows)
    function, rate = INSTANCE_NOISES[kind]
    given, distributions = function(features, clean, rate, np.random.default_rng([seed, *kind.encode()]))
    truth = noise.expected_transition(distributions, clean)
    return Problem(posterior_of(name, features, given, seed), given, clean, truth)


def of_class_alone(name: str, kind: str, rows: int, seed: int) -> Problem:
    return class_conditional(name, load(name, rows), kind, seed)


@cache
def load(name: str, rows: int) -> Data:
    """Return a data set; one that is not installed is an error, each time."""
    return DATA[name](rows)


def of_people(draws: list[int], *, quick: bool) -> Iterator[Case]:
    """Yield the problems whose labels people gave."""
    yield Case("CIFAR-10N", "cifar10n-aggregate", 0, cifar10n_aggregate)
    for kind in ("vote", "majority"):
        for seed in draws:
            yield Case(f"LabelMe {kind}", f"labelme-{kind}", seed, partial(labelme, kind, seed))
    for kind in ("vote", "majority"):
        for seed in draws:
            make = partial(labelme, kind, seed, forest=True)
            yield Case("LabelMe forest", f"labelme-{kind} forest", seed, make)
    if quick:
        return
    yield Case("CIFAR-10N vote", "cifar10n-vote", 2, partial(cifar10n_vote, 2, 12_000))
    for kind in ("vote", "rarest"):
        for seed in draws:
            yield Case("CIFAR-10H", f"cifar10h-{kind}", seed, partial(cifar10h, kind, seed))


def cases(seeds: list[int], draws: list[int], *, quick: bool) -> Iterator[Case]:
    """Yield all problems, in the order of the tables."""
    yield from of_people(draws, quick=quick)
    yield Case("Hausa", "hausa-news", 0, hausa_news)
    yield Case("CIFAR-100 weak", "cifar100-sym20", 0, cifar100_sym20)
    for seed in seeds:
        for name in INSTANCE_DATA[:2] if quick else INSTANCE_DATA:
            for kind in INSTANCE_NOISES:
                make = partial(instance_dependent, name, kind, 4_000 if quick else 8_000, seed)
                yield Case(kind.partition("-")[0], f"{name} {kind}", seed, make)
    for seed in seeds[:1]:
        for name in list(DATA)[:2] if quick else DATA:
            for kind in NOISES:
                make = partial(of_class_alone, name, kind, 4_000 if quick else 12_000, seed)
                yield Case("class alone", f"{name} {kind}", seed, make)


def made(case: Case, folder: Path | None, *, quick: bool) -> Problem:
    """Return a problem from the folder of those that were made before, or make it and keep it there."""
    path = folder / f"{'quick-' if quick else ''}{case.name.replace(' ', '-')}-{case.seed}.npz" if folder else None
    if path is not None and path.exists():
        with np.load(path, allow_pickle=False) as kept:
            return Problem(**{field: kept[field] for field in Problem._fields})
    problem = case.make()
    problem = problem._replace(probs=problem.probs.astype(np.float32))
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_write(path, "wb") as stream:
            np.savez(stream, **problem._asdict())
    return problem


def _normalized(probs: NDArray[Any]) -> NDArray[np.float32]:
    probs = probs.astype(np.float32)
    return np.asarray(probs / probs.sum(axis=1, keepdims=True))

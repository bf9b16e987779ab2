"""Several annotators' votes beside crowd-kit and cleanlab: consensus, annotators' quality, matrices, audits, and cost.

    python bench/votes.py [--audits 12] [--votes 1000000]
    python bench/votes.py --choice      for each set, the constants that the other sets choose

Votes are read from $DUALT_VOTES, else ../shared/data/votes beside the repository (`item`, `annotator`, `vote`, `clean`,
−1 unknown, perhaps `features`), and from the folder of `worlds.py` (LabelMe, CIFAR-10N, rules of TREC and YouTube). The
classifier is a logistic regression on the features or texts, out of fold, trained on the majority; for CIFAR-10N a
network. All methods get the same votes and probabilities. All takes some ten minutes of one core.
"""

from __future__ import annotations

import argparse
import csv
import os
import time
import warnings
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from cleanlab import multiannotator
from crowdkit.aggregation import DawidSkene, OneCoinDawidSkene
from measure import best_seconds, head, machine, peak_megabytes, row
from numpy.typing import NDArray
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from worlds import REAL

import dualt
from dualt.votes import model

ROOT = Path(__file__).resolve().parent.parent
VOTES = Path(os.environ.get("DUALT_VOTES") or ROOT.parent / "shared" / "data" / "votes")
ALL = 99
SIZES = (1, 2, 3, 5, ALL)
CONSTANTS = [*product((1.0, 3.0, 10.0), (50.0, 200.0, 800.0), (0.2, 0.3, 0.4, 0.5, 0.6))]  # as in the model's file
FEW = 10  # annotators with fewer votes have no quality to compare with


class Problem(NamedTuple):
    """Votes as codes, the truth (−1 unknown), and out-of-fold probabilities, if there is something to learn from."""

    item: NDArray[np.intp]
    who: NDArray[np.intp]
    vote: NDArray[np.intp]
    clean: NDArray[np.intp]
    n_classes: int
    features: Any = None
    probs: NDArray[np.float64] | None = None

    @property
    def known(self) -> NDArray[np.bool_]:
        """Which items have votes and a known class."""
        return (self.clean >= 0) & (np.bincount(self.item, minlength=len(self.clean)) > 0)

    def counts(self) -> NDArray[np.float64]:
        """Count votes by item and class."""
        counts = np.zeros((len(self.clean), self.n_classes))
        np.add.at(counts, (self.item, self.vote), 1)
        return counts

    def thinned(self, size: int) -> Problem:
        """Keep at most `size` random votes on each item, and train the classifier on what is left."""
        kept = np.arange(len(self.item))
        if size < ALL:
            order = np.random.default_rng(0).permutation(len(self.item))
            order = order[np.argsort(self.item[order], kind="stable")]
            items = self.item[order]
            kept = np.sort(order[np.arange(len(items)) - np.searchsorted(items, items) < size])
        fewer = self._replace(item=self.item[kept], who=self.who[kept], vote=self.vote[kept])
        return fewer if self.probs is not None or self.features is None else fewer._replace(probs=learnt(fewer))

    def long(self) -> pd.DataFrame:
        """Return a row per vote."""
        return pd.DataFrame({"item": self.item, "annotator": self.who, "label": self.vote})


def learnt(problem: Problem) -> NDArray[np.float64]:
    """Return out-of-fold probabilities of a logistic regression on the majority, ties broken at random."""
    counts = problem.counts()
    majority = (counts + np.random.default_rng(0).random(counts.shape) * 0.01).argmax(axis=1)
    if problem.features.dtype == object:
        model = make_pipeline(TfidfVectorizer(sublinear_tf=True), LogisticRegression(C=10, max_iter=300))
    else:
        model = make_pipeline(StandardScaler(), LogisticRegression(C=0.01, max_iter=300))
    voted, probs = counts.any(axis=1), np.full(counts.shape, 1e-6)
    found = cross_val_predict(model, problem.features[voted], majority[voted], cv=5, method="predict_proba")
    probs[np.ix_(np.flatnonzero(voted), np.unique(majority[voted]))] = found
    return np.asarray(probs / probs.sum(axis=1, keepdims=True))


def of_wide(votes: NDArray[Any], clean: NDArray[Any], **more: Any) -> Problem:
    item, who = np.nonzero(votes >= 0)
    codes = votes[item, who].astype(np.intp)
    return Problem(item, who, codes, clean.astype(np.intp), int(max(codes.max(), clean.max())) + 1, **more)


def of_rules(path: Path) -> Problem:
    """Read texts with one vote per rule; a class's number is that of the rules that agree on its name."""
    with path.open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream, delimiter="\t"))
    votes = np.array([[int(one) for one in row["votes"].split()] for row in rows])
    named: dict[str, int] = {}
    for code in range(votes.max() + 1):
        agreed = [row["given"] for row, own in zip(rows, votes, strict=True) if {*own[own >= 0]} == {code}]
        named[max({*agreed}, key=agreed.count)] = code
    clean = np.array([named[row["clean"]] for row in rows])
    return of_wide(votes, clean, features=np.array([row["text"] for row in rows], object))


def problems() -> Iterator[tuple[str, Problem]]:
    """Yield the sets that are here."""
    for path in sorted(VOTES.glob("*.npz")):
        data = np.load(path)
        item, who, vote, clean = (data[name].astype(np.intp) for name in ("item", "annotator", "vote", "clean"))
        features = data.get("features")
        yield path.stem, Problem(item, who, vote, clean, int(max(vote.max(), clean.max())) + 1, features)
    if (REAL / "labelme.npz").exists():
        data = np.load(REAL / "labelme.npz")
        yield "LabelMe", of_wide(data["votes"], data["clean"], features=data["features"].astype(np.float64))
    if (REAL / "cifar10n-votes.npz").exists():
        data = np.load(REAL / "cifar10n-votes.npz")
        probs = np.load(REAL / "cifar10n-aggregate.npz")["pred_probs"].astype(np.float64)
        yield "CIFAR-10N", of_wide(data["votes"], data["clean"], probs=probs)
    for name in ("trec-rules", "youtube-rules"):
        if (REAL / f"{name}.tsv").exists():
            yield name, of_rules(REAL / f"{name}.tsv")


def majority(problem: Problem) -> NDArray[np.float64]:
    counts = problem.counts() + 1e-9
    return np.asarray(counts / counts.sum(axis=1, keepdims=True))


def crowd_kit(method: Callable[..., Any], problem: Problem) -> tuple[NDArray[np.float64], Any]:
    frame = pd.DataFrame({"task": problem.item, "worker": problem.who, "label": problem.vote})
    fitted = method(n_iter=100).fit(frame)
    posterior = np.full((len(problem.clean), problem.n_classes), 1 / problem.n_classes)
    found = fitted.probas_
    posterior[np.ix_(found.index.to_numpy(), found.columns.to_numpy())] = found.to_numpy()
    return posterior, fitted


def crowdlab(problem: Problem) -> NDArray[np.float64]:
    """Return the posterior of cleanlab's CROWDLAB: its own function gives the consensus and its quality only."""
    wide = np.full((len(problem.clean), problem.who.max() + 1), np.nan)
    wide[problem.item, problem.who] = problem.vote
    wide = wide[:, ~np.isnan(wide).all(axis=0)]
    seen: dict[str, Any] = {}
    inner = multiannotator._get_post_pred_probs_and_weights

    def spy(*args: Any, **options: Any) -> Any:
        seen["found"] = inner(*args, **options)
        return seen["found"]

    multiannotator._get_post_pred_probs_and_weights = spy
    try:
        multiannotator.get_label_quality_multiannotator(pd.DataFrame(wide), problem.probs, verbose=False)
    finally:
        multiannotator._get_post_pred_probs_and_weights = inner
    return np.asarray(seen["found"][0])


def scores(
    problem: Problem, posterior: NDArray[np.float64], quality: NDArray[np.float64] | None, least: float = np.nan
) -> dict[str, float]:
    known = problem.known
    truth, chosen = problem.clean[known], posterior[known]
    rows, sure = np.arange(len(truth)), chosen.max(axis=1)
    tied = chosen >= sure[:, None] - 1e-12
    right = tied[rows, truth] / tied.sum(axis=1)
    place = np.minimum((sure * 10).astype(int), 9)
    found = {
        "accuracy": float(right.mean()),
        "log loss": float(-np.log(np.clip(chosen[rows, truth], 1e-4, 1)).mean()),
        "calibration": float(np.abs(np.bincount(place, sure - right, 10)).sum() / len(truth)),
        "rate error": float(abs((1 - sure.mean()) - (1 - right.mean()))),
        "lower end holds": float(least <= 1 - right.mean()) if least == least else np.nan,
    }
    if quality is not None:
        share, n_votes = true_quality(problem)
        judged = n_votes >= FEW
        if judged.any():
            found["quality error"] = float(np.abs(quality - share)[judged].mean())
    return found


def true_quality(problem: Problem) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    known, n_people = problem.clean[problem.item] >= 0, problem.who.max() + 1
    n_votes = np.bincount(problem.who[known], minlength=n_people)
    right = (problem.vote == problem.clean[problem.item])[known]
    return np.bincount(problem.who[known], right, minlength=n_people) / np.maximum(n_votes, 1), n_votes


def shares_right(problem: Problem, posterior: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the mean posterior of each annotator's votes: quality as a posterior implies it."""
    n_people = problem.who.max() + 1
    total = np.bincount(problem.who, posterior[problem.item, problem.vote], minlength=n_people)
    return np.asarray(total / np.maximum(np.bincount(problem.who, minlength=n_people), 1))


def ours(problem: Problem, *, classifier: bool) -> tuple[NDArray[np.float64], NDArray[np.float64], float]:
    items = np.arange(len(problem.clean))
    probs = pd.DataFrame(problem.probs, items) if classifier else None
    votes = dualt.combine_votes(problem.long(), probs, classes=[*range(problem.n_classes)])
    posterior = np.full((len(items), problem.n_classes), 1 / problem.n_classes)
    posterior[np.asarray(votes.items, np.intp)] = votes.posterior
    quality = np.zeros(problem.who.max() + 1)
    quality[np.asarray(votes.annotators.name, np.intp)] = votes.annotators.quality
    return posterior, quality, votes.noise_rate_interval[0]


def compared(problem: Problem, size: int) -> Iterator[tuple[str, dict[str, float]]]:
    """Yield the scores of each method."""
    posterior = majority(problem)
    yield "majority", scores(problem, posterior, shares_right(problem, posterior))
    if size > 1:
        for name, method in (("Dawid–Skene", DawidSkene), ("one coin", OneCoinDawidSkene)):
            posterior, _ = crowd_kit(method, problem)
            yield name, scores(problem, posterior, shares_right(problem, posterior))
        yield "dualt", scores(problem, *ours(problem, classifier=False))
    if problem.probs is not None:
        if size > 1:
            posterior = crowdlab(problem)
            yield "CROWDLAB", scores(problem, posterior, shares_right(problem, posterior))
        yield "dualt + classifier", scores(problem, *ours(problem, classifier=True))


def left_out(problem: Problem) -> dict[str, dict[str, float]]:
    """Return mean −log T_a[true, vote] on a tenth of the votes, by how many others the annotator gave."""
    drawn = np.random.default_rng(0).random(len(problem.item)) < 0.1
    train = problem._replace(item=problem.item[~drawn], who=problem.who[~drawn], vote=problem.vote[~drawn])
    n_people, n_items, k = int(problem.who.max()) + 1, len(problem.clean), problem.n_classes
    fit = model.fit_votes(train.item, train.who, train.vote, n_items, n_people, k)
    theirs = np.broadcast_to(fit.common, fit.matrices.shape).copy()
    errors = crowd_kit(DawidSkene, train)[1].errors_.fillna(0)  # index (worker, label given), columns true class
    for worker, own in errors.groupby(level=0):
        matrix = np.full((k, k), 1e-4)
        matrix[np.ix_(own.columns.astype(int), own.index.get_level_values(1).astype(int))] = own.to_numpy().T
        theirs[worker] = (matrix + 1e-4) / (matrix + 1e-4).sum(axis=1, keepdims=True)
    tested = drawn & (problem.clean[problem.item] >= 0)
    who, vote, truth = problem.who[tested], problem.vote[tested], problem.clean[problem.item[tested]]
    n_votes = np.bincount(train.who, minlength=n_people)[who]
    found: dict[str, dict[str, float]] = {}
    for name, low, high in (("< 10", 0, 10), ("10–30", 10, 30), ("30–100", 30, 100), ("> 100", 100, 1 << 60)):
        rows = (n_votes >= low) & (n_votes < high)
        if rows.sum() >= 20:
            for method, matrices in (("Dawid–Skene", theirs), ("dualt", fit.matrices), ("all alike", fit.common[None])):
                given = matrices[who[rows] % len(matrices), truth[rows], vote[rows]]
                found.setdefault(method, {})[name] = float(-np.log(np.maximum(given, 1e-4)).mean())
    return found


def audited(problem: Problem, n_audits: int, *, classifier: bool) -> dict[str, float]:
    """Return how often the intervals of 100 audited rows hold."""
    known = np.flatnonzero(problem.known)
    probs = pd.DataFrame(problem.probs, np.arange(len(problem.clean))) if classifier else None
    share, _ = true_quality(problem)
    found: list[tuple[float, float, float, float]] = []
    for seed in range(n_audits):
        drawn = np.random.default_rng(seed).choice(known, min(100, len(known) // 2), replace=False)
        votes = dualt.combine_votes(
            problem.long(), probs, verified=(drawn, problem.clean[drawn]), classes=[*range(problem.n_classes)]
        )
        labels = dict(zip(votes.items, votes.labels, strict=True))
        rest = np.setdiff1d(known, drawn)
        truth = np.mean([labels[item] != problem.clean[item] for item in rest]) * (1 - len(drawn) / len(labels))
        low, high = votes.noise_rate_interval
        table = votes.annotators.dropna()
        own = np.asarray(table.name, np.intp)
        holds = ((table.low - 1e-9 <= share[own]) & (share[own] <= table.high + 1e-9)).mean()
        width = (table.high - table.low).mean()
        found.append((float(low <= truth <= high), high - low, float(holds), float(width)))
    names = ("rate holds", "rate width", "quality holds", "quality width")
    return dict(zip(names, np.nanmean(found, axis=0), strict=True))


def by_constants(problem: Problem, *, classifier: bool) -> Iterator[tuple[float, float, float]]:
    """Yield accuracy, log loss and, with a classifier, the error of the claimed rate, with each of CONSTANTS."""
    votes = problem.item, problem.who, problem.vote
    sizes = len(problem.clean), int(problem.who.max()) + 1, problem.n_classes
    probs = problem.probs if classifier else None
    kept = model.POOLING, model.MAJORITY_VOTES, model.OVERLAP
    for constants in CONSTANTS:
        model.POOLING, model.MAJORITY_VOTES, model.OVERLAP = constants
        found = scores(problem, model.fit_votes(*votes, *sizes, probs=probs).posterior, None)
        yield found["accuracy"], found["log loss"], found["rate error"] if classifier else np.nan
    model.POOLING, model.MAJORITY_VOTES, model.OVERLAP = kept


def choice() -> None:
    """Print for each set the constants with the least log loss on the others, relative to a set's mean."""
    names, means = [], []
    for name, whole in problems():
        own = [
            [*by_constants(problem, classifier=classifier)]
            for problem in (whole.thinned(size) for size in sizes_of(whole) if size > 1)
            for classifier in ((False, True) if problem.probs is not None else (False,))
        ]
        names.append(name)
        means.append(np.nanmean(own, axis=0))
    figures = np.array(means)  # sets × constants × (accuracy, log loss, rate error)
    relative = figures[:, :, 1] / figures[:, :, 1].mean(axis=1, keepdims=True)
    ours = CONSTANTS.index((model.POOLING, model.MAJORITY_VOTES, model.OVERLAP))
    best = [int(np.delete(relative, place, axis=0).mean(axis=0).argmin()) for place in range(len(names))]
    what = "accuracy · log loss · rate error with a classifier"
    head(f"set: {what}", "pooling, votes of the majority, overlap by the other sets", "with these", "as they are")
    for place, (name, chosen) in enumerate(zip(names, best, strict=True)):
        cells = [" · ".join(f"{value:.3f}" for value in figures[place, one]) for one in (chosen, ours)]
        row(name, ", ".join(f"{value:g}" for value in CONSTANTS[chosen]), *(cell.replace("nan", "–") for cell in cells))
    both = [np.nanmean(figures[np.arange(len(names)), own], axis=0) for own in (best, ours)]
    row("mean", "", *(" · ".join(f"{value:.3f}" for value in own) for own in both))


def sizes_of(problem: Problem) -> list[int]:
    """Return how many votes per item to try."""
    per_item = len(problem.item) / len(np.unique(problem.item))
    return [size for size in SIZES if size < per_item or size == ALL]


def million(n_votes: int) -> str:
    """Return time and memory for that many votes of 5,000 annotators with 10 classes."""
    rng = np.random.default_rng(0)
    n_items = n_votes * 3 // 10
    truth, skills = rng.integers(10, size=n_items), rng.beta(6, 2, 5000)
    item = np.r_[np.arange(n_items), rng.integers(n_items, size=n_votes - n_items)]
    who = rng.integers(5000, size=n_votes)
    vote = np.where(rng.random(n_votes) < skills[who], truth[item], rng.integers(10, size=n_votes))
    long = pd.DataFrame({"item": item, "annotator": who, "label": vote})
    seconds = best_seconds(lambda: dualt.combine_votes(long), 1, time.process_time)
    megabytes = peak_megabytes(lambda: dualt.combine_votes(long))
    cost = f"{seconds:.0f} s of one core, {megabytes:,.0f} MB beside the votes."
    return f"{n_votes:,} votes of 5,000 annotators, 10 classes: {cost}"


def show(records: list[tuple[str, int, str, dict[str, float]]], methods: tuple[str, ...], least: int) -> None:
    """Print accuracy and log loss of each set, and means; rules, which give fewer than two votes per item, apart."""
    cases = list(dict.fromkeys((name, size) for name, size, method, _ in records if method == methods[-1]))
    by_case = {((name, size), method): found for name, size, method, found in records}
    head("set, votes per item: accuracy · log loss", *methods)
    for name, size in cases:
        cells = [by_case.get(((name, size), method)) for method in methods]
        shown = [f"{own['accuracy']:.3f} · {own['log loss']:.2f}" if own else "–" for own in cells]
        row(f"{name}, {'all' if size == ALL else size}", *shown)
    for title, rules in ((f"Means at {least} votes or more", False), ("Means over rules", True)):
        chosen = [case for case in cases if case[1] >= least and ("rules" in case[0]) == rules]
        if chosen:
            print(f"\n{title}:\n")
            head("", *methods)
            for figure in ("accuracy", "log loss", "calibration", "rate error", "lower end holds", "quality error"):
                values = [[by_case[case, method].get(figure, np.nan) for case in chosen] for method in methods]
                row(figure, *(float(np.nanmean(own)) for own in values))
    print()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--audits", type=int, default=12)
    parser.add_argument("--votes", type=int, default=1_000_000)
    parser.add_argument("--choice", action="store_true")
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    print(machine() + "\n")
    if options.choice:
        choice()
        return
    records, without, with_audit = [], [], []
    for name, whole in problems():
        for size in sizes_of(whole):
            records += [(name, size, method, found) for method, found in compared(whole.thinned(size), size)]
        if "rules" not in name:
            without.append(left_out(whole))
        problem = whole.thinned(ALL)
        n_audits = options.audits if len(whole.clean) < 10_000 else max(options.audits // 4, 1)
        with_audit += [
            (name, classifier, audited(problem, n_audits, classifier=classifier))
            for classifier in ((False, True) if problem.probs is not None else (False,))
        ]
    print("\nVotes alone:\n")
    show(records, ("majority", "Dawid–Skene", "one coin", "dualt"), 2)
    print("With a classifier:\n")
    show(records, ("majority", "CROWDLAB", "dualt", "dualt + classifier"), 2)
    print("The matrix of an annotator on votes left out, mean −log T[true, vote], by how many votes it rests on:\n")
    groups = ("< 10", "10–30", "30–100", "> 100")
    head("", *groups)
    for method in ("Dawid–Skene", "all alike", "dualt"):
        cells = [[own[method].get(group, np.nan) for own in without if method in own] for group in groups]
        row(method, *(float(np.nanmean(own)) for own in cells))
    print("\nWith 100 random items verified, how often 95% intervals hold:\n")
    head("set", "rate of the consensus", "width", "quality of annotators with 10 checked votes", "width")
    for name, classifier, found in with_audit:
        row(name + " + classifier" * classifier, *found.values())
    row("mean", *(float(np.nanmean([found[key] for *_, found in with_audit])) for key in with_audit[0][2]))
    print(f"\n{million(options.votes)}")


if __name__ == "__main__":
    main()

"""What an audit is worth on labels that people gave: how often its intervals hold, and how near it brings the estimate.

    DUALT_REAL_NOISE=folder python bench/audit.py [--draws 60] [--size 200] [--designs uniform stratified]

The folder holds cifar10n-aggregate.npz (pred_probs, given, clean), labelme.npz (features, votes, clean) and
hausa-news.tsv (text, given, clean); what is not there is left out. Every draw is a fresh audit of the same data, whose
true classes are known. "Counted" is the interval of the same number of labels drawn at random and merely counted.
"""

from __future__ import annotations

import argparse
import csv
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from measure import machine
from numpy.typing import NDArray
from scipy.stats import t as student

import dualt
from dualt.audit import Audit, AuditResult, correct_by_audit
from dualt.audit.batches import Design, Plan
from dualt.crossfit import out_of_fold_probabilities
from dualt.estimators import estimate_verified
from dualt.issues import find_posterior_issues
from dualt.rows import NoisyPosterior, as_posterior

REAL = Path(os.environ.get("DUALT_REAL_NOISE", ""))
SIZES = (100, 200, 500)


class Problem(NamedTuple):
    """Probabilities and given labels, the true classes, the matrix that happened, and what is believed of them."""

    posterior: NoisyPosterior
    given: NDArray[np.intp]
    clean: NDArray[np.intp]
    truth: NDArray[np.float64]
    estimate: dualt.TransitionEstimate
    wrong: NDArray[np.float64]


def problem(probs: NDArray[Any], given: Any, clean: Any) -> Problem:
    given, clean = np.asarray(given, np.intp), np.asarray(clean, np.intp)
    probs = np.asarray(probs, np.float64)
    posterior = as_posterior(probs / probs.sum(axis=1, keepdims=True), given)
    truth = np.zeros((posterior.n_classes, posterior.n_classes))
    np.add.at(truth, (clean, given), 1)
    found = find_posterior_issues(posterior)
    assert found.transition_estimate is not None
    wrong = 1 - found.probability_right.astype(np.float64)
    return Problem(posterior, given, clean, truth / truth.sum(axis=1, keepdims=True), found.transition_estimate, wrong)


def cifar10n() -> Problem:
    data = np.load(REAL / "cifar10n-aggregate.npz", allow_pickle=False)
    return problem(data["pred_probs"], data["given"], data["clean"])


def labelme(kind: str) -> Problem:
    """One vote drawn per row, or the most frequent, of equals one at random."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    data = np.load(REAL / "labelme.npz", allow_pickle=False)
    rng, given = np.random.default_rng(0), []
    for votes in data["votes"]:
        counts = np.bincount(votes[votes >= 0], minlength=8)
        given.append(rng.choice(votes[votes >= 0] if kind == "vote" else np.flatnonzero(counts == counts.max())))
    classifier = make_pipeline(StandardScaler(), LogisticRegression(C=0.01, max_iter=2000))
    probs = out_of_fold_probabilities(classifier, data["features"], np.array(given))
    return problem(probs, given, data["clean"])


def hausa() -> Problem:
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    with (REAL / "hausa-news.tsv").open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream, delimiter="\t", quoting=csv.QUOTE_NONE))
    names = sorted({row[key] for row in rows for key in ("given", "clean")})
    given, clean = (np.array([names.index(row[key]) for row in rows]) for key in ("given", "clean"))
    words = TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 5))
    classifier = make_pipeline(words, LogisticRegression(C=10, max_iter=2000))
    texts = np.array([row["text"] for row in rows], dtype=object)
    return problem(out_of_fold_probabilities(classifier, texts, given), given, clean)


PROBLEMS: dict[str, tuple[str, Callable[[], Problem]]] = {
    "CIFAR-10N aggregate": ("cifar10n-aggregate.npz", cifar10n),
    "LabelMe vote": ("labelme.npz", lambda: labelme("vote")),
    "LabelMe majority": ("labelme.npz", lambda: labelme("majority")),
    "Hausa news": ("hausa-news.tsv", hausa),
}


def sample(data: Problem, design: Design, size: int, seed: int) -> Audit:
    """Draw an audit and look up the true classes."""
    drawn = Plan.of(len(data.given), design, data.wrong).draw(size, seed)
    return Audit(drawn.rows, data.clean[drawn.rows], strata=drawn.strata, stratum_sizes=drawn.sizes[drawn.strata])


def holds(low: Any, high: Any, truth: Any) -> NDArray[np.bool_]:
    return np.asarray((low <= truth + 1e-12) & (truth - 1e-12 <= high))


def calibration_error(right: NDArray[Any], truth: NDArray[Any], bins: int = 10) -> float:
    place = np.minimum((right * bins).astype(int), bins - 1)
    return float(np.abs(np.bincount(place, right - truth, bins)).sum() / len(right))


def matrix_error(data: Problem, matrix: NDArray[np.float64]) -> float:
    return float(np.abs(matrix - data.truth).sum() / len(matrix))


def measured(data: Problem, design: Design, size: int, seed: int) -> dict[str, float]:
    audit = sample(data, design, size, seed)
    estimate = estimate_verified(data.posterior, data.estimate, audit)
    result: AuditResult | None = estimate.audit
    assert result is not None
    rate, n_samples = float((data.given != data.clean).mean()), len(data.given)
    low, high = result.noise_rate_interval()
    quantile = float(student.ppf(0.975, size - 1))
    counted = 2 * quantile * np.sqrt(rate * (1 - rate) / size * (1 - size / n_samples))
    lows, highs = result.transition_interval()
    right = find_posterior_issues(data.posterior, estimate).probability_right.astype(np.float64)
    return {
        "rate holds": float(holds(low, high, rate)),
        "width / counted": (high - low) / counted,
        "classes hold": float(holds(np.diagonal(lows), np.diagonal(highs), np.diagonal(data.truth)).mean()),
        "entries hold": float(holds(lows, highs, data.truth).mean()),
        "T error": matrix_error(data, estimate.transition),
        "ECE": calibration_error(right, data.given == data.clean),
    }


def rows_of(data: dict[str, Problem], design: Design, size: int, draws: int) -> Iterator[str]:
    found = {name: [measured(one, design, size, seed) for seed in range(draws)] for name, one in data.items()}
    for key in next(iter(found.values()))[0]:
        means = [float(np.mean([one[key] for one in runs])) for runs in found.values()]
        yield f"| {design}, {size}: {key} | " + " | ".join(f"{mean:.3f}" for mean in (*means, np.mean(means))) + " |"


def errors_of(data: dict[str, Problem], size: int, draws: int) -> str:
    means = []
    for one in data.values():
        runs = []
        for seed in range(draws):
            audit = sample(one, "uniform", size, seed)
            runs.append(matrix_error(one, correct_by_audit(one.posterior, one.estimate.transition, audit).transition))
        means.append(float(np.mean(runs)))
    return f"| T error, uniform {size} | " + " | ".join(f"{mean:.3f}" for mean in (*means, np.mean(means))) + " |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=60)
    parser.add_argument("--size", type=int, default=200)
    parser.add_argument("--designs", nargs="*", default=["uniform", "stratified"])
    parser.add_argument("--problems", nargs="*", default=list(PROBLEMS))
    options = parser.parse_args()
    data: dict[str, Problem] = {}
    for name in options.problems:
        file, make = PROBLEMS[name]
        if os.environ.get("DUALT_REAL_NOISE") and (REAL / file).exists():
            data[name] = make()
        else:
            print(f"Skipped {name}: there is no {file} in $DUALT_REAL_NOISE ({REAL}).")
    if not data:
        return
    started = time.perf_counter()
    print(f"\n{machine()}; {options.draws} draws\n")
    print("| |", " | ".join((*data, "mean")), "|")
    print("| --- |", " | ".join("---:" for _ in range(len(data) + 1)), "|")
    before = [matrix_error(one, one.estimate.transition) for one in data.values()]
    print("| T error, no audit |", " | ".join(f"{value:.3f}" for value in (*before, np.mean(before))), "|", flush=True)
    for size in SIZES:
        print(errors_of(data, size, max(5, options.draws // 4)), flush=True)
    for design in options.designs:
        for line in rows_of(data, design, options.size, options.draws):
            print(line, flush=True)
    print(f"\n{time.perf_counter() - started:.0f} s")


if __name__ == "__main__":
    main()

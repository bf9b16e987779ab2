"""Every estimator, and every constant of the default, by families of problems; real labels apart.

    python bench/families.py [--only PREFIX] [--out families.json]

Problems are `family__name.npz` in the folder $DUALT_PROBLEMS (else ../shared/data/problems beside the repository):
out-of-fold `pred_probs`, `given`, `clean`, and `transition`, the matrix that the labels were drawn from. Real labels
are those of `worlds.py`. A family counts as one, however many problems it has. `rule` (labels given by a keyword rule,
whose errors every classifier repeats) is shown and left out of the mean.

Printed are the error of every estimator, what the default makes of each answer to `determined`, the ranking of wrong
labels, how far results move with each constant of the default, and what comes out for a family when the constants are
chosen by the others: ten minutes.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from time import process_time
from typing import Any, NamedTuple, TypeAlias
from unittest import mock

import numpy as np
from measure import head, machine, row
from numpy.typing import NDArray
from sklearn.metrics import average_precision_score
from worlds import REAL, ROOT

import dualt
from dualt.estimators import DEFAULT_ESTIMATOR, ESTIMATORS

Record: TypeAlias = dict[str, Any]
PROBLEMS = Path(os.environ.get("DUALT_PROBLEMS") or ROOT.parent / "shared" / "data" / "problems")
FAMILIES = ("ccn", "idn", "people", "clean", "cal", "small", "bin", "weak", "rule")
LEFT_OUT = "rule"
# Each constant of the default, and values on both sides of it.
CONSTANTS: dict[tuple[str, str], tuple[float, ...]] = {
    ("dualt.estimators.clean_count", "SURE"): (0.85, 0.95),
    ("dualt.estimators.clean_count", "FADE"): (6, 12),
    ("dualt.estimators.clean_count", "ROUNDS"): (4, 8),
    ("dualt.estimators.clean_count", "Z"): (2.0, 4.0),
    ("dualt.rows.scaling", "TAIL"): (0.003, 0.03),
}


class Problem(NamedTuple):
    """Probabilities and labels whose truth is known."""

    family: str
    name: str
    probs: NDArray[np.float32]
    given: NDArray[np.intp]
    clean: NDArray[np.intp]
    transition: NDArray[np.float64]


def problems(folder: Path, only: str = "") -> Iterator[Problem]:
    """Yield the problems of a folder whose file names start with `only`."""
    for path in sorted(folder.glob(f"{only}*.npz")):
        family, _, name = path.stem.partition("__")
        with np.load(path) as data:
            yield Problem(family, name, *_arrays(data), data["transition"].astype(np.float64))


def real_labels(folder: Path) -> Iterator[Problem]:
    """Yield the real labels that come with probabilities; their matrix is what happened."""
    for path in sorted(folder.glob("*.npz")):
        with np.load(path) as data:
            if "pred_probs" in data:
                probs, given, clean = _arrays(data)
                happened = dualt.estimate_transition(probs, given, "oracle", clean_labels=clean).transition
                yield Problem(path.stem, path.stem, probs, given, clean, happened)


def _arrays(data: Any) -> tuple[NDArray[np.float32], NDArray[np.intp], NDArray[np.intp]]:
    probs = np.maximum(data["pred_probs"].astype(np.float32), 0)
    return probs / probs.sum(axis=1, keepdims=True), data["given"].astype(np.intp), data["clean"].astype(np.intp)


def measure(problem: Problem, estimator: str, determined: bool | None = None) -> Record:
    """Return what one estimator makes of one problem."""
    wrong = problem.given != problem.clean
    began = process_time()
    options: dict[str, Any] = {"determined": determined} if determined is not None else {}
    if ESTIMATORS[estimator].needs_clean_labels:
        options["clean_labels"] = problem.clean
    estimate = dualt.estimate_transition(problem.probs, problem.given, estimator, **options)
    right = dualt.find_label_issues(problem.probs, problem.given, estimate).probability_right
    low = estimate.noise_rate_interval()[0]
    return {
        "family": problem.family,
        "name": problem.name,
        "estimator": estimator,
        "error": dualt.l1_error(estimate.transition, problem.transition, normalize=True),
        "rate error": abs(estimate.noise_rate - float(wrong.mean())),
        "AP": precision(right, wrong),
        "lower end holds": low <= wrong.mean() + 1e-9,
        "claims noise": low > 0,
        "seconds": process_time() - began,
    }


def precision(right: NDArray[Any], wrong: NDArray[np.bool_]) -> float | None:
    """Return the average precision of the ranking of wrong labels; None where there is nothing to rank."""
    return float(average_precision_score(wrong, -right)) if 0 < wrong.mean() < 1 else None


def by_family(records: Iterable[Record], key: str) -> dict[str, float]:
    """Return the mean of `key` in each family, and over families as "mean"."""
    found: dict[str, list[float]] = {}
    for record in records:
        if record[key] is not None:
            found.setdefault(record["family"], []).append(float(record[key]))
    means = {family: float(np.mean(found[family])) for family in found}
    counted = [mean for family, mean in means.items() if family != LEFT_OUT]
    return means | {"mean": float(np.mean(counted)) if counted else float("nan")}


def chosen_by_others(settings: dict[str, dict[str, float]]) -> dict[str, tuple[str, float]]:
    """Return for each family the setting that is best in the mean of the other families, and its error in this one."""
    chosen = {}
    for family in (name for name in FAMILIES if name != LEFT_OUT):
        others = [name for name in FAMILIES if name not in (family, LEFT_OUT)]
        best = min(settings, key=lambda name: np.mean([settings[name][other] for other in others]))
        chosen[family] = (best, settings[best][family])
    return chosen


def table(rows: dict[str, dict[str, float]], columns: Iterable[str], first: str) -> None:
    """Print a Markdown table of means."""
    names = [name for name in columns if any(name in own for own in rows.values())]
    print()
    head(first, *names)
    for name, own in rows.items():
        row(name, *(own.get(column, "–") for column in names))


def show_constants(found: list[Problem], as_it_is: dict[str, float]) -> None:
    """Print the error with every constant moved, and the settings that families choose for one another."""
    settings = {"as it is": as_it_is}
    for (module, name), values in CONSTANTS.items():
        for value in values:
            with mock.patch.object(importlib.import_module(module), name, value):
                moved = [measure(problem, DEFAULT_ESTIMATOR) for problem in found]
            settings[f"{name} = {value:g}"] = by_family(moved, "error")
    print("\nHow far the default moves with each of its constants, Σ|T − T̂| / C:")
    table(settings, (*FAMILIES, "mean"), "constant")
    if not as_it_is.keys() >= set(FAMILIES) - {LEFT_OUT}:
        return
    print("\nChosen by the other families, and the error of the family left out:\n")
    print("| family left out | setting chosen by the others | error |\n| --- | --- | --- |")
    chosen = chosen_by_others(settings)
    for family, (setting, error) in chosen.items():
        print(f"| {family} | {setting} | {error:.3f} |")
    print(f"| mean | | {np.mean([error for _, error in chosen.values()]):.3f} |")


def show_real_labels(found: list[Problem]) -> None:
    """Print what the default and the confident joint make of labels that people gave."""
    if not found:
        return
    print("\nReal labels, Σ|T − T̂| / C (and the noise rate; at least), one classifier each:")
    print("\n| data | true rate | default | determined=True | confident joint |\n| --- | --- | --- | --- | --- |")
    runs: tuple[tuple[str, dict[str, Any]], ...] = (
        (DEFAULT_ESTIMATOR, {}),
        (DEFAULT_ESTIMATOR, {"determined": True}),
        ("confident-joint", {}),
    )
    for problem in found:
        cells = [f"{(problem.given != problem.clean).mean():.3f}"]
        for name, answer in runs:
            estimate = dualt.estimate_transition(problem.probs, problem.given, name, **answer)
            error = dualt.l1_error(estimate.transition, problem.transition, normalize=True)
            least = f"; {estimate.noise_rate_interval()[0]:.2f}" if name == DEFAULT_ESTIMATOR else ""
            cells.append(f"{error:.3f} ({estimate.noise_rate:.2f}{least})")
        print(f"| {problem.name} | {' | '.join(cells)} |")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", default="", help="problems whose file names start with this")
    parser.add_argument("--out", type=Path, help="write all records as JSON")
    options = parser.parse_args()
    found = list(problems(PROBLEMS, options.only))
    if not found:
        sys.exit(f"no problems in {PROBLEMS}")
    columns = (*FAMILIES, "mean")
    print(f"{len(found)} problems in {len({p.family for p in found})} families, {machine()}.")

    names = [name for name in ESTIMATORS if name != "views"]
    records = {name: [measure(problem, name) for problem in found] for name in names}
    print("\nMean Σ|T − T̂| / C, between 0 and 2:")
    table({name: by_family(records[name], "error") for name in names}, columns, "estimator")

    default = records[DEFAULT_ESTIMATOR]
    answers = {"unknown": default}
    for determined in (True, False):
        answers[str(determined)] = [measure(problem, DEFAULT_ESTIMATOR, determined) for problem in found]
    print("\nThe default by the answer to `determined`, Σ|T − T̂| / C:")
    table({name: by_family(of, "error") for name, of in answers.items()}, columns, "determined")
    keys = ("rate error", "lower end holds", "claims noise")
    print("\nThe default: error of the noise rate, share of problems whose lower end holds, and that claim any noise:")
    table({key: by_family(default, key) for key in keys}, columns, "default")

    print("\nAverage precision of the ranking of wrong labels:")
    rankings = {
        "dualt": default,
        "through the true T": [ranked(problem, problem.transition) for problem in found],
        "through the confident joint": records["confident-joint"],
        "self-confidence": [ranked(problem) for problem in found],
    }
    table({name: by_family(of, "AP") for name, of in rankings.items()}, columns, "ranked by")

    show_constants(found, by_family(default, "error"))
    show_real_labels(list(real_labels(REAL)))
    if options.out:
        options.out.write_text(json.dumps([record for of in records.values() for record in of]), encoding="utf-8")


def ranked(problem: Problem, transition: NDArray[np.float64] | None = None) -> Record:
    """Return the precision of ranking through a known matrix, or by the label's own probability."""
    if transition is None:
        right: NDArray[Any] = problem.probs[np.arange(len(problem.given)), problem.given]
    else:
        right = dualt.find_label_issues(problem.probs, problem.given, transition).probability_right
    return {"family": problem.family, "AP": precision(right, problem.given != problem.clean)}


if __name__ == "__main__":
    main()

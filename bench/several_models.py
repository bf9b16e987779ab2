"""What several models say that one does not: error of T, noise rate and ranking, by families of problems.

    python bench/several_models.py [--out several-models.json]
    python bench/several_models.py --choose     what comes out when each family's constants are chosen by the others

Problems are `family__name.npz` in the folder $DUALT_SEVERAL_MODELS (else ../shared/data/several-models beside the
repository): `pred_probs` (models × rows × classes), `given`, `clean`; and CIFAR-10N, by the networks of the folder of
`worlds.py`. The family `one-vs-rest` is real labels once more, one class against all others: two classes, few
positives. Families whose name starts with "overlap", "binary" or "many" are answered with determined=False, all others
with determined=True. Beside it are the default, which is not given an answer, and the confident joint on the mean of
the same probabilities. Prints tables of means over the problems of a family, then over families.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
from measure import head, machine, row
from sklearn.metrics import average_precision_score
from worlds import REAL

import dualt
from dualt.estimators import views

ROOT = Path(__file__).resolve().parent.parent
PROBLEMS = Path(os.environ.get("DUALT_SEVERAL_MODELS") or ROOT.parent / "shared" / "data" / "several-models")
OVERLAPPING = ("overlap", "binary", "many")
# Real labels of more than two classes.
REAL_LABELS = ("cifar10n", "labelme", "hausa-news", "trec-rules")
# Levels of confidence, EM steps, and the disputed share from which the voices are not believed, to choose from; the
# first is what `views` has, 100 steps are convergence, and 9 believes the voices always.
CHOICES: tuple[dict[str, Any], ...] = tuple(
    {"LEVELS": 5, "TRANSITION_STEPS": 2, "DISPUTED": 0.45} | other
    for other in (
        {}, {"LEVELS": 1}, {"LEVELS": 3}, {"LEVELS": 8}, {"TRANSITION_STEPS": 1}, {"TRANSITION_STEPS": 4},
        {"TRANSITION_STEPS": 100}, {"DISPUTED": 0.35}, {"DISPUTED": 0.55}, {"DISPUTED": 9.0},
    )
)  # fmt: skip


def problems() -> Iterator[tuple[str, str, np.ndarray, np.ndarray, np.ndarray]]:
    """Yield the family, name, probabilities of each model, given and true labels of every problem."""
    files = {tuple(path.stem.split("__", 1)): [path] for path in sorted(PROBLEMS.glob("*__*.npz"))}
    for noise in ("aggregate", "worst"):
        files["cifar10n", noise] = sorted(REAL.glob(f"cifar10n-{noise}-*.npz"))
    for (family, name), paths in files.items():
        if not paths:
            continue
        loaded = [np.load(path) for path in paths]
        members = np.concatenate([one["pred_probs"].reshape(-1, *one["pred_probs"].shape[-2:]) for one in loaded])
        members = members.astype(np.float32) / members.sum(axis=2, keepdims=True, dtype=np.float32)
        given, clean = loaded[0]["given"].astype(int), loaded[0]["clean"].astype(int)
        yield family, name, members, given, clean
        if family in REAL_LABELS or (family != "text-made" and name.startswith(REAL_LABELS)):
            yield from one_vs_rest(name, members, given, clean)


def one_vs_rest(name: str, members: np.ndarray, given: np.ndarray, clean: np.ndarray) -> Iterator[Any]:
    """Yield a problem with two classes for every class that a hundredth of the rows has."""
    for label in range(members.shape[2]):
        own, true = (given == label).astype(int), (clean == label).astype(int)
        if min(own.mean(), true.mean()) >= 0.01:
            yield (
                "one-vs-rest",
                f"{name} {label}",
                np.stack([1 - members[..., label], members[..., label]], 2),
                own,
                true,
            )


def name_of(choice: dict[str, Any]) -> str:
    """Return the values of a choice, with commas."""
    return ", ".join(f"{value:g}" for value in choice.values())


def choose() -> None:
    """Print the error of T for each family where the class is determined, with constants chosen by the others."""
    records = []
    for family, _, members, given, clean in problems():
        if family.startswith(OVERLAPPING):
            continue
        n_classes = members.shape[2]
        happened = dualt.estimate_transition(np.eye(n_classes)[clean], given, "spade").transition
        found = {"default": dualt.estimate_transition(members.mean(axis=0), given).transition}
        for choice in CHOICES:
            with mock.patch.multiple(views, **choice):
                found[name_of(choice)] = dualt.estimate_transition(members, given, determined=True).transition
        errors = {name: np.abs(matrix - happened).sum() / n_classes for name, matrix in found.items()}
        records.append({"family": family, **errors})
    table = pd.DataFrame(records).groupby("family").mean()
    settings = [name_of(choice) for choice in CHOICES]
    table["chosen"] = [table.drop(family)[settings].mean().idxmin() for family in table.index]
    table["left out"] = [own[own["chosen"]] for _, own in table.iterrows()]
    table.loc["mean"] = table.mean(numeric_only=True)
    print(
        f"{len(records)} problems, {machine()}.\n\nΣ|T − T̂| / C by levels of confidence, EM steps and disputed share:\n"
    )
    head("family", *settings, "chosen by the others", "left out", "default")
    for family, own in table.fillna({"chosen": ""}).iterrows():
        row(family, *(own[name] for name in settings), own["chosen"], own["left out"], own["default"])


def measure(family: str, name: str, members: np.ndarray, given: np.ndarray, clean: np.ndarray) -> dict[str, Any]:
    """Return the figures of one problem."""
    determined = not family.startswith(OVERLAPPING)
    n_classes, wrong, mean = members.shape[2], clean != given, members.mean(axis=0)
    happened = dualt.estimate_transition(np.eye(n_classes)[clean], given, "spade").transition
    record: dict[str, Any] = {"family": family, "name": name, "rate": float(wrong.mean())}

    def add(key: str, probs: Any, estimator: str | None = None, answer: bool | None = None) -> None:
        start = time.process_time()
        estimate = dualt.estimate_transition(probs, given, estimator, determined=answer)
        issues = dualt.find_label_issues(probs, given, estimate, determined=answer)
        record[f"s {key}"] = time.process_time() - start
        record[f"T {key}"] = float(np.abs(estimate.transition - happened).sum() / n_classes)
        record[f"rate {key}"] = abs(estimate.noise_rate - record["rate"])
        record[f"no noise {key}"] = estimate.noise_rate < 0.005
        record[f"held {key}"] = estimate.noise_rate_interval()[0] <= record["rate"] + 1e-9
        if wrong.any():
            record[f"AP {key}"] = float(average_precision_score(wrong, -issues.probability_right))

    add("default", mean)
    add("answered", mean, answer=determined)
    add("joint", mean, "confident-joint")
    add("unanswered", members)
    add("views", members, answer=determined)
    if wrong.any():
        record["AP self"] = float(average_precision_score(wrong, -mean[np.arange(len(given)), given]))
        known = dualt.find_label_issues(mean, given, happened)
        record["AP true"] = float(average_precision_score(wrong, -known.probability_right))
    return record


def show(title: str, table: pd.DataFrame, columns: dict[str, str]) -> None:
    """Print columns of the means under other names."""
    print(f"\n{title}:\n")
    head("family", "problems", *columns)
    for family, own in table.iterrows():
        row(family, f"{own['problems']:.0f}", *(own[name] for name in columns.values()))


def main() -> None:
    """Measure every problem, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--choose", action="store_true")
    arguments = parser.parse_args()
    if arguments.choose:
        choose()
        return
    records = [measure(*problem) for problem in problems()]
    if arguments.out is not None:
        arguments.out.write_text(json.dumps({"machine": machine(), "records": records}, indent=1), encoding="utf-8")
    table = pd.DataFrame(records).drop(columns="name").groupby("family").mean(numeric_only=True)
    table.insert(0, "problems", pd.DataFrame(records).groupby("family").size().astype(float))
    table.loc["mean"] = table.mean()
    table.loc["mean", "problems"] = len(records)
    print(f"{len(records)} problems in {len(table) - 1} families, {machine()}.")
    show("Σ|T − T̂| / C", table, {
        "confident joint": "T joint", "default": "T default", "default, answered": "T answered",
        "several models": "T unanswered", "several models, answered": "T views",
    })  # fmt: skip
    show("Noise rate", table, {
        "true": "rate", "off by: default": "rate default", "off by: several models": "rate views",
        "lower end holds": "held views",
    })  # fmt: skip
    show("AP of wrong labels, and CPU seconds", table, {
        "self-confidence": "AP self", "default": "AP default", "several models": "AP views",
        "true T": "AP true", "seconds: default": "s default", "seconds: several models": "s views",
    })  # fmt: skip
    answered = [family for family in table.index[:-1] if not family.startswith(OVERLAPPING)]
    if answered:
        ratio = (table.loc[answered, "T views"] / table.loc[answered, "T default"]).mean()
        print(f"\nClass determined: error of T {ratio:.2f} of the default's (mean of the families' ratios).")


if __name__ == "__main__":
    main()

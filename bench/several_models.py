"""What several models say that one does not: error of T, noise rate and ranking, by families of problems.

    python bench/several_models.py FOLDER [--out several-models.json]

FOLDER has problems as family__name.npz: `pred_probs` (models × rows × classes), `given`, `clean`. Families whose name
starts with "overlap", "binary" or "many" are answered with determined=False, all others with determined=True. Beside it
are the default and the confident joint on the mean of the same probabilities. Prints a Markdown table: means over the
problems of a family, then over families.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from measure import machine
from sklearn.metrics import average_precision_score

import dualt

OVERLAPPING = ("overlap", "binary", "many")


def measure(path: Path) -> dict[str, Any]:
    """Return the figures of one problem."""
    with np.load(path) as data:
        members, given, clean = (
            data["pred_probs"].astype(np.float32),
            data["given"].astype(int),
            data["clean"].astype(int),
        )
    members /= members.sum(axis=2, keepdims=True)
    family, name = path.stem.split("__", 1)
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
    return record


def main() -> None:
    """Measure every problem, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    records = [measure(path) for path in sorted(arguments.folder.glob("*__*.npz"))]
    if arguments.out is not None:
        arguments.out.write_text(json.dumps({"machine": machine(), "records": records}, indent=1), encoding="utf-8")
    table = pd.DataFrame(records).drop(columns="name").groupby("family").mean(numeric_only=True)
    table.insert(0, "problems", pd.DataFrame(records).groupby("family").size().astype(float))
    table.loc["mean"] = table.mean()
    columns = [f"T {key}" for key in ("default", "joint", "answered", "unanswered", "views")]
    columns += [
        "rate",
        "rate default",
        "rate views",
        "held views",
        "AP self",
        "AP default",
        "AP views",
        "s default",
        "s views",
    ]
    print(f"{machine()}\n\n| family | problems | {' | '.join(columns)} |\n|{' --- |' * (len(columns) + 2)}")
    for family, row in table.iterrows():
        print(f"| {family} | {row['problems']:.0f} | {' | '.join(f'{row[column]:.3f}' for column in columns)} |")
    answered = [family for family in table.index[:-1] if not family.startswith(OVERLAPPING)]
    if answered:
        ratio = (table.loc[answered, "T views"] / table.loc[answered, "T default"]).mean()
        print(f"\nClass determined: error of T {ratio:.2f} of the default's (mean of the families' ratios).")


if __name__ == "__main__":
    main()

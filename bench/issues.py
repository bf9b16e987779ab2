"""How well are wrong labels found: average precision beside cleanlab, on the same probabilities.

    python bench/issues.py [--seeds 34 35 36]           prints a Markdown table of means over the seeds

Out-of-fold probabilities come from scikit-learn classifiers; MNIST and Fashion-MNIST (12,000 images each) take
part if they are on this machine.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator
from statistics import fmean
from typing import Any

from measure import machine

NOISES = ("sym-0.2", "sym-0.5", "pair-0.45")


def cases() -> Iterator[tuple[str, Any, Any, Any]]:
    """Yield name, features, clean labels and classifier."""
    import numpy as np
    from sklearn.datasets import load_digits
    from sklearn.linear_model import LogisticRegression
    from sklearn.neural_network import MLPClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    from dualt.datasets import load_dataset
    from dualt.errors import DualtError

    yield "digits", *load_digits(return_X_y=True), make_pipeline(StandardScaler(), LogisticRegression(C=0.01))
    for name in ("mnist", "fashion-mnist"):
        try:
            data = load_dataset(name)
        except DualtError as error:
            print(f"{name} skipped: {error}")
            continue
        chosen = np.random.default_rng(5).permutation(len(data.train_y))[:12_000]
        features = np.asarray(data.train_x)[chosen].reshape(len(chosen), -1) / np.float32(255)
        network = MLPClassifier((256,), alpha=0.3, early_stopping=True, n_iter_no_change=5, max_iter=30, random_state=0)
        yield name, features, data.train_y[chosen], network


def measure_case(features: Any, clean: Any, model: Any, noise: str, seed: int) -> dict[str, float]:
    """Return average precisions for one data set, noise and seed."""
    import numpy as np
    from cleanlab.filter import find_label_issues as peer
    from cleanlab.rank import get_label_quality_scores
    from sklearn.metrics import average_precision_score

    import dualt
    from dualt.crossfit import out_of_fold_probabilities

    truth = dualt.noise.from_name(noise, int(clean.max()) + 1)
    given = dualt.noise.corrupt(clean, truth, random_state=seed)
    probs = out_of_fold_probabilities(model, features, given)
    wrong = given != clean
    found = dualt.find_label_issues(probs, given)
    flagged = peer(given, probs, n_jobs=1)
    scores = {
        "ours": found.probability_right,
        "true T": dualt.find_label_issues(probs, given, truth).probability_right,
        "self-confidence": probs[np.arange(len(given)), given],
        "cleanlab": get_label_quality_scores(given, probs, method="normalized_margin"),
    }
    return {
        **{name: average_precision_score(wrong, -score) for name, score in scores.items()},
        "wrong": int(wrong.sum()),
        "our flagged": int(found.is_issue.sum()),
        "cleanlab flagged": int(flagged.sum()),
    }


def mean_of(runs: list[dict[str, float]]) -> dict[str, float]:
    """Return the means over the seeds, and how far we are below the true T: in the mean and at worst."""
    gaps = [run["true T"] - run["ours"] for run in runs]
    return {**{key: fmean(run[key] for run in runs) for key in runs[0]}, "gap": fmean(gaps), "worst gap": max(gaps)}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seeds", nargs="+", type=int, default=[34, 35, 36])
    seeds = parser.parse_args().seeds
    warnings.simplefilter("ignore")
    print(f"{machine()}; means over {len(seeds)} seeds\n")
    print(
        "| data | noise | AP dualt | AP with the true T | AP cleanlab (normalised margin) | AP self-confidence"
        " | below the true T, mean (worst) | wrong | flagged dualt | flagged cleanlab |"
    )
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for name, features, clean, model in cases():
        for noise in NOISES:
            r = mean_of([measure_case(features, clean, model, noise, seed) for seed in seeds])
            best = max(r[key] for key in ("ours", "cleanlab", "self-confidence"))
            cell = {key: f"**{value:.3f}**" if value == best else f"{value:.3f}" for key, value in r.items()}
            print(
                f"| {name} | {noise} | {cell['ours']} | {r['true T']:.3f} | {cell['cleanlab']}"
                f" | {cell['self-confidence']} | {r['gap']:.3f} ({r['worst gap']:.3f})"
                f" | {r['wrong']:,.0f} | {r['our flagged']:,.0f} | {r['cleanlab flagged']:,.0f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()

"""How well are wrong labels found: average precision and time, beside cleanlab, on the same probabilities.

    python bench/issues.py            prints a Markdown table

Out-of-fold probabilities come from scikit-learn classifiers; MNIST and Fashion-MNIST (12,000 images each) take
part if they are on this machine.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

from measure import best_seconds, machine

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
        features = np.asarray(data.train_x)[chosen].reshape(len(chosen), -1) / 255
        network = MLPClassifier((100,), max_iter=12, alpha=1e-3, early_stopping=True, random_state=0)
        yield name, features, data.train_y[chosen], network


def measure_case(features: Any, clean: Any, model: Any, noise: str) -> dict[str, Any]:
    """Return average precisions and times for one data set and noise."""
    import numpy as np
    from cleanlab.filter import find_label_issues as peer
    from cleanlab.rank import get_label_quality_scores
    from sklearn.metrics import average_precision_score

    import dualt
    from dualt.crossfit import out_of_fold_probabilities

    truth = dualt.noise.from_name(noise, int(clean.max()) + 1)
    given = dualt.noise.corrupt(clean, truth, rng=11)
    probs = out_of_fold_probabilities(model, features, given, cv=3)
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
        "our seconds": best_seconds(lambda: dualt.find_label_issues(probs, given), 3),
        "cleanlab seconds": best_seconds(lambda: peer(given, probs, n_jobs=1), 3),
    }


def main() -> None:
    warnings.simplefilter("ignore")
    print(f"{machine()}\n")
    print(
        "| data | noise | AP dualt | AP with the true T | AP cleanlab (normalised margin) | AP self-confidence"
        " | wrong | flagged dualt | flagged cleanlab | time, cleanlab / dualt |"
    )
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for name, features, clean, model in cases():
        for noise in NOISES:
            r = measure_case(features, clean, model, noise)
            print(
                f"| {name} | {noise} | **{r['ours']:.3f}** | {r['true T']:.3f} | {r['cleanlab']:.3f}"
                f" | {r['self-confidence']:.3f} | {r['wrong']:,} | {r['our flagged']:,} | {r['cleanlab flagged']:,}"
                f" | {r['cleanlab seconds'] / r['our seconds']:.1f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()

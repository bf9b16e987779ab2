"""`dualt demo`: the main job on scikit-learn's digits, where the truth is known."""

from __future__ import annotations

from pathlib import Path

from dualt.cli.options import Json
from dualt.cli.terminal import console, print_json, show_estimate, show_next

_NOISE = "pair-0.3"
_REPORT = Path("demo-report.html")


def demo(as_json: Json = False) -> None:
    """Show the main job where the truth is known: digits whose labels were corrupted on purpose.

    A scikit-learn classifier sees only the noisy labels. Its out-of-fold probabilities show which labels are wrong, on
    a page to review them too (demo-report.html); corrected, they make a better classifier. The matrix comes last.

    Example: `dualt demo`
    """
    import numpy as np
    from sklearn.base import clone
    from sklearn.datasets import load_digits
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import train_test_split
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    from dualt import RobustClassifier, estimate_transition, find_label_issues, l1_error, noise
    from dualt.crossfit import out_of_fold_probabilities

    pixels, digits = load_digits(return_X_y=True)
    features, test_features, clean, test_clean = train_test_split(
        pixels, digits, test_size=0.25, stratify=digits, random_state=0
    )
    truth = noise.from_name(_NOISE, 10, random_state=0)
    noisy = noise.corrupt(clean, truth, random_state=0)
    model = make_pipeline(StandardScaler(), LogisticRegression(C=0.01))
    probs = out_of_fold_probabilities(model, features, noisy)
    estimate = estimate_transition(probs, noisy)
    found = find_label_issues(probs, noisy, estimate)
    wrong, flagged = noisy != clean, found.is_issue
    corrected = np.where(flagged, found.suggested, noisy)
    trained = {
        "as given": model.fit(features, noisy),
        "corrected": clone(model).fit(features, corrected),
        "noise-aware": RobustClassifier(clone(model), random_state=0).fit(features, noisy),
        "true labels": clone(model).fit(features, clean),
    }
    accuracy = {name: float(each.score(test_features, test_clean)) for name, each in trained.items()}
    images = np.rint(features.reshape(-1, 8, 8) * (255 / 16)).astype(np.uint8)
    found.to_report(_REPORT, images=images, title="Labels of the digits demo")
    counts = {
        "wrong": int(wrong.sum()), "flagged": int(flagged.sum()), "flagged_and_wrong": int((flagged & wrong).sum()),
        "wrong_after_correction": int((corrected != clean).sum()),
    }  # fmt: skip
    error = l1_error(estimate.transition, truth, normalize=True)
    if as_json:
        scores = {"expected_wrong": found.expected_count, "accuracy": accuracy, "error": error}
        print_json({"noise": _NOISE, **counts, **scores, "report": str(_REPORT)})
        return
    out = console()
    out.print(
        f"\n[bold]{counts['flagged']:,} of {len(found):,} labels are flagged; {counts['flagged_and_wrong']:,} of them"
        f" are truly wrong,[/] of {counts['wrong']:,} that were made wrong ({_NOISE})."
        f"\nWith every suggestion taken, {counts['wrong_after_correction']:,} wrong labels are left."
        f" Review them in a browser: {_REPORT}\n"
        f"\nThe same classifier, on clean test images:"
        f"\n  trained on the labels as given   {accuracy['as given']:.1%}"
        f"\n  on the corrected labels          [bold]{accuracy['corrected']:.1%}[/]"
        f"\n  noise-aware, labels as given     [bold]{accuracy['noise-aware']:.1%}[/]"
        f"\n  on the true labels               {accuracy['true labels']:.1%}\n"
        f"\nThe transition matrix; its error Σ|T − T̂| / C is {error:.3f}:"
    )
    show_estimate(out, estimate)
    show_next(out, {"dualt issues data.csv --label label --text title": "the same for your own data"})

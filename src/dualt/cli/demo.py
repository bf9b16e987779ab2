"""`dualt demo`: the main job on scikit-learn's digits, where the truth is known."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from dualt.cli.options import Json
from dualt.cli.terminal import console, plain_table, print_json, show_estimate, show_next

_NOISE = "pair-0.3"
_REPORT = Path("demo-report.html")


def demo(as_json: Json = False) -> None:
    """Show the main job where the truth is known: digits whose labels were corrupted on purpose.

    A scikit-learn classifier sees only the noisy labels. Its out-of-fold probabilities show which labels are wrong, on
    a page to review them too (demo-report.html); corrected, they make a better classifier. The matrix and the
    estimators come last.

    Example: `dualt demo`
    """
    import numpy as np
    from sklearn.base import clone
    from sklearn.datasets import load_digits
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import train_test_split
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    from dualt import noise
    from dualt.classifier import RobustClassifier
    from dualt.crossfit import out_of_fold_probabilities
    from dualt.estimators import DEFAULT_ESTIMATOR, ESTIMATORS, comparable, estimate_posterior
    from dualt.issues import find_posterior_issues
    from dualt.rows import as_posterior
    from dualt.transition import l1_error

    pixels, digits = load_digits(return_X_y=True)
    features, test_features, clean, test_clean = train_test_split(
        pixels, digits, test_size=0.25, stratify=digits, random_state=0
    )
    truth = noise.from_name(_NOISE, 10, random_state=0)
    noisy = noise.corrupt(clean, truth, random_state=0)
    model = make_pipeline(StandardScaler(), LogisticRegression(C=0.01))
    posterior = as_posterior(out_of_fold_probabilities(model, features, noisy), noisy)
    known = {name: {"clean_labels": clean} for name, entry in ESTIMATORS.items() if entry.needs_clean_labels}
    names = [*comparable(10), *known]
    estimates = {name: estimate_posterior(posterior, name, **known.get(name, {})) for name in names}
    errors = {name: l1_error(estimate.transition, truth, normalize=True) for name, estimate in estimates.items()}
    found = find_posterior_issues(posterior, estimates[DEFAULT_ESTIMATOR])
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
        "wrong": int(wrong.sum()),
        "flagged": int(flagged.sum()),
        "flagged_and_wrong": int((flagged & wrong).sum()),
        "wrong_after_correction": int((corrected != clean).sum()),
    }
    if as_json:
        scores: dict[str, Any] = {"expected_wrong": found.expected_count, "accuracy": accuracy, "errors": errors}
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
        f"\nThe transition matrix, by the default estimator, {DEFAULT_ESTIMATOR}:"
    )
    show_estimate(out, estimates[DEFAULT_ESTIMATOR])
    out.print("\nAll estimators, against the truth that they did not see:")
    table = plain_table("", "estimator", "finds wrong>", "error Σ|T − T̂| / C>")
    for name in sorted(errors, key=errors.__getitem__):
        table.add_row(name, f"{estimates[name].noise_rate:.1%}", f"{errors[name]:.3f}")
    out.print(table)
    show_next(out, {"dualt issues data.csv --label label --text title": "the same for your own data"})

"""`dualt demo`: the main job on scikit-learn's digits, where the truth is known."""

from __future__ import annotations

from pathlib import Path

from dualt.cli.options import Json, shared
from dualt.cli.terminal import console, error_table, print_json, show_estimate, show_next

_NOISE = "pair-0.3"
_REPORT = Path("demo-report.html")


@shared
def demo(as_json: Json = False) -> None:
    """Show the main job where the truth is known: digits whose labels were corrupted on purpose.

    A scikit-learn classifier sees only the noisy labels. From its out-of-fold probabilities come the wrong labels, a
    page to review them (demo-report.html), a better classifier, and the transition matrix.

    Example: `dualt demo`
    """
    import numpy as np
    from sklearn.datasets import load_digits
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import train_test_split
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    from dualt import noise
    from dualt.classifier import RobustClassifier
    from dualt.crossfit import out_of_fold_probabilities
    from dualt.estimators import DEFAULT_ESTIMATOR, ESTIMATORS, estimate_posterior
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
    estimates = {name: estimate_posterior(posterior, name, **known.get(name, {})) for name in ESTIMATORS}
    errors = {name: l1_error(estimate.transition, truth, normalize=True) for name, estimate in estimates.items()}
    found = find_posterior_issues(posterior, estimates[DEFAULT_ESTIMATOR])
    images = np.rint(features.reshape(-1, 8, 8) * (255 / 16)).astype(np.uint8)
    compared = [estimate for name, estimate in estimates.items() if name not in known]
    found.to_report(_REPORT, images=images, comparison=compared, title="Digits, demo")
    models = {"plain": model, "robust": RobustClassifier(model, random_state=0)}
    accuracy = {
        name: float(each.fit(features, noisy).score(test_features, test_clean)) for name, each in models.items()
    }
    wrong, flagged = int(np.sum(noisy != clean)), int(found.is_issue.sum())
    truly_wrong = int(np.sum(found.is_issue & (noisy != clean)))
    if as_json:
        print_json(
            {
                "noise": _NOISE,
                "wrong": wrong,
                "expected_wrong": found.expected_count,
                "flagged": flagged,
                "flagged_and_wrong": truly_wrong,
                "accuracy": accuracy,
                "errors": errors,
                "report": str(_REPORT),
            }
        )
        return
    out = console()
    out.print(
        f"\n[bold]{len(found):,} images of digits; {wrong:,} of their labels were made wrong[/] ({_NOISE})."
        " A classifier saw only those labels.\n"
        f"\n[bold]1. Wrong labels:[/] {flagged:,} flagged, [bold]{truly_wrong:,}[/] of them truly wrong."
        f" Review them in a browser: {_REPORT}"
        f"\n[bold]2. The same classifier on clean test images:[/] plain {accuracy['plain']:.1%}, noise-aware"
        f" [bold]{accuracy['robust']:.1%}[/]"
        f"\n[bold]3. The transition matrix,[/] by the default estimator, {DEFAULT_ESTIMATOR}:"
    )
    show_estimate(out, estimates[DEFAULT_ESTIMATOR])
    out.print("\n[bold]4. All estimators[/] against the truth that they did not see:\n")
    out.print(error_table(estimates, errors))
    show_next(out, {"dualt issues data.csv --label label --text title": "the same for your own data"})

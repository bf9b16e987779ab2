"""`dualt demo`: the main job on the digits of scikit-learn, where the truth is known."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dualt.cli.guard import shared
from dualt.cli.options import Json, RandomState, print_json, save_report

if TYPE_CHECKING:
    from dualt.issues import LabelIssues
    from dualt.results import TransitionEstimate


@shared
def demo(
    noise: Annotated[str, typer.Option(help="sym-0.2, pair-0.45, random-0.3 or clean.")] = "pair-0.3",
    report: Annotated[Path, typer.Option(help="Where to write the page.")] = Path("demo-report.html"),
    network: Annotated[bool, typer.Option(help="Train networks too, if torch is installed.")] = True,
    open_page: Annotated[bool, typer.Option("--open", help="Open the page in a browser.")] = False,
    random_state: RandomState = 0,
    as_json: Json = False,
) -> None:
    """Show the main job where the truth is known: digits whose labels were corrupted on purpose.

    A scikit-learn classifier sees only the noisy labels. From its out-of-fold probabilities come the
    transition matrix, the wrong labels, a page to review them, and better classifiers.

    Example: `dualt demo --noise sym-0.5`
    """
    import numpy as np
    from sklearn.datasets import load_digits
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import train_test_split
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    from dualt import noise as noises
    from dualt.classifier import RobustClassifier
    from dualt.crossfit import out_of_fold_probabilities
    from dualt.estimators import DEFAULT_ESTIMATOR, ESTIMATORS, estimate_posterior
    from dualt.issues import find_posterior_issues
    from dualt.rows import as_posterior
    from dualt.transition import l1_error

    pixels, digits = load_digits(return_X_y=True)
    features, test_features, clean, test_clean = train_test_split(
        pixels, digits, test_size=0.25, stratify=digits, random_state=random_state
    )
    truth = noises.from_name(noise, 10, random_state=random_state)
    noisy = noises.corrupt(clean, truth, random_state=random_state)
    model = make_pipeline(StandardScaler(), LogisticRegression(C=0.01))
    posterior = as_posterior(out_of_fold_probabilities(model, features, noisy), noisy)
    known = {name: {"clean_labels": clean} for name, entry in ESTIMATORS.items() if entry.needs_clean_labels}
    estimates = {name: estimate_posterior(posterior, name, **known.get(name, {})) for name in ESTIMATORS}
    errors = {name: l1_error(estimate.transition, truth, normalize=True) for name, estimate in estimates.items()}
    found = find_posterior_issues(posterior, estimates[DEFAULT_ESTIMATOR])
    blind = [estimate for name, estimate in estimates.items() if name not in known]
    images = np.rint(features.reshape(-1, 8, 8) * (255 / 16)).astype(np.uint8)
    save_report(report, found, comparison=blind, images=images, title="Digits, demo")
    models: dict[str, Any] = {"plain": model, "robust": RobustClassifier(model, random_state=random_state)}
    models |= _networks(random_state) if network else {}
    accuracy = {
        name: float(each.fit(features, noisy).score(test_features, test_clean)) for name, each in models.items()
    }
    result = {
        "noise": noise,
        "random_state": random_state,
        "wrong": int(np.sum(noisy != clean)),
        "expected_wrong": found.expected_count,
        "flagged_and_wrong": int(np.sum(found.is_issue & (noisy != clean))),
        "flagged": int(found.is_issue.sum()),
        "errors": errors,
        "accuracy": accuracy,
        "report": str(report),
    }
    if as_json:
        print_json(result)
    else:
        _show(result, estimates, found, network=network)
    if open_page:
        typer.launch(str(report.resolve()))


def _networks(random_state: int) -> dict[str, Any]:
    """Return a network trained with cross entropy and one with the forward correction, if torch is installed."""
    from importlib.util import find_spec

    from dualt.estimators import DEFAULT_ESTIMATOR

    if find_spec("torch") is None:
        return {}
    from dualt.nn.classifier import RobustNetClassifier

    settings: dict[str, Any] = {"n_jobs": 1, "random_state": random_state}
    return {
        "cross entropy": RobustNetClassifier(method="ce", **settings),
        "forward": RobustNetClassifier(method="forward", estimator=DEFAULT_ESTIMATOR, **settings),
    }


def _show(
    result: dict[str, Any], estimates: dict[str, TransitionEstimate], found: LabelIssues, *, network: bool
) -> None:
    from dualt.cli import picture
    from dualt.estimators import DEFAULT_ESTIMATOR

    out = picture.console()
    accuracy = result["accuracy"]
    out.print(
        f"\n[bold]1. {len(found):,} images of digits; {result['wrong']:,} of their labels were made wrong"
        f" ({result['noise']}).[/]\n   A classifier saw only those labels. What each estimator finds, against the"
        " truth it did not see:\n"
    )
    out.print(picture.error_table(estimates, result["errors"]))
    out.print(f"\n[bold]2. The default, {DEFAULT_ESTIMATOR}:[/]")
    picture.show_estimate(out, estimates[DEFAULT_ESTIMATOR], 0.95)
    out.print(
        f"\n[bold]3. Wrong labels:[/] {result['flagged']:,} flagged, {result['flagged_and_wrong']:,} of them truly"
        f" wrong. Review them in a browser: [bold]{result['report']}[/]"
        f"\n[bold]4. The same classifier on clean test images:[/] plain {accuracy['plain']:.1%},"
        f" noise-aware [bold]{accuracy['robust']:.1%}[/]"
    )
    if "forward" in accuracy:
        out.print(
            f"[bold]5. A network on the same images:[/] cross entropy {accuracy['cross entropy']:.1%},"
            f" forward-corrected [bold]{accuracy['forward']:.1%}[/]"
        )
    else:
        missing = "pip install 'dualt\\[train]'" if network else "left out (--no-network)"
        out.print(f"[dim]5. A network on the same images: {missing}[/]")
    picture.show_next(out, {"dualt issues data.csv --label label --text title": "the same for your own data"})

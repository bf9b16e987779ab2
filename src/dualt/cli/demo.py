"""`dualt demo`: the main job on data that ships with scikit-learn, where the truth is known."""

from __future__ import annotations

from typing import Annotated

import typer

from dualt.cli.options import Json, Seed, print_json


def demo(
    noise: Annotated[str, typer.Option("--noise", help="sym-0.2, pair-0.45, random-0.3 or clean.")] = "pair-0.3",
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Show the main job where the truth is known: digits, noise put in, and found again.

    Out-of-fold probabilities come from a scikit-learn classifier trained on the noisy labels alone.

    Example: `dualt demo --noise sym-0.5`
    """
    import numpy as np
    from sklearn.datasets import load_digits
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import cross_val_predict
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    from dualt import l1_error
    from dualt import noise as noises
    from dualt.cli import picture
    from dualt.estimators import ESTIMATORS, NoisyPosterior, estimate_posterior

    features, clean = load_digits(return_X_y=True)
    truth = noises.from_name(noise, 10, rng=seed)
    noisy = noises.corrupt(clean, truth, rng=seed)
    model = make_pipeline(StandardScaler(), LogisticRegression(C=0.01, max_iter=500))
    probs = cross_val_predict(model, features, noisy, cv=5, method="predict_proba")
    posterior = NoisyPosterior.from_arrays(probs, noisy)
    options = {"oracle": {"clean_labels": clean}}
    estimates = {name: estimate_posterior(posterior, name, **options.get(name, {})) for name in ESTIMATORS}
    errors = {name: l1_error(estimate.transition, truth, normalize=True) for name, estimate in estimates.items()}
    best = min((name for name in errors if not ESTIMATORS[name].needs_clean_labels), key=lambda name: errors[name])
    wrong = float(np.mean(noisy != clean))
    if as_json:
        print_json({"noise": noise, "seed": seed, "truly_wrong": wrong, "best": best, "errors": errors})
        return
    out = picture.console()
    out.print(
        f"\n[bold]{len(clean):,} images of digits; {wrong:.1%} of their labels were made wrong ({noise}).[/]\n"
        "A classifier saw only the noisy labels. What each estimator finds, against the truth it did not see:\n"
    )
    out.print(picture.error_table(estimates, errors))
    picture.show_estimate(out, estimates[best], 0.95)
    out.print("\n[bold]Next[/]\n dualt estimate PROBS LABELS --compare   [dim]the same for your own data[/]")

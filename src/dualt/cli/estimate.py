"""`dualt estimate`: how noisy are the labels."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Option

import dualt
from dualt.cli.options import Data, Estimation, Json, Learning, output_option, shared
from dualt.cli.terminal import again, console, plain_table, print_json, show_estimate, show_next
from dualt.files import check_ending


@shared
def estimate(
    data: Data,
    learning: Learning,
    estimation: Estimation,
    compare: Annotated[bool, Option("--compare", help="Run every estimator and show them side by side.")] = False,
    output: Annotated[Path | None, output_option(help="Write all as .json, or the matrix as .npy or .csv.")] = None,
    as_json: Json = False,
) -> None:
    """Estimate how noisy the labels are: the transition matrix, with the share of wrong labels.

    DATA are a classifier's probabilities of the given label, best out of fold (cross-validated), and LABELS the labels
    you were given; or a table or images in a folder per class without probabilities: then they are made as `dualt
    probs` makes them.

    Example: `dualt estimate probs.npy labels.npy --compare -o transition.json`
    """
    from dualt.cli.inputs import estimate_examples, opened
    from dualt.estimators import ESTIMATORS, comparable, estimate_posterior

    check_ending(output, dualt.results.estimate.ESTIMATE_FORMATS)
    with opened(data, learning, estimation) as examples:
        chosen = estimate_examples(examples, estimation)
        names = comparable(examples.posterior.n_classes) if compare else ()
        others = {name: estimate_posterior(examples.posterior, name) for name in names if name != chosen.estimator}
    compared = {chosen.estimator: chosen} | others
    if output is not None:
        chosen.save(output)
    if as_json:
        beside = {name: other.to_dict() for name, other in compared.items()}
        print_json(chosen.to_dict() | ({"compared": beside} if compare else {}))
        return
    out = console()
    show_estimate(out, chosen)
    if others:
        table = plain_table("\nEstimators side by side", "estimator", "share wrong>", "Σ|A − B| / C>", "")
        for name, other in compared.items():
            distance = dualt.l1_error(other.transition, chosen.transition, normalize=True)
            about = ESTIMATORS[name].summary if name in ESTIMATORS else ""
            table.add_row(name, f"{other.noise_rate:.1%}", f"{distance:.2f}", f"[not bold dim]{about}[/]")
        out.print(table)
    steps = {again("issues", without=["-o"]): "which labels are wrong, and what they should be"}
    if not compare:
        steps[again(None, "--compare", without=["-o"])] = "every estimator side by side"
    show_next(out, steps, output)

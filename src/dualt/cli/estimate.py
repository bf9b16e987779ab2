"""`dualt estimate`: how noisy are the labels."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dualt.cli.groups import Data, Estimation, Page
from dualt.cli.guard import shared
from dualt.cli.learning import Learning
from dualt.cli.options import Json, output_option, print_estimate

if TYPE_CHECKING:
    from dualt.results import TransitionEstimate
    from dualt.rows import NoisyPosterior


@shared
def estimate(
    estimation: Estimation,
    data: Data,
    page: Page,
    learning: Learning,
    compare: Annotated[bool, typer.Option("--compare", help="Run every estimator and show them side by side.")] = False,
    output: Annotated[Path | None, output_option(help="Write all as .json, or the matrix as .npy or .csv.")] = None,
    as_json: Json = False,
) -> None:
    """Estimate how noisy the labels are: the transition matrix, with intervals and plain words.

    PROBS are a classifier's probabilities of the given label, best out-of-fold (cross-validated);
    LABELS are the labels you were given. Without probabilities, a table with --text or --features, or images in a
    folder per class, will do: they are made as `dualt probs` makes them.

    Example: `dualt estimate probs.npy labels.npy --compare -o transition.json`
    """
    from dualt.issues import find_posterior_issues

    named = learning.as_typed(data, page.text_column)
    data = learning.completed(data, page.text_column)
    with data.opened(page.text_column) as posterior:
        chosen = estimation.estimate(posterior)
        others = _compare(posterior, chosen) if compare else {}
        found = None if page.report is None else find_posterior_issues(posterior, chosen)
    if found is not None:
        found = data.describe(found, posterior, page)
    if output is not None:
        chosen.save(output, level=estimation.level)
    if found is not None:
        page.write(found, data.image_folder, comparison=tuple(others.values()), level=estimation.level)
    print_estimate(chosen, others, estimation.level, as_json=as_json)
    if not as_json:
        inputs = f"{named} {estimation.as_typed()}".rstrip()
        _show_next(inputs, estimation.is_default, compared=compare, written=(output, page.report))


def _compare(posterior: NoisyPosterior, chosen: TransitionEstimate) -> dict[str, TransitionEstimate]:
    from dualt.estimators import comparable, estimate_posterior

    names = comparable(posterior.n_classes)
    found = {name: chosen if name == chosen.estimator else estimate_posterior(posterior, name) for name in names}
    return found | {chosen.estimator: chosen}


def _show_next(inputs: str, defaulted: bool, *, compared: bool, written: tuple[Path | None, Path | None]) -> None:
    from dualt.cli import picture
    from dualt.estimators import DEFAULT_ESTIMATOR

    steps = {f"dualt issues {inputs}": "which labels are wrong, and what they should be"}
    if not compared:
        steps[f"dualt estimate {inputs} --compare"] = "every estimator side by side"
    if written[1] is None:
        steps[f"dualt estimate {inputs} --report report.html"] = "a page to look at and review"
    out = picture.console()
    if defaulted:
        out.print(
            f"\n[dim]{DEFAULT_ESTIMATOR} is the default: of the estimators that hold both for noise that depends on the"
            " class and for noise that depends on the example, it errs least.[/]"
        )
    picture.show_next(out, steps | {f"Written: {path}": "" for path in filter(None, written)})

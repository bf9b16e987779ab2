"""`dualt estimate`: how noisy are the labels."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dualt.cli.options import (
    Classes,
    Images,
    Json,
    LabelColumn,
    Labels,
    Level,
    Method,
    Probs,
    Report,
    Text,
    print_json,
    read_posterior,
    save_report,
)

if TYPE_CHECKING:
    from dualt.estimators import NoisyPosterior, TransitionEstimate


def estimate(
    probs: Probs,
    labels: Labels = None,
    method: Method = None,
    compare: Annotated[bool, typer.Option("--compare", help="Run every estimator and show them side by side.")] = False,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="An option of the estimator, such as anchor=quantile."),
    ] = None,
    verified: Annotated[
        Path | None, typer.Option("--verified", help="A random sample checked by hand, as `dualt audit` draws it.")
    ] = None,
    level: Level = 0.95,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="Write all as .json, or the matrix as .npy or .csv."),
    ] = None,
    report: Report = None,
    images: Images = None,
    text: Text = None,
    label: LabelColumn = None,
    classes: Classes = None,
    as_json: Json = False,
) -> None:
    """Estimate how noisy the labels are: the transition matrix, with intervals and plain words.

    PROBS are a classifier's probabilities of the given label, best out-of-fold (cross-validated);
    LABELS the labels you were given.

    Example: `dualt estimate probs.npy labels.npy --compare -o transition.json`
    """
    from dualt.estimators import estimate_posterior
    from dualt.files import check_writable_target
    from dualt.issues import find_posterior_issues
    from dualt.validation import check_fraction

    check_fraction(level, "--level")
    for target in (output, report):
        if target is not None:
            check_writable_target(target)
    posterior = read_posterior(probs, labels, label, classes)
    chosen = estimate_posterior(posterior, method, **_parse_settings(settings or []))
    if verified is not None:
        chosen = _use_verified(posterior, chosen, verified)
    others = _compare(posterior, chosen) if compare else {}
    if output is not None:
        chosen.save(output, level=level)
    if report is not None:
        found = find_posterior_issues(posterior, chosen)
        save_report(report, chosen, found, comparison=tuple(others.values()), images=images, text=text, level=level)
    if as_json:
        content = chosen.to_dict(level)
        if compare:
            content["compared"] = {name: other.to_dict(level) for name, other in others.items()}
        print_json(content)
        return
    _show(chosen, others, level, defaulted=method is None and verified is None)
    _show_next(f"{probs} {labels or f'--label {label}'}", compared=compare, output=output, report=report)


def _use_verified(posterior: NoisyPosterior, chosen: TransitionEstimate, path: Path) -> TransitionEstimate:
    """Blend the estimate with an audit, if its given labels are still those of the data."""
    import numpy as np

    from dualt import io
    from dualt.errors import LabelsError
    from dualt.estimators import estimate_verified
    from dualt.validation import check_indices

    rows, given, true = io.read_audit(path)
    check_indices(rows, posterior.summary.n_samples)
    now = posterior.coder.encode(posterior.noisy_labels[rows])
    differs = np.flatnonzero(posterior.coder.encode(given) != now)
    if len(differs):
        raise LabelsError(f"Expected the given labels of the audit {path}, got another one at row {rows[differs[0]]}.")
    return estimate_verified(posterior, chosen, rows, true)


def _compare(posterior: NoisyPosterior, chosen: TransitionEstimate) -> dict[str, TransitionEstimate]:
    from dualt.estimators import comparable, estimate_posterior

    names = comparable(posterior.n_classes)
    found = {name: chosen if name == chosen.method else estimate_posterior(posterior, name) for name in names}
    return found | {chosen.method: chosen}


def _parse_settings(settings: list[str]) -> dict[str, Any]:
    import ast

    from dualt.errors import InputError

    options: dict[str, Any] = {}
    for setting in settings:
        name, equals, value = setting.partition("=")
        if not equals:
            raise InputError(f"Expected --set NAME=VALUE, got {setting!r}.")
        try:
            options[name] = ast.literal_eval(value)
        except (ValueError, SyntaxError):
            options[name] = value
    return options


def _show(chosen: TransitionEstimate, others: dict[str, TransitionEstimate], level: float, *, defaulted: bool) -> None:
    from dualt.cli import picture
    from dualt.estimators import ESTIMATORS

    out = picture.console()
    picture.show_estimate(out, chosen, level)
    if defaulted:
        out.print(
            f"\n[dim]{chosen.method} is the default: of the estimators that hold for noise by class and for noise by"
            " example alike, it errs least.[/]"
        )
    if others:
        out.print()
        out.print(picture.comparison_table(others, level))
        out.print(picture.disagreement_table(others))
        out.print()
        out.print(picture.methods_table({name: ESTIMATORS[name].summary for name in others if name in ESTIMATORS}))


def _show_next(inputs: str, *, compared: bool, output: Path | None, report: Path | None) -> None:
    from rich.markup import escape

    from dualt.cli import picture

    inputs = escape(inputs)
    steps = {f"dualt issues {inputs}": "which labels are wrong, and what they should be"}
    if not compared:
        steps[f"dualt estimate {inputs} --compare"] = "every estimator side by side"
    if report is None:
        steps[f"dualt estimate {inputs} --report report.html"] = "a page to look at and review"
    out = picture.console()
    out.print("\n[bold]Next[/]")
    for command, what in steps.items():
        out.print(f" {command}   [dim]{what}[/]", soft_wrap=True)
    for path in filter(None, (output, report)):
        out.print(f" Written: {escape(str(path))}", soft_wrap=True)

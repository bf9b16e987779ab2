"""`dualt estimate`: how noisy are the labels."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dualt.cli.options import (
    Classes,
    Dask,
    EstimatorName,
    Format,
    Images,
    Jobs,
    Json,
    LabelColumn,
    Labels,
    Level,
    Probs,
    ProbsColumns,
    Report,
    Settings,
    Text,
    parse_settings,
    print_json,
    read_posterior,
    save_report,
    shown_inputs,
)
from dualt.cli.progress import rows_progress

if TYPE_CHECKING:
    from dualt.results import TransitionEstimate
    from dualt.rows import NoisyPosterior


def estimate(
    probs: Probs,
    labels: Labels = None,
    estimator: EstimatorName = None,
    compare: Annotated[bool, typer.Option("--compare", help="Run every estimator and show them side by side.")] = False,
    settings: Settings = None,
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
    columns: ProbsColumns = None,
    ending: Format = None,
    n_jobs: Jobs = 1,
    dask: Dask = None,
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
    from dualt.rows.cluster import connected
    from dualt.validation import check_fraction

    check_fraction(level, "--level")
    for target in (output, report):
        if target is not None:
            check_writable_target(target)
    with rows_progress() as on_progress, connected(dask) if dask else nullcontext():
        posterior = read_posterior(
            probs,
            labels,
            label,
            classes,
            columns=columns,
            ending=ending,
            n_jobs=n_jobs,
            on_progress=on_progress,
            dask=dask,
        )
        chosen = estimate_posterior(posterior, estimator, **parse_settings(settings or []))
        if verified is not None:
            chosen = _use_verified(posterior, chosen, verified)
        others = _compare(posterior, chosen) if compare else {}
        found = find_posterior_issues(posterior, chosen) if report is not None else None
    if output is not None:
        chosen.save(output, level=level)
    if report is not None:
        save_report(report, chosen, found, comparison=tuple(others.values()), images=images, text=text, level=level)
    if as_json:
        content = chosen.to_dict(level)
        if compare:
            content["compared"] = {name: other.to_dict(level) for name, other in others.items()}
        print_json(content)
        return
    _show(chosen, others, level, defaulted=estimator is None and verified is None)
    _show_next(shown_inputs(probs, labels, label, columns, ending), compared=compare, output=output, report=report)


def _use_verified(posterior: NoisyPosterior, chosen: TransitionEstimate, path: Path) -> TransitionEstimate:
    """Blend the estimate with an audit, if its given labels are still those of the data."""
    from dataclasses import replace

    import numpy as np

    from dualt.audit import read_audit
    from dualt.errors import LabelsError
    from dualt.estimators import estimate_verified
    from dualt.validation import check_indices

    rows, given, true = read_audit(path)
    if not posterior.coder.by_name and given.dtype.kind == "U":
        # The page has written class names where the labels are numbers.
        by_name = replace(posterior.coder, by_name=True)
        given, true = by_name.encode(given), by_name.encode(true)
    check_indices(rows, posterior.summary.n_samples)
    _, now = posterior.take(rows)
    differs = np.flatnonzero(posterior.coder.encode(given) != now)
    if len(differs):
        raise LabelsError(f"Expected the given labels of the audit {path}, got another one at row {rows[differs[0]]}.")
    return estimate_verified(posterior, chosen, rows, true)


def _compare(posterior: NoisyPosterior, chosen: TransitionEstimate) -> dict[str, TransitionEstimate]:
    from dualt.estimators import comparable, estimate_posterior

    names = comparable(posterior.n_classes)
    found = {name: chosen if name == chosen.estimator else estimate_posterior(posterior, name) for name in names}
    return found | {chosen.estimator: chosen}


def _show(chosen: TransitionEstimate, others: dict[str, TransitionEstimate], level: float, *, defaulted: bool) -> None:
    from dualt.cli import picture

    out = picture.console()
    picture.show_estimate(out, chosen, level)
    if defaulted:
        out.print(
            f"\n[dim]{chosen.estimator} is the default: of the estimators that hold for noise by class and for noise by"
            " example alike, it errs least.[/]"
        )
    if others:
        picture.show_comparison(out, others, level)


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

"""`dualt issues`: which labels are wrong, and what they should be."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dualt.cli.options import (
    Classes,
    EstimatorName,
    Format,
    Images,
    Jobs,
    Json,
    LabelColumn,
    Labels,
    Probs,
    ProbsColumns,
    Report,
    Text,
    print_json,
    read_posterior,
    save_report,
    shown_inputs,
)
from dualt.cli.progress import rows_progress

if TYPE_CHECKING:
    from dualt.issues import LabelIssues

_SHOWN = 12


def issues(
    probs: Probs,
    labels: Labels = None,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="CSV of index, given, suggested, probability right, of the suggestion."),
    ] = None,
    estimator: EstimatorName = None,
    transition: Annotated[
        Path | None, typer.Option("--transition", help="A known matrix instead of an estimate: .json, .npy or .csv.")
    ] = None,
    top: Annotated[int | None, typer.Option("--top", help="Flag this many labels.")] = None,
    threshold: Annotated[
        float | None, typer.Option("--threshold", help="Flag labels that are right with less than this probability.")
    ] = None,
    report: Report = None,
    images: Images = None,
    text: Text = None,
    label: LabelColumn = None,
    classes: Classes = None,
    columns: ProbsColumns = None,
    ending: Format = None,
    n_jobs: Jobs = 1,
    as_json: Json = False,
) -> None:
    """Find the labels that are probably wrong, most suspect first, with the class each should have.

    As many are flagged as the transition matrix expects to be wrong, unless --top or --threshold says otherwise.

    Example: `dualt issues probs.npy labels.npy -o issues.csv --report report.html --images images.npy`
    """
    from dualt import io
    from dualt.errors import InputError
    from dualt.files import check_writable_target
    from dualt.issues import find_posterior_issues, save_issues

    if estimator is not None and transition is not None:
        raise InputError("Expected --estimator or --transition, got both.")
    for target in (output, report):
        if target is not None:
            check_writable_target(target)
    source = io.load_transition(transition) if transition else estimator
    with rows_progress() as on_progress:
        posterior = read_posterior(
            probs, labels, label, classes, columns=columns, ending=ending, n_jobs=n_jobs, on_progress=on_progress
        )
        found = find_posterior_issues(posterior, source, top=top, threshold=threshold)
    if report is not None:
        save_report(report, found.transition_estimate, found, images=images, text=text)
    if output is not None:
        save_issues(output, found)
    if as_json:
        print_json(_as_dict(found))
    else:
        _show(found, output, report, shown_inputs(probs, labels, label, columns, ending))


def _as_dict(found: LabelIssues) -> dict[str, Any]:
    from dualt.issues import issue_rows

    return {
        "n_samples": len(found),
        "expected_count": found.expected_count,
        "flagged": int(found.is_issue.sum()),
        "class_names": list(found.class_names),
        "by_pair": found.by_pair.tolist(),
        "issues": list(issue_rows(found)),
    }


def _show(found: LabelIssues, output: Path | None, report: Path | None, inputs: str) -> None:
    from rich.markup import escape

    from dualt.cli import picture

    inputs = escape(inputs)
    out = picture.console()
    flagged = int(found.is_issue.sum())
    out.print(
        f"\n[bold]About {found.expected_count:,.0f} of {len(found):,} labels are wrong[/] "
        f"({found.expected_count / len(found):.1%}); {flagged:,} flagged, most suspect first.\n"
    )
    out.print(picture.issues_table(found, _SHOWN))
    out.print(picture.pairs_table(found, _SHOWN))
    if found.transition_estimate is not None:
        picture.show_notices(out, found.transition_estimate.warnings)
    out.print("\n[bold]Next[/]")
    if output is not None:
        out.print(f" The flagged labels are in {escape(str(output))}.", soft_wrap=True)
    else:
        out.print(f" dualt issues {inputs} -o issues.csv   [dim]all of them, as a table[/]", soft_wrap=True)
    if report is not None:
        out.print(f" Review them in a browser: {escape(str(report))}", soft_wrap=True)
    else:
        out.print(f" dualt issues {inputs} --report report.html   [dim]review them in a browser[/]", soft_wrap=True)

"""`dualt issues`: which labels are wrong, and what they should be."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dualt.cli.grouping import typed, with_groups
from dualt.cli.groups import Data, Estimation, Page
from dualt.cli.learning import Learning
from dualt.cli.options import Json, check_targets, print_json
from dualt.cli.plain import say

if TYPE_CHECKING:
    from dualt.issues import LabelIssues
    from dualt.results import TransitionEstimate

_SHOWN = 12


@with_groups
def issues(
    estimation: Estimation,
    data: Data,
    page: Page,
    learning: Learning,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Write the flagged labels as .csv, .json or .parquet.")
    ] = None,
    export: Annotated[
        str | None,
        typer.Option("--export", metavar="TOOL", help="Write -o as tasks for label-studio, argilla or hf (datasets)."),
    ] = None,
    transition: Annotated[Path | None, typer.Option(help="A known matrix instead: .json, .npy or .csv.")] = None,
    top: Annotated[int | None, typer.Option(help="Flag this many labels.")] = None,
    threshold: Annotated[float | None, typer.Option(help="Flag labels that are right with less probability.")] = None,
    as_json: Json = False,
) -> None:
    """Find the labels that are probably wrong, most suspect first, with the class each should have.

    As many are flagged as the transition matrix expects to be wrong, unless --top or --threshold says otherwise;
    labels that the review of --reviewed has kept are not flagged again.

    Without probabilities, a table whose --text or --features tell the class, or images in a folder per class, will do:
    they are made as `dualt probs` makes them.

    Example: `dualt issues probs.npy labels.npy -o issues.csv --report report.html --images images.npy`

    Example: `dualt issues data.csv --label label --text title --report report.html`
    """
    from dualt import io
    from dualt.errors import InputError
    from dualt.issues import find_posterior_issues
    from dualt.issues.exchange import check_tool, export_issues, label_studio_interface
    from dualt.transition import match_transition

    if transition is not None and not (estimation.is_default and estimation.settings is None):
        raise InputError("Expected --transition, or how to estimate it (--estimator, --set, --verified), got both.")
    if export is not None:
        check_tool(export, output)
    check_targets(output, page.report)
    options = {"--transition": transition, "--top": top, "--threshold": threshold, "--reviewed": page.reviewed}
    words = [learning.as_typed(data, page.text_column), estimation.as_typed(), typed(options)]
    data = learning.completed(data, page.text_column)
    with data.opened(page.text_column) as posterior:
        if transition is None:
            source: Any = estimation.estimate(posterior)
        else:
            matrix, names = io.load_named_transition(transition)
            source = match_transition(matrix, names, posterior.coder.names)
        found = find_posterior_issues(posterior, source, top=top, threshold=threshold)
    found = data.describe(found, posterior, page)
    decided = page.decided(found, found.ids)
    found = found.without([row for row, label in decided.items() if label == found.class_names[found.given[row]]])
    page.write(found.transition_estimate, found, data.image_folder, reviewed=decided, level=estimation.level)
    pictures = data.image_folder if found.images is None else page.images
    if output is not None and export is not None:
        export_issues(output, found, export, pictures)
    elif output is not None:
        found.save(output)
    if as_json:
        print_json(_claimed(found.transition_estimate, estimation.level) | found.to_dict())
        return
    _show(found, estimation.level)
    _show_next(" ".join(filter(None, words)), output, page.report, any_flagged=len(found.indices) > 0)
    if export == "label-studio":
        interface = label_studio_interface(found, pictures=pictures is not None)
        say(f" Paste this labelling interface into the settings of the project in Label Studio:\n{interface}")


def _claimed(estimate: TransitionEstimate | None, level: float) -> dict[str, Any]:
    """Return what may be said of the noise rate, for machines; of a matrix that was given, nothing."""
    from dualt.results.readings import rate_range

    if estimate is None:
        return {"noise_rate_range": None, "undecided": None, "warnings": []}
    return {
        "noise_rate_range": list(rate_range(estimate, level)),
        "undecided": estimate.undecided,
        "warnings": [vars(notice) for notice in estimate.warnings],
    }


def _show(found: LabelIssues, level: float) -> None:
    from dualt.cli import picture
    from dualt.results.readings import basis, finding

    out = picture.console()
    estimate, n_flagged, n_labelled = found.transition_estimate, len(found.indices), f"{found.n_labelled:,}"
    if estimate is None:
        headline = f"About {found.expected_count:,.0f} of {n_labelled} labels are wrong"
        reason = f"{found.expected_count / found.n_labelled:.1%}"
    else:
        headline, reason = finding(estimate, level), basis(estimate, level)
    out.print(f"\n[bold]{headline}[/] ({reason}).")
    if n_flagged:
        n_unclear = int((found.suggested == found.given)[found.indices].sum())
        unclear = f"; for {n_unclear:,} of them no other class is likelier" if n_unclear else ""
        out.print(f"{n_flagged:,} of {n_labelled} are flagged, most suspect first{unclear}.\n")
        for table in (picture.issues_table(found, _SHOWN), picture.pairs_table(found, _SHOWN)):
            if table.row_count:
                out.print(table)
    else:
        out.print(f"None of the {n_labelled} labels is flagged.")
    if estimate is not None:
        picture.show_notices(out, estimate.warnings)


def _show_next(inputs: str, output: Path | None, report: Path | None, *, any_flagged: bool) -> None:
    from rich.markup import escape

    from dualt.cli import picture

    if any_flagged:
        table, page = f"{inputs} -o issues.csv", f"{inputs} --report report.html"
        steps = [
            f"dualt issues {escape(table)}   [dim]all of them, as a table[/]" if output is None
            else f"The flagged labels are in {escape(str(output))}.",
            f"dualt issues {escape(page)}   [dim]review them in a browser[/]" if report is None
            else f"Review them in a browser: {escape(str(report))}",
        ]  # fmt: skip
    else:
        steps = [f"Written: {escape(str(path))}" for path in (output, report) if path is not None]
    picture.show_next(picture.console(), steps)

"""`dualt issues`: which labels are wrong, and what they should be."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dualt.cli.grouping import with_groups
from dualt.cli.groups import Data, Estimation, Page
from dualt.cli.learning import Learning
from dualt.cli.options import Json, check_targets, print_json
from dualt.cli.plain import say

if TYPE_CHECKING:
    from dualt.issues import LabelIssues

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
    typed = learning.as_typed(data, page.text_column)
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
        print_json(found.to_dict())
        return
    _show(found, output, page.report, typed)
    if export == "label-studio":
        interface = label_studio_interface(found, pictures=pictures is not None)
        say(f" Paste this labelling interface into the settings of the project in Label Studio:\n{interface}")


def _show(found: LabelIssues, output: Path | None, report: Path | None, inputs: str) -> None:
    from rich.markup import escape

    from dualt.cli import picture
    from dualt.results.readings import basis, finding, told_as_range

    out = picture.console()
    estimate = found.transition_estimate
    if estimate is not None and told_as_range(estimate):
        headline, reason = finding(estimate), basis(estimate)
    else:
        headline = f"About {found.expected_count:,.0f} of {found.n_labelled:,} labels are wrong"
        reason = f"{found.expected_count / found.n_labelled:.1%}"
    out.print(f"\n[bold]{headline}[/] ({reason}).")
    out.print(f"{int(found.is_issue.sum()):,} of {found.n_labelled:,} are flagged, most suspect first.\n")
    out.print(picture.issues_table(found, _SHOWN))
    out.print(picture.pairs_table(found, _SHOWN))
    if found.transition_estimate is not None:
        picture.show_notices(out, found.transition_estimate.warnings)
    table, page = f"{escape(inputs)} -o issues.csv", f"{escape(inputs)} --report report.html"
    steps = [
        f"dualt issues {table}   [dim]all of them, as a table[/]" if output is None
        else f"The flagged labels are in {escape(str(output))}.",
        f"dualt issues {page}   [dim]review them in a browser[/]" if report is None
        else f"Review them in a browser: {escape(str(report))}",
    ]  # fmt: skip
    picture.show_next(out, steps)

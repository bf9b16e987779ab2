"""`dualt issues`: which labels are wrong, and what they should be."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from dualt.cli.groups import Data, Estimation, Page
from dualt.cli.guard import shared
from dualt.cli.learning import Learning
from dualt.cli.options import Json, output_option, print_json
from dualt.cli.plain import say, typed
from dualt.errors import InputError


@shared
def issues(
    estimation: Estimation,
    data: Data,
    page: Page,
    learning: Learning,
    output: Annotated[Path | None, output_option(help="Write the flagged labels as .csv, .json or .parquet.")] = None,
    export: Annotated[
        str | None, typer.Option(metavar="TOOL", help="Write -o as tasks for label-studio, argilla or hf (datasets).")
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
    from dualt.cli import picture
    from dualt.issues import find_posterior_issues
    from dualt.issues.exchange import check_tool, export_issues, label_studio_interface
    from dualt.transition import match_transition

    if transition is not None and not (estimation.is_default and estimation.settings is None):
        raise InputError("Expected --transition, or how to estimate it (--estimator, --set, --verified), got both.")
    if export is not None:
        check_tool(export, output)
    options = {"--transition": transition, "--top": top, "--threshold": threshold, "--reviewed": page.reviewed}
    words = [learning.as_typed(data, page.text_column), estimation.as_typed(), typed(options)]
    data = learning.completed(data, page.text_column)
    with data.opened(page.text_column) as posterior:
        if transition is None:
            source: Any = estimation.estimate(posterior)
        else:
            source = match_transition(*io.load_named_transition(transition), posterior.coder.names)
        found = find_posterior_issues(posterior, source, top=top, threshold=threshold)
    found = data.describe(found, posterior, page)
    decided = page.decided(found)
    found = found.without([row for row, label in decided.items() if label == found.class_names[found.given[row]]])
    page.write(found, data.image_folder, level=estimation.level)
    pictures = data.image_folder if found.images is None else page.images
    if output is not None and export is not None:
        export_issues(output, found, export, pictures)
    elif output is not None:
        found.save(output, estimation.level)
    if as_json:
        print_json(found.to_dict(estimation.level))
        return
    out = picture.console()
    picture.show_issues(out, found, estimation.level)
    picture.show_next(out, _next_steps(" ".join(filter(None, words)), output, page.report, len(found.indices)))
    if export == "label-studio":
        interface = label_studio_interface(found, pictures=pictures is not None)
        say(f" Paste this labelling interface into the settings of the project in Label Studio:\n{interface}")


def _next_steps(inputs: str, output: Path | None, report: Path | None, n_flagged: int) -> dict[str, str]:
    if not n_flagged:
        return {f"Written: {path}": "" for path in (output, report) if path is not None}
    table = {f"dualt issues {inputs} -o issues.csv": "all of them, as a table"}
    page = {f"dualt issues {inputs} --report report.html": "review them in a browser"}
    steps = table if output is None else {f"The flagged labels are in {output}.": ""}
    return steps | (page if report is None else {f"Review them in a browser: {report}": ""})

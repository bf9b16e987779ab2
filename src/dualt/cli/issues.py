"""`dualt issues`: which labels are wrong, and what they should be."""

from __future__ import annotations

import shlex
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

import dualt
from dualt.cli.options import Data, Estimation, Images, Json, Learning, in_estimate, output_option, shared
from dualt.cli.terminal import again, console, print_json, say, show_issues, show_next, words_of
from dualt.errors import InputError

if TYPE_CHECKING:
    from dualt.cli.inputs import Examples

_page = partial(Option, rich_help_panel="The page")


@shared
def issues(
    data: Data,
    learning: Learning,
    estimation: Estimation,
    transition: Annotated[Path | None, in_estimate(help="A known matrix instead: .json, .npy or .csv.")] = None,
    top: Annotated[int | None, Option(help="Flag this many labels.")] = None,
    threshold: Annotated[float | None, Option(help="Flag labels that are right with less probability.")] = None,
    output: Annotated[Path | None, output_option(help="Write the flagged labels as .csv, .json or .parquet.")] = None,
    export: Annotated[str | None, Option(help="Write -o as tasks for label-studio or argilla.")] = None,
    report: Annotated[Path | None, _page(help="Write a page to review the labels in a browser: report.html.")] = None,
    images: Images = None,
    show: Annotated[str | None, _page(help="Columns to show on the page. Default: those learned from.")] = None,
    reviewed: Annotated[Path | None, _page(help="An earlier review, with which the page opens.")] = None,
    as_json: Json = False,
) -> None:
    """Find the labels that are probably wrong, most suspect first, with the class each should have.

    As many labels are flagged as the transition matrix expects to be wrong, unless --top or --threshold says otherwise;
    labels that the review of --reviewed has kept are not flagged again.

    DATA without probabilities is a table, or images in a folder per class: probabilities are made as `dualt probs`
    makes them, from all columns, or those of --text and --features.

    Example: `dualt issues data.csv --label label --report report.html`

    Example: `dualt issues probs.npy labels.npy -o issues.csv --report report.html --images images.npy`
    """
    from dualt.cli.inputs import estimate_examples, opened
    from dualt.issues.exchange import check_output, export_issues, label_studio_interface

    if transition is not None and (estimation.estimator or estimation.settings or estimation.verified):
        raise InputError("Expected --transition, or how to estimate it (--estimator, --set, --verified), got both.")
    check_output(output, export)
    with opened(data, learning, estimation) as examples:
        source: Any
        if transition is None:
            source = estimate_examples(examples, estimation)
        else:
            matrix, names = dualt.io.load_transition(transition)
            source = dualt.transition.match_transition(matrix, names, examples.posterior.coder.names)
        found = examples.find_issues(source, top=top, threshold=threshold)
        page = {} if report is None else _page_options(data, examples, found, show)
    if images is not None and images.is_dir():
        files = dualt.report.previews.match_files(images, len(found), found.ids)
        found = replace(found, images=[files[row].relative_to(images).as_posix() for row in range(len(found))])
    decisions = [] if reviewed is None else dualt.issues.read_review(reviewed)
    given = [found.class_names[code] for code in found.given.tolist()]
    decided = dualt.issues.review.decided_labels(decisions, found.written or given, found.ids)
    is_issue = found.is_issue.copy()
    is_issue[[row for row, label in decided.items() if label == given[row]]] = False
    found = replace(found, is_issue=is_issue)
    if report is not None:
        pictures = images or (None if learning.text else data.image_folder)
        found.to_report(report, images=pictures, reviewed=decided, **page)
    pictures = data.image_folder if found.images is None else images
    if output is not None and export is not None:
        export_issues(output, found, export, pictures)
    elif output is not None:
        found.save(output)
    if as_json:
        print_json(found.to_dict())
        return
    out = console()
    show_issues(out, found)
    show_next(out, _next_steps(found, data, learning, output, report, page.get("command")), output, report)
    if export == "label-studio":
        interface = label_studio_interface(found, pictures=pictures is not None)
        say(f" Paste this labelling interface into the settings of the project in Label Studio:\n{interface}")


def _next_steps(
    found: dualt.LabelIssues,
    data: Data,
    learning: Learning,
    output: Path | None,
    report: Path | None,
    command: str | None,
) -> dict[str, str]:
    """Return the commands to type next, with what each is for."""
    from dualt.cli.inputs import is_raw

    if not learning.merge_labels and dualt.labels.look_alike(found.class_names)[0] and is_raw(data, learning):
        return {again(None, "--merge-labels"): "with labels that look alike as one class"}
    if not len(found.indices):
        labels = data.labels or data.files[0]
        probs = None if labels == data.probs else data.probs
        words = words_of(label=data.label, id=data.id_column, probs=probs or data.columns, classes=data.classes)
        learned = words_of(text=learning.text, features=learning.features)
        step = shlex.join(["dualt", "audit", str(labels), *words, *learned, "-o", "audit.csv"])
        return {step: "draw some labels to check by hand, to be sure"}
    if report is not None:
        return {} if command is None else {command: "once you have downloaded your decisions"}
    steps = {again(None, "--report", "report.html"): "review them in a browser"}
    return steps if output is not None else steps | {again(None, "-o", "issues.csv"): "all of them, as a table"}


def _page_options(data: Data, examples: Examples, found: dualt.LabelIssues, show: str | None) -> dict[str, Any]:
    """Return what the page shows beside the issues: the title, the columns, and the command to run next."""
    from dualt.cli.inputs import read_column
    from dualt.issues.scores import second_likeliest

    posterior, columns, labels = examples.posterior, examples.columns, data.labels or data.files[0]
    if show is not None:
        columns = {name: read_column(data, name, posterior.n_given) or [] for name in map(str.strip, show.split(","))}
    doubtful = found.indices[~found.probably_wrong[found.indices]][: dualt.report.page.MAX_LISTED]
    rows = doubtful if posterior.labelled is None else posterior.labelled.searchsorted(doubtful)
    second = second_likeliest(posterior, found, rows, found.probability_right[doubtful]) if len(rows) else []
    options = words_of(label=data.label, id=data.id_column, classes=data.classes)
    target = ["-o", f"{labels.stem}-corrected{labels.suffix}"]
    if data.image_folder is not None:
        options, target = [], ["-o", "moves.csv"]
    command = shlex.join(["dualt", "apply-review", str(labels), "suspects-review.csv", *options, *target])
    return {
        "title": f"Labels of {labels.name}",
        "columns": columns,
        "second": dict(zip(doubtful.tolist(), second, strict=True)),
        "command": None if dualt.io.is_sharded(labels) else command,
    }

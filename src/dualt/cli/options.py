"""Single options that several commands share, and how commands read settings and print JSON."""

from __future__ import annotations

import ast
import json
import logging
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dualt.cli.plain import say
from dualt.errors import InputError
from dualt.files import json_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dualt.issues import LabelIssues
    from dualt.results import TransitionEstimate

_log = logging.getLogger(__name__)

output_option = partial(typer.Option, "-o", "--output")
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="An option of the estimator, such as anchor=quantile."),
]
Level = Annotated[float, typer.Option("--level", help="Level of the confidence intervals.")]
Classes = Annotated[
    Path | None, typer.Option("--classes", help="Class names in column order, one per line. Default: the header's.")
]
LabelColumn = Annotated[str | None, typer.Option("--label", help="Name of the label column in a table.")]
IdColumn = Annotated[str | None, typer.Option("--id", help="Name of the column of ids in a table.")]
Header = Annotated[
    bool | None,
    typer.Option("--header/--no-header", help="Whether line 1 of a table names its columns.  [default: by its look]"),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for machines instead.")]
DataDir = Annotated[
    Path | None, typer.Option("--data-dir", help="Folder of the data sets. Default: $DUALT_DATA, else ~/.cache/dualt.")
]


def check_random_state(value: int) -> int:
    """Refuse a seed that not everything random takes, before anything is read."""
    from dualt.rng import check_scikit_seed

    return check_scikit_seed(value, "--random-state")


RandomState = Annotated[
    int, typer.Option("--random-state", callback=check_random_state, help="Seed of everything random.")
]


def save_report(
    path: Path, found: LabelIssues, *, images: Any = None, text: Path | None = None, **options: Any
) -> None:
    """Write the page of the issues and their estimate, with what there is to look at."""
    from dualt.report import image_previews, listed, text_previews

    if images is not None and text is not None:
        raise InputError("Expected --images or --text, got both.")
    if images is not None or text is not None:
        shown = {*listed(found, reviewed=options.get("reviewed"), ids=found.ids).tolist()}
        if options.get("audit") is not None:
            shown.update(options["audit"].rows.tolist())
        if text is not None:
            previews = text_previews(text if found.texts is None else found.texts, shown, n_samples=len(found))
        else:
            names = found.ids if found.images is None else found.images
            previews = image_previews(images, shown, n_samples=len(found), ids=names, labels=found.given_names)
        options["previews"] = previews
    found.to_report(path, **options)


_CONSTANTS = {"true": "True", "false": "False", "none": "None"}


def parse_settings(settings: Sequence[str]) -> dict[str, Any]:
    """Return the options that `--set NAME=VALUE` gives; a value that is not a Python literal is taken as text."""
    options: dict[str, Any] = {}
    for setting in settings:
        name, equals, value = setting.partition("=")
        if not equals:
            raise InputError(f"Expected --set NAME=VALUE, got {setting!r}.")
        try:
            options[name] = ast.literal_eval(_CONSTANTS.get(value.lower(), value))
        except (ValueError, SyntaxError):
            options[name] = value
    return options


def print_json(content: Any) -> None:
    """Print `content` as JSON on stdout; numbers that are not finite are null, with a notice."""
    text = json_text(content)
    if text != json.dumps(content, indent=1):
        _log.warning("Numbers that are infinite, or not numbers, are null in the JSON.")
    say(text)


def print_estimate(
    chosen: TransitionEstimate, others: Mapping[str, TransitionEstimate], level: float, *, as_json: bool
) -> None:
    """Print an estimate, and others beside it if there are any: for people, or as JSON."""
    if as_json:
        compared = {"compared": {name: other.to_dict(level) for name, other in others.items()}} if others else {}
        print_json(chosen.to_dict(level) | compared)
        return
    from dualt.cli import picture

    out = picture.console()
    picture.show_estimate(out, chosen, level)
    if others:
        picture.show_comparison(out, others, level)

"""One self-contained page: the finding, the pictures behind it, and a list to review."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from numpy.typing import NDArray

from dualt import __version__
from dualt.errors import InputError
from dualt.files import write_text
from dualt.labels import visible_name
from dualt.report.previews import cut, image_previews
from dualt.results.claims import footnote, headline
from dualt.rows.entry import positions

if TYPE_CHECKING:
    from pandas import DataFrame
    from typing_extensions import Unpack

    from dualt.issues import LabelIssues
    from dualt.results import TransitionEstimate
    from dualt.votes import Votes

MAX_LISTED = 10_000
_MATRIX_CLASSES, _N_LIKELY, _N_CONFUSIONS = 30, 8, 12
# Characters of a text, and of one value of another column.
_TEXT, _CELL = 2_000, 500
_STYLES = ("base.css", "pictures.css", "review.css", "print.css")
_SCRIPTS = ("dom.js", "names.js", "theme.js", "heatmap.js", "bars.js", "csv.js", "store.js", "scroller.js", "sieve.js",
            "keys.js", "finder.js", "card.js", "review.js", "main.js")  # fmt: skip


class ReportOptions(TypedDict, total=False):
    """The options of a report; see `render_report`."""

    audit: DataFrame | None
    images: Any
    texts: Sequence[str] | None
    columns: Mapping[str, Sequence[Any]] | None
    notes: Mapping[int, Sequence[str]] | None
    second: Mapping[int, tuple[int, float]] | None
    command: str | None
    votes: Votes | None
    reviewed: Mapping[int, str] | None
    level: float
    title: str


def write_report(
    path: str | Path,
    estimate: TransitionEstimate | None,
    issues: LabelIssues | None = None,
    **options: Unpack[ReportOptions],
) -> None:
    """Write the page to `path`, whole or not at all; `render_report` describes the options."""
    write_text(path, render_report(estimate, issues, **options))


def render_report(
    estimate: TransitionEstimate | None,
    issues: LabelIssues | None = None,
    *,
    audit: DataFrame | None = None,
    images: Any = None,
    texts: Sequence[str] | None = None,
    columns: Mapping[str, Sequence[Any]] | None = None,
    notes: Mapping[int, Sequence[str]] | None = None,
    second: Mapping[int, tuple[int, float]] | None = None,
    command: str | None = None,
    votes: Votes | None = None,
    reviewed: Mapping[int, str] | None = None,
    level: float = 0.95,
    title: str = "Label report",
) -> str:
    """Return the page: one HTML document that needs no network and no other file.

    Its policy allows only the style and the script that are in it, by their hashes, and images that are in it: a class
    name or a text that became markup could still not run or load anything.

    Parameters
    ----------
    estimate
        The matrix of the headline; None if the issues were found with a given matrix.
    issues
        Adds the list to review: the flagged examples, most suspect first, at most 10,000.
    audit
        The sheet of `dualt audit`: listed instead of the suspects, and the label is shown once the class was chosen.
    images, texts
        What the examples look like, as `image_previews` takes it, or what they say: one text per row. Default:
        `issues.texts`.
    columns
        Other columns to show beside each example, by name: one value per row.
    notes, second
        By position in the data: short remarks, such as who gave which label; and the likeliest other class of doubtful
        labels with its probability. Default: the class that the label most often hides.
    command
        What to run on the download.
    votes
        Adds a table of annotators, with their matrices.
    reviewed
        Decisions of an earlier review to open with, the class name by row number as in the download.
    level, title
        Confidence of the intervals; the heading.
    """
    if estimate is None and issues is None:
        raise InputError("Expected an estimate or label issues to report, got neither.")
    shown: Any = issues if estimate is None else estimate
    lists = []
    if issues is None:
        wrong = _off_diagonal(shown.n_samples * (shown.clean_prior[:, None] * shown.transition).T)
    else:
        wrong = _off_diagonal(issues.by_pair)
        # Beside suspects and suggestions an audit's sample would not be blind.
        rows, chosen = _suspects(issues, reviewed) if audit is None else _audit(audit, issues)
        listed = _review_list(issues, rows, wrong, second, columns or {})
        listed["notes"] = [list(map(str, notes.get(row, ()))) for row in rows] if notes else None
        listed["old"] = None if issues.written is None else [str(issues.written[row]) for row in rows]
        title_of = {} if votes is None else {"title": "Items to check"}
        lists = [listed | _previews(issues, rows, images, texts) | chosen | title_of]
    # A larger matrix is shown for its most confused classes, and one column gathers the others.
    confused = np.argsort(-np.maximum(wrong.max(axis=0), wrong.max(axis=1)), kind="stable")
    classes, elsewhere = np.sort(confused[:_MATRIX_CLASSES]), _off_diagonal(shown.transition)
    part = np.ix_(classes, classes)
    matrix = {"classes": classes.tolist(), "value": _rounded(shown.transition[part]), "others": None}
    bounds = estimate.confidence_interval(level) if estimate else (None, None)
    matrix["low"], matrix["high"] = (None if bound is None else _rounded(bound[part]) for bound in bounds)
    if len(classes) < len(shown.transition):
        matrix["others"] = _rounded(np.maximum(0.0, 1 - shown.transition[part].sum(axis=1)))
    content = {
        "names": list(shown.class_names),
        "given": "Given label" if votes is None else "Consensus",
        "shown": list(map(visible_name, shown.class_names)),
        "level": level,
        "matrix": matrix,
        "rates": {
            "value": _rounded(1 - np.diagonal(shown.transition)),
            "mostly": elsewhere.argmax(axis=1).tolist(),
            "share": _rounded(elsewhere.max(axis=1)),
        },
        "likely": _likely(lists, wrong),
        "lists": lists,
    }
    n_samples = estimate.n_samples if estimate is not None else shown.n_labelled
    verdict = f"About {wrong.sum():,.0f} of {n_samples:,} labels are wrong, by the given matrix."
    page = _environment().get_template("page.html").render(
        title=title,
        estimate=estimate,
        class_names=shown.class_names,
        headline=verdict if estimate is None else headline(estimate, level),
        footnote=None if estimate is None or audit is not None else footnote(estimate),
        n_samples=n_samples,
        expected_wrong=wrong.sum(),
        confusions=[pair for pair in largest_confusions(wrong) if pair[2] >= 0.5],
        n_flagged=0 if issues is None else len(issues.indices),
        n_wrong=0 if issues is None else int(issues.probably_wrong.sum()),
        n_shown=len(classes),
        lists=lists,
        command=command,
        votes=votes,
        version=__version__,
        numbers=Markup(script_json(content)),  # noqa: S704
        **_embedded(),
    )  # fmt: skip
    # A lone surrogate in a class name has no UTF-8 form.
    return page.encode("utf-8", "replace").decode("utf-8")


def script_json(value: Any) -> str:
    r"""Return JSON that stays inside a script element, whatever the texts in it.

    Examples
    --------
    >>> script_json("</script>")
    '"\\u003c/script\\u003e"'
    """
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _suspects(issues: LabelIssues, reviewed: Mapping[int, str] | None) -> tuple[list[int], dict[str, Any]]:
    """Return the flagged rows, probably wrong ones first, followed by those that an earlier review decided."""
    codes, known = {name: code for code, name in enumerate(issues.class_names)}, {}
    found = positions(issues.row_numbers, np.array([*(reviewed or {})], np.int64)).tolist()
    for row, (number, label) in zip(found, (reviewed or {}).items(), strict=True):
        if row < 0:
            raise InputError(f"Expected reviewed rows among the {len(issues):,} labels, got row {number}.")
        if str(label) not in codes:
            raise InputError(f"Expected a class as the reviewed label of row {number}, got {str(label)[:80]!r}.")
        known[row] = codes[str(label)]
    flagged = issues.indices[:MAX_LISTED]
    is_wrong = issues.probably_wrong[flagged]
    rows = list(dict.fromkeys([*flagged[is_wrong].tolist(), *flagged[~is_wrong].tolist(), *known]))
    return rows, {
        "key": "suspects",
        "title": "Labels to review",
        "blind": False,
        "known": [[place, known[row]] for place, row in enumerate(rows) if row in known],
        "columns": ["index", "id", "old", "new"],
        "action": "Download corrected labels",
    }


def _audit(audit: DataFrame, issues: LabelIssues) -> tuple[list[int], dict[str, Any]]:
    """Return the rows to verify, counted in the data that they were drawn from, and the classes found before."""
    rows, true = audit["index"].tolist(), audit["true"].tolist()
    codes = {str(code): code for code in range(len(issues.class_names))}
    codes |= {name: code for code, name in enumerate(issues.class_names)}
    ids = audit["id"].tolist() if "id" in audit else []
    ids = ids if issues.row_ids is None else [str(issues.row_ids[row]) for row in rows]
    return rows, {
        "key": "audit",
        "title": "Labels to check",
        "blind": True,
        "index": rows,
        "known": [[place, codes[label]] for place, label in enumerate(true) if label in codes],
        "columns": ["index", *(["id"] if ids else []), "given", "true"],
        "ids": ids or None,
        "action": "Download verified labels",
    }


def _review_list(
    issues: LabelIssues,
    rows: Sequence[int],
    wrong: NDArray[Any],
    second: Mapping[int, tuple[int, float]] | None,
    columns: Mapping[str, Sequence[Any]],
) -> dict[str, Any]:
    """Return what is known of each row, in this order, with values of other columns cut to a readable length."""
    ids, given, suggested = issues.row_ids, issues.given[rows].tolist(), issues.suggested[rows].tolist()
    for what, values in {"ids": ids, **{f"values of {name!r}": values for name, values in columns.items()}}.items():
        if values is not None and len(values) != len(issues):
            raise InputError(f"Expected {len(issues):,} {what}, one per label, got {len(values):,}.")
    probability = _rounded(issues.suggested_probability[rows], 3)
    doubtful = [int(one == other) for one, other in zip(given, suggested, strict=True)]
    for place in np.flatnonzero(doubtful).tolist():
        likeliest = int(np.where(np.arange(len(wrong)) == given[place], -1, wrong[given[place]]).argmax())
        suggested[place], other = (second or {}).get(rows[place], (likeliest, None))
        probability[place] = None if other is None else round(other, 3)
    return {
        "index": issues.row_numbers[rows].tolist(),
        "ids": None if ids is None else [str(ids[row]) for row in rows],
        "given": given,
        "suggested": suggested,
        "doubtful": doubtful,
        "right": _rounded(issues.probability_right[rows], 3),
        "probability": probability,
        "fields": list(map(str, columns)),
        "cells": [[cut(str(values[row]), _CELL) for values in columns.values()] for row in rows] if columns else None,
    }


def _previews(issues: LabelIssues, rows: Sequence[int], images: Any, texts: Any) -> dict[str, Any]:
    """Return the picture or the text of each row."""
    texts = issues.texts if texts is None and images is None else texts
    if images is not None and texts is not None:
        raise InputError("Expected images or texts for the page, got both.")
    if images is not None:
        names = issues.row_ids if issues.images is None else issues.images
        return image_previews(images, rows, n_samples=len(issues), ids=names)
    if texts is None:
        return {"kind": None}
    if len(texts) != len(issues):
        raise InputError(f"Expected {len(issues):,} texts, one per label, got {len(texts):,}.")
    return {"kind": "text", "previews": [cut(str(texts[row]), _TEXT) for row in rows]}


def _likely(lists: Sequence[dict[str, Any]], wrong: NDArray[Any]) -> dict[str, list[int]]:
    """Return, for each given label on a list, the true classes that it most often hides."""
    given = sorted({code for rows in lists for code in rows["given"]})
    order = {code: np.argsort(-wrong[code], kind="stable")[:_N_LIKELY].tolist() for code in given}
    return {str(code): [true for true in order[code] if true != code] for code in given}


def largest_confusions(matrix: NDArray[Any]) -> list[tuple[int, int, float]]:
    """Return row, column and value of the largest entries off the diagonal, largest first."""
    off = _off_diagonal(matrix)
    places = np.argsort(off, axis=None, kind="stable")[::-1][:_N_CONFUSIONS]
    return [(*divmod(int(place), len(off)), float(off.flat[place])) for place in places]


def _off_diagonal(matrix: NDArray[Any]) -> NDArray[Any]:
    return np.where(np.eye(len(matrix), dtype=bool), 0.0, matrix)


def _rounded(values: NDArray[Any], decimals: int = 5) -> Any:
    return np.round(np.asarray(values, dtype=np.float64), decimals).tolist()


@cache
def _embedded() -> dict[str, str]:
    """Return the style, the script, and the policy that allows these two by their hashes."""
    folder = files("dualt.report") / "templates"
    style, script = (
        "\n".join((folder / name).read_text(encoding="utf-8") for name in names) for names in (_STYLES, _SCRIPTS)
    )
    script = f'(() => {{\n"use strict";\n{script}}})();\n'
    digests = [hashlib.sha256(content.encode()).digest() for content in (style, script)]
    style_hash, script_hash = (f"'sha256-{base64.b64encode(digest).decode('ascii')}'" for digest in digests)
    policy = (
        f"default-src 'none'; script-src {script_hash}; style-src {style_hash}; img-src data:;"
        " base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'"
    )
    return {"style": Markup(style), "script": Markup(script), "policy": policy}  # noqa: S704


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("dualt.report"), autoescape=True, undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    environment.filters["count"] = lambda number: f"{round(number):,}"
    # A class name is escaped, and isolated from the direction of the text around it.
    environment.filters["class_name"] = lambda name: Markup("<bdi>{}</bdi>").format(visible_name(name))
    return environment

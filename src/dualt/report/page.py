"""One self-contained page: the finding, the pictures behind it, and a list to review."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from numpy.typing import NDArray

from dualt import __version__
from dualt.errors import InputError
from dualt.files import atomic_write
from dualt.report import words
from dualt.report.payload import confusions, payload, script_json, without_diagonal
from dualt.report.previews import Previews, text_previews
from dualt.report.shown import MAX_LISTED, Codes, Estimate, GivenMatrix, ReviewList, audit_list, listed, reviewed_rows
from dualt.results.readings import CANNOT_TELL, nothing_sure, rate_range, told_as_range
from dualt.transition import l1_error

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from dualt.audit import Sheet
    from dualt.issues import LabelIssues
    from dualt.report.shown import ReportOptions
    from dualt.results import TransitionEstimate

_STYLES = ("base.css", "pictures.css", "review.css", "print.css")
_SCRIPTS = ("dom.js", "names.js", "theme.js", "heatmap.js", "bars.js", "csv.js", "store.js", "scroller.js", "sieve.js",
            "keys.js", "finder.js", "card.js", "review.js", "main.js")  # fmt: skip


def write_report(
    path: str | Path,
    estimate: TransitionEstimate | None,
    issues: LabelIssues | None = None,
    **options: Unpack[ReportOptions],
) -> None:
    """Write the page to `path`, whole or not at all; `render_report` describes the options."""
    page = render_report(estimate, issues, **options)
    with atomic_write(path) as stream:
        stream.write(page)


def render_report(
    estimate: TransitionEstimate | None,
    issues: LabelIssues | None = None,
    *,
    comparison: Sequence[TransitionEstimate] = (),
    audit: Sheet | Codes | None = None,
    previews: Previews | Sequence[str] | None = None,
    ids: Sequence[Any] | None = None,
    labels_digest: str | None = None,
    reviewed: Mapping[int | str, str] | None = None,
    level: float | None = None,
    title: str = "Label report",
    limit: int = MAX_LISTED,
) -> str:
    """Return the page: one HTML document that needs no network and no other file.

    Its policy allows only the style and the script that are in it, by their hashes, and images that are
    in it: a class name or a text that managed to become markup could still not run or load anything.

    Parameters
    ----------
    estimate
        The matrix of the headline; None if the issues were found with a matrix that was not estimated.
    issues
        Adds the list to review: the flagged examples, most suspect first.
    comparison
        Several estimates, shown side by side.
    audit
        The sheet of `dualt audit`, or row numbers of a random sample in random order: adds a list of its own to
        verify, apart from the suspects, which asks for the class before it shows the label. Needs `issues`, which
        say what each example probably is.
    previews
        Thumbnails or texts of the listed examples (`listed` names them), made by `image_previews` or `text_previews`;
        or the texts of all examples, one per row.
    ids
        The names of all examples, one per row: shown, searched, and written into the download beside the row number.
    labels_digest
        A digest of the given labels, written into every row of the download, so that a review can be told from one of
        other labels.
    reviewed
        Decisions of an earlier review: the class name by row number (an int, as in the download) or by id (a str).
        These examples are on the list, and the page opens with the decisions.
    level
        Confidence of the intervals; by default 0.95.
    title
        Shown on top and in the browser's tab.
    limit
        Most suspects to list.
    """
    if issues is not None:
        ids = issues.row_ids if ids is None else ids
        labels_digest = labels_digest or issues.labels_digest
    if ids is not None and issues is not None and len(ids) != len(issues):
        raise InputError(f"Expected {len(issues):,} ids, one per label, got {len(ids):,}.")
    if level is None:
        level = 0.95
    shown, wrong = _shown(estimate, issues)
    lists = [] if issues is None else [_suspects(issues, limit, reviewed, ids)]
    if issues is not None and audit is not None:
        lists.append(audit_list(audit, shown.class_names))
    content = payload(
        shown, issues, lists, wrong=wrong, comparison=comparison, previews=_made(previews, issues, lists), ids=ids,
        labels_digest=labels_digest, level=level,
    )  # fmt: skip
    template = _environment().get_template("page.html")
    page = template.render(
        title=title,
        comparison=comparison,
        lists=lists,
        n_flagged=0 if issues is None else len(issues.indices),
        n_labels=shown.n_samples if issues is None else issues.by_pair.sum(),
        digest=_digest(issues) if issues is not None else "",
        n_shown=len(content["matrix"]["classes"]),
        distances=[l1_error(other.transition, shown.transition, normalize=True) for other in comparison],
        version=__version__,
        numbers=Markup(script_json(content)),  # noqa: S704
        **_finding(estimate, shown, wrong, level),
        **_embedded(),
    )
    # A lone surrogate in a class name has no UTF-8 form.
    return page.encode("utf-8", "replace").decode("utf-8")


def _made(
    previews: Previews | Sequence[str] | None, issues: LabelIssues | None, lists: Sequence[ReviewList]
) -> Previews | None:
    """Return the previews of the listed examples, made of their texts if these were passed."""
    if previews is None or isinstance(previews, Previews):
        return previews
    texts = list(previews) if isinstance(previews, Iterable) and not isinstance(previews, (str, bytes)) else []
    if not texts or not all(isinstance(text, str) for text in texts):
        raise InputError(
            "Expected previews to be texts, one per row, or what dualt.report.image_previews or text_previews returns,"
            f" got {type(previews).__name__}."
        )
    wanted = [row for rows in lists for row in rows.index.tolist()]
    return text_previews(texts, wanted, n_samples=len(texts) if issues is None else len(issues))


def _shown(estimate: TransitionEstimate | None, issues: LabelIssues | None) -> tuple[Estimate, NDArray[Any]]:
    """Return the matrix to show, and the expected number of wrong labels by given label and true class."""
    if issues is not None:
        return GivenMatrix(issues) if estimate is None else estimate, without_diagonal(issues.by_pair)
    if estimate is None:
        raise InputError("Expected an estimate or label issues to report, got neither.")
    return estimate, without_diagonal(estimate.n_samples * (estimate.clean_prior[:, None] * estimate.transition).T)


def _finding(estimate: TransitionEstimate | None, shown: Estimate, wrong: NDArray[Any], level: float) -> dict[str, Any]:
    """Return what the page says of the labels as a whole."""
    return {
        "estimate": shown,
        "interval": None if estimate is None else rate_range(estimate, level),
        "range": rate_range(estimate, level) if estimate is not None and told_as_range(estimate) else None,
        "undecided": None if estimate is None else estimate.undecided,
        "cannot_tell": CANNOT_TELL if estimate is not None and nothing_sure(estimate) else None,
        "verdict": words.verdict(shown, level),
        "hardest_hit": words.hardest_hit(shown, level),
        "level": f"{100 * level:g}%",
        "facts": words.facts(shown),
        "expected_wrong": wrong.sum(),
        "confusions": confusions(wrong),
    }


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


def _suspects(
    issues: LabelIssues, limit: int, reviewed: Mapping[int | str, str] | None, ids: Sequence[Any] | None
) -> ReviewList:
    rows, decided = listed(issues, limit, reviewed=reviewed, ids=ids), reviewed_rows(issues, reviewed, ids)
    known = {place: decided[row] for place, row in enumerate(rows.tolist()) if row in decided}
    return ReviewList("suspects", "Suspect labels", rows, known=known)


def _digest(issues: LabelIssues) -> str:
    """Return a digest of the given labels, by which the browser knows that a page made anew is about the same ones."""
    labels = repr(issues.class_names).encode("utf-8", "replace") + issues.given.astype("<i8").tobytes()
    return hashlib.sha256(labels).hexdigest()[:16]


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("dualt.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(percent=words.percent, count=words.count, class_name=words.class_name)
    return environment

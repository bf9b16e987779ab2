"""The numbers that the page's script reads, as JSON that no text can break out of."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dualt.report.previews import Previews
from dualt.report.shown import Codes, Estimate, GivenMatrix, ReviewList
from dualt.results.readings import rates_range

if TYPE_CHECKING:
    from dualt.issues import LabelIssues
    from dualt.results import TransitionEstimate

# A larger matrix is shown for its most confused classes, and one column gathers the others.
MAX_MATRIX_CLASSES = 30
_N_LIKELY = 8


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


def payload(
    estimate: Estimate,
    issues: LabelIssues | None,
    lists: Sequence[ReviewList],
    *,
    wrong: NDArray[Any],
    comparison: Sequence[TransitionEstimate],
    previews: Previews | None,
    ids: Sequence[Any] | None,
    labels_digest: str | None,
    level: float,
) -> dict[str, Any]:
    """Return the numbers of the pictures and of the review lists.

    `wrong[given, true]` is the expected number of examples with that label and that true class, 0 on the diagonal.
    """
    return {
        "names": list(estimate.class_names),
        "level": level,
        "labels": labels_digest or "",
        "matrix": _matrix(estimate, wrong, level),
        "rates": _rates(estimate, level),
        "methods": [{"name": other.estimator, "rates": _rounded(other.noise_rates, 4)} for other in comparison],
        "likely": {} if issues is None else _likely(lists, issues, wrong),
        "lists": [] if issues is None else [_review_list(rows, issues, previews, ids) for rows in lists],
    }


def confusions(wrong: NDArray[Any], limit: int = 12) -> list[tuple[int, int, float]]:
    """Return the largest expected numbers of wrong labels as (given, true, number), largest first."""
    places = np.argsort(wrong, axis=None, kind="stable")[::-1][:limit]
    found = [(*divmod(int(place), len(wrong)), float(wrong.flat[place])) for place in places]
    return [pair for pair in found if pair[2] >= 0.5]


def _matrix(estimate: Estimate, wrong: NDArray[Any], level: float) -> dict[str, Any]:
    classes = _shown_classes(wrong)
    part = np.ix_(classes, classes)
    values = estimate.transition[part]
    interval = None if isinstance(estimate, GivenMatrix) else estimate.confidence_interval(level)
    return {
        "classes": classes.tolist(),
        "value": _rounded(values),
        "low": interval and _rounded(interval[0][part]),
        "high": interval and _rounded(interval[1][part]),
        "others": _rounded(np.maximum(0.0, 1 - values.sum(axis=1))) if len(classes) < len(wrong) else None,
    }


def _shown_classes(wrong: NDArray[Any]) -> Codes:
    """Return the classes of the heatmap: all, or those of the largest confusions."""
    if len(wrong) <= MAX_MATRIX_CLASSES:
        return np.arange(len(wrong))
    # A class belongs to at least one of these pairs, so they always name enough classes.
    order = np.stack(np.divmod(np.argsort(wrong, axis=None)[::-1], len(wrong)), axis=1).ravel()
    _, first = np.unique(order, return_index=True)
    return np.sort(order[np.sort(first)[:MAX_MATRIX_CLASSES]])


def _rates(estimate: Estimate, level: float) -> dict[str, Any]:
    elsewhere = without_diagonal(estimate.transition)
    interval = None if isinstance(estimate, GivenMatrix) else rates_range(estimate, level)
    return {
        "value": _rounded(estimate.noise_rates),
        "low": interval and _rounded(interval[0]),
        "high": interval and _rounded(interval[1]),
        "mostly": elsewhere.argmax(axis=1).tolist(),
        "share": _rounded(elsewhere.max(axis=1)),
    }


def _likely(lists: Sequence[ReviewList], issues: LabelIssues, wrong: NDArray[Any]) -> dict[str, list[int]]:
    """Return, for each given label on a list, the true classes that it most often hides."""
    given = sorted({int(code) for rows in lists for code in np.unique(issues.given[rows.index])})
    return {
        str(code): [int(true) for true in np.argsort(-wrong[code], kind="stable")[:_N_LIKELY] if true != code]
        for code in given
    }


def _review_list(
    rows: ReviewList, issues: LabelIssues, previews: Previews | None, ids: Sequence[Any] | None
) -> dict[str, Any]:
    index = rows.index.tolist()
    names = rows.ids if ids is None else [str(ids[row]) for row in index]
    return {
        "key": rows.key,
        "blind": rows.blind,
        "action": "Download verified labels" if rows.blind else "Download corrected labels",
        "columns": _columns(rows, named=names is not None),
        "more": {name: list(map(str, values)) for name, values in rows.how_drawn.items()},
        "known": [[place, code] for place, code in rows.known.items()],
        # An audit's rows are counted in the data it was drawn from, which its file is read beside.
        "index": index if rows.blind else issues.row_numbers[index].tolist(),
        "ids": names,
        "given": issues.given[index].tolist(),
        "suggested": issues.suggested[index].tolist(),
        "right": _rounded(issues.probability_right[index], 3),
        "probability": _rounded(issues.suggested_probability[index], 3),
        "kind": previews.kind if previews else None,
        "pixelated": bool(previews and previews.pixelated),
        "previews": [previews.content.get(row) for row in index] if previews else None,
        "files": [previews.names.get(row) for row in index] if previews and previews.names else None,
    }


def _columns(rows: ReviewList, *, named: bool) -> list[str]:
    """Return the header of the download: the one of `dualt.audit.Sheet`, or the one that `apply-review` reads."""
    if not rows.blind:
        return ["index", "id", "old", "new", "labels"]
    return ["index", *(["id"] if named else []), "given", "true", *rows.how_drawn]


def without_diagonal(matrix: NDArray[Any]) -> NDArray[Any]:
    """Return the matrix with zeros on its diagonal."""
    return np.where(np.eye(len(matrix), dtype=bool), 0.0, matrix)


def _rounded(values: NDArray[Any], decimals: int = 5) -> Any:
    return np.round(np.asarray(values, dtype=np.float64), decimals).tolist()

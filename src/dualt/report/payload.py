"""The numbers that the page's script reads, as JSON that no text can break out of."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualt.report.data import Codes, Floats, ReportData, ReviewList

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


def payload(data: ReportData) -> dict[str, Any]:
    """Return the data of the pictures and of the review lists."""
    return {
        "names": list(data.class_names),
        "level": data.level,
        "matrix": _matrix(data),
        "rates": _rates(data),
        "methods": [{"name": method.name, "rates": _rounded(method.noise_rates, 4)} for method in data.methods],
        "likely": _likely(data),
        "lists": [_review_list(rows) for rows in data.lists],
    }


def confusions(data: ReportData, limit: int = 12) -> list[tuple[int, int, float]]:
    """Return the largest expected numbers of wrong labels as (given, true, number), largest first."""
    if data.pair_counts is None:
        return []
    pairs = _without_diagonal(data.pair_counts)
    places = np.argsort(pairs, axis=None, kind="stable")[::-1][:limit]
    found = [(*divmod(int(place), len(pairs)), float(pairs.flat[place])) for place in places]
    return [pair for pair in found if pair[2] >= 0.5]


def _shown_classes(data: ReportData) -> Codes:
    """Return the classes of the heatmap: all, or those of the largest confusions."""
    n_classes = len(data.class_names)
    if n_classes <= MAX_MATRIX_CLASSES:
        return np.arange(n_classes)
    weights = data.transition.T if data.pair_counts is None else data.pair_counts
    # A class belongs to at least one of these pairs, so they always name enough classes.
    pairs = np.argsort(_without_diagonal(weights), axis=None)[::-1]
    order = np.stack(np.divmod(pairs, n_classes), axis=1).ravel()
    _, first = np.unique(order, return_index=True)
    return np.sort(order[np.sort(first)[:MAX_MATRIX_CLASSES]])


def _matrix(data: ReportData) -> dict[str, Any]:
    classes = _shown_classes(data)
    part = np.ix_(classes, classes)
    low, high = data.transition_interval or (None, None)
    values = data.transition[part]
    aggregated = len(classes) < len(data.class_names)
    return {
        "classes": classes.tolist(),
        "value": _rounded(values),
        "low": None if low is None else _rounded(low[part]),
        "high": None if high is None else _rounded(high[part]),
        "others": _rounded(np.maximum(0.0, 1 - values.sum(axis=1))) if aggregated else None,
    }


def _rates(data: ReportData) -> dict[str, Any]:
    low, high = data.noise_rates_interval or (None, None)
    wrong = _without_diagonal(data.transition)
    return {
        "value": _rounded(data.noise_rates),
        "low": None if low is None else _rounded(low),
        "high": None if high is None else _rounded(high),
        "mostly": wrong.argmax(axis=1).tolist(),
        "share": _rounded(wrong.max(axis=1)),
    }


def _likely(data: ReportData) -> dict[str, list[int]]:
    """Return, for each given label on a list, the true classes it most often hides."""
    if data.pair_counts is None:
        return {}
    pairs = _without_diagonal(data.pair_counts)
    given = {int(code) for rows in data.lists for code in np.unique(rows.given)}
    return {
        str(code): [int(true) for true in np.argsort(-pairs[code], kind="stable")[:_N_LIKELY] if true != code]
        for code in sorted(given)
    }


def _review_list(rows: ReviewList) -> dict[str, Any]:
    previews = rows.previews
    return {
        "key": rows.key,
        "action": "Download verified labels" if rows.is_audit else "Download corrected labels",
        "columns": ["index", "given", "true"] if rows.is_audit else ["index", "old", "new"],
        "index": rows.index.tolist(),
        "given": rows.given.tolist(),
        "suggested": rows.suggested.tolist(),
        "right": _rounded(rows.probability_right, 3),
        "probability": _rounded(rows.suggested_probability, 3),
        "kind": previews.kind if previews else None,
        "pixelated": bool(previews and previews.pixelated),
        "previews": [previews.content.get(index) for index in rows.index.tolist()] if previews else None,
    }


def _without_diagonal(matrix: Floats) -> Floats:
    return np.where(np.eye(len(matrix), dtype=bool), 0.0, matrix)


def _rounded(values: NDArray[Any], decimals: int = 5) -> Any:
    return np.round(np.asarray(values, dtype=np.float64), decimals).tolist()

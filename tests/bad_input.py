"""Every way in which probabilities and labels can be unusable, for the Python tests and the command line's."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from dualt.errors import InputError, LabelsError, ProbabilitiesError

PROBS = np.array([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]])
LABELS = np.array([0, 1, 1])


@dataclass(frozen=True)
class Bad:
    """Unusable input, the error it deserves and what its message must say."""

    error: type[InputError]
    message: str
    probs: Any = field(default_factory=lambda: PROBS)
    labels: Any = field(default_factory=lambda: LABELS)
    class_names: Any = None


def changed(row: int, column: int, value: float) -> np.ndarray:
    probs = PROBS.copy()
    probs[row, column] = value
    return probs


with np.errstate(divide="ignore"):
    LOG_OF_CERTAINTY = np.log([[1.0, 0.0], [0.5, 0.5], [0.2, 0.8]])

_CASES = {
    "NaN probability": Bad(ProbabilitiesError, r"finite .*nan at row 1, column 0", changed(1, 0, np.nan)),
    "infinite": Bad(ProbabilitiesError, r"finite .*inf at row 2, column 1", changed(2, 1, np.inf)),
    "both infinities": Bad(
        ProbabilitiesError, r"inf at row 0, column 0", np.array([[np.inf, -np.inf], *PROBS[1:].tolist()])
    ),
    "negative": Bad(ProbabilitiesError, r"\[0, 1\], got -0\.1 at row 1, column 0\. Drop", changed(1, 0, -0.1)),
    "above one": Bad(ProbabilitiesError, r"sum to 1, got 1\.8 at row 2", changed(2, 0, 1.4)),
    "row sum": Bad(ProbabilitiesError, r"sum to 1, got 1\.2 at row 1.*by its sum", changed(1, 0, 0.4)),
    "zero row": Bad(ProbabilitiesError, r"sum to 1, got 0 at row 0", np.vstack([[0, 0], PROBS[1:]])),
    "percentages": Bad(ProbabilitiesError, r"got 100 at row 0.*divide by 100", 100 * PROBS),
    "overflowing row": Bad(ProbabilitiesError, r"got inf at row 1", np.full((3, 2), [[0.5], [1.7e308], [0.5]])),
    "log-probabilities": Bad(ProbabilitiesError, r"look like log-probabilities: pass np\.exp", np.log(PROBS)),
    "log of zero": Bad(ProbabilitiesError, r"-inf at row 0, column 1.*pass np\.exp", LOG_OF_CERTAINTY),
    "logits": Bad(ProbabilitiesError, r"-1\.5 at row 0, column 1.*softmax", PROBS * 4 - [0, 1.9]),
    "positive logits": Bad(ProbabilitiesError, r"got 3 at row 0.*softmax", 3 * PROBS),
    "1-D": Bad(ProbabilitiesError, r"got shape \(3,\).*column_stack", PROBS[:, 0]),
    "4-D": Bad(ProbabilitiesError, r"got shape \(3, 2, 1, 1\)", PROBS[:, :, None, None]),
    "predictions": Bad(ProbabilitiesError, r"got shape \(3,\).*predict_proba.*spade", np.array([0, 1, 1])),
    "names of predictions": Bad(ProbabilitiesError, r"dtype <U3.*come second.*spade", np.array(["cat", "dog", "cat"])),
    "swapped": Bad(ProbabilitiesError, "the labels: they come second", LABELS, PROBS),
    "one class": Bad(ProbabilitiesError, r"at least two classes \(columns\), got 1", np.ones((3, 1))),
    "no rows": Bad(ProbabilitiesError, "at least one row", np.empty((0, 2)), np.empty(0, int)),
    "no labels": Bad(LabelsError, "at least one label", labels=np.empty(0, int)),
    "complex": Bad(ProbabilitiesError, "numeric .*complex", PROBS + 0j),
    "text for probabilities": Bad(ProbabilitiesError, "numeric .*<U", PROBS.astype(str)),
    "lengths differ": Bad(InputError, "3 rows and 2 labels", labels=LABELS[:2]),
    "label out of range": Bad(LabelsError, "from 0 to 1, got 7 at row 1", labels=np.array([0, 7, 1])),
    "-1": Bad(LabelsError, r"got -1 at row 2.*unlabelled.*drop", labels=np.array([0, 1, -1])),
    "counted from one": Bad(LabelsError, r"got 2 at row 1.*count from 1, subtract 1", labels=LABELS + 1),
    "fractional": Bad(LabelsError, r"class number .*0\.5 at row 1", labels=np.array([0, 0.5, 1])),
    "no label at all": Bad(LabelsError, r"at least one label", labels=np.full(3, np.nan)),
    "infinite label": Bad(LabelsError, r"class number .*inf at row 2", labels=np.array([0, 1, np.inf])),
    "huge float label": Bad(LabelsError, r"class number .*1e\+30 at row 0", labels=np.array([1e30, 1, 0])),
    "unnamed class": Bad(LabelsError, r"'cat', 'dog'.*'cow' at row 1", labels=np.array(["cat", "cow", "dog"]),
                         class_names=["cat", "dog"]),
    "more labels than columns": Bad(LabelsError, r"2 different.*got 3.*--classes", labels=np.array([*"abc"])),
    "duplicate class names": Bad(LabelsError, "distinct .*'cat' twice", class_names=["cat", "cat"]),
    "too few class names": Bad(LabelsError, "Expected 2 class names.*got 1", class_names=["cat"]),
    "bool labels of three classes": Bad(LabelsError, "bool", np.full((3, 3), 1 / 3), np.array([True, False, True])),
    "rows with two ones": Bad(LabelsError, r"single 1 .*\[1 1\] at row 1", labels=np.array([[1, 0], [1, 1], [0, 1]])),
    "soft labels": Bad(LabelsError, r"single 1 .*at row 0.*probabilities, they come first", labels=PROBS),
    "one-hot rows too wide": Bad(LabelsError, "2 columns, got 3", labels=np.eye(3)),
    "several people": Bad(LabelsError, r"2 columns, got 3.*Several people.*`dualt votes`", labels=np.full((3, 3), 2)),
    "several classes": Bad(LabelsError, r"at row 0.*multi-label", labels=np.ones((3, 2), int)),
    "table of words": Bad(LabelsError, r"shape \(3, 2\).*Several people", labels=np.array([["a", "b"]] * 3)),
    "dates": Bad(LabelsError, "datetime64", labels=np.array(["2020-01-01"] * 3, "M8[D]")),
}  # fmt: skip

BAD_INPUT = [pytest.param(case, id=name) for name, case in _CASES.items()]

"""An estimate that was saved as JSON: its figures and intervals are those of the file, not computed anew."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualt.errors import FileError, InputError
from dualt.results.diagnostics import Diagnostics, Notice
from dualt.results.fit import Fit, Matrix
from dualt.validation import check_class_names, check_transition


@dataclass(frozen=True, eq=False)
class Saved:
    """What `TransitionEstimate.to_dict` returned when the estimate was saved."""

    content: Mapping[str, Any]

    @property
    def out_of_fold(self) -> bool | None:
        """Whether the classifier had not seen the rows; None if that is not known."""
        known = self.content["out_of_fold"]
        return None if known is None else bool(known)

    @property
    def level(self) -> float:
        """Level of the intervals."""
        return float(self.content["interval"]["level"])

    @cached_property
    def diagnostics(self) -> Diagnostics:
        """Figures that tell how far the estimate can be trusted."""
        return Diagnostics.from_dict(self.content["diagnostics"])

    @cached_property
    def warnings(self) -> tuple[Notice, ...]:
        """What a user of the estimate should know, in plain words."""
        return tuple(
            Notice(*(str(notice[f]) for f in ("code", "message", "advice"))) for notice in self.content["warnings"]
        )

    def confidence_interval(self, level: float) -> tuple[Matrix, Matrix]:
        """Return (low, high) of the matrix, at the level at which they were saved only."""
        self._check_level(level)
        n_classes, interval = len(self.content["transition"]), self.content["interval"]
        return _shaped(interval["low"], n_classes, n_classes), _shaped(interval["high"], n_classes, n_classes)

    def noise_rate_interval(self, level: float) -> tuple[float, float]:
        """Return (low, high) of the noise rate, at the level at which they were saved only."""
        self._check_level(level)
        low, high = map(float, self.content["noise_rate_interval"])
        return low, high

    def _check_level(self, level: float) -> None:
        if level != self.level:
            raise InputError(f"Expected the level {self.level:g}, at which the intervals were saved, got {level!r}.")


def read_estimate(path: str | Path) -> tuple[str, tuple[str, ...], Fit, Saved]:
    """Return the estimator, class names, fit and all else of a file that `TransitionEstimate.save` wrote."""
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise FileError(f"Cannot read {path} as JSON: {getattr(error, 'strerror', None) or error}.") from None
    try:
        saved = Saved(content)
        fit = _read_fit(content)
        names = check_class_names(content["class_names"], len(fit.transition))
        for name in ("label_counts", "predicted_counts", "anchor_confidence"):
            _shaped(content["diagnostics"][name], len(names))
        # All is read once, so that what is wrong is told here.
        _ = saved.out_of_fold, saved.diagnostics, saved.warnings
        _ = saved.confidence_interval(saved.level), saved.noise_rate_interval(saved.level)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        what = f"no {error}" if isinstance(error, KeyError) else str(error).rstrip(".")
        raise InputError(f"Expected an estimate as `save` writes it in {path}, got {what}.") from None
    return str(content["estimator"]), names, fit, saved


def _read_fit(content: Mapping[str, Any]) -> Fit:
    transition = check_transition(content["transition"])
    n_classes = len(transition)
    factors: dict[str, Any] = {
        name: _shaped(content[key], n_classes, n_classes)
        for name, key in (("t_club", "t_club"), ("spade_counts", "t_spade"))
        if key in content
    }
    if "anchors" in content:
        factors["anchors"] = _shaped(content["anchors"], n_classes).astype(np.int64)
    support = _shaped(content["diagnostics"]["support"], n_classes).astype(np.int64)
    return Fit(transition, support, _refuse_resampling, **factors)


def _shaped(values: Any, *shape: int) -> NDArray[np.float64]:
    array = np.array(values, np.float64)
    if array.shape != shape:
        raise ValueError(f"numbers of shape {array.shape} instead of {shape}")
    return array


def _refuse_resampling(rng: np.random.Generator) -> Matrix:
    raise InputError("Expected an estimate with its data to resample, got one from a file. Estimate it again.")

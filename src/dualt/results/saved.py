"""An estimate in a file: its figures and intervals are those of the file, not computed anew."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dualt.errors import FileError, InputError
from dualt.files import atomic_write, check_writable_target, json_text, read_json
from dualt.io.cells import guard_cell, write_rows
from dualt.results.diagnostics import Diagnostics
from dualt.results.fit import Fit, Matrix
from dualt.results.notices import Notice
from dualt.results.readings import Readings, rate_range, rates_range
from dualt.validation import check_class_names, check_transition

if TYPE_CHECKING:
    from dualt.results.estimate import TransitionEstimate


@dataclass(frozen=True, eq=False)
class Saved:
    """What the file says beside the matrix; the intervals are at `level` and at no other."""

    level: float
    interval: tuple[Matrix, Matrix]
    noise_rate_interval: tuple[float, float]
    diagnostics: Diagnostics
    warnings: tuple[Notice, ...]
    t_spade: Matrix | None = None
    audit: Mapping[str, Any] | None = None

    @property
    def clean_prior(self) -> NDArray[np.float64] | None:
        """Share of each true class as an audit has shown it; None without one that can be read."""
        n_classes = len(self.diagnostics.label_counts)
        try:
            joint = _shaped((self.audit or {})["joint"], n_classes, n_classes)
        except (KeyError, TypeError, ValueError):  # it is checked where it is used for more
            return None
        return np.asarray(joint.sum(axis=1) / joint.sum())

    def check_level(self, level: float) -> None:
        """Refuse a level at which the intervals are not known."""
        if level != self.level:
            raise InputError(f"Expected the level {self.level:g}, at which the intervals were saved, got {level!r}.")


def read_estimate(path: str | Path) -> tuple[str, tuple[str, ...], Fit, bool | None, Saved]:
    """Return estimator, class names, fit, `out_of_fold` and all else of a file that `TransitionEstimate.save` wrote."""
    content = read_json(path)
    try:
        fit = _read_fit(content)
        names = check_class_names(content["class_names"], len(fit.transition))
        out_of_fold = content["out_of_fold"]
        return str(content["estimator"]), names, fit, out_of_fold and bool(out_of_fold), _read_rest(content, len(names))
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        what = f"no {error}" if isinstance(error, KeyError) else str(error).rstrip(".")
        raise InputError(f"Expected an estimate as `save` writes it in {path}, got {what}.") from None


def _read_fit(content: Mapping[str, Any]) -> Fit:
    transition = check_transition(content["transition"])
    n_classes = len(transition)
    stored = _shaped(content["transition"], n_classes, n_classes)
    if np.allclose(stored, transition, rtol=1e-12, atol=0):
        transition = stored  # dividing once more by sums that are one but for rounding would change the last bits
    factors: dict[str, Any] = {}
    if "t_club" in content:
        factors["t_club"] = _shaped(content["t_club"], n_classes, n_classes)
    if "anchors" in content:
        factors["anchors"] = _shaped(content["anchors"], n_classes).astype(np.int64)
    if "readings" in content:
        factors["readings"] = Readings.from_dict(content["readings"])
        for values in (factors["readings"].least, factors["readings"].most):
            _shaped(values, n_classes)
        if not 0 < factors["readings"].power < np.inf:
            raise ValueError(f"power {factors['readings'].power}")
    support = _shaped(content["diagnostics"]["support"], n_classes).astype(np.int64)
    return Fit(transition, support, _refuse_resampling, **factors)


def _read_rest(content: Mapping[str, Any], n_classes: int) -> Saved:
    for name in ("label_counts", "predicted_counts", "anchor_confidence"):
        _shaped(content["diagnostics"][name], n_classes)
    interval = content["interval"]
    low, high = map(float, content["noise_rate_interval"])
    return Saved(
        level=float(interval["level"]),
        interval=(_shaped(interval["low"], n_classes, n_classes), _shaped(interval["high"], n_classes, n_classes)),
        noise_rate_interval=(low, high),
        diagnostics=Diagnostics.from_dict(content["diagnostics"]),
        t_spade=_shaped(content["t_spade"], n_classes, n_classes) if "t_spade" in content else None,
        audit=content.get("audit"),
        warnings=tuple(
            Notice(*(str(notice[f]) for f in ("code", "message", "advice"))) for notice in content["warnings"]
        ),
    )


def _shaped(values: Any, *shape: int) -> NDArray[np.float64]:
    array = np.array(values, np.float64)
    if array.shape != shape:
        raise ValueError(f"numbers of shape {array.shape} instead of {shape}")
    return array


def _refuse_resampling(rng: np.random.Generator) -> Matrix:
    raise InputError("Expected an estimate with its data to resample, got one from a file. Estimate it again.")


def estimate_content(estimate: TransitionEstimate, level: float) -> dict[str, Any]:
    """Return everything as plain numbers, strings and lists, with intervals of that level."""
    low, high = estimate.confidence_interval(level)
    audit = estimate.saved.audit if estimate.saved else estimate.audit and estimate.audit.to_dict()
    optional = {"t_club": estimate.t_club, "t_spade": estimate.t_spade, "anchors": estimate.anchors}
    return {
        "estimator": estimate.estimator,
        "n_samples": estimate.n_samples,
        "out_of_fold": estimate.out_of_fold,
        "class_names": list(estimate.class_names),
        "transition": estimate.transition.tolist(),
        "interval": {"level": level, "low": low.tolist(), "high": high.tolist()},
        "noise_rate": estimate.noise_rate,
        "noise_rate_interval": list(estimate.noise_rate_interval(level)),
        "noise_rate_range": list(rate_range(estimate, level)),
        "undecided": estimate.undecided,
        "noise_rates": estimate.noise_rates.tolist(),
        "noise_rates_range": [limit.tolist() for limit in rates_range(estimate, level)],
        **({} if estimate.fit.readings is None else {"readings": estimate.fit.readings.to_dict()}),
        **({} if audit is None else {"audit": audit}),
        **{name: value.tolist() for name, value in optional.items() if value is not None},
        "diagnostics": estimate.diagnostics.to_dict(),
        "warnings": [vars(notice) for notice in estimate.warnings],
    }


def write_estimate(path: str | Path, estimate: TransitionEstimate, level: float | None) -> None:
    """Write an estimate as `.json`, or its matrix alone as `.npy` or `.csv`."""
    path = Path(path)
    check_writable_target(path)
    suffix = path.suffix.lower()
    if suffix not in (".json", ".npy", ".csv"):
        raise FileError(f"Expected a name that ends in .json, .npy or .csv, got {path.name!r}.")
    content = estimate.to_dict(level) if suffix == ".json" else {}
    with atomic_write(path, "wb" if suffix == ".npy" else "w") as stream:
        if suffix == ".json":
            stream.write(json_text(content) + "\n")
        elif suffix == ".npy":
            np.save(stream, estimate.transition, allow_pickle=False)
        else:
            write_rows(stream, [[guard_cell(name) for name in estimate.class_names]])
            write_rows(stream, ([f"{value:.10g}" for value in row] for row in estimate.transition))

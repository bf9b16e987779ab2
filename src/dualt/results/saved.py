"""Writing an estimate to a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dualt.errors import FileError
from dualt.files import atomic_write, check_writable_target, json_text
from dualt.io.cells import guard_cell, write_rows
from dualt.results.readings import rate_range, rates_range

if TYPE_CHECKING:
    from dualt.results.estimate import TransitionEstimate


def estimate_content(estimate: TransitionEstimate, level: float) -> dict[str, Any]:
    """Return everything as plain numbers, strings and lists, with intervals of that level."""
    low, high = estimate.confidence_interval(level)
    audit = estimate.audit and estimate.audit.to_dict()
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


def write_estimate(path: str | Path, estimate: TransitionEstimate, level: float) -> None:
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

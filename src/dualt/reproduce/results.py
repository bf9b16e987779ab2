"""Records summed up: mean and deviation over seeds of what an experiment shows, beside what the paper printed."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np

from dualt.reproduce.grid import runs_of
from dualt.reproduce.presets import PAPER_EXPERIMENTS
from dualt.reproduce.records import Record
from dualt.reproduce.spec import Experiment, RunSpec


@dataclass(frozen=True)
class Cell:
    """Which cell of a table: data set, noise, estimator (or none) and method."""

    dataset: str
    noise: str
    estimator: str | None
    method: str


@dataclass(frozen=True)
class Published:
    """Mean accuracy in percent, its deviation over 5 repeats (or none), and how the paper sets it."""

    mean: float
    sd: float | None
    bold: bool
    star: bool


@cache
def published_values() -> dict[Cell, Published]:
    """Return every value of Tables 1 and 2.

    Examples
    --------
    >>> published_values()[Cell("mnist", "sym-20", None, "ce")].mean
    95.77
    """
    text = (files("dualt.reproduce") / "published.json").read_text(encoding="utf-8")
    content = json.loads(text)
    return {
        Cell(row["dataset"], row["noise"], row["estimator"], row["method"]): Published(
            row["mean"], row["sd"], row["bold"], row["star"]
        )
        for row in (*content["table1"], *content["table2"])
    }


@dataclass(frozen=True)
class Result:
    """Mean and standard deviation (n − 1) of one quantity over the seeds that are done; `None` where nothing is known.

    The quantity is `accuracy` (percent), `error` (Σ|T − T̂|/C, beside it the `total_error` Σ|T − T̂|), `posterior
    error`, `delta1`, `delta2` or `delta3`. `n_samples` counts the training and validation parts together, `n_seeds`
    and `failed` the runs; `published` is the paper's value, if it printed one.
    """

    dataset: str
    noise: str
    size: float
    n_samples: int | None
    quantity: str
    estimator: str | None
    method: str | None
    mean: float | None
    sd: float | None
    n_seeds: int
    failed: int
    total_error: float | None = None
    published: Published | None = None

    @property
    def difference(self) -> float | None:
        """Ours minus the paper's."""
        return None if self.published is None or self.mean is None else self.mean - self.published.mean

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers and strings, the paper's among them."""
        content = asdict(self)
        published = content.pop("published") or {}
        paper = {f"paper_{name}": published.get(name) for name in ("mean", "sd")}
        return {**content, **paper, "difference": self.difference}


# What the record of a run says, and what it is called; accuracies are shown in percent.
_QUANTITIES = {
    "posterior": {"posterior error": "posterior_error"},
    "deltas": {name: name for name in ("delta1", "delta2", "delta3")},
    "errors": {"error": "l1_error_per_class"},
    "accuracies": {"accuracy": "test_accuracy"},
}


def results_of(experiment: Experiment, records: Mapping[str, Record]) -> list[Result]:
    """Return what the experiment shows, in the order of its grid; what has no record yet has no mean."""
    cells: dict[tuple[Any, ...], list[RunSpec]] = {}
    for run in _shown(experiment, runs_of(experiment)):
        posterior = run.posterior
        key = (posterior.dataset, posterior.noise, posterior.size, run.estimator, run.method)
        cells.setdefault(key, []).append(run)
    return [
        _summed_up(experiment, quantity, name, runs, records)
        for runs in cells.values()
        for quantity, name in _QUANTITIES[experiment.shows].items()
    ]


def _shown(experiment: Experiment, runs: Iterable[RunSpec]) -> Iterable[RunSpec]:
    """Return the runs that the figure or table is made of; the others only lead to them."""
    if experiment.shows == "errors":
        return (run for run in runs if run.estimator is not None and run.method is None)
    if experiment.shows == "accuracies":
        return (run for run in runs if run.method in experiment.methods)
    return (run for run in runs if run.method == "ce")


def _summed_up(
    experiment: Experiment, quantity: str, name: str, runs: list[RunSpec], records: Mapping[str, Record]
) -> Result:
    found = [records[run.identity] for run in runs if run.identity in records]
    done = [record for record in found if record["status"] == "done" and record.get(name) is not None]
    values = np.array([record[name] for record in done]) * (100 if quantity == "accuracy" else 1)
    totals = [record["l1_error"] for record in done] if quantity == "error" else []
    run = runs[0]
    published = None
    if experiment.name in PAPER_EXPERIMENTS and quantity == "accuracy":
        cell = Cell(run.posterior.dataset, run.posterior.noise, run.estimator, str(run.method))
        published = published_values().get(cell)
    return Result(
        dataset=run.posterior.dataset,
        noise=run.posterior.noise,
        size=run.posterior.size,
        n_samples=done[0]["n_samples"] if done else None,
        quantity=quantity,
        estimator=run.estimator,
        method=run.method,
        mean=float(values.mean()) if done else None,
        sd=float(values.std(ddof=1)) if len(done) > 1 else None,
        n_seeds=len(done),
        failed=sum(record["status"] == "failed" for record in found),
        total_error=float(np.mean(totals)) if totals else None,
        published=published,
    )

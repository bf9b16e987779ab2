"""Records summed up: means and deviations over seeds, beside the paper's, as Markdown, LaTeX and CSV tables."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from dualt.nn.methods import METHODS
from dualt.reproduce.experiments import Experiment, TrainingSpec, load_experiment
from dualt.reproduce.runs import TRUE, RunSpec, base_name, runs_of

ESTIMATOR_NAMES = {"t": "T", "dual-t": "DT", "spade": "T♠", TRUE: "true T"}
METHOD_NAMES = {
    "ce": "CE", "mixup": "Mixup", "decoupling": "Decoupling", "mentornet": "MentorNet", "co-teaching": "Coteaching",
    "forward": "Forward", "reweighting": "Reweighting", "revision": "Revision",
    "volminnet": "VolMinNet", "total-variation": "Total variation",
}  # fmt: skip
DATASET_NAMES = {
    "synthetic": "synthetic", "mnist": "MNIST", "fashion-mnist": "F-MNIST", "cifar10": "CIFAR10",
    "cifar100": "CIFAR100", "clothing1m": "Clothing1M",
}  # fmt: skip
_DELTAS = {"delta1": "Δ1", "delta2": "Δ2", "delta3": "Δ3"}
# What an experiment shows, by the name of the quantity and its key in the records; accuracies are shown in percent.
_QUANTITIES = {
    "posterior": {"posterior error": "posterior_error"},
    "deltas": {name: name for name in _DELTAS},
    "errors": {"error": "l1_error_per_class"},
    "accuracies": {"accuracy": "test_accuracy"},
}
_LEGENDS = {
    "accuracies": "Accuracy in percent, mean ± standard deviation. Bold: the better estimator of a method; star:"
    " the best of a column.",
    "errors": "Σ|T − T̂|/C, mean ± standard deviation. Bold: the smallest.",
    "posterior": "Mean of |P − P̂| over test points and classes, ± standard deviation.",
    "deltas": "Errors on the training part, mean ± standard deviation.",
}
# What a table shows where there is no value.
_NOTHING = "–"
# Settings that are those of cross entropy's published recipe if they are `None`.
_RECIPE = ("epochs", "batch_size", "learning_rate", "momentum", "schedule")


class Published(NamedTuple):
    """Mean accuracy in percent, its deviation over 5 repeats (or none), and how the paper prints it."""

    mean: float
    sd: float | None
    bold: bool
    star: bool


@cache
def published_values() -> dict[tuple[str, str, str | None, str | None], Published]:
    """Return every value of Tables 1 and 2, by data set, noise, estimator and method.

    Examples
    --------
    >>> published_values()["mnist", "sym-20", None, "ce"].mean
    95.77
    """
    content = json.loads((files("dualt.reproduce") / "published.json").read_text(encoding="utf-8"))
    rows = (row.values() for row in (*content["table1"], *content["table2"]))
    return {
        (dataset, noise, estimator, method): Published(*printed) for dataset, noise, estimator, method, *printed in rows
    }


@dataclass(frozen=True)
class Result:
    """Mean and standard deviation (n − 1) of one quantity over the seeds that are done; `None` where unknown.

    The quantity is `accuracy` (percent), `error` (Σ|T − T̂|/C, with the `total_error` Σ|T − T̂|), `posterior error`,
    `delta1`, `delta2` or `delta3`. `n_seeds` and `failed` count runs; `published` is the paper's value, if any.
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
        """Our mean minus the paper's."""
        return None if self.published is None or self.mean is None else self.mean - self.published.mean

    @property
    def row(self) -> str:
        """What the paper calls the row: `DT Forward`, or the estimator or quantity alone."""
        given = self.estimator or ""
        name = base_name(given)
        estimator = ESTIMATOR_NAMES.get(name, name) + given[len(name) :].replace("-", " ")
        if self.quantity == "accuracy":
            return " ".join(filter(None, (estimator, METHOD_NAMES.get(self.method or "", self.method))))
        return estimator or _DELTAS.get(self.quantity, self.quantity)

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers and strings, including the paper's."""
        content = asdict(self)
        content.pop("published")
        mean, sd = self.published[:2] if self.published else (None, None)
        return {**content, "paper_mean": mean, "paper_sd": sd, "difference": self.difference}


def results_of(experiment: Experiment, records: Mapping[str, Mapping[str, Any]]) -> list[Result]:
    """Return what the experiment shows, in the order of its grid; without a record there is no mean."""
    shown = {"errors": (None,), "accuracies": experiment.methods}.get(experiment.shows, ("ce",))
    cells: dict[tuple[Any, ...], list[RunSpec]] = {}
    for run in runs_of(experiment):
        if run.method in shown:
            key = (run.posterior.dataset, run.posterior.noise, run.posterior.size, run.estimator, run.method)
            cells.setdefault(key, []).append(run)
    results, published = [], published_values()
    for (dataset, noise, size, estimator, method), runs in cells.items():
        found = [records[run.identity] for run in runs if run.identity in records]
        for quantity, name in _QUANTITIES[experiment.shows].items():
            done = [record for record in found if record["status"] == "done" and record.get(name) is not None]
            values = np.array([record[name] for record in done]) * (100 if quantity == "accuracy" else 1)
            results.append(
                Result(
                    dataset=dataset,
                    noise=noise,
                    size=size,
                    n_samples=done[0]["n_samples"] if done else None,
                    quantity=quantity,
                    estimator=estimator,
                    method=method,
                    mean=float(values.mean()) if done else None,
                    sd=float(values.std(ddof=1)) if len(done) > 1 else None,
                    n_seeds=len(done),
                    failed=sum(record["status"] == "failed" for record in found),
                    total_error=float(np.mean([r["l1_error"] for r in done])) if done and quantity == "error" else None,
                    published=published.get((dataset, noise, estimator, method)) if quantity == "accuracy" else None,
                )
            )
    return results


def _number(digits: int, mean: float | None, sd: float | None = None, bold: bool = False, star: bool = False) -> str:
    """Return `mean ± sd` as Markdown, marked; `to_latex` translates it."""
    if mean is None:
        return _NOTHING
    shown = f"**{mean:.{digits}f}**" if bold else f"{mean:.{digits}f}"
    return shown + ("\\*" if star else "") + ("" if sd is None else f" ± {sd:.{digits}f}")


class ResultTable(NamedTuple):
    """A heading, the names of the columns, and rows of text."""

    heading: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def tables_of(experiment: Experiment, results: Sequence[Result]) -> list[ResultTable]:
    """Return one table per data set."""
    build = _accuracy_table if experiment.shows == "accuracies" else _curve_table
    by_dataset = {dataset: [r for r in results if r.dataset == dataset] for dataset in experiment.datasets}
    return [ResultTable(DATASET_NAMES.get(dataset, dataset), *build(own)) for dataset, own in by_dataset.items() if own]


Rows: TypeAlias = tuple[tuple[str, ...], ...]


def _accuracy_table(results: Sequence[Result]) -> tuple[tuple[str, ...], Rows]:
    """Rows are methods; each noise has our value and, where the paper printed one, its value and the difference."""
    sizes = {result.size for result in results}
    heads = dict.fromkeys(r.noise if len(sizes) == 1 else f"{r.noise}, n={r.size:g}" for r in results)
    parts = ("", ", paper", ", difference") if any(result.published for result in results) else ("",)
    rows: dict[str, list[str]] = {}
    for result in results:
        # Bold: the best estimator of a method. Star: the best of the column.
        column = [r for r in results if (r.noise, r.size) == (result.noise, result.size) and r.mean is not None]
        rivals = [r.mean or 0.0 for r in column if r.method == result.method]
        bold = len(rivals) > 1 and result.mean == max(rivals)
        star = len(column) > 1 and result.mean == max(r.mean or 0.0 for r in column)
        printed = _number(2, *result.published) if result.published else _NOTHING
        difference = _NOTHING if result.difference is None else f"{result.difference:+.2f}"
        cells = (_number(2, result.mean, result.sd, bold, star), printed, difference)
        rows.setdefault(result.row, []).extend(cells[: len(parts)])
    columns = ("", *(f"{head}{part}" for head in heads for part in parts), "seeds")
    return columns, tuple((name, *own, _seeds(r for r in results if r.row == name)) for name, own in rows.items())


def _curve_table(results: Sequence[Result]) -> tuple[tuple[str, ...], Rows]:
    """Rows are noise and sample size; each estimator or quantity has a column, the smallest error in bold."""
    points: dict[tuple[str, float], list[Result]] = {}
    for result in results:
        points.setdefault((result.noise, result.size), []).append(result)
    rows = []
    for (noise, size), own in points.items():
        known = [r.mean for r in own if r.mean is not None and r.estimator != "oracle"]
        n_samples = next((r.n_samples for r in own if r.n_samples), None)
        compared = results[0].quantity == "error" and len(known) > 1
        cells = [_number(3, r.mean, r.sd, bold=compared and r.mean == min(known)) for r in own]
        samples = f"{n_samples:,}" if n_samples else f"{size:,.0f}" if size > 1 else f"{size:.0%}"
        rows.append((noise, samples, *cells, _seeds(own)))
    return ("noise", "samples", *dict.fromkeys(r.row for r in results), "seeds"), tuple(rows)


def _seeds(results: Iterable[Result]) -> str:
    numbers = [result.n_seeds for result in results]
    low, high = min(numbers), max(numbers)
    return str(low) if low == high else f"{low}–{high}"


def about(experiment: Experiment) -> str:
    """Return how the experiment was run and what its numbers are."""
    seeds = f"up to {experiment.seeds} seeds" if experiment.seeds > 1 else "one seed"
    epochs = "epochs as published" if experiment.epochs is None else f"{experiment.epochs} epochs for the posterior"
    if experiment.shows == "accuracies" and experiment.method_epochs is not None:
        epochs += f" and {experiment.method_epochs} for the other methods"
    used = (pair for pair in experiment.network.items() if pair[0] in experiment.datasets)
    networks = ", ".join(f"{name} for {dataset}" for dataset, name in used)
    changed = "; ".join(deviations(experiment))
    differs = f" Not as the authors ran it: {changed}. Compare rows, not levels." if changed else ""
    return f"Profile `{experiment.profile}`, {seeds}; {epochs}; {networks}.{differs} {_LEGENDS[experiment.shows]}"


def deviations(experiment: Experiment) -> list[str]:
    """Return the settings that differ from the `paper` profile, with their values.

    The choice of data sets, noises, methods and seeds does not count; a size does, unless the figure has it.
    """
    paper = load_experiment(experiment.name, "paper")
    tables = {
        **dict.fromkeys(("network", "width", "augment"), experiment.datasets),
        "recipes": experiment.methods,
        "estimator_options": tuple(map(base_name, experiment.estimators)),
    }

    def settings(one: Experiment) -> dict[str, Any]:
        own = {name: getattr(one, name) for name in (*(field.name for field in fields(TrainingSpec)), "method_epochs")}
        own |= {name: getattr(METHODS["ce"].recipe, name) for name in _RECIPE if own[name] is None}
        own["sizes"] = None if {*one.sizes} <= {*paper.sizes} else ", ".join(f"{size:g}" for size in one.sizes)
        return own | {f"{name}.{key}": getattr(one, name).get(key) for name, keys in tables.items() for key in keys}

    published = settings(paper)
    return [f"{name} ({_shown(own)})" for name, own in settings(experiment).items() if own != published[name]]


def _shown(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {own}" for key, own in value.items())
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "none" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


def to_latex(experiment: Experiment, results: Sequence[Result]) -> str:
    """Return a `tabular` per data set, for booktabs."""
    blocks = []
    for table in tables_of(experiment, results):
        head = " & ".join(_escape(name) for name in table.columns)
        body = [" & ".join((_escape(row[0]), *map(_to_math, row[1:]))) + r" \\" for row in table.rows]
        spec = "l" + "r" * (len(table.columns) - 1)
        lines = [f"% {table.heading}", rf"\begin{{tabular}}{{{spec}}}", r"\toprule", head + r" \\", r"\midrule"]
        blocks.append("\n".join([*lines, *body, r"\bottomrule", r"\end{tabular}"]))
    return "\n\n".join(blocks) + "\n"


def _to_math(cell: str) -> str:
    bold = re.sub(r"\*\*(.+?)\*\*", r"\\mathbf{\1}", "--" if cell == _NOTHING else cell)
    math = bold.replace("\\*", "^*").replace("±", r"\pm")
    return f"${math}$"


def _escape(name: str) -> str:
    deltas = {sign: rf"$\Delta_{sign[1]}$" for sign in _DELTAS.values()}
    return deltas.get(name, name.replace("_", r"\_").replace("%", r"\%"))


def to_csv(results: Sequence[Result]) -> str:
    """Return one row per result."""
    import pandas as pd

    # Objects, not floats: counts stay whole where some are missing.
    frame = pd.DataFrame([result.to_dict() for result in results], dtype=object)
    return str(frame.to_csv(index=False, lineterminator="\n"))

"""Records summed up: means and deviations over seeds, beside the paper's, as tables."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np
import pandas as pd

from dualt.reproduce.experiments import Experiment, load_experiment
from dualt.reproduce.runs import TRUE, base_name, runs_of

ESTIMATOR_NAMES = {"t": "T", "dual-t": "DT", "spade": "T♠", TRUE: "true T"}
METHOD_NAMES = {
    "ce": "CE", "mixup": "Mixup", "decoupling": "Decoupling", "mentornet": "MentorNet", "co-teaching": "Coteaching",
    "forward": "Forward", "reweighting": "Reweighting", "revision": "Revision",
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
_COLUMNS = [
    "dataset", "noise", "size", "n_samples", "quantity", "estimator", "method", "mean", "sd", "n_seeds", "failed",
    "paper_mean", "paper_sd", "difference",
]  # fmt: skip
# What a table shows where there is no value.
_NOTHING = "–"
# Settings that may differ from the paper's without counting as a deviation.
_CHOICES = ("name", "title", "profile", "shows", "datasets", "noise", "estimators", "methods", "seeds")


@cache
def published_values() -> pd.DataFrame:
    """Return every value of Tables 1 and 2: accuracy in percent, its deviation over 5 repeats, and its marks."""
    content = json.loads((files("dualt.reproduce") / "published.json").read_text(encoding="utf-8"))
    values = pd.DataFrame([*content["table1"], *content["table2"]]).fillna({"estimator": ""})
    return values.rename(columns={name: f"paper_{name}" for name in ("mean", "sd", "bold", "star")})


def results_of(experiment: Experiment, records: Mapping[str, Mapping[str, Any]]) -> pd.DataFrame:
    """Return what the experiment shows, in the order of its grid: mean and standard deviation (n − 1) over the seeds.

    The quantity is `accuracy` (percent), `error` (Σ|T − T̂|/C), `posterior error`, `delta1`, `delta2` or `delta3`;
    `estimator` and `method` are empty where there is none. `n_seeds` and `failed` count runs, `row` is what the paper
    calls the row, and `difference` is our mean minus the paper's.
    """
    shown = {"errors": (None,), "accuracies": experiment.methods}.get(experiment.shows, ("ce",))
    measured = []
    for run in runs_of(experiment):
        record = records.get(run.identity, {})
        for quantity, key in _QUANTITIES[experiment.shows].items() if run.method in shown else ():
            done = record.get("status") == "done" and record.get(key) is not None
            measured.append({
                **{name: getattr(run.posterior, name) for name in ("dataset", "noise", "size")},
                "quantity": quantity,
                "estimator": run.estimator or "",
                "method": run.method or "",
                "row": _row_name(run.estimator or "", run.method or "", quantity),
                "value": record[key] * (100 if quantity == "accuracy" else 1) if done else np.nan,
                "n_samples": record["n_samples"] if done else None,
                "failed": record.get("status") == "failed",
            })  # fmt: skip
    cell = ["dataset", "noise", "size", "quantity", "estimator", "method", "row"]
    grouped = pd.DataFrame(measured).groupby(cell, sort=False)
    results = grouped.agg(
        n_samples=("n_samples", "first"),
        mean=("value", "mean"),
        sd=("value", "std"),
        n_seeds=("value", "count"),
        failed=("failed", "sum"),
    ).reset_index()
    printed = published_values() if experiment.shows == "accuracies" else published_values()[:0]
    results = results.merge(printed, "left", ["dataset", "noise", "estimator", "method"])
    results = results.astype({"n_samples": "Int64", "paper_mean": float, "paper_sd": float})
    return results.assign(difference=results["mean"] - results["paper_mean"])


def _row_name(estimator: str, method: str, quantity: str) -> str:
    """Return what the paper calls a row: `DT Forward`, or the estimator or quantity alone."""
    name = base_name(estimator)
    words = [ESTIMATOR_NAMES.get(name, name) + estimator[len(name) :].replace("-", " ")]
    if quantity == "accuracy":
        words.append(METHOD_NAMES.get(method, method))
    return " ".join(filter(None, words)) or _DELTAS.get(quantity, quantity)


def to_rows(results: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the results as plain numbers and strings, `None` where unknown."""
    plain = results[_COLUMNS].astype(object)
    return list(plain.where(plain.notna() & (plain != ""), None).to_dict("records"))


def to_csv(results: pd.DataFrame) -> str:
    """Return one row per result."""
    return str(results[_COLUMNS].to_csv(index=False, lineterminator="\n", float_format="%.10g"))


def tables_of(experiment: Experiment, results: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Return one table of texts per data set, by its name in the paper."""
    build = _accuracy_table if experiment.shows == "accuracies" else _curve_table
    return {DATASET_NAMES.get(name, name): build(own) for name, own in results.groupby("dataset", sort=False)}


def _number(digits: int, mean: float, sd: float, bold: bool = False, star: bool = False) -> str:
    """Return `mean ± sd` as Markdown, with marks."""
    if pd.isna(mean):
        return _NOTHING
    shown = f"**{mean:.{digits}f}**" if bold else f"{mean:.{digits}f}"
    return shown + ("\\*" if star else "") + ("" if pd.isna(sd) else f" ± {sd:.{digits}f}")


def _accuracy_table(results: pd.DataFrame) -> pd.DataFrame:
    """Rows are methods; each noise has our value and, where the paper printed one, its value and the difference."""
    table = {"": results.row.unique()}
    for (noise, size), own in results.groupby(["noise", "size"], sort=False):
        head = noise if results["size"].nunique() == 1 else f"{noise}, n={size:g}"
        # Bold: the best estimator of a method. Star: the best of the column.
        rivals = own.groupby("method")["mean"]
        bold = (own["mean"] == rivals.transform("max")) & (rivals.transform("count") > 1)
        star = (own["mean"] == own["mean"].max()) & (own["mean"].count() > 1)
        table[head] = [_number(2, *cell) for cell in zip(own["mean"], own.sd, bold, star, strict=True)]
        if results.paper_mean.notna().any():
            printed = own[["paper_mean", "paper_sd", "paper_bold", "paper_star"]]
            table[f"{head}, paper"] = [_number(2, *cell) for cell in printed.itertuples(index=False)]
            table[f"{head}, difference"] = [_NOTHING if pd.isna(d) else f"{d:+.2f}" for d in own.difference]
    table["seeds"] = [_seeds(own.n_seeds) for _, own in results.groupby("row", sort=False)]
    return pd.DataFrame(table)


def _curve_table(results: pd.DataFrame) -> pd.DataFrame:
    """Rows are noise and sample size; each estimator or quantity has a column, the smallest error in bold."""
    rows = []
    for (noise, size), own in results.groupby(["noise", "size"], sort=False):
        known, n_samples = own["mean"][own.estimator != "oracle"].dropna(), own.n_samples.dropna()
        best = known.min() if (own.quantity == "error").all() and len(known) > 1 else None
        cells = [_number(3, mean, sd, mean == best) for mean, sd in zip(own["mean"], own.sd, strict=True)]
        samples = f"{n_samples.iloc[0]:,}" if len(n_samples) else f"{size:,.0f}" if size > 1 else f"{size:.0%}"
        rows.append((noise, samples, *cells, _seeds(own.n_seeds)))
    return pd.DataFrame(rows, columns=["noise", "samples", *results.row.unique(), "seeds"])


def _seeds(counts: pd.Series) -> str:
    low, high = counts.min(), counts.max()
    return str(low) if low == high else f"{low}–{high}"


def about(experiment: Experiment) -> str:
    """Return how the experiment was run and what its numbers are."""
    seeds = f"up to {experiment.seeds} seeds" if experiment.seeds > 1 else "one seed"
    networks = ", ".join(f"{network} for {dataset}" for dataset, network in experiment.network.items())
    changed = ", ".join(deviations(experiment))
    differs = f" Not as the authors ran it: {changed}. Compare rows, not levels." if changed else ""
    return f"Profile `{experiment.profile}`, {seeds}; {networks}.{differs} {_LEGENDS[experiment.shows]}"


def deviations(experiment: Experiment) -> list[str]:
    """Return the settings that differ from the `paper` profile, as `name=value`.

    The choice of data sets, noises, methods and seeds does not count; a size does, unless the figure has it.
    """
    paper = load_experiment(experiment.name, "paper")
    given, published = (pd.json_normalize(asdict(one)).iloc[0].to_dict() for one in (experiment, paper))
    given["sizes"] = published["sizes"] if {*paper.sizes} >= {*experiment.sizes} else given["sizes"]
    left_out = {*_CHOICES, *paper.datasets} - {*experiment.datasets}
    names = [name for name in given | published if name.rpartition(".")[2] not in left_out]
    return [f"{name}={given.get(name)}" for name in names if given.get(name) != published.get(name)]

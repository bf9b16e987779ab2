"""Figures of the results, and all files that an experiment writes."""

import textwrap
from itertools import cycle, product
from pathlib import Path
from typing import Any

import pandas as pd

from dualt.errors import naming_extra
from dualt.files import atomic_write, write_text
from dualt.reproduce.claims import verdicts_of
from dualt.reproduce.experiments import Experiment
from dualt.reproduce.results import DATASET_NAMES, about, tables_of, to_csv

# Line, marker and colour differ; the colours differ in grey as well.
_STYLES = (
    ("#d95f02", "--", "s"), ("#1b4f9c", "-", "o"), ("#4aa564", ":", "^"), ("#222222", "-.", "D"),
    ("#a05ab5", "-", "v"), ("#e6ab02", "--", "P"), ("#17899c", ":", "X"), ("#8c564b", "-.", "<"),
    ("#7f7f7f", "--", ">"), ("#c2185b", "-", "*"),
)  # fmt: skip
_AXES = {"posterior": "mean |P − P̂|", "errors": "Σ|T − T̂| / C", "deltas": "error on the training part"}


def render(experiment: Experiment, results: pd.DataFrame, out: str | Path) -> list[Path]:
    """Write the tables as Markdown and CSV, and the curves of a figure as SVG, below `out`, and return the files."""
    stem = Path(out) / experiment.name
    texts = {stem.with_suffix(".md"): to_markdown(experiment, results), stem.with_suffix(".csv"): to_csv(results)}
    for path, text in texts.items():
        write_text(path, text)
    return [*texts, *write_figure(experiment, results, Path(out))]


def to_markdown(experiment: Experiment, results: pd.DataFrame) -> str:
    """Return a document with a table per data set, and the claims of the paper judged."""
    lines = [f"# {experiment.name}: {experiment.title}", "", about(experiment), ""]
    for heading, table in tables_of(experiment, results).items():
        lines += [f"## {heading}", "", *_markdown_table(table), ""]
    claims = _markdown_table(verdicts_of(experiment, results))
    return "\n".join([*lines, "## What the paper claims", "", *claims, ""])


def _markdown_table(table: pd.DataFrame) -> list[str]:
    rows = (f"| {' | '.join(row)} |" for row in table.itertuples(index=False))
    return [f"| {' | '.join(table.columns)} |", "|" + " --- |" * len(table.columns), *rows]


def write_figure(experiment: Experiment, results: pd.DataFrame, folder: Path) -> list[Path]:
    """Draw the curves of the experiment into `folder` and return the file; none for a table, or without results.

    Rows are noises and columns data sets, as in the paper; Figure 1 has all noises in one, and a single data set is
    drawn from left to right.
    """
    if experiment.shows == "accuracies" or results["mean"].isna().all():
        return []
    with naming_extra("Drawing figures"):
        import matplotlib as mpl
        from matplotlib.figure import Figure
    mpl.rcParams["svg.hashsalt"] = "dualt"
    one = experiment.shows == "posterior"
    noises, datasets = ["all"] if one else results.noise.unique(), results.dataset.unique()
    n_rows, n_columns = (1, len(noises)) if len(datasets) == 1 else (len(noises), len(datasets))
    figure = Figure(figsize=(max(3.4 * n_columns, 4.5), 2.8 * n_rows + 0.5), layout="constrained")
    axes = figure.subplots(n_rows, n_columns, squeeze=False)
    for axis, (noise, dataset) in zip(axes.flat, product(noises, datasets), strict=True):
        own = results[(results.dataset == dataset) & (one | (results.noise == noise))]
        axis.set_title(DATASET_NAMES.get(dataset, dataset) + ("" if one else f", {noise}"), fontsize=9)
        axis.tick_params(labelsize=7)
        _draw_curves(axis, own.assign(row=own.noise) if one else own, _AXES[experiment.shows])
    # One legend for all panels, outside them.
    legends = (axis.get_legend_handles_labels() for axis in figure.axes)
    known = {label: handle for legend in legends for handle, label in zip(*legend, strict=True)}
    figure.legend(known.values(), known.keys(), loc="outside lower center", ncols=4, fontsize=8, frameon=False)
    title = f"{experiment.title} (profile {experiment.profile})"
    figure.suptitle(textwrap.fill(title, int(14 * figure.get_figwidth())), fontsize=10)
    path = folder / f"{experiment.name}.svg"
    with atomic_write(path, "wb") as stream:
        figure.savefig(stream, format="svg", metadata={"Date": None})  # the same results give the same file
    return [path]


def _draw_curves(axis: Any, results: pd.DataFrame, quantity: str) -> None:
    """Draw a line per estimator or quantity over the number of samples, with a band of one standard deviation."""
    known = results[results["mean"].notna()].astype({"n_samples": float}).fillna({"sd": 0}).sort_values("n_samples")
    for (name, curve), (colour, line, marker) in zip(known.groupby("row", sort=False), cycle(_STYLES)):
        axis.plot("n_samples", "mean", line, data=curve, color=colour, marker=marker, markersize=3.5, label=name)
        low, high = curve["mean"] - curve.sd, curve["mean"] + curve.sd
        axis.fill_between(curve.n_samples, low, high, color=colour, alpha=0.2, linewidth=0)
    axis.set_ylim(bottom=0)
    axis.set_xscale("log")
    axis.set_xticks(known.n_samples.unique(), [f"{size:,.0f}" for size in known.n_samples.unique()], rotation=30)
    axis.minorticks_off()
    axis.grid(alpha=0.3, linewidth=0.5)
    axis.set_xlabel("samples", fontsize=8)
    axis.set_ylabel(quantity, fontsize=8)

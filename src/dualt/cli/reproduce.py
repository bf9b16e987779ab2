"""`dualt reproduce`: the figures and tables of the paper, run here, beside the published numbers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

import dualt
from dualt.cli.options import Json, parse_settings
from dualt.cli.terminal import print_json, progress, say
from dualt.errors import InputError

if TYPE_CHECKING:
    from dualt.reproduce import Experiment


def reproduce(
    experiment: Annotated[str, Argument(help="figure1 to figure5, table1, table2, or all of these.")],
    out: Annotated[Path, Option("-o", "--out", help="Folder for records, tables and figures.")] = Path("reproduction"),
    profile: Annotated[str, Option(help="smoke, laptop, paper (as run), paper-text (as it says).")] = "laptop",
    datasets: Annotated[str | None, Option(help="Only these, separated by commas.")] = None,
    change: Annotated[
        list[str] | None,
        Option(
            "--set",
            metavar="NAME=VALUE",
            help="Change a setting: noise=sym-20,pair-45 (or given), methods=ce,forward,"
            " estimators=t,dual-t,true, seeds=3, epochs=20, sizes=0.1,1.0, network.mnist=lenet, width=0.25,"
            " recipes.forward.momentum=0.9, estimator_options.t.anchor=quantile.",
        ),
    ] = None,
    n_jobs: Annotated[int, Option("--n-jobs", "-j", help="Number of processes.")] = 1,
    dask: Annotated[str | None, Option(help="Run on this Dask cluster instead: tcp://host:8786")] = None,
    show: Annotated[bool, Option("--show", help="Draw the existing records; run nothing.")] = False,
    as_json: Json = False,
) -> None:
    """Run a figure or table of the paper, and set it beside the published numbers.

    Stop it at any time: the same command continues where it was, and tries failed runs again. Data sets are read from
    $DUALT_DATA, else ~/.cache/dualt.

    Example: `dualt reproduce table1 --datasets mnist --set noise=pair-45 --set seeds=3 --out reproduction/`
    """
    from dualt.reproduce import runs_of

    wanted = _experiments(experiment, profile, datasets, change or [])
    for one in wanted:
        runs_of(one)
    answers = [_reproduce(one, out, n_jobs, dask, show=show, as_json=as_json) for one in wanted]
    if not any(answers):
        what = f"records to show in {out}" if show else "the data of the experiment"
        raise InputError(f"Expected {what}, got none. Nothing was written.")
    if as_json:
        print_json([answer for answer in answers if answer])
    failed = sum(result["failed"] for answer in answers for result in answer.get("results", ()))
    if failed and not show:
        say(f"{failed} runs failed; their records say why. The same command tries them again.", fg="red", err=True)
        raise typer.Exit(1)


def _experiments(name: str, profile: str, datasets: str | None, texts: list[str]) -> list[Experiment]:
    """Return the experiments to run; `all` with --datasets cuts each to those of the data sets that it has."""
    from dualt.reproduce import EXPERIMENTS, load_experiment

    changes = parse_settings(texts)
    datasets = changes.get("datasets") if datasets is None else datasets
    if datasets is not None:
        listed = datasets if isinstance(datasets, (list, tuple)) else str(datasets).split(",")
        changes["datasets"] = [str(dataset).strip() for dataset in listed if str(dataset).strip()]
    if name != "all":
        return [load_experiment(name, profile, changes)]
    known = {each: load_experiment(each).datasets for each in EXPERIMENTS}
    wanted = {each: [one for one in changes.get("datasets", has) if one in has] for each, has in known.items()}
    if not any(wanted.values()):
        raise InputError(f"No experiment of the paper has the data set {datasets}.")
    return [load_experiment(each, profile, {**changes, "datasets": own}) for each, own in wanted.items() if own]


def _reproduce(
    experiment: Experiment, out: Path, n_jobs: int, dask: str | None, *, show: bool, as_json: bool
) -> dict[str, Any]:
    """Run one experiment and render it; return it as plain data, or nothing if there is nothing to render."""
    from dualt.reproduce import read_records, render, results_of, run_sweep, runs_of
    from dualt.reproduce.figures import to_markdown
    from dualt.reproduce.results import to_rows

    if not show:
        root, runs = dualt.datasets.data_root(), runs_of(experiment)
        absent = {name for run in runs if not dualt.datasets.REGISTRY[name := run.posterior.dataset].is_present()}
        for name in sorted(absent):
            say(f"left out: {name} is not in {root} (dualt data get {name})", fg="yellow", err=True)
        runs = [run for run in runs if run.posterior.dataset not in absent]
        if not runs:
            return {}
        with progress() as advance:

            def on_progress(done: int, total: int, label: str) -> None:
                advance(experiment.name, done, total, f"{done} of {total} runs: {label}")

            run_sweep(runs, out, n_jobs=n_jobs, dask=dask, on_progress=on_progress)
    results = results_of(experiment, read_records(out))
    if not (results.n_seeds + results.failed).any():
        say(f"left out: {out} has no record of {experiment.name} ({experiment.profile})", fg="yellow", err=True)
        return {}
    files = [str(file) for file in render(experiment, results, out)]
    if not as_json:
        say(to_markdown(experiment, results))
        say(f"Written: {', '.join(files)}\n")
    content = {"experiment": experiment.name, "profile": experiment.profile}
    return {**content, "results": to_rows(results), "files": files}

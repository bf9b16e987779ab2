"""`dualt reproduce`: the figures and tables of the paper, run here, beside the published numbers."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dualt.cli.guard import shared
from dualt.cli.options import Json, print_json
from dualt.cli.plain import say
from dualt.cli.progress import is_quiet, terminal
from dualt.errors import InputError

if TYPE_CHECKING:
    from dualt.reproduce import Experiment, RunSpec, SweepOptions, SweepProgress

_LIST = "A comma between names."


@shared
def reproduce(
    experiment: Annotated[
        str,
        typer.Argument(
            metavar="EXPERIMENT",
            help="figure1 to figure5, table1, table2, or all of these; past the paper: floor, better-matrices.",
        ),
    ],
    out: Annotated[Path, typer.Option("-o", "--out", help="Folder for records, tables and figures.")] = Path(
        "reproduction"
    ),
    profile: Annotated[
        str,
        typer.Option(
            help="smoke (seconds), laptop (two cores), paper (as its authors ran it), paper-text (as it says)."
        ),
    ] = "laptop",
    datasets: Annotated[str | None, typer.Option(help=f"Only these. {_LIST}")] = None,
    noise: Annotated[
        str | None, typer.Option(help=f"Instead of the paper's: sym-20, pair-45, a matrix file, given. {_LIST}")
    ] = None,
    methods: Annotated[str | None, typer.Option(help=f"Instead of the paper's. {_LIST}")] = None,
    estimators: Annotated[
        str | None, typer.Option(help=f"Instead of T and dual-T: t,joint-held-out,true. {_LIST}")
    ] = None,
    seeds: Annotated[int | None, typer.Option(help="How many, from 0.")] = None,
    change: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            help="Any other field: --set epochs=20 --set sizes=0.1,1.0 --set network.mnist=lenet --set width=0.25"
            " --set stem=imagenet --set recipes.forward.momentum=0.9 --set estimator_options.t.anchor=quantile",
        ),
    ] = None,
    n_jobs: Annotated[int, typer.Option("--n-jobs", "-j", help="Processes, which share the processor.")] = 1,
    dask: Annotated[str | None, typer.Option(help="Run on this cluster instead: tcp://host:8786")] = None,
    retry_failed: Annotated[bool, typer.Option("--retry-failed", help="Try again what failed before.")] = False,
    show: Annotated[bool, typer.Option("--show", help="Show what there is, and run nothing.")] = False,
    data_dir: Annotated[Path | None, typer.Option(help="Where the data sets live.")] = None,
    as_json: Json = False,
) -> None:
    """Run a figure or table of the paper, and set it beside the published numbers.

    Stop it whenever you like: the same command goes on where it was.

    Example: `dualt reproduce table1 --datasets mnist --noise pair-45 --seeds 3 --out reproduction/`
    """
    from dualt.reproduce import PAPER_EXPERIMENTS, SweepOptions, load_experiment, runs_of

    lists = {"datasets": datasets, "noise": noise, "methods": methods, "estimators": estimators}
    changes = _changes(lists, seeds, change or [])
    wanted = [
        load_experiment(name, profile, own)
        for name in (PAPER_EXPERIMENTS if experiment == "all" else (experiment,))
        if (own := _fitting(changes, name, experiment == "all")) is not None
    ]
    if not wanted:
        raise InputError(f"No experiment of the paper has the data set {datasets}.")
    for one in wanted:
        runs_of(one)
    options = SweepOptions(n_jobs=n_jobs, dask=dask, retry_failed=retry_failed, data_dir=data_dir)
    try:
        answers = [_reproduce(one, out, options, show=show, quiet=as_json) for one in wanted]
    except KeyboardInterrupt:
        again = shlex.join(["dualt", *sys.argv[1:]])
        say(f"\nStopped. What is done is kept in {out}; to go on: {again}", fg="yellow", err=True)
        raise typer.Exit(130) from None
    if not any(answers):
        what = f"records to show in {out}" if show else "data of the experiment to run it on"
        raise InputError(f"Expected {what}, got none. Nothing was written.")
    if as_json:
        print_json([answer for answer in answers if answer])
    failed = sum(result["failed"] for answer in answers for result in answer.get("results", ()))
    if failed and not show:
        say(f"failed: {failed} runs; their records say why, --retry-failed tries again", fg="red", err=True)
        raise typer.Exit(1)


def _changes(lists: dict[str, str | None], seeds: int | None, texts: Sequence[str]) -> dict[str, Any]:
    from dualt.reproduce.presets import merge_tables, parse_change

    changes: dict[str, Any] = {
        name: [part.strip() for part in text.split(",") if part.strip()]
        for name, text in lists.items()
        if text is not None
    }
    for key, value in map(parse_change, texts):
        changes = merge_tables(changes, {key: value})
    return changes if seeds is None else {**changes, "seeds": seeds}


def _fitting(changes: dict[str, Any], name: str, one_of_all: bool) -> dict[str, Any] | None:
    """Return the changes as they apply to an experiment: `all` with --datasets cuts each to what it has of them.

    `None`: it has none of them.
    """
    if not (one_of_all and "datasets" in changes):
        return changes
    from dualt.reproduce import load_experiment

    own = load_experiment(name).datasets
    datasets = [dataset for dataset in changes["datasets"] if dataset in own]
    return {**changes, "datasets": datasets} if datasets else None


def _reproduce(experiment: Experiment, out: Path, options: SweepOptions, *, show: bool, quiet: bool) -> dict[str, Any]:
    """Run one experiment and render it; return it as plain data, or nothing if there is nothing to render."""
    from dualt.reproduce import Store, render, results_of, run_sweep, runs_of
    from dualt.reproduce.spec import GIVEN
    from dualt.reproduce.tables import to_markdown

    if not show:
        runs = _possible(runs_of(experiment), options.data_dir)
        if not runs:
            return {}
        if GIVEN in experiment.noise:
            text = "given: the labels are taken as they are; without a known noise no error of a matrix can be told"
            say(text, fg="yellow", err=True)
        with _bar(experiment.name, shown=not quiet) as advance:
            run_sweep(runs, out, together=experiment.together, options=options, on_progress=advance)
    # What was left out now may have been done before.
    results = results_of(experiment, Store(out).read_all())
    if not any(result.n_seeds or result.failed for result in results):
        say(f"left out: {out} has no record of {experiment.name} ({experiment.profile})", fg="yellow", err=True)
        return {}
    files = render(experiment, results, out)
    if not quiet:
        say(to_markdown(experiment, results))
        say(f"Written: {', '.join(map(str, files))}\n")
    return {
        "experiment": experiment.name,
        "profile": experiment.profile,
        "results": [result.to_dict() for result in results],
        "files": [str(file) for file in files],
    }


def _possible(runs: Sequence[RunSpec], data_dir: Path | None) -> list[RunSpec]:
    """Return the runs whose data are here; the others are left out with a word, and can be done another time."""
    from dualt.datasets import REGISTRY, data_root
    from dualt.reproduce.learning import check_matrices

    names = dict.fromkeys(run.posterior.dataset for run in runs)
    absent = [name for name in names if not REGISTRY[name].is_present(data_dir)]
    for name in absent:
        text = f"left out: {name} is not in {data_root(data_dir)} (dualt data get {name})"
        say(text, fg="yellow", err=True)
    here = [run for run in runs if run.posterior.dataset not in absent]
    check_matrices([run.posterior for run in here], data_dir)
    return here


@contextmanager
def _bar(name: str, *, shown: bool) -> Iterator[Callable[[SweepProgress], None] | None]:
    """Yield what is called after every epoch and run: a bar on a terminal, else a line per run, on stderr."""
    from rich.progress import BarColumn, Progress, TextColumn

    console = terminal()
    if not shown or is_quiet():
        yield None
    elif console is None:
        yield _print_line
    else:
        shown_beside = TextColumn("{task.percentage:.0f} %"), TextColumn("{task.fields[state]}")
        with Progress(TextColumn(name), BarColumn(), *shown_beside, console=console) as bars:
            # By cost: a matrix that is read off costs nothing beside 200 epochs.
            task = bars.add_task(name, total=1.0, state="starts")

            def advance(progress: SweepProgress) -> None:
                bars.update(task, completed=progress.share, state=_state(progress))

            yield advance


def _print_line(progress: SweepProgress) -> None:
    if progress.finished or not progress.share:
        say(_state(progress), err=True)


def _state(progress: SweepProgress) -> str:
    left = "" if progress.seconds_left is None else f" ({_duration(progress.seconds_left)} left)"
    return f"{progress.done} of {progress.total} runs{left}: {progress.label}"


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"

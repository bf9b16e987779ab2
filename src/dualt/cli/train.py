"""`dualt train`: a classifier trained on noisy labels, its run and its page of label issues.

Texts and tables are learned by the models of `cross_fit`, on corrected labels; images and arrays by networks.
"""

from __future__ import annotations

import inspect
import shlex
import shutil
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from rich.markup import escape
from typer import Argument, Option

import dualt
from dualt.cli import options
from dualt.cli.terminal import console, print_json, progress, show_estimate, show_next
from dualt.errors import InputError, UnknownNameError
from dualt.files import json_text, make_folder, read_json, write_text

if TYPE_CHECKING:
    from rich.console import Console

    from dualt.nn.config import TrainingConfig
    from dualt.nn.loop import EpochRecord
    from dualt.nn.run import RobustRun

# As in dualt.nn.methods.METHODS, which would import torch.
_METHODS = "auto; ce, mixup, decoupling, mentornet, co-teaching, forward, reweighting, revision; dividemix."
_SETTINGS = (
    "Any other setting of dualt.nn.config.TrainingConfig (folds=3, batch_size=64, device=cuda, ...), or an option of"
    " the network (width=0.5)."
)
_RUN, _REPORT, _CHECKPOINTS, _OPTIONS = "run.json", "report.html", "checkpoints", "options.json"
# The files of a model: of networks, and of the models of a table.
_MODELS = ("model.safetensors", "model.json")


@options.shared
def train(
    data: Annotated[str, Argument(help="Name of a data set, or a folder, .npz or table.")],
    folder: Annotated[Path, options.output_option(help="Folder for the model, the run and its checkpoints.")],
    learning: options.Learning,
    label: options.LabelColumn = None,
    id_column: options.IdColumn = None,
    size: Annotated[int | None, Option(help="Resize images to this many pixels a side.")] = None,
    noise: Annotated[str | None, Option(help="Corrupt the labels first: sym-0.2, pair-0.45, ...")] = None,
    method: Annotated[str, Option("--method", "-m", help=_METHODS)] = "auto",
    estimator: Annotated[str | None, Option("--estimator", "-e", help="As in `dualt estimate`.")] = None,
    transition: Annotated[Path | None, Option(help="A known matrix instead.")] = None,
    network: Annotated[str | None, Option("--network", "-n", help="mlp (default for images), lenet, ...")] = None,
    recipe: Annotated[str, Option(help="default, or paper: everything as published.")] = "default",
    epochs: Annotated[int | None, Option(help="Epochs of every stage. Default: as in the recipe.")] = None,
    settings: Annotated[list[str] | None, Option("--set", metavar="NAME=VALUE", help=_SETTINGS)] = None,
    n_jobs: Annotated[int | None, Option(help="Number of CPU threads.")] = None,
    random_state: options.RandomState = 0,
    resume: Annotated[bool, Option("--resume", help="Continue an interrupted run.")] = False,
    overwrite: Annotated[bool, Option("--overwrite", help="Replace the run in the folder.")] = False,
    as_json: options.Json = False,
) -> None:
    """Train a classifier on noisy labels.

    Texts and tables: several models vote, fitted on labels that were corrected as `dualt issues` suggests. Images,
    arrays, and tables of numbers with --network: a network learns the posterior, then trains through the matrix.

    Example: `dualt train data.csv --label y --text title -o model/`

    Example: `dualt train mnist --noise pair-0.45 -o model/`

    As in the paper: `dualt train mnist --noise pair-0.45 --recipe paper -o model/`

    In several processes: `torchrun --nproc-per-node 2 -m dualt train mnist -o model/`
    """
    if network is not None or Path(data).suffix.lower() not in dualt.io.tables.TABLES:
        if learning != options.Learning():
            raise InputError("Expected columns to learn from, --quick and --merge-labels with a table, not a network.")
        named = options.parse_settings(settings)
        config = _config(
            named, method=method, estimator=estimator, network=network or "mlp", recipe=recipe, epochs=epochs,
            n_jobs=n_jobs, random_state=random_state, transition=None,
        )  # fmt: skip
        reading = {"label": label, "id_column": id_column, "size": size}
        run, content = _train_network(data, reading, noise, transition, config, folder, resume, overwrite)
        if content and as_json:
            print_json(content)
        elif content:
            _show(run, content, folder)
        return
    of_networks = {
        "--size": size, "--noise": noise, "--method": method != "auto", "--recipe": recipe != "default",
        "--epochs": epochs, "--set": settings, "--resume": resume,
    }  # fmt: skip
    wrong = [name for name, value in of_networks.items() if value]
    if wrong:
        raise InputError(f"{', '.join(wrong)}: only networks have this. Pass --network mlp as well, or leave it out.")
    if (learning.features or "").endswith(".npy"):
        raise InputError("Expected columns for --features, got an array. Save arrays and labels as .npz for a network.")
    _check_folder(folder, {}, resume=False, overwrite=overwrite)
    table = options.Data(Path(data).expanduser(), label=label, id_column=id_column, n_jobs=n_jobs or 1)
    _train_table(table, learning, folder, estimator, transition, random_state, as_json)


def _check_folder(folder: Path, asked: Mapping[str, Any], *, resume: bool, overwrite: bool) -> None:
    """Refuse a folder with another run, unless it is to be overwritten, or resumed with the options that were asked."""
    if resume and overwrite:
        raise InputError("Expected --resume or --overwrite, got both.")
    found = [name for name in (_RUN, *_MODELS, _REPORT) if (folder / name).exists()]
    found += [_CHECKPOINTS] * any((folder / _CHECKPOINTS).glob("*.safetensors"))
    if found and not (resume or overwrite):
        go_on = "--resume to continue it, " if asked else ""  # the models of a table have no checkpoints
        hint = f"pass {go_on}--overwrite to replace it, or another folder."
        raise InputError(f"There is a run in {folder} already ({', '.join(found)}): {hint}")
    stored = folder / _CHECKPOINTS / _OPTIONS
    before = dict(read_json(stored)) if resume and stored.exists() else dict(asked)
    other = [f"{name} {before.get(name)!r}, not {new!r}" for name, new in asked.items() if before.get(name) != new]
    if other:
        raise InputError(
            f"Cannot resume with different options: the run in {folder} was started with {'; '.join(other)}."
            " Pass the same options, or --overwrite to replace the run."
        )


def _train_table(
    data: options.Data,
    learning: options.Learning,
    folder: Path,
    estimator: str | None,
    transition: Path | None,
    random_state: int,
    as_json: bool,
) -> None:
    """Fit the models of `cross_fit`, correct the labels by them, and write both into `folder`."""
    import numpy as np
    import pandas as pd

    from dualt.cli.inputs import learn, read_raw, warn_missing
    from dualt.crossfit.table_model import TableModel
    from dualt.issues.corrections import training_set

    raw = read_raw(data, learning)
    with progress() as advance:
        found = learn(raw, learning, n_jobs=data.n_jobs, random_state=random_state, on_progress=advance)
    known = _known(transition, found.class_names)
    warn_missing(np.flatnonzero(found.labelled), len(found))
    issues = dualt.find_label_issues(found, raw.labels, known, estimator=estimator)
    issues = replace(issues, ids=raw.beside.get(data.id_column or ""), texts=raw.texts)
    estimate = issues.transition_estimate
    distrust = None if estimate is None else dualt.results.claims.doubt(estimate)
    right = issues.probability_right.astype(np.float64)
    rows, learned, _ = training_set("clean" if distrust is None else "posterior", issues, found.given, right)
    kept = np.arange(len(found)) if rows is None else rows
    labels = np.full(len(found), "", dtype=object)
    labels[kept] = np.array([*found.class_names, ""], dtype=object)[learned]  # -1: without a label
    content = {
        "data": str(data.probs), "n_samples": issues.n_labelled, "models": found.model, "agreement": found.agreement,
        "distrust": distrust, "n_corrected": int((learned != found.given[kept]).sum()),
        "n_left_out": len(found) - len(kept), "transition": issues.transition.tolist(), "random_state": random_state,
        "estimate": None if estimate is None else estimate.to_dict(),
    }  # fmt: skip
    label = list(raw.beside)[-1]
    rows, votes = pd.DataFrame({**raw.columns, label: labels}), (found.choices, found.weights.tolist())
    TableModel(rows, label, [*raw.text_columns], *votes, random_state).save(folder)
    (folder / _MODELS[0]).unlink(missing_ok=True)  # of the run before
    shutil.rmtree(folder / _CHECKPOINTS, ignore_errors=True)
    shown = {name: values for name, values in raw.columns.items() if [name] != learning.text_columns}
    _write_run(folder, content, None if distrust else issues, columns=shown, title=f"Labels of {data.probs.name}")
    if as_json:
        print_json(content)
        return
    out = console()
    _show_claim(out, estimate, distrust, "The models were fitted on the labels as they are.")
    left_out = f" {content['n_left_out']:,} doubtful ones are left out." if content["n_left_out"] else ""
    out.print(
        f"\nModels fitted on {issues.n_labelled - content['n_left_out']:,} labels, {content['n_corrected']:,} of them"
        f" corrected.{left_out} Out of fold they agree with {found.agreement:.1%} of the given labels.",
        soft_wrap=True,
    )
    _show_files(out, folder)


def _train_network(
    data: str,
    reading: Mapping[str, Any],
    noise: str | None,
    transition: Path | None,
    config: TrainingConfig,
    folder: Path,
    resume: bool,
    overwrite: bool,
) -> tuple[RobustRun, dict[str, Any]]:
    """Train networks, with checkpoints, and write them into `folder`; return the run, and what was written of it."""
    from dualt.nn.config import recipe_of
    from dualt.nn.distributed import joined_world
    from dualt.nn.run import Stages, training_data

    try:
        chosen = {name: value for name, value in reading.items() if value is not None}
        dataset = dualt.datasets.load_dataset(data, **chosen)
    except dualt.io.table_columns.NotNumbersError as error:
        raise InputError(f"{error} Networks need numbers: leave --network out.") from None
    known = _known(transition, dataset.class_names)
    config, seed, fraction = replace(config, transition=known), config.random_state, config.validation_fraction
    matrix = None if noise is None else dualt.noise.from_name(noise, dataset.n_classes, random_state=seed)
    split = dualt.datasets.split_dataset(dataset, matrix, random_state=seed, validation_fraction=fraction)
    asked = {"label": reading["label"], "size": reading["size"], "noise": noise, **vars(config)}
    asked = {name: value for name, value in asked.items() if name not in ("device", "n_jobs", "recipes")}
    asked["transition"] = None if known is None else known.tolist()
    with joined_world() as rank, nullcontext() if rank else progress() as advance:

        def on_epoch(stage: str, record: EpochRecord) -> None:
            scores = {"validation": record.validation_accuracy, "test": record.test_accuracy}
            words = [f"{name} {value:.1%}" for name, value in scores.items() if value is not None]
            epochs = recipe_of(config, stage, len(split.train_noisy)).epochs
            note = ", ".join([f"epoch {record.epoch + 1} of {epochs}", f"loss {record.loss:.3f}", *words])
            if advance is not None:
                advance(stage, record.epoch + 1, epochs, note)

        parts, checkpoints = training_data(split, config.device), folder / _CHECKPOINTS
        stages = Stages(parts, dataset.class_names, config, checkpoints, resume, on_epoch)
        stages.check()
        if rank == 0:
            _check_folder(folder, asked, resume=resume, overwrite=overwrite)
            if not resume:  # the model of a run that is overwritten stays until the new one is written
                shutil.rmtree(checkpoints, ignore_errors=True)
            write_text(make_folder(checkpoints) / _OPTIONS, json_text(asked) + "\n")
        run = stages.run()
        return run, _save(run, split, folder) if rank == 0 else {}


def _known(path: Path | None, class_names: Sequence[str]) -> Any:
    """Return the matrix of a file, its classes in the order of the data."""
    return None if path is None else dualt.transition.match_transition(*dualt.io.load_transition(path), class_names)


def _config(settings: Mapping[str, Any], **given: Any) -> TrainingConfig:
    """Return the configuration; settings that are not fields of it are options of the network."""
    from dualt.nn.config import TrainingConfig
    from dualt.nn.networks import NETWORKS

    network = given["network"]
    free = [each.name for each in fields(TrainingConfig) if each.name not in (*given, "recipes")]
    of_network = [*inspect.signature(NETWORKS[network]).parameters][2:] if network in NETWORKS else []
    for name in settings:
        if name in given:
            raise InputError(f"Pass --{name.replace('_', '-')} instead of --set {name}.")
        if name not in (*free, *of_network):
            raise UnknownNameError("setting", name, [*free, *of_network])

    own = {name: value for name, value in settings.items() if name in free}
    others = {name: value for name, value in settings.items() if name not in free}
    return TrainingConfig(**given | {"network_options": others} | own)


def _save(run: RobustRun, split: dualt.datasets.Split, folder: Path) -> dict[str, Any]:
    """Write the model, the run and its page into `folder`, and return the run as plain data."""
    import numpy as np

    from dualt.nn.run import issues_of_all_rows

    dataset = split.dataset
    content = {"data": dataset.name, "n_samples": len(split.train_noisy), **run.to_dict()}
    for name, matrix in (("l1_error", run.transition), ("learned_l1_error", run.learned_transition)):
        if split.transition is not None and matrix is not None:
            content[name] = dualt.l1_error(split.transition, matrix)
    about = {name: content[name] for name in ("data", "test_accuracy", "random_state")}
    run.as_model(dataset, **about).save(folder)
    (folder / _MODELS[1]).unlink(missing_ok=True)  # of the run before
    issues, images = None, None
    if run.estimate is not None and run.pred_probs is not None and run.distrust is None:
        issues = replace(issues_of_all_rows(run, split), ids=dataset.ids)
        if isinstance(dataset.train_x, np.ndarray) and dataset.train_x.dtype == np.uint8 and dataset.train_x.ndim > 2:
            images = dataset.train_x.transpose(0, 2, 3, 1) if dataset.train_x.ndim == 4 else dataset.train_x
    _write_run(folder, content, issues, images=images, title=dataset.name)
    return content


def _write_run(folder: Path, content: Mapping[str, Any], issues: dualt.LabelIssues | None, **page: Any) -> None:
    """Write the run as JSON, and the page of its label issues, if there are any."""
    write_text(folder / _RUN, json_text(content) + "\n")
    if issues is not None:
        issues.to_report(folder / _REPORT, **page)
    else:
        (folder / _REPORT).unlink(missing_ok=True)  # of the run before


def _show_claim(out: Console, estimate: dualt.TransitionEstimate | None, distrust: str | None, instead: str) -> None:
    """Print the estimate, or why there is none and what was done instead."""
    if distrust is not None:
        out.print(f"[bold]No noise rate can be claimed[/]: {escape(distrust)}. {instead}", soft_wrap=True)
    elif estimate is not None:
        show_estimate(out, estimate)


def _show(run: RobustRun, content: dict[str, Any], folder: Path) -> None:
    """Print the results of networks and where they are."""
    out, used = console(), run.stages[run.method].recipe
    plain = run.config.method != "ce" and run.method == "ce"
    instead = "The network was trained with plain cross entropy, without a matrix." if plain else ""
    _show_claim(out, run.estimate, run.distrust, instead)
    out.print(
        f"\nMethod {run.method}: {used.epochs} epoch{'s' * (used.epochs != 1)}, batches of {used.batch_size},"
        f" {used.optimizer} with learning rate {used.learning_rate:g}; {content['total_seconds']:.0f} s in total"
    )
    for name, what in (("l1_error", "matrix"), ("learned_l1_error", "learned matrix")):
        if name in content:
            out.print(f"Error of the {what}, Σ|T − T̂|: {content[name]:.3f}")
    if run.test_accuracy is not None:
        averaged = len(run.networks) > 1 and run.config.recipe != "paper"
        networks = f", {len(run.networks)} networks averaged" if averaged else ""
        out.print(f"[bold]Accuracy {run.test_accuracy:.2%}[/] on the clean test labels{networks}")
    _show_files(out, folder)


def _show_files(out: Console, folder: Path) -> None:
    """Print where the results are, and what to do with them."""
    place = escape(str(folder))
    out.print(f"\nThe model is in {place}; the run in {place}/{_RUN}.", soft_wrap=True)
    if (folder / _REPORT).exists():
        out.print(f"Label issues to review in a browser: {place}/{_REPORT}", soft_wrap=True)
    show_next(out, {f"dualt predict {shlex.quote(str(folder))} DATA -o predictions.csv": "predict new data"})

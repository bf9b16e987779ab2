"""`dualt train`: a classifier that comes out right although its labels are noisy."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from dualt.cli.options import DataDir, Json, RandomState, parse_settings, print_json
from dualt.cli.plain import say

if TYPE_CHECKING:
    from dualt.datasets import Dataset, Split
    from dualt.nn.config import TrainingConfig
    from dualt.nn.pipeline import RobustRun
    from dualt.nn.training import EpochRecord

_OF_RECIPE = "Default: as the recipe says."


def train(
    data: Annotated[str, typer.Argument(metavar="DATA", help="Name of a data set, or a folder, .npz or table.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="Folder for the model, the run and its checkpoints.")],
    method: Annotated[
        str, typer.Option("--method", "-m", help="auto, ce, gce, elr, mixup, ..., forward, revision; volminnet, ....")
    ] = "auto",
    method_settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="An option of the method, such as volume_weight=1e-3."),
    ] = None,
    estimator: Annotated[
        str | None, typer.Option("--estimator", "-e", help="How the matrix is found. Default: as for `dualt estimate`.")
    ] = None,
    transition: Annotated[Path | None, typer.Option("--transition", help="A known matrix instead.")] = None,
    network: Annotated[str, typer.Option("--network", "-n", help="mlp, lenet, resnet18, ...")] = "mlp",
    width: Annotated[float, typer.Option("--width", help="Width of the network, relative to the published one.")] = 1.0,
    weights: Annotated[
        str | None, typer.Option("--weights", help="Start from a .safetensors file, or 'imagenet'.")
    ] = None,
    noise: Annotated[
        str | None, typer.Option("--noise", help="Corrupt the labels first: sym-0.2, pair-0.45, ...")
    ] = None,
    recipe: Annotated[
        str, typer.Option("--recipe", help="default, which suits the size of the data, or paper: all as published.")
    ] = "default",
    n_samples: Annotated[int | None, typer.Option("--n-samples", help="Use only so many samples.")] = None,
    validation_fraction: Annotated[float, typer.Option("--validation-fraction", help="Share set aside.")] = 0.2,
    epochs: Annotated[int | None, typer.Option("--epochs", help=f"Of every stage. {_OF_RECIPE}")] = None,
    batch_size: Annotated[int | None, typer.Option("--batch-size", help=f"Samples per step. {_OF_RECIPE}")] = None,
    optimizer: Annotated[str | None, typer.Option("--optimizer", help=f"sgd or adam. {_OF_RECIPE}")] = None,
    learning_rate: Annotated[float | None, typer.Option("--learning-rate", help=_OF_RECIPE)] = None,
    momentum: Annotated[float | None, typer.Option("--momentum", help=f"Of sgd. {_OF_RECIPE}")] = None,
    weight_decay: Annotated[float | None, typer.Option("--weight-decay", help=_OF_RECIPE)] = None,
    patience: Annotated[int | None, typer.Option("--patience", help="Stop after so many epochs in vain.")] = None,
    folds: Annotated[
        int | None, typer.Option("--folds", help="Learn the posterior out of fold in so many; 1: in sample.")
    ] = None,
    augment: Annotated[str | None, typer.Option("--augment", help="shift, or shift-flip for photographs.")] = None,
    label: Annotated[str | None, typer.Option("--label", help="Name of the label column in a table.")] = None,
    size: Annotated[int | None, typer.Option("--size", help="Resize images to this many pixels a side.")] = None,
    data_dir: DataDir = None,
    device: Annotated[str, typer.Option("--device", help="auto, cpu, cuda, ...")] = "auto",
    precision: Annotated[str, typer.Option("--precision", help="float32, or bf16 for mixed precision.")] = "float32",
    channels_last: Annotated[bool, typer.Option("--channels-last", help="Memory layout for convolutions.")] = False,
    n_jobs: Annotated[int | None, typer.Option("--n-jobs", help="Number of CPU threads.")] = None,
    tensorboard: Annotated[
        Path | None, typer.Option("--tensorboard", help="Folder for TensorBoard's curves of every stage.")
    ] = None,
    random_state: RandomState = 0,
    resume: Annotated[bool, typer.Option("--resume", help="Continue where an interrupted run stopped.")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the run that is in the folder.")] = False,
    as_json: Json = False,
) -> None:
    """Train a classifier on noisy labels: learn the posterior, estimate the matrix, train through it.

    Example: `dualt train mnist --noise pair-0.45 -o model/`

    As in the paper: `dualt train mnist --noise pair-0.45 --recipe paper -o model/`

    On several processes: `torchrun --nproc-per-node 2 -m dualt train mnist -o model/`
    """
    from dualt import io
    from dualt import noise as noises
    from dualt.datasets import load_dataset, split_dataset
    from dualt.nn.config import TrainingConfig
    from dualt.nn.pipeline import train_robustly, training_data
    from dualt.nn.training.distributed import joined_world
    from dualt.nn.training.folder import CHECKPOINTS, held_folder
    from dualt.nn.training.tensorboard import tensorboard_log
    from dualt.transition import match_transition

    options = {name: value for name, value in {"label": label, "size": size}.items() if value is not None}
    dataset = load_dataset(data, data_dir, **options)
    known = None if transition is None else match_transition(
        *io.load_named_transition(transition), dataset.class_names
    )  # fmt: skip
    config = TrainingConfig(
        network=network,
        method=method,
        estimator=estimator,
        transition=known,
        network_options={} if width == 1 else {"width": width},
        method_options=parse_settings(method_settings or []),
        weights=weights,
        recipe=cast("Any", recipe),
        epochs=epochs,
        batch_size=batch_size,
        optimizer=cast("Any", optimizer),
        learning_rate=learning_rate,
        momentum=momentum,
        weight_decay=weight_decay,
        patience=patience,
        validation_fraction=validation_fraction,
        folds=folds,
        augment=augment,
        device=device,
        precision=cast("Any", precision),
        channels_last=channels_last,
        n_jobs=n_jobs,
        random_state=random_state,
    )
    corruption = None if noise is None else noises.from_name(noise, dataset.n_classes, random_state=random_state)
    split = split_dataset(
        dataset, corruption, random_state=random_state, validation_fraction=validation_fraction, n_samples=n_samples
    )
    with held_folder(output, resume=resume, overwrite=overwrite), _resumable(output):
        with (
            joined_world() as world,
            _progress(config, len(split.train_noisy), shown=world.is_main and not as_json) as shown,
            tensorboard_log(tensorboard if world.is_main else None, shown) as on_epoch,
        ):
            run = train_robustly(
                training_data(split, dataset, config.machine),
                dataset.n_classes,
                config,
                class_names=dataset.class_names,
                clean_labels=split.train_clean,
                folder=output / CHECKPOINTS,
                resume=resume,
                on_epoch=on_epoch,
            )
            if not world.is_main:
                return
        content = _keep(run, dataset, split, output, _feature_names(data, label or "label"))
    if as_json:
        print_json(content)
    else:
        _show(run, content, output)


@contextmanager
def _resumable(output: Path) -> Iterator[None]:
    """Say how to go on, where a user interrupts."""
    try:
        yield
    except KeyboardInterrupt:
        say(
            f"interrupted: every whole epoch is in {output}; the same command with --resume goes on from there.",
            fg="red", err=True,
        )  # fmt: skip
        raise typer.Exit(130) from None


def _feature_names(data: str, label: str) -> tuple[str, ...] | None:
    """Return the names of a table's features; `None` of anything else."""
    from dualt.datasets import REGISTRY
    from dualt.io.load import TABLES, open_table

    path = Path(data).expanduser()
    if data in REGISTRY or path.suffix.lower() not in TABLES:
        return None
    names = open_table(path, label).names
    return None if names is None else tuple(name for name in names if name != label)


@contextmanager
def _progress(
    config: TrainingConfig, n_samples: int, *, shown: bool
) -> Iterator[Callable[[str, EpochRecord], None] | None]:
    """Yield what is called after every epoch: a bar on stderr where that is a terminal, else nothing."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    if not (shown and console.is_terminal):
        yield None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, TextColumn("{task.fields[state]}"), console=console) as bars:
        tasks: dict[str, Any] = {}

        def advance(stage: str, record: EpochRecord) -> None:
            if stage not in tasks:
                tasks[stage] = bars.add_task(stage, total=config.recipe_of(stage, n_samples).epochs, state="")
            scores = {"validation": record.validation_accuracy, "test": record.test_accuracy}
            words = [f"{name} {value:.1%}" for name, value in scores.items() if value is not None]
            bars.update(tasks[stage], completed=record.epoch + 1, state=" ".join([f"loss {record.loss:.3f}", *words]))

        yield advance


def _keep(
    run: RobustRun, dataset: Dataset, split: Split, output: Path, feature_names: tuple[str, ...] | None
) -> dict[str, Any]:
    """Write the model, the run and its page into `output`, and return the run as plain data."""
    from dualt.files import atomic_write, json_text
    from dualt.nn.training.inputs import sample_shape
    from dualt.nn.training.model import Model
    from dualt.transition import l1_error

    content = {"data": dataset.name, "n_samples": len(split.train_noisy), **run.to_dict()}
    for prefix, matrix in (("", run.transition), ("learned_", run.learned_transition)):
        if split.transition is not None and matrix is not None:
            content[f"{prefix}l1_error"] = l1_error(split.transition, matrix)
            content[f"{prefix}l1_error_per_class"] = l1_error(split.transition, matrix, normalize=True)
    names = ("data", "method", "transition", "learned_transition", "out_of_fold", "test_accuracy", "random_state")
    Model(
        networks=run.networks,
        network=str(run.config.network),
        options=run.config.network_options or {},
        input_shape=sample_shape(split.train_x),
        class_names=dataset.class_names,
        mean=dataset.mean,
        std=dataset.std,
        about={name: content[name] for name in names},
        feature_names=feature_names,
    ).save(output)
    with atomic_write(output / "run.json") as stream:
        stream.write(json_text(content) + "\n")
    if run.estimate is not None and run.posterior is not None and run.distrust is None:
        _write_report(run, dataset, split, output / "report.html")
    return content


def _write_report(run: RobustRun, dataset: Dataset, split: Split, path: Path) -> None:
    """Write the page of the estimate and the labels it finds wrong, with the images if there are any."""
    import numpy as np

    from dualt.cli.options import save_report
    from dualt.issues import find_posterior_issues
    from dualt.nn.all_rows import posterior_of_all_rows

    found = find_posterior_issues(posterior_of_all_rows(run, dataset, split), run.estimate)
    images = None
    if isinstance(dataset.train_x, np.ndarray) and dataset.train_x.dtype == np.uint8 and dataset.train_x.ndim > 2:
        images = dataset.train_x.transpose(0, 2, 3, 1) if dataset.train_x.ndim == 4 else dataset.train_x
    save_report(path, run.estimate, found, images=images, title=dataset.name)


def _show(run: RobustRun, content: dict[str, Any], output: Path) -> None:
    from rich.markup import escape

    from dualt.cli import picture

    out = picture.console()
    if run.estimate is not None and run.distrust is None:
        picture.show_estimate(out, run.estimate, 0.95)
    elif run.distrust is not None:
        out.print(f"[bold]No noise rate can be claimed[/]: {escape(run.distrust)}.", soft_wrap=True)
        if run.config.method != "ce" and run.method == "ce":
            out.print("The network was trained with plain cross entropy, without a matrix.", soft_wrap=True)
    used = run.stages[run.method].recipe
    out.print(
        f"\nMethod {run.method}: {used.epochs} epochs of batches of {used.batch_size}, {used.optimizer} at a rate of"
        f" {used.learning_rate:g} ({used.schedule}), {content['total_seconds']:.0f} s in all",
        soft_wrap=True,
    )
    for prefix, what in (("", "matrix"), ("learned_", "learned matrix")):
        if f"{prefix}l1_error" in content:
            total, each = content[f"{prefix}l1_error"], content[f"{prefix}l1_error_per_class"]
            out.print(f"\nError of the {what}: {total:.3f} in all, {each:.3f} per class")
    for name, stage in content["stages"].items():
        accuracy = stage["test_accuracy"]
        if accuracy is not None and "-fold-" not in name:
            out.print(f"[bold]{name}[/]: {accuracy:.2%} of the clean test labels right")
    place = escape(str(output))
    out.print(f"\nThe model is in {place}; the run with all curves in {place}/run.json.", soft_wrap=True)
    if (output / "report.html").exists():
        out.print(f"Its labels to review in a browser: {place}/report.html", soft_wrap=True)
    out.print(f" dualt predict {place} DATA -o predictions.csv   [dim]use it[/]", soft_wrap=True)

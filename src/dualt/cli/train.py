"""`dualt train`: a classifier that comes out right although its labels are noisy."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from dualt.cli.options import DataDir, Json, RandomState, parse_settings, print_json

if TYPE_CHECKING:
    from dualt.datasets import Dataset, Split
    from dualt.nn.config import TrainingConfig
    from dualt.nn.pipeline import RobustRun
    from dualt.nn.training import EpochRecord
    from dualt.results import TransitionEstimate
    from dualt.rows import NoisyPosterior

_PUBLISHED = "Default: as published."


def train(
    data: Annotated[str, typer.Argument(metavar="DATA", help="Name of a data set, or a folder, .npz or table.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="Folder for the model, the run and its checkpoints.")],
    method: Annotated[
        str, typer.Option("--method", "-m", help="ce, mixup, ..., forward, revision; volminnet, total-variation.")
    ] = "forward",
    method_settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="An option of the method, such as volume_weight=1e-3."),
    ] = None,
    estimator: Annotated[str, typer.Option("--estimator", "-e", help="How the matrix is found.")] = "dual-t",
    transition: Annotated[Path | None, typer.Option("--transition", help="A known matrix instead.")] = None,
    network: Annotated[str, typer.Option("--network", "-n", help="mlp, lenet, resnet18, ...")] = "mlp",
    width: Annotated[float, typer.Option("--width", help="Width of the network, relative to the published one.")] = 1.0,
    weights: Annotated[
        str | None, typer.Option("--weights", help="Start from a .safetensors file, or 'imagenet'.")
    ] = None,
    noise: Annotated[
        str | None, typer.Option("--noise", help="Corrupt the labels first: sym-0.2, pair-0.45, ...")
    ] = None,
    n_samples: Annotated[int | None, typer.Option("--n-samples", help="Use only so many samples.")] = None,
    validation_fraction: Annotated[float, typer.Option("--validation-fraction", help="Share set aside.")] = 0.2,
    epochs: Annotated[int | None, typer.Option("--epochs", help=f"Of every stage. {_PUBLISHED}")] = None,
    batch_size: Annotated[
        int | None, typer.Option("--batch-size", help="Samples per step. Default: 128, fewer if there are few samples.")
    ] = None,
    optimizer: Annotated[str | None, typer.Option("--optimizer", help=f"sgd or adam. {_PUBLISHED}")] = None,
    learning_rate: Annotated[float | None, typer.Option("--learning-rate", help=_PUBLISHED)] = None,
    momentum: Annotated[float | None, typer.Option("--momentum", help=f"Of sgd. {_PUBLISHED}")] = None,
    weight_decay: Annotated[float | None, typer.Option("--weight-decay", help=_PUBLISHED)] = None,
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
    as_json: Json = False,
) -> None:
    """Train a classifier on noisy labels: learn the posterior, estimate the matrix, train through it.

    Example: `dualt train mnist --noise pair-0.45 --method forward --estimator dual-t -o model/`

    On several processes: `torchrun --nproc-per-node 2 -m dualt train mnist -o model/`
    """
    from dualt import io
    from dualt import noise as noises
    from dualt.datasets import load_dataset, split_dataset
    from dualt.nn.config import TrainingConfig
    from dualt.nn.pipeline import train_robustly, training_data
    from dualt.nn.training.distributed import joined_world
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
    with (
        joined_world() as world,
        _progress(config, shown=world.is_main and not as_json) as shown,
        tensorboard_log(tensorboard if world.is_main else None, shown) as on_epoch,
    ):
        run = train_robustly(
            training_data(split, dataset, config.machine),
            dataset.n_classes,
            config,
            class_names=dataset.class_names,
            clean_labels=split.train_clean,
            folder=output / "checkpoints",
            resume=resume,
            on_epoch=on_epoch,
        )
        if not world.is_main:
            return
    content = _keep(run, dataset, split, output)
    if as_json:
        print_json(content)
    else:
        _show(run, content, output)


@contextmanager
def _progress(config: TrainingConfig, *, shown: bool) -> Iterator[Callable[[str, EpochRecord], None] | None]:
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
                tasks[stage] = bars.add_task(stage, total=config.recipe(stage).epochs, state="")
            scores = {"validation": record.validation_accuracy, "test": record.test_accuracy}
            words = [f"{name} {value:.1%}" for name, value in scores.items() if value is not None]
            bars.update(tasks[stage], completed=record.epoch + 1, state=" ".join([f"loss {record.loss:.3f}", *words]))

        yield advance


def _keep(run: RobustRun, dataset: Dataset, split: Split, output: Path) -> dict[str, Any]:
    """Write the model, the run and its page into `output`, and return the run as plain data."""
    import json

    from dualt.files import atomic_write
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
    ).save(output)
    with atomic_write(output / "run.json") as stream:
        json.dump(content, stream, indent=1)
        stream.write("\n")
    if run.estimate is not None and run.posterior is not None:
        _write_report(run.estimate, run.posterior, split, output / "report.html", dataset.name)
    return content


def _write_report(estimate: TransitionEstimate, posterior: NoisyPosterior, split: Split, path: Path, name: str) -> None:
    """Write the page of the estimate and the labels it finds wrong, with the training images if there are any."""
    import numpy as np

    from dualt.cli.options import save_report
    from dualt.issues import find_posterior_issues

    found = find_posterior_issues(posterior, estimate)
    images = None
    if isinstance(split.train_x, np.ndarray) and split.train_x.dtype == np.uint8 and split.train_x.ndim > 2:
        images = split.train_x.transpose(0, 2, 3, 1) if split.train_x.ndim == 4 else split.train_x
    save_report(path, estimate, found, images=images, title=name)


def _show(run: RobustRun, content: dict[str, Any], output: Path) -> None:
    from rich.markup import escape

    from dualt.cli import picture

    out = picture.console()
    if run.estimate is not None:
        picture.show_estimate(out, run.estimate, 0.95)
    for prefix, what in (("", "matrix"), ("learned_", "learned matrix")):
        if f"{prefix}l1_error" in content:
            total, each = content[f"{prefix}l1_error"], content[f"{prefix}l1_error_per_class"]
            out.print(f"\nError of the {what}: {total:.3f} in all, {each:.3f} per class")
    for name, stage in content["stages"].items():
        accuracy = stage["test_accuracy"]
        if accuracy is not None:
            out.print(f"[bold]{name}[/]: {accuracy:.2%} of the clean test labels right")
    place = escape(str(output))
    out.print(f"\nThe model is in {place}; the run with all curves in {place}/run.json.", soft_wrap=True)
    if (output / "report.html").exists():
        out.print(f"Its labels to review in a browser: {place}/report.html", soft_wrap=True)
    out.print(f" dualt predict {place} DATA -o predictions.csv   [dim]use it[/]", soft_wrap=True)

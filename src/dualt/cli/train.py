"""`dualt train`: a classifier that comes out right although its labels are noisy."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dualt.cli.options import Json, RandomState, output_option, shared
from dualt.cli.terminal import print_json, progress, say
from dualt.cli.trained import keep, show
from dualt.cli.training import Samples, Training

if TYPE_CHECKING:
    from dualt.nn.config import TrainingConfig
    from dualt.nn.training import EpochRecord


@shared
def train(
    samples: Samples,
    folder: Annotated[Path, output_option(help="Folder for the model, the run and its checkpoints.")],
    training: Training,
    tensorboard: Annotated[Path | None, typer.Option(help="Folder for TensorBoard's curves of every stage.")] = None,
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
    from dualt.nn.pipeline import train_robustly, training_data
    from dualt.nn.training.distributed import joined_world
    from dualt.nn.training.folder import CHECKPOINTS, held_folder
    from dualt.nn.training.tensorboard import tensorboard_log

    dataset = samples.load()
    config = training.config(dataset.class_names, samples.validation_fraction, random_state)
    split = samples.split(dataset, random_state)
    with (
        held_folder(folder, config.asked, resume=resume, overwrite=overwrite),
        _resumable(folder, overwrite=overwrite),
        joined_world() as world,
    ):
        with (
            _progress(config, len(split.train_noisy), shown=world.is_main and not as_json) as shown,
            tensorboard_log(tensorboard if world.is_main else None, shown) as on_epoch,
        ):
            run = train_robustly(
                training_data(split, dataset, config.machine),
                dataset.n_classes,
                config,
                class_names=dataset.class_names,
                # The labels of one's own data are clean only by name; those corrupted here were known before.
                clean_labels=None if split.transition is None else split.clean_labels,
                folder=folder / CHECKPOINTS,
                resume=resume,
                on_epoch=on_epoch,
            )
        content = keep(run, dataset, split, folder) if world.is_main else None
    if content is None:
        return
    if as_json:
        print_json(content)
    else:
        show(run, content, folder)


@contextmanager
def _resumable(folder: Path, *, overwrite: bool) -> Iterator[None]:
    """Say how to go on, where a user interrupts."""
    try:
        yield
    except KeyboardInterrupt:
        instead = " instead of --overwrite" if overwrite else ""
        text = f"every whole epoch is in {folder}; the same command with --resume{instead} goes on from there."
        say(f"interrupted: {text}", fg="red", err=True)
        raise typer.Exit(130) from None


@contextmanager
def _progress(
    config: TrainingConfig, n_samples: int, *, shown: bool
) -> Iterator[Callable[[str, EpochRecord], None] | None]:
    """Yield what is called after every epoch, which shows the progress of its stage."""
    with progress(shown=shown) as advance:

        def on_epoch(stage: str, record: EpochRecord) -> None:
            scores = {"validation": record.validation_accuracy, "test": record.test_accuracy}
            words = [f"{name} {value:.1%}" for name, value in scores.items() if value is not None]
            epochs = config.recipe_of(stage, n_samples).epochs
            note = ", ".join([f"epoch {record.epoch + 1} of {epochs}", f"loss {record.loss:.3f}", *words])
            if advance is not None:
                advance(stage, record.epoch + 1, epochs, note)

        yield on_epoch if shown else None

"""The options of `dualt train`: what is trained on, and how."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from dualt.cli.options import DataDir, IdColumn, LabelColumn, parse_settings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dualt.datasets import Dataset, Split
    from dualt.nn.config import TrainingConfig

# As in dualt.nn.methods.METHODS, which would import torch.
_METHODS = (
    "auto; ce, mixup, decoupling, mentornet, co-teaching, forward, reweighting, revision; gce, elr, dividemix,"
    " volminnet, total-variation."
)
_OF_RECIPE = "Default: as the recipe says."


@dataclass(frozen=True)
class Samples:
    """What is trained on, and the noise that its labels are given first."""

    data: Annotated[str, typer.Argument(metavar="DATA", help="Name of a data set, or a folder, .npz or table.")]
    label: LabelColumn = None
    id_column: IdColumn = None
    size: Annotated[int | None, typer.Option(help="Resize images to this many pixels a side.")] = None
    data_dir: DataDir = None
    n_samples: Annotated[int | None, typer.Option(help="Use only so many samples.")] = None
    validation_fraction: Annotated[float, typer.Option(help="Share set aside.")] = 0.2
    noise: Annotated[str | None, typer.Option(help="Corrupt the labels first: sym-0.2, pair-0.45, ...")] = None

    def load(self) -> Dataset:
        """Return the data set."""
        from dualt.datasets import load_dataset

        options = {"label": self.label, "id_column": self.id_column, "size": self.size}
        given = {name: value for name, value in options.items() if value is not None}
        return load_dataset(self.data, self.data_dir, **given)

    def split(self, dataset: Dataset, random_state: int) -> Split:
        """Return its parts, with noisy labels."""
        from dualt import noise as noises
        from dualt.datasets import split_dataset

        return split_dataset(
            dataset,
            None if self.noise is None else noises.from_name(self.noise, dataset.n_classes, random_state=random_state),
            random_state=random_state,
            validation_fraction=self.validation_fraction,
            n_samples=self.n_samples,
        )


@dataclass(frozen=True)
class Training:
    """How: the method, the matrix, the network, the schedule and the machine."""

    method: Annotated[str, typer.Option("--method", "-m", help=_METHODS)] = "auto"
    method_settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="An option of the method, such as volume_weight=1e-3."),
    ] = None
    estimator: Annotated[
        str | None, typer.Option("--estimator", "-e", help="How the matrix is found. Default: as for `dualt estimate`.")
    ] = None
    transition: Annotated[Path | None, typer.Option(help="A known matrix instead.")] = None
    network: Annotated[str, typer.Option("--network", "-n", help="mlp, lenet, resnet18, ...")] = "mlp"
    width: Annotated[float, typer.Option(help="Width of the network, relative to the published one.")] = 1.0
    weights: Annotated[str | None, typer.Option(help="Start from a .safetensors file, or 'imagenet'.")] = None
    recipe: Annotated[
        str, typer.Option(help="default, which suits the size of the data, or paper: all as published.")
    ] = "default"
    epochs: Annotated[int | None, typer.Option(help=f"Of every stage. {_OF_RECIPE}")] = None
    batch_size: Annotated[int | None, typer.Option(help=f"Samples per step. {_OF_RECIPE}")] = None
    optimizer: Annotated[str | None, typer.Option(help=f"sgd or adam. {_OF_RECIPE}")] = None
    learning_rate: Annotated[float | None, typer.Option(help=_OF_RECIPE)] = None
    momentum: Annotated[float | None, typer.Option(help=f"Of sgd. {_OF_RECIPE}")] = None
    weight_decay: Annotated[float | None, typer.Option(help=_OF_RECIPE)] = None
    patience: Annotated[int | None, typer.Option(help="Stop after so many epochs in vain.")] = None
    folds: Annotated[int | None, typer.Option(help="Learn the posterior out of fold in so many; 1: in sample.")] = None
    augment: Annotated[str | None, typer.Option(help="shift, or shift-flip for photographs.")] = None
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, ...")] = "auto"
    precision: Annotated[str, typer.Option(help="float32, or bf16 for mixed precision.")] = "float32"
    n_jobs: Annotated[int | None, typer.Option(help="Number of CPU threads.")] = None

    def config(self, class_names: Sequence[str], validation_fraction: float, random_state: int) -> TrainingConfig:
        """Return the configuration, with the matrix in the order of the classes."""
        from dualt import io
        from dualt.nn.config import TrainingConfig
        from dualt.transition import match_transition

        known = None if self.transition is None else io.load_named_transition(self.transition)
        # Options and fields of one name; the others are made of them.
        shared = {name: value for name, value in vars(self).items() if name in TrainingConfig.__dataclass_fields__}
        made: dict[str, Any] = {
            "transition": None if known is None else match_transition(*known, class_names),
            "network_options": {} if self.width == 1 else {"width": self.width},
            "method_options": parse_settings(self.method_settings or []),
            "validation_fraction": validation_fraction,
            "random_state": random_state,
        }
        return TrainingConfig(**cast("Any", shared | made))

"""What `dualt train` leaves in its folder and prints: the model, the run, the page of its labels."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dualt.files import atomic_write, json_text

if TYPE_CHECKING:
    from dualt.datasets import Dataset, Split
    from dualt.nn.pipeline import RobustRun


def keep(run: RobustRun, dataset: Dataset, split: Split, output: Path) -> dict[str, Any]:
    """Write the model, the run and its page into `output`, and return the run as plain data."""
    from dualt.nn.training.inputs import sample_shape
    from dualt.nn.training.model import Model
    from dualt.transition import l1_error

    content = {"data": dataset.name, "n_samples": len(split.train_noisy), **run.to_dict()}
    for prefix, matrix in (("", run.transition), ("learned_", run.learned_transition)):
        if split.transition is not None and matrix is not None:
            content[f"{prefix}l1_error"] = l1_error(split.transition, matrix)
            content[f"{prefix}l1_error_per_class"] = l1_error(split.transition, matrix, normalize=True)
    names = ("data", "method", "transition", "learned_transition", "out_of_fold", "distrust", "test_accuracy",
             "random_state")  # fmt: skip
    Model(
        networks=run.networks,
        network=str(run.config.network),
        options=run.config.network_options or {},
        input_shape=sample_shape(split.train_x),
        class_names=dataset.class_names,
        mean=dataset.mean,
        std=dataset.std,
        about={name: content[name] for name in names},
        feature_names=dataset.feature_names,
        on_bytes=split.train_x.dtype == "uint8",
    ).save(output)
    with atomic_write(output / "run.json") as stream:
        stream.write(json_text(content) + "\n")
    if run.estimate is not None and run.posterior is not None and run.distrust is None:
        _write_report(run, dataset, split, output / "report.html")
    else:
        (output / "report.html").unlink(missing_ok=True)  # of the run before
    return content


def _write_report(run: RobustRun, dataset: Dataset, split: Split, path: Path) -> None:
    """Write the page of the estimate and the labels it finds wrong, with the images if there are any."""
    import numpy as np

    from dualt.cli.inputs import write_page
    from dualt.nn.all_rows import issues_of_all_rows

    found = replace(issues_of_all_rows(run, dataset, split), ids=dataset.ids)
    images = None
    if isinstance(dataset.train_x, np.ndarray) and dataset.train_x.dtype == np.uint8 and dataset.train_x.ndim > 2:
        images = dataset.train_x.transpose(0, 2, 3, 1) if dataset.train_x.ndim == 4 else dataset.train_x
    write_page(path, found, images, title=dataset.name)


def show(run: RobustRun, content: dict[str, Any], output: Path) -> None:
    """Print what came out, and where it is."""
    from rich.markup import escape

    from dualt.cli import terminal

    out = terminal.console()
    if run.estimate is not None and run.distrust is None:
        terminal.show_estimate(out, run.estimate, 0.95)
    elif run.distrust is not None:
        out.print(f"[bold]No noise rate can be claimed[/]: {escape(run.distrust)}.", soft_wrap=True)
        if run.config.method != "ce" and run.method == "ce":
            out.print("The network was trained with plain cross entropy, without a matrix.", soft_wrap=True)
    used = run.stages[run.method].recipe
    epochs = f"{used.epochs} epoch{'s' * (used.epochs != 1)}"
    out.print(
        f"\nMethod {run.method}: {epochs} of batches of {used.batch_size}, {used.optimizer} at a rate of"
        f" {used.learning_rate:g} ({used.schedule}), weight decay {used.weight_decay:.2g},"
        f" {content['total_seconds']:.0f} s in all",
        soft_wrap=True,
    )
    for prefix, what in (("", "matrix"), ("learned_", "learned matrix")):
        if f"{prefix}l1_error" in content:
            total, each = content[f"{prefix}l1_error"], content[f"{prefix}l1_error_per_class"]
            out.print(f"\nError of the {what}: {total:.3f} in all, {each:.3f} per class")
    n_networks, n_own = len(run.networks), len(run.stages[run.method].networks)
    for name, stage in content["stages"].items():
        accuracy = stage["test_accuracy"]
        if accuracy is not None and "-fold-" not in name:
            each = " by each network in the mean" if name == run.method and n_own > 1 else ""
            out.print(f"[bold]{name}[/]: {accuracy:.2%} of the clean test labels right{each}")
    if n_networks > 1 and run.test_accuracy is not None and run.config.recipe != "paper":
        folds = ", those of the folds included" if n_networks > n_own else ""
        out.print(f"[bold]{n_networks} networks averaged[/]{folds}: {run.test_accuracy:.2%}", soft_wrap=True)
    place = escape(str(output))
    out.print(f"\nThe model is in {place}; the run with all curves in {place}/run.json.", soft_wrap=True)
    if (output / "report.html").exists():
        out.print(f"Its labels to review in a browser: {place}/report.html", soft_wrap=True)
    model = escape(shlex.quote(str(output)))
    out.print(f" dualt predict {model} DATA -o predictions.csv   [dim]use it[/]", soft_wrap=True)

"""Training time relative to plain torch: ratios, every pair timed in turns in one run.

    python bench/training.py

One thread, CPU time where the loop is compared with bare torch. Each figure is the best of several repeats, so
that a busy machine hardly affects it.
"""

from __future__ import annotations

from collections.abc import Callable
from time import process_time
from typing import Any

import numpy as np
import torch
from measure import best_of, machine
from PIL import Image
from rich.box import MARKDOWN
from rich.console import Console
from rich.table import Table
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812
from torch.utils.data import DataLoader, Dataset

from dualt import noise
from dualt.datasets import load_dataset
from dualt.errors import FileError
from dualt.nn.loop import train
from dualt.nn.losses import RevisedLoss, ReweightedLoss
from dualt.nn.methods import build_method
from dualt.nn.networks import build_network
from dualt.nn.recipe import Recipe
from dualt.nn.samples import Part, TrainingData, as_inputs

BATCH = 128


def images(n: int) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Return MNIST's first images, or random ones of the same shape where it is not installed."""
    try:
        data = load_dataset("mnist")
    except FileError:
        rng = np.random.default_rng(0)
        return rng.integers(256, size=(n, 28, 28), dtype=np.uint8), rng.integers(10, size=n)
    return np.asarray(data.train_x[:n]), data.train_y[:n]


def loop_against_bare(name: str) -> tuple[float, float]:
    """Return seconds of an epoch of cross entropy through the loop, and of its steps written out.

    The middle one of nine places: where in memory two networks happen to lie makes a difference of several percent,
    either way. What the loop does once for all epochs counts as in a short training.
    """
    epochs, repeats = (3, 4) if name == "mlp" else (1, 2)
    places = [_loop_against_bare(name, epochs, repeats) for _ in range(9)]
    middle = sorted(places, key=lambda place: place["loop"] / place["bare"])[4]
    return middle["loop"] / epochs, middle["bare"] / epochs


def _loop_against_bare(name: str, epochs: int, repeats: int) -> dict[str, float]:
    x, y = images(60 * BATCH)
    part = Part(as_inputs(x, 33.0, 79.0), torch.from_numpy(y))
    recipe = Recipe(epochs=epochs, batch_size=BATCH)
    batches = [
        (part.inputs.take(torch.arange(start, start + BATCH)), part.labels[start : start + BATCH])
        for start in range(0, len(y), BATCH)
    ]
    networks = {way: build_network(name, (1, 28, 28), 10) for way in ("loop", "bare")}
    optimizer = recipe.make_optimizer(networks["bare"].parameters())

    def bare() -> None:
        for inputs, labels in epochs * batches:
            optimizer.zero_grad(set_to_none=True)
            F.cross_entropy(networks["bare"](inputs), labels).backward()  # type: ignore[no-untyped-call]
            optimizer.step()

    def loop() -> None:
        train([networks["loop"]], build_method("ce"), TrainingData(part), recipe)

    return best_of({"loop": loop, "bare": bare}, repeats, process_time)


def reweighted_sample_by_sample(logits: Tensor, labels: Tensor, transition: Tensor) -> Tensor:
    """Compute the loss as the paper's released code does, one sample at a time."""
    total = torch.zeros(())
    for row, label in zip(logits, labels, strict=True):
        probs = F.softmax(row, dim=0)
        weight = (probs[label] / (probs @ transition)[label]).detach()
        total = total + weight * F.cross_entropy(row[None], label[None])
    return total / len(labels)


def losses() -> dict[str, float]:
    """Return seconds of one forward and backward pass of each loss at 128×10."""
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(BATCH, 10, generator=generator, requires_grad=True)
    labels = torch.randint(10, (BATCH,), generator=generator)
    matrix = noise.symmetric(10, 0.45)
    tensor = torch.from_numpy(matrix).float()
    forms: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
        "cross entropy": F.cross_entropy,
        "reweighted": ReweightedLoss(matrix),
        "revised": RevisedLoss(matrix),
        "sample by sample": lambda z, y: reweighted_sample_by_sample(z, y, tensor),
    }

    def repeat(loss: Callable[[Tensor, Tensor], Tensor], times: int) -> Callable[[], None]:
        def run() -> None:
            for _ in range(times):
                logits.grad = None
                loss(logits, labels).backward()  # type: ignore[no-untyped-call]

        return run

    # Short turns, and many: some fall between the interruptions of a busy machine.
    counts = {name: 1 if name == "sample by sample" else 20 for name in forms}
    times = best_of({name: repeat(loss, counts[name]) for name, loss in forms.items()}, repeats=150)
    return {name: seconds / counts[name] for name, seconds in times.items()}


def losses_in_a_step() -> dict[str, float]:
    """Return seconds of one training step at 128×10 with each loss, on the smallest network of the paper."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(BATCH, 10, generator=generator)
    labels = torch.randint(10, (BATCH,), generator=generator)
    matrix = noise.symmetric(10, 0.45)

    def repeat(loss: Any) -> Callable[[], None]:
        network = build_network("mlp-small", (10,), 10)
        extra = loss.parameters() if isinstance(loss, nn.Module) else ()
        optimizer = Recipe(epochs=1).make_optimizer([*network.parameters(), *extra])

        def run() -> None:
            for _ in range(10):
                optimizer.zero_grad(set_to_none=True)
                loss(network(x), labels).backward()
                optimizer.step()

        return run

    forms = {"cross entropy": F.cross_entropy, "reweighted": ReweightedLoss(matrix), "revised": RevisedLoss(matrix)}
    times = best_of({name: repeat(loss) for name, loss in forms.items()}, repeats=200)
    return {name: seconds / 10 for name, seconds in times.items()}


class PerSample(Dataset[tuple[Tensor, int]]):
    """Images the usual way: one PIL image at a time, transformed in Python."""

    def __init__(self, x: np.ndarray[Any, Any], y: np.ndarray[Any, Any]) -> None:
        self.x, self.y = x, y

    def __len__(self) -> int:
        return len(self.x)

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        image = Image.fromarray(self.x[index])
        pixels = torch.from_numpy(np.array(image, np.uint8, copy=True))
        return (pixels[None].float().div(255) - 0.13) / 0.31, int(self.y[index])


def loop_against_per_sample() -> tuple[float, float]:
    """Return seconds of an epoch of the MLP on MNIST images through the loop, and fed sample by sample."""
    x, y = images(60 * BATCH)
    part = Part(as_inputs(x, 33.0, 79.0), torch.from_numpy(y))
    recipe = Recipe(epochs=1, batch_size=BATCH)
    networks = {way: build_network("mlp", (1, 28, 28), 10) for way in ("loop", "fed")}
    optimizer = recipe.make_optimizer(networks["fed"].parameters())
    loader = DataLoader(PerSample(x, y), BATCH, shuffle=True)

    def fed() -> None:
        for inputs, labels in loader:
            optimizer.zero_grad(set_to_none=True)
            F.cross_entropy(networks["fed"](inputs), labels).backward()  # type: ignore[no-untyped-call]
            optimizer.step()

    def loop() -> None:
        train([networks["loop"]], build_method("ce"), TrainingData(part), recipe)

    times = best_of({"loop": loop, "fed": fed}, repeats=6)
    return times["loop"], times["fed"]


def main() -> None:
    """Measure everything and print one table."""
    torch.set_num_threads(1)
    print(f"{machine()}\n")
    table = Table("what", "ours", "beside", "ratio", "at most", box=MARKDOWN)

    def add(what: str, ours: float, beside: float, bound: float) -> None:
        ratio = ours / beside
        verdict = "[green]" if ratio <= bound else "[red]"
        table.add_row(what, f"{1e3 * ours:.3f} ms", f"{1e3 * beside:.3f} ms", f"{verdict}{ratio:.2f}", f"{bound:.2f}")

    def note(what: str, ours: float, beside: float) -> None:
        table.add_row(what, f"{1e3 * ours:.3f} ms", f"{1e3 * beside:.3f} ms", f"{ours / beside:.2f}", "")

    for name in ("mlp", "lenet"):
        add(f"epoch of {name} through the loop / bare torch", *loop_against_bare(name), 1.10)
    alone, step = losses(), losses_in_a_step()
    for name in ("reweighted", "revised"):
        note(f"loss at 128×10: {name} / cross entropy", alone[name], alone["cross entropy"])
    note("loss at 128×10: reweighted sample by sample", alone["sample by sample"], alone["cross entropy"])
    # What a whole step pays for its loss, on the smallest network of the paper. No bound is set on either.
    for name in ("reweighted", "revised"):
        note(f"step at 128×10: {name} / cross entropy", step[name], step["cross entropy"])
    add("epoch of MNIST / fed by a per-sample DataLoader", *loop_against_per_sample(), 1 / 3)
    Console(width=120).print(table)


if __name__ == "__main__":
    main()

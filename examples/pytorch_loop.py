"""A PyTorch loop of your own: estimate the matrix from a first network, then train a second one through it.

python examples/pytorch_loop.py        writes pytorch-loop.png
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import Tensor, nn

import dualt

EPOCHS, FOLDS = 15, 3


def train(x: Tensor, labels: Tensor, loss_function: Callable[[Tensor, Tensor], Tensor], seed: int) -> nn.Module:
    """Return a small network, trained as usual; only the loss is a parameter."""
    generator = torch.Generator().manual_seed(seed)
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        network = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    optimizer = torch.optim.Adam(network.parameters(), 4e-3, weight_decay=1e-3)
    for _ in range(EPOCHS):
        for batch in torch.randperm(len(x), generator=generator).split(64):
            optimizer.zero_grad()
            loss_function(network(x[batch]), labels[batch]).backward()
            optimizer.step()
    return network


@torch.no_grad()
def probabilities(network: nn.Module, x: Tensor) -> Tensor:
    """Return P(label | x)."""
    return network(x).softmax(dim=1)


def out_of_fold(x: Tensor, labels: Tensor) -> Tensor:
    """Return probabilities of every example from a network that has not seen its label."""
    fold = torch.arange(len(x)) % FOLDS
    probs = torch.empty(len(x), 10)
    for number in range(FOLDS):
        held_out = fold == number
        network = train(x[~held_out], labels[~held_out], nn.CrossEntropyLoss(), seed=number)
        probs[held_out] = probabilities(network, x[held_out])
    return probs


def main() -> None:
    """Train on digits of which three in ten have the next digit's label."""
    torch.set_num_threads(1)
    images, digits = load_digits(return_X_y=True)
    x, test_x, clean, test_y = train_test_split(images / 16, digits, test_size=0.3, random_state=0)
    transition = dualt.noise.pair(10, 0.3)
    noisy = torch.from_numpy(dualt.noise.corrupt(clean, transition, random_state=0))
    x, test_x = (torch.tensor(part, dtype=torch.float32) for part in (x, test_x))

    estimate = dualt.estimate_transition(out_of_fold(x, noisy), noisy)
    error = dualt.l1_error(estimate.transition, transition, normalize=True)
    print(f"{estimate.noise_rate:.0%} of the labels are wrong; the matrix is off by {error:.2f} a row (of at most 2)")
    for loss_function in (nn.CrossEntropyLoss(), dualt.losses.ForwardLoss(estimate.transition)):
        network = train(x, noisy, loss_function, seed=0)
        right = np.mean(probabilities(network, test_x).argmax(1).numpy() == test_y)
        print(f"{type(loss_function).__name__}: {right:.1%} of the clean test labels right")

    estimate.plot().figure.savefig("pytorch-loop.png", dpi=120)
    print("Look at the matrix: pytorch-loop.png")


if __name__ == "__main__":
    main()

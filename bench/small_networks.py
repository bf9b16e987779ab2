"""Small networks on CIFAR-10N, out of fold: problems for several_models.py.

    python bench/small_networks.py FOLDER [--threads 1]

Writes `cifar10n-small__aggregate.npz` and `…worst.npz` for $DUALT_SEVERAL_MODELS: a residual network, and a logistic
regression over one layer of filters that were learned without labels (`dualt.crossfit.ImageFeatures`). In
`cifar10n-alike__….npz` it is the residual network and another convolutional one. Needs CIFAR-10 (`dualt data get`) and
the labels of CIFAR-10N in the folder of `worlds.py`; the worst label of an image is one of its three people's wrong
ones. Takes some two hours and a half of one core.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812
from worlds import REAL

from dualt.crossfit import ImageFeatures
from dualt.datasets import load_dataset

FOLDS, BATCH = 3, 256


def convolution(n_in: int, n_out: int, stride: int = 1, size: int = 3) -> nn.Sequential:
    layer = nn.Conv2d(n_in, n_out, size, stride, padding=size // 2, bias=False)
    return nn.Sequential(layer, nn.BatchNorm2d(n_out), nn.ReLU())


class Residual(nn.Module):
    """Two convolutions beside a shortcut."""

    def __init__(self, n_channels: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(convolution(n_channels, n_channels), convolution(n_channels, n_channels))

    def forward(self, x: Tensor) -> Tensor:
        """Return x + layers(x)."""
        return x + self.layers(x)  # type: ignore[no-any-return]


def residual_network(n_classes: int = 10) -> nn.Sequential:
    return nn.Sequential(
        convolution(3, 64, stride=2), Residual(64), convolution(64, 128), nn.MaxPool2d(2), Residual(128),
        convolution(128, 192), nn.MaxPool2d(2), Residual(192), nn.AdaptiveMaxPool2d(1), nn.Flatten(),
        nn.Dropout(0.2), nn.Linear(192, n_classes),
    )  # fmt: skip


def plain_network(n_classes: int = 10) -> nn.Sequential:
    return nn.Sequential(
        convolution(3, 64, stride=2, size=5), convolution(64, 128), convolution(128, 128), nn.MaxPool2d(2),
        convolution(128, 256), nn.MaxPool2d(2), nn.Flatten(), nn.Dropout(0.3), nn.Linear(256 * 16, 256), nn.ReLU(),
        nn.Dropout(0.3), nn.Linear(256, n_classes),
    )  # fmt: skip


NETWORKS = ((residual_network, 16), (plain_network, 8))  # with their epochs


def of_network(
    network: Any, images: Any, given: Tensor, train: NDArray[Any], test: NDArray[Any], epochs: int
) -> NDArray[np.float32]:
    """Return the probabilities of the test rows, from a network trained with crops and mirroring."""
    network.to(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1, momentum=0.9, nesterov=True, weight_decay=1e-3)
    steps = len(train) // BATCH
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.3, total_steps=epochs * steps, pct_start=0.25)
    for epoch in range(epochs):
        order: Any = torch.from_numpy(np.random.default_rng(epoch).permutation(train)[: steps * BATCH])
        for rows in order.split(BATCH):
            top, left = torch.randint(0, 7, (2,)).tolist()
            batch = F.pad(images[rows], (3, 3, 3, 3), mode="reflect")[:, :, top : top + 32, left : left + 32]
            batch = torch.where(torch.rand(len(rows), 1, 1, 1) < 0.5, batch.flip(3), batch)
            loss: Any = F.cross_entropy(logits(network, batch), given[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
    network.eval()
    with torch.no_grad():
        batches = (images[rows] for rows in np.array_split(test, len(test) // BATCH))
        parts = [(logits(network, own).softmax(1) + logits(network, own.flip(3)).softmax(1)) / 2 for own in batches]
    return np.asarray(torch.cat(parts).numpy())


def logits(network: Any, batch: Tensor) -> Any:
    with torch.autocast("cpu", dtype=torch.bfloat16):
        return network(batch.contiguous(memory_format=torch.channels_last)).float()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    data = load_dataset("cifar10")
    images, clean = np.asarray(data.train_x), data.train_y
    aggregate, votes = np.load(REAL / "cifar10n-aggregate.npz"), np.load(REAL / "cifar10n-votes.npz")["votes"]
    drawn = np.random.default_rng(0).random(votes.shape) + (votes != clean[:, None])
    worst = votes[np.arange(len(votes)), drawn.argmax(axis=1)]
    features = ImageFeatures(n_filters=400, n_components=512).fit_transform(images)
    pixels = torch.from_numpy(images).float()
    pixels = (pixels - pixels.mean((0, 2, 3), keepdim=True)) / pixels.std((0, 2, 3), keepdim=True)
    for noise, labels in (("aggregate", aggregate["given"]), ("worst", worst)):
        given, start = labels.astype(np.int64), time.process_time()
        members = np.zeros((3, len(given), 10), np.float32)
        for train, test in StratifiedKFold(FOLDS, shuffle=True, random_state=0).split(features, given):
            for place, (network_of, epochs) in enumerate(NETWORKS):
                torch.manual_seed(0)
                members[place, test] = of_network(network_of(), pixels, torch.from_numpy(given), train, test, epochs)
            head = LogisticRegression(C=0.01, max_iter=200).fit(features[train], given[train])
            members[2, test] = head.predict_proba(features[test])
        right = ", ".join(f"{(own.argmax(axis=1) == clean).mean():.3f}" for own in members)
        seconds = time.process_time() - start
        wrong = (given != clean).mean()
        print(f"{noise}: {wrong:.3f} of the labels wrong, networks right in {right}, {seconds:,.0f} s", flush=True)
        for family, pair in (("small", [0, 2]), ("alike", [0, 1])):
            path = options.folder / f"cifar10n-{family}__{noise}.npz"
            np.savez_compressed(path, pred_probs=members[pair].astype(np.float16), given=given, clean=clean)


if __name__ == "__main__":
    main()

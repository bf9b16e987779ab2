"""Probabilities and accuracies of trained networks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeAlias

import torch
from torch import Tensor, nn

from dualt.nn.samples import Inputs, Part

Network: TypeAlias = Callable[[Tensor], Tensor]

# Large enough to be fast, small enough for the activations of a ResNet-50 to fit into memory.
_BATCH_SIZE = 512


@contextmanager
def evaluating(modules: Sequence[nn.Module]) -> Iterator[None]:
    """Put the modules into evaluation mode without gradients, and restore their mode afterwards."""
    before = [module.training for module in modules]
    for module in modules:
        module.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        for module, training in zip(modules, before, strict=True):
            module.train(training)


def batch_probs(network: Network, inputs: Inputs) -> Iterator[Tensor]:
    """Yield the softmax of the logits, batch by batch; call it while `evaluating`."""
    for start in range(0, len(inputs), _BATCH_SIZE):
        index = torch.arange(start, min(start + _BATCH_SIZE, len(inputs)))
        yield network(inputs.take(index)).float().softmax(1)


def predict_probs(networks: Sequence[nn.Module], inputs: Inputs) -> Tensor:
    """Return the mean of the networks' class probabilities, (n, C), on the CPU."""
    with evaluating(networks):
        each = [torch.cat([probs.cpu() for probs in batch_probs(network, inputs)]) for network in networks]
    return torch.stack(each).mean(0)


def mean_scores(
    networks: Sequence[Network], part: Part | None, to_noisy: Callable[[Tensor], Tensor] | None = None
) -> tuple[float | None, float | None]:
    """Return accuracy and mean −log probability of the labels, averaged over networks; `None` without a part.

    `to_noisy` maps clean to noisy probabilities, for parts with noisy labels. Call it while `evaluating`.
    """
    if part is None:
        return None, None
    hits, loss = torch.zeros(2, device=part.labels.device)
    for network in networks:
        start = 0
        for probs in batch_probs(network, part.inputs):
            noisy = probs if to_noisy is None else to_noisy(probs)
            labels = part.labels[start : start + len(noisy)]
            hits += (noisy.argmax(1) == labels).sum()
            loss -= noisy.gather(1, labels[:, None]).clamp_min(1e-30).log().sum()
            start += len(noisy)
    total = len(networks) * len(part.labels)
    return float(hits.double() / total), float(loss.double() / total)

"""Probabilities and accuracies of trained networks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from dualt.nn.training.inputs import Inputs, Part
from dualt.nn.training.method import Network

# Large enough to be fast, small enough for the activations of a ResNet-50 to fit.
_BATCH_SIZE = 512


@contextmanager
def evaluating(modules: Sequence[nn.Module]) -> Iterator[None]:
    """Switch dropout off and batch statistics to their running means, and back afterwards."""
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
        yield network(inputs.take(index)).float().softmax(-1)


def predict_probs(networks: Sequence[nn.Module], inputs: Inputs) -> Tensor:
    """Return the mean of the networks' class probabilities, (n, C), on the CPU."""
    with evaluating(networks):
        each = [torch.cat([probs.cpu() for probs in batch_probs(network, inputs)]) for network in networks]
    return torch.stack(each).mean(0)


def mean_scores(
    networks: Sequence[Network], part: Part | None, through: Callable[[Tensor], Tensor] | None = None
) -> Tensor | None:
    """Return the means over networks of accuracy and loss, (2,), or (2, K) of networks that are K runs as one.

    The loss is the mean −log probability of the labels. `through` maps clean to noisy probabilities, for parts whose
    labels are noisy. Call it while `evaluating`.
    """
    return None if part is None else torch.stack([_scores(network, part, through) for network in networks]).mean(0)


def _scores(network: Network, part: Part, through: Callable[[Tensor], Tensor] | None) -> Tensor:
    hits, loss = torch.zeros(2, *part.labels.shape[:-1], device=part.labels.device)
    start = 0
    for probs in batch_probs(network, part.inputs):
        noisy = probs if through is None else through(probs)
        stop = start + noisy.shape[-2]
        labels = part.labels[..., start:stop]
        hits += (noisy.argmax(-1) == labels).sum(-1)
        loss -= noisy.gather(-1, labels.unsqueeze(-1)).clamp_min(1e-30).log().sum((-2, -1))
        start = stop
    return torch.stack([hits, loss]).cpu().double() / start

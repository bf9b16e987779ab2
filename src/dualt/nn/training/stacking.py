"""K modules of one shape as one: a row of every tensor each, and samples (K, n, features) in one product."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from dualt.errors import InputError
from dualt.nn.networks.dropout import Dropout, dropout_mask
from dualt.nn.training.inputs import Inputs, Part

_KNOWN = {nn.Flatten, nn.Linear, nn.BatchNorm1d, nn.ReLU, Dropout}

# From so many features and up to this share of samples with a gradient it pays to pick them.
_WIDE, _MANY = 256, 0.8

ModuleType = TypeVar("ModuleType", bound=nn.Module)


def is_perceptron(network: nn.Module) -> bool:
    """Tell whether a network is a multi-layer perceptron as `mlp` builds it, which can be stacked."""
    return type(network) is nn.Sequential and {type(module) for module in network} <= _KNOWN


def stack_modules(modules: Sequence[ModuleType]) -> ModuleType:
    """Return a module whose tensors are (K, …), and make the modules' own tensors rows of them: no copy is kept."""
    stack = deepcopy(modules[0])
    own = [{**dict(module.named_parameters()), **dict(module.named_buffers())} for module in modules]
    for name, tensor in {**dict(stack.named_parameters()), **dict(stack.named_buffers())}.items():
        if any(each[name].shape != tensor.shape for each in own):
            raise InputError(f"Expected modules of one shape, got a {name!r} of another.")
        tensor.data = torch.stack([each[name].detach() for each in own])
        for each, row in zip(own, tensor.data, strict=True):
            each[name].data = row
    return stack


def release(module: nn.Module) -> None:
    """Give a module tensors of its own again."""
    for tensor in (*module.parameters(), *module.buffers()):
        tensor.data = tensor.detach().clone()


def run_stacked(network: nn.Module, x: Tensor, generators: Sequence[torch.Generator]) -> Tensor:
    """Return the logits (K, n, C) of samples (K, n, features); the generators give each row its dropout."""
    for layer in network.children():
        if isinstance(layer, nn.Linear):
            x = _StackedLinear.apply(x, layer.weight, layer.bias)  # type: ignore[no-untyped-call]
        elif isinstance(layer, nn.ReLU):
            x = x.relu_()
        elif isinstance(layer, nn.BatchNorm1d):
            x = _batch_norm(layer, x)
        elif isinstance(layer, Dropout) and layer.training:
            x = x * dropout_mask(x, layer.p, generators)
    return x


class _StackedLinear(torch.autograd.Function):
    """`torch.baddbmm(bias[:, None], x, weight.mT)`, whose own gradient of the weight comes transposed, to be copied.

    That copy was a fifth of the time. Samples that a method has not selected have no gradient and are left out.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        ctx.save_for_backward(x, weight)
        return torch.baddbmm(bias.unsqueeze(1), x, weight.mT)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, Tensor, Tensor]:
        (grad,), (x, weight) = grads, ctx.saved_tensors
        grad_x = torch.bmm(grad, weight) if ctx.needs_input_grad[0] else None
        return grad_x, _weight_gradient(grad, x), grad.sum(1)


def _weight_gradient(grad: Tensor, x: Tensor) -> Tensor:
    """Return grad.mT @ x, over the samples with a gradient where picking these saves more than it costs."""
    used = None if x.shape[-1] < _WIDE else grad.abs().sum(-1) != 0
    if used is None or used.float().mean() > _MANY:
        return torch.bmm(grad.mT, x)
    out = x.new_empty(len(x), grad.shape[-1], x.shape[-1])
    for own, g, samples, rows in zip(out, grad, x, used, strict=True):
        index = rows.nonzero().squeeze(1)
        torch.mm(g.index_select(0, index).T, samples.index_select(0, index), out=own)
    return out


def _batch_norm(layer: nn.BatchNorm1d, x: Tensor) -> Tensor:
    """Normalise the units of all K networks as those of one."""
    n_replicas, n, n_units = x.shape
    if layer.training and layer.num_batches_tracked is not None:
        layer.num_batches_tracked += 1
    mean, variance = (None if value is None else value.view(-1) for value in (layer.running_mean, layer.running_var))
    weight, bias, momentum = layer.weight.view(-1), layer.bias.view(-1), layer.momentum or 0.0
    flat = x.transpose(0, 1).reshape(n, -1)
    out = F.batch_norm(flat, mean, variance, weight, bias, layer.training, momentum, layer.eps)
    return out.view(n, n_replicas, n_units).transpose(0, 1)


def stack_parts(parts: Sequence[Part | None]) -> Part | None:
    """Return a part with labels (K, n) that gives samples (K, ·, features) of indices (·,) or (K, ·).

    Parts of one base (`Part.subset`) are read from it; those of several are copied into one.
    """
    given = [part for part in parts if part is not None]
    if not given:
        return None
    if len({len(part.labels) for part in given}) > 1 or len(given) < len(parts):
        raise InputError("Expected replicas whose data parts have the same sizes.")
    return Part(_stack_inputs([part.inputs for part in given]), torch.stack([part.labels for part in given]))


def _stack_inputs(each: Sequence[Inputs]) -> Inputs:
    n_replicas, n_samples, first = len(each), each[0].n_samples, each[0]
    every = torch.arange(n_samples)
    bases = [inputs.base or inputs for inputs in each]
    if all(base is bases[0] for base in bases):
        take = bases[0].take
        rows = torch.stack([every if inputs.rows is None else inputs.rows for inputs in each])
    else:
        samples = torch.cat([inputs.take(every).flatten(1) for inputs in each])
        take = lambda index: samples.index_select(0, index)  # noqa: E731
        rows = torch.arange(n_replicas * n_samples).view(n_replicas, n_samples)
    same = all(inputs is first for inputs in each)

    def take_each(index: Tensor) -> Tensor:
        if same and index.ndim == 1:
            return first.take(index).flatten(1).expand(n_replicas, -1, -1)
        chosen = rows.gather(1, index.expand(n_replicas, -1))
        return take(chosen.flatten()).view(*chosen.shape, -1)

    return Inputs(n_samples, (int(np.prod(first.shape)),), take_each)


class StackedGenerator:
    """K generators as one, whose draws have a row of each: `permutation(n)` is (K, n)."""

    def __init__(self, generators: Sequence[np.random.Generator]) -> None:
        self._generators = generators

    def __getattr__(self, name: str) -> Any:
        return lambda *args, **options: np.stack([getattr(one, name)(*args, **options) for one in self._generators])

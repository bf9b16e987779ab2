"""Checkpoints: one safetensors file with all tensors of a training, and its settings and history as JSON.

Tensors are named `now.…`, `best.…` and `optimizer.<parameter>.<name>`. Random states are not saved: every epoch has
random streams of its own.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from dualt.errors import FileError, InputError
from dualt.nn.history import History
from dualt.nn.tensor_files import below, mismatch, read_tensors, write_tensors


def save_checkpoint(
    path: Path,
    modules: nn.Module,
    optimizer: torch.optim.Optimizer,
    best: Mapping[str, Tensor],
    history: History,
    settings: Mapping[str, Any],
) -> None:
    """Write the state of a training after an epoch."""
    tensors = {f"now.{name}": value for name, value in modules.state_dict().items()}
    tensors |= {f"best.{name}": value for name, value in best.items()}
    for number, values in optimizer.state_dict()["state"].items():
        tensors |= {f"optimizer.{number}.{key}": value for key, value in values.items() if isinstance(value, Tensor)}
    write_tensors(path, tensors, {"settings": settings, "history": history.to_dict()})


def load_checkpoint(
    path: Path, modules: nn.Module, optimizer: torch.optim.Optimizer, settings: Mapping[str, Any]
) -> tuple[dict[str, Tensor], History]:
    """Load a checkpoint into `modules` and `optimizer`, and return the best weights and the history.

    The checkpoint must come from the same networks and settings.
    """
    tensors, stored, history = read_checkpoint(path)
    wanted = json.loads(json.dumps(settings))
    for name in sorted({*stored, *wanted}):
        if stored.get(name) != wanted.get(name):
            raise InputError(
                f"The checkpoint {path} was made with {name} = {stored.get(name)!r}, not {wanted.get(name)!r}:"
                " resume with the same settings, or train in another folder."
            )
    own = modules.state_dict()
    now, best = below(tensors, "now."), below(tensors, "best.")
    wrong = mismatch(own, now) or mismatch(own, best)
    if wrong is not None:
        raise InputError(f"The checkpoint {path} has another architecture: {wrong}.")
    modules.load_state_dict(now)
    state: dict[int, dict[str, Tensor]] = {}
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    for name, value in below(tensors, "optimizer.").items():
        number, _, key = name.partition(".")
        parameter = parameters[int(number)] if number.isdecimal() and int(number) < len(parameters) else None
        if parameter is None or (value.numel() != 1 and value.shape != parameter.shape):
            raise InputError(f"The checkpoint {path} has another optimizer: {name!r} fits none of its parameters.")
        # With the parameter's memory layout: fused optimizers go by the order in memory.
        like = torch.empty_like(parameter if value.shape == parameter.shape else value, dtype=value.dtype)
        state.setdefault(int(number), {})[key] = like.copy_(value)
    optimizer.load_state_dict({**optimizer.state_dict(), "state": state})
    return {name: best[name].to(value.device) for name, value in own.items()}, history


def read_checkpoint(path: Path) -> tuple[dict[str, Tensor], dict[str, Any], History]:
    """Return the tensors, the settings and the history of a checkpoint."""
    try:
        tensors, header = read_tensors(path)
        return tensors, dict(header["settings"]), History.from_dict(header["history"])
    except FileError as error:
        raise FileError(f"{error} Remove this checkpoint to start again.") from error
    except (KeyError, TypeError, ValueError) as error:
        raise FileError(f"Expected a checkpoint of dualt in {path}, got another file.") from error

"""Tensors in safetensors files with a JSON header: read without unpickling, written whole or not at all.

A checkpoint is one such file with all tensors of a training, named `now.…`, `best.…` and `optimizer.<number>.<name>`,
and its settings and history in the header. Random states are not saved: every epoch has random streams of its own.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from dualt.errors import FileError, InputError
from dualt.files import atomic_write, check_readable, json_text


def write_tensors(path: Path, tensors: Mapping[str, Tensor], header: Mapping[str, Any]) -> None:
    """Write tensors and a JSON header to a temporary file, then rename it to `path`."""
    from safetensors.torch import save

    # Copies: tied weights must not share memory in the file.
    copies = {
        name: value.detach().cpu().clone(memory_format=torch.contiguous_format) for name, value in tensors.items()
    }
    content = save(copies, metadata={"dualt": json_text(header, indent=None)})
    with atomic_write(path, "wb") as stream:
        stream.write(content)


def read_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Return the tensors of a safetensors file and the header that `write_tensors` gave it, empty for other files."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(check_readable(path), framework="pt") as stream:
            header = json.loads((stream.metadata() or {}).get("dualt", "{}"))
            tensors = {name: stream.get_tensor(name) for name in stream.keys()}  # noqa: SIM118
    except FileError:
        raise
    except (SafetensorError, OSError, ValueError, RecursionError) as error:
        raise FileError(f"Cannot read {path}: {error}. It is truncated, damaged or no .safetensors file.") from error
    return tensors, header if isinstance(header, dict) else {}


def below(tensors: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    """Return the tensors whose names start with `prefix`, without it."""
    return {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}


def save_checkpoint(
    path: Path,
    modules: nn.Module,
    optimizer: torch.optim.Optimizer,
    best: Mapping[str, Tensor],
    settings: Mapping[str, Any],
    history: Mapping[str, Any],
) -> None:
    """Write the state of a training after an epoch."""
    tensors = {f"now.{name}": value for name, value in modules.state_dict().items()}
    tensors |= {f"best.{name}": value for name, value in best.items()}
    for number, values in optimizer.state_dict()["state"].items():
        tensors |= {f"optimizer.{number}.{key}": value for key, value in values.items() if isinstance(value, Tensor)}
    write_tensors(path, tensors, {"settings": settings, "history": history})


def load_checkpoint(
    path: Path, modules: nn.Module, optimizer: torch.optim.Optimizer, settings: Mapping[str, Any]
) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Load a checkpoint of the same settings in place, and return the best weights and the history."""
    try:
        tensors, header = read_tensors(path)
        stored, history = dict(header["settings"]), dict(header["history"])
    except FileError as error:
        raise FileError(f"{error} Remove this checkpoint to start again.") from error
    except (KeyError, TypeError, ValueError) as error:
        raise FileError(f"Expected a checkpoint of dualt in {path}, got another file.") from error
    wanted = json.loads(json.dumps(settings))
    for name in sorted({*stored, *wanted}):
        if stored.get(name) != wanted.get(name):
            raise InputError(
                f"The checkpoint {path} was made with {name} = {stored.get(name)!r}, not {wanted.get(name)!r}:"
                " resume with the same settings, or train in another folder."
            )
    own, best = modules.state_dict(), below(tensors, "best.")
    state: dict[int, dict[str, Tensor]] = {}
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    try:
        modules.load_state_dict(best)
        modules.load_state_dict(below(tensors, "now."))
        for name, value in below(tensors, "optimizer.").items():
            number, _, key = name.partition(".")
            # With the parameter's memory layout: fused optimizers go by the order in memory.
            parameter = parameters[int(number)]
            like = torch.empty_like(parameter if value.numel() > 1 else value, dtype=value.dtype)
            state.setdefault(int(number), {})[key] = like.copy_(value)
    except (RuntimeError, IndexError, ValueError) as error:
        reason = str(error).strip().splitlines()[-1].strip()
        raise InputError(f"The checkpoint {path} has another architecture: {reason}") from None
    optimizer.load_state_dict({**optimizer.state_dict(), "state": state})
    return {name: best[name].to(value.device) for name, value in own.items()}, history

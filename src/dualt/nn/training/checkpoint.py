"""Checkpoints: one safetensors file, whole or not at all, with the JSON in its header.

Tensors are named `network.0.…`, `best.0.…`, `method.…`, `best_method.…` and
`optimizer.<parameter>.<name>`. Random states are not among them: every epoch draws from streams of its own.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from dualt.errors import FileError, InputError
from dualt.files import atomic_write, check_readable
from dualt.nn.training.history import History
from dualt.nn.training.method import Method
from dualt.nn.training.model import make_folder

_VERSION = 2
# Settings that are checksums, and what another one means.
_OF_ROWS = {
    "features_checksum": "other rows or features",
    "labels_checksum": "other rows or labels",
    "transition_checksum": "another transition matrix",
}


@dataclass
class State:
    """All that a training run is between two epochs."""

    networks: Sequence[nn.Module]
    method: Method
    optimizer: torch.optim.Optimizer
    history: History
    best: dict[str, Tensor]

    def keep_best(self) -> None:
        """Remember the weights as they are now."""
        self.best = {name: value.detach().clone() for name, value in self._weights().items()}

    def restore_best(self) -> None:
        """Go back to the weights last remembered."""
        self._load(self.best)

    def _weights(self) -> dict[str, Tensor]:
        tensors = {f"method.{name}": value for name, value in self.method.state_dict().items()}
        for number, network in enumerate(self.networks):
            tensors |= {f"network.{number}.{name}": value for name, value in network.state_dict().items()}
        return tensors

    def _load(self, tensors: Mapping[str, Tensor]) -> None:
        for number, network in enumerate(self.networks):
            network.load_state_dict(_below(tensors, f"network.{number}."))
        self.method.load_state_dict(_below(tensors, "method."))

    def save(self, path: Path, settings: Mapping[str, Any]) -> None:
        """Write a checkpoint; the one before stays until this one is whole."""
        from safetensors.torch import save

        tensors = self._weights() | {f"best.{name}": value for name, value in self.best.items()}
        for number, values in self.optimizer.state_dict()["state"].items():
            tensors |= {f"optimizer.{number}.{k}": v for k, v in values.items() if isinstance(v, Tensor)}
        # Copies: weights that a network ties together may not share memory in the file.
        tensors = {
            name: value.detach().cpu().clone(memory_format=torch.contiguous_format) for name, value in tensors.items()
        }
        header = {
            "version": _VERSION, "settings": settings, "history": self.history.to_dict(), "digest": _digest(tensors)
        }  # fmt: skip
        content = save(tensors, metadata={"dualt": json.dumps(header)})
        make_folder(path.parent)  # another sweep that shares it may have found it empty
        with atomic_write(path, "wb") as stream:
            stream.write(content)

    def resume(self, path: Path, settings: Mapping[str, Any]) -> None:
        """Take up the checkpoint at `path`, which must come from the same networks and settings."""
        tensors, header = read_checkpoint(path)
        _check_settings(header["settings"], settings, path)
        weights = self._weights()
        for name, value in weights.items():
            for key in (name, f"best.{name}"):
                found = tensors.get(key)
                if found is None or (found.shape, found.dtype) != (value.shape, value.dtype):
                    raise InputError(
                        f"The checkpoint {path} is of another architecture: expected {key!r} of shape"
                        f" {tuple(value.shape)}, got {'none' if found is None else tuple(found.shape)}."
                    )
        self._load(tensors)
        self.best = {name: tensors[f"best.{name}"].to(value.device) for name, value in weights.items()}
        optimizer = self.optimizer.state_dict()
        optimizer["state"] = _optimizer_state(tensors, self.optimizer, path)
        try:
            self.optimizer.load_state_dict(optimizer)
        except KeyError as error:
            raise InputError(f"The checkpoint {path} is of another optimizer: it has not got {error}.") from error
        self.history = header["history"]


def read_checkpoint(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Return the tensors and the header of a checkpoint: its settings, and its history as a `History`."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(check_readable(path), framework="pt") as stream:
            header = json.loads((stream.metadata() or {}).get("dualt", "null"))
            tensors = {name: stream.get_tensor(name) for name in stream.keys()}  # noqa: SIM118
    except (SafetensorError, OSError, ValueError, RecursionError) as error:
        if isinstance(error, FileError):
            raise
        raise FileError(
            f"Cannot read the checkpoint {path}: {error}. It is cut short or damaged: remove it to start anew."
        ) from error
    if not (
        isinstance(header, dict) and header.get("version") == _VERSION and isinstance(header.get("settings"), dict)
    ):
        raise FileError(f"Expected a checkpoint of dualt (version {_VERSION}) in {path}, got another file.")
    if header.get("digest") != _digest(tensors):
        raise FileError(f"The tensors of the checkpoint {path} are damaged: remove it to start anew.")
    try:
        return tensors, {**header, "history": History.from_dict(header.get("history", {}))}
    except ValueError as error:
        raise FileError(f"Cannot read the checkpoint {path}: {error}. Remove it to start anew.") from error


def _digest(tensors: Mapping[str, Tensor]) -> str:
    """Return the SHA-256 of names, shapes and bytes."""
    found = hashlib.sha256()
    for name, value in sorted(tensors.items()):
        found.update(f"{name} {value.dtype} {tuple(value.shape)}".encode())
        found.update(value.reshape(-1).view(torch.uint8).numpy().tobytes())
    return found.hexdigest()


def _below(tensors: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}


def _optimizer_state(
    tensors: Mapping[str, Tensor], optimizer: torch.optim.Optimizer, path: Path
) -> dict[int, dict[str, Tensor]]:
    """Return what the optimizer remembers of each parameter: single numbers, and tensors of the parameter's shape."""
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    known = {str(number): parameter for number, parameter in enumerate(parameters)}
    state: dict[int, dict[str, Tensor]] = {}
    for name, value in _below(tensors, "optimizer.").items():
        number, _, key = name.partition(".")
        if number not in known or (value.numel() != 1 and value.shape != known[number].shape):
            raise InputError(f"The checkpoint {path} is of another optimizer: {name!r} fits none of its parameters.")
        # Laid out in memory as its parameter: optimizers go by that order.
        like = torch.empty_like(known[number] if value.shape == known[number].shape else value, dtype=value.dtype)
        state.setdefault(int(number), {})[key] = like.copy_(value)
    return state


def _check_settings(stored: Mapping[str, Any], wanted: Mapping[str, Any], path: Path) -> None:
    wanted = json.loads(json.dumps(wanted))
    for name in sorted({*stored, *wanted}):
        if stored.get(name) != wanted.get(name):
            if name in _OF_ROWS:
                raise InputError(
                    f"The checkpoint {path} was made with {_OF_ROWS[name]}: resume with the same data, random state and"
                    " folds, or start anew elsewhere."
                )
            raise InputError(
                f"The checkpoint {path} was made with {name} = {stored.get(name)!r}, not {wanted.get(name)!r}:"
                " resume with the same settings, or start anew elsewhere."
            )

"""A trained model as a folder: weights as safetensors, everything else as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from dualt.errors import FileError, InputError
from dualt.files import atomic_write
from dualt.networks import build_network
from dualt.training.inputs import as_inputs
from dualt.training.prediction import predict_probs
from dualt.training.recipe import Machine

_VERSION = 1
_JSON, _WEIGHTS = "model.json", "weights.safetensors"


@dataclass(frozen=True, eq=False)
class Model:
    """Networks and what turns samples into their inputs, and their outputs into classes.

    Attributes
    ----------
    networks
        Their probabilities are averaged.
    network
        Name in `dualt.networks.NETWORKS`, or `None` for a network of the user's own.
    options
        Of the network.
    input_shape, class_names
    mean, std
        What samples are standardised with.
    about
        Whatever else describes the model: method, matrix, accuracy. Plain numbers, strings and lists.
    """

    networks: Sequence[nn.Module]
    network: str | None
    options: Mapping[str, Any]
    input_shape: tuple[int, ...]
    class_names: tuple[str, ...]
    mean: NDArray[np.float32]
    std: NDArray[np.float32]
    about: Mapping[str, Any] = field(default_factory=dict)

    def predict_probs(self, samples: Any, machine: Machine | None = None) -> NDArray[np.float32]:
        """Return the probabilities of the clean class, (n, C)."""
        device = (machine or Machine()).torch_device
        inputs = as_inputs(samples, self.mean, self.std, device)
        if inputs.shape != self.input_shape:
            raise InputError(f"Expected samples of shape {self.input_shape}, as in training, got {inputs.shape}.")
        for network in self.networks:
            network.to(device)
        probs: NDArray[np.float32] = predict_probs(self.networks, inputs).numpy()
        return probs

    def save(self, folder: str | Path) -> None:
        """Write the model into `folder`, which is made if need be; the JSON last, so that it vouches for the rest."""
        from safetensors.torch import save

        folder = Path(folder)
        make_folder(folder)
        tensors = {
            f"{number}.{name}": value.detach().cpu().contiguous()
            for number, network in enumerate(self.networks)
            for name, value in network.state_dict().items()
        }
        with atomic_write(folder / _WEIGHTS, "wb") as stream:
            stream.write(save(tensors))
        content = {
            "version": _VERSION,
            "network": self.network,
            "options": dict(self.options),
            "n_networks": len(self.networks),
            "input_shape": list(self.input_shape),
            "class_names": list(self.class_names),
            "mean": np.asarray(self.mean).tolist(),
            "std": np.asarray(self.std).tolist(),
            "about": dict(self.about),
        }
        with atomic_write(folder / _JSON) as stream:
            json.dump(content, stream, indent=1)
            stream.write("\n")

    @classmethod
    def load(cls, folder: str | Path, network: Callable[..., nn.Module] | None = None) -> Model:
        """Read a model folder; `network` is the function that built it, if it was not one of ours."""
        folder = Path(folder)
        content = _read_json(folder / _JSON)
        if content["network"] is None and network is None:
            raise InputError(f"The model in {folder} has a network of its own: pass the function that builds it.")
        shape, names = tuple(content["input_shape"]), tuple(content["class_names"])
        builder = network or content["network"]
        networks = [
            build_network(builder, shape, len(names), **content["options"]) for _ in range(content["n_networks"])
        ]
        _load_weights(networks, folder / _WEIGHTS)
        mean, std = np.asarray(content["mean"], np.float32), np.asarray(content["std"], np.float32)
        return cls(networks, content["network"], content["options"], shape, names, mean, std, content["about"])


def make_folder(folder: Path) -> None:
    """Make a folder and those above it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(f"Cannot make the folder {folder}: {error.strerror}.") from error


def _read_json(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise FileError(f"Cannot read the model {path}: {error}. Expected a folder that dualt train wrote.") from error
    if not isinstance(content, dict) or content.get("version") != _VERSION:
        raise FileError(f"Expected a model of dualt (version {_VERSION}) in {path}, got something else.")
    return content


def _load_weights(networks: Sequence[nn.Module], path: Path) -> None:
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        tensors = load_file(path)
    except (SafetensorError, OSError) as error:
        raise FileError(f"Cannot read {path}: {error}. It is cut short or damaged.") from error
    for number, network in enumerate(networks):
        prefix = f"{number}."
        own: dict[str, Tensor] = {k.removeprefix(prefix): v for k, v in tensors.items() if k.startswith(prefix)}
        try:
            network.load_state_dict(own)
        except RuntimeError as error:
            reason = str(error).strip().splitlines()[-1].strip()
            raise InputError(f"The weights in {path} are of another architecture: {reason}") from None

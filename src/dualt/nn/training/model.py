"""A trained model as a folder: weights as safetensors, everything else as JSON."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from dualt.errors import DualtError, FileError, InputError
from dualt.files import atomic_write, json_text, open_input, read_json
from dualt.nn.networks import build_network
from dualt.nn.networks.weights import read_weights
from dualt.nn.training.inputs import as_bytes, as_inputs, sample_shape
from dualt.nn.training.prediction import predict_probs
from dualt.nn.training.recipe import Machine
from dualt.validation import check_class_names

_VERSION = 1
_JSON, _WEIGHTS = "model.json", "weights.safetensors"
_FIELDS: dict[str, tuple[type, ...]] = {
    "network": (str, type(None)), "options": (dict,), "n_networks": (int,), "input_shape": (list,),
    "class_names": (list,), "mean": (list, float, int), "std": (list, float, int), "about": (dict,),
    "feature_names": (list, type(None)), "weights_sha256": (str,),
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class Model:
    """Networks and what turns samples into their inputs, and their outputs into classes.

    Attributes
    ----------
    networks
        Their probabilities are averaged.
    network
        Name in `dualt.nn.networks.NETWORKS`, or `None` for a network of the user's own.
    options
        Of the network.
    input_shape, class_names
    mean, std
        What samples are standardised with.
    feature_names
        Columns of the table that it was trained on, in order; `None` if they had no names.
    on_bytes
        Whether it was trained on uint8, of which it saw x/255; models of earlier versions do not tell.
    about
        Whatever else describes the model: method, matrix, accuracy. Plain numbers, strings and lists.
    """

    networks: Sequence[nn.Module]
    network: str | None
    options: Mapping[str, Any]
    input_shape: tuple[int, ...]
    class_names: tuple[str, ...]
    mean: NDArray[np.float64]
    std: NDArray[np.float64]
    about: Mapping[str, Any] = field(default_factory=dict)
    feature_names: tuple[str, ...] | None = None
    on_bytes: bool = False

    def predict_probs(self, samples: Any, machine: Machine | None = None) -> NDArray[np.float32]:
        """Return the probabilities of the clean class, (n, C)."""
        device = (machine or Machine()).torch_device
        shape = sample_shape(samples)
        if shape != self.input_shape:
            raise InputError(f"Expected samples of shape {self.input_shape}, as in training, got {shape}.")
        if self.on_bytes and isinstance(samples, np.ndarray):
            samples = as_bytes(samples)
        elif not self.on_bytes and samples.dtype == np.uint8 and np.max(self.mean) > 1:
            samples = samples[:].astype(np.float32)  # trained on numbers like these, not on x/255
        inputs = as_inputs(samples, self.mean, self.std, device)
        if isinstance(samples, np.ndarray) and samples.dtype.kind == "f":
            _check_finite(samples)
        for network in self.networks:
            network.to(device)
        probs: NDArray[np.float32] = predict_probs(self.networks, inputs).numpy()
        _check_finite(probs)  # numbers beyond all that training saw may overflow inside
        return probs

    def save(self, folder: str | Path) -> None:
        """Write the model into `folder`, made if need be; the JSON last: it holds the digest of the weights."""
        from safetensors.torch import save

        folder = make_folder(folder)
        tensors = {
            f"{number}.{name}": value.detach().cpu().clone(memory_format=torch.contiguous_format)
            for number, network in enumerate(self.networks)
            for name, value in network.state_dict().items()
        }
        weights = save(tensors)
        with atomic_write(folder / _WEIGHTS, "wb") as stream:
            stream.write(weights)
        content = {
            "version": _VERSION,
            "network": self.network,
            "options": dict(self.options),
            "n_networks": len(self.networks),
            "input_shape": list(self.input_shape),
            "class_names": list(self.class_names),
            "mean": np.asarray(self.mean).tolist(),
            "std": np.asarray(self.std).tolist(),
            "feature_names": None if self.feature_names is None else list(self.feature_names),
            "on_bytes": self.on_bytes,
            "weights_sha256": hashlib.sha256(weights).hexdigest(),
            "about": dict(self.about),
        }
        with atomic_write(folder / _JSON) as stream:
            stream.write(json_text(content) + "\n")

    @classmethod
    def load(cls, folder: str | Path, network: Callable[..., nn.Module] | None = None) -> Model:
        """Read a model folder; `network` is the function that built it, if it was not one of ours."""
        folder = Path(folder)
        path = folder / _JSON
        content = _read_json(path)
        if content["network"] is None and network is None:
            raise InputError(f"The model in {folder} has a network of its own: pass the function that builds it.")
        shape = _shape(content["input_shape"], path)
        names = check_class_names(content["class_names"], len(content["class_names"]))
        mean, std = (_per_channel(content[name], name, shape[0], path) for name in ("mean", "std"))
        if content["n_networks"] < 1:
            raise FileError(f"Expected at least one network in {path}, got {content['n_networks']}.")
        weights = read_weights(folder / _WEIGHTS)
        networks = []
        for number in range(content["n_networks"]):
            own = {k.removeprefix(f"{number}."): v for k, v in weights.items() if k.startswith(f"{number}.")}
            build = partial(build_network, network or content["network"], shape, len(names), **content["options"])
            networks.append(_built(build, own, folder, on_trust=network is not None))
        _check_digest(folder, content["weights_sha256"])
        features = content["feature_names"]
        return cls(
            networks, content["network"], content["options"], shape, names, mean, std, content["about"],
            None if features is None else tuple(map(str, features)), content.get("on_bytes") is True,
        )  # fmt: skip


def _check_digest(folder: Path, expected: str) -> None:
    """Refuse weights that the JSON beside them was not written for."""
    with open_input(folder / _WEIGHTS) as stream:
        found = hashlib.sha256(stream.read()).hexdigest()
    if found != expected:
        raise FileError(
            f"{folder / _WEIGHTS} and {folder / _JSON} come from different runs, or one was changed: train anew."
        )


def _check_finite(samples: NDArray[Any]) -> None:
    with np.errstate(over="ignore"):
        numbers = samples.astype(np.float32, copy=False)
    finite = np.isfinite(numbers).reshape(len(samples), -1).all(axis=1)
    if not finite.all():
        raise InputError(
            f"Expected finite numbers that fit float32, got others in row {int(np.argmin(finite))}. Fill or drop that"
            " row."
        )


def make_folder(folder: str | Path) -> Path:
    """Make a folder and those above it, if need be, and return it."""
    folder = Path(folder)
    if folder.is_file():
        raise FileError(f"Expected the name of a folder, got the file {folder}. Name another.")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(f"Cannot make the folder {folder}: {error.strerror}.") from error
    return folder


def _read_json(path: Path) -> dict[str, Any]:
    try:
        content = read_json(path)
    except FileError as error:
        raise FileError(f"{error} Expected a folder that dualt train wrote.") from None
    if not isinstance(content, dict) or content.get("version") != _VERSION:
        raise FileError(f"Expected a model of dualt (version {_VERSION}) in {path}, got something else.")
    for name, kinds in _FIELDS.items():
        if name not in content or not isinstance(content[name], kinds):
            raise FileError(f"Expected {name!r} as `dualt train` writes it in {path}, got {content.get(name)!r:.40}.")
    return content


def _shape(sizes: list[Any], path: Path) -> tuple[int, ...]:
    if not sizes or not all(type(size) is int and size > 0 for size in sizes):
        raise FileError(f"Expected the shape of a sample as 'input_shape' in {path}, got {sizes!r:.40}.")
    return tuple(sizes)


def _per_channel(values: Any, name: str, n_channels: int, path: Path) -> NDArray[np.float64]:
    try:
        numbers = np.asarray(values, np.float64)
    except (TypeError, ValueError, OverflowError):
        numbers = np.empty(0)
    if numbers.size not in (1, n_channels) or not (np.abs(numbers) <= np.finfo(np.float32).max).all():
        raise FileError(f"Expected {name!r} as a number for each feature or channel in {path}, got {values!r:.40}.")
    return numbers


def _built(build: Callable[[], nn.Module], weights: Mapping[str, Tensor], folder: Path, *, on_trust: bool) -> nn.Module:
    """Build a network and give it its weights.

    The description may promise any size. So, unless the function that builds it is the user's, the network is built
    without memory first, and compared with the weights, which are there.
    """
    try:
        if not on_trust:
            with torch.device("meta"):
                _compare(build().state_dict(), weights)
        network = build()
        network.load_state_dict(weights)
    except (RuntimeError, TypeError, ValueError, ArithmeticError) as error:
        if isinstance(error, DualtError):
            raise
        reason = str(error).strip().splitlines()[-1].strip()
        raise InputError(f"The weights in {folder} are of another architecture: {reason}") from None
    return network


def _compare(expected: Mapping[str, Tensor], weights: Mapping[str, Tensor]) -> None:
    for name, value in expected.items():
        found = weights.get(name)
        if found is None or (found.shape, found.dtype) != (value.shape, value.dtype):
            got = "none" if found is None else f"{found.dtype} of shape {tuple(found.shape)}"
            raise ValueError(f"expected {name!r}, {value.dtype} of shape {tuple(value.shape)}, got {got}.")

"""Weights in files: trained models, checkpoints and pre-trained weights.

All are safetensors files with a JSON header, read without unpickling, and written whole or not at all. A checkpoint has
the tensors of a training, named `now.…`, `best.…` and `optimizer.<number>.<name>`, and its settings and history in the
header. Random states are not saved: every epoch has random streams of its own.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from dualt.datasets.dataset import check_finite
from dualt.errors import DualtError, FileError, InputError
from dualt.files import atomic_write, check_readable, json_text, make_folder
from dualt.nn.networks import build_network, predict_probs
from dualt.nn.samples import as_inputs, sample_shape, torch_device
from dualt.validation import check_class_names

MODEL_FILE = "model.safetensors"


def write_tensors(path: Path, tensors: Mapping[str, Tensor], header: Mapping[str, Any]) -> None:
    """Write tensors and a JSON header to a temporary file, then rename it to `path`."""
    from safetensors.torch import save

    # Copies: tied weights must not share memory in the file.
    copies = {key: value.detach().cpu().clone(memory_format=torch.contiguous_format) for key, value in tensors.items()}
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
        remedy = "It is truncated, damaged or no .safetensors file: remove or replace it."
        raise FileError(f"Cannot read {path}: {error}. {remedy}") from error
    return tensors, header if isinstance(header, dict) else {}


def _below(tensors: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    """Return the tensors whose names start with `prefix`, without it."""
    return {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}


def _misfit(source: Any, error: Exception) -> InputError:
    """Return the error of weights that a network does not take, with the last line of torch's reason."""
    return InputError(f"The weights in {source} have another architecture: {str(error).strip().splitlines()[-1]}")


def load_weights(network: nn.Module, source: str | Path) -> None:
    """Load weights into `network`, in place, from a `.safetensors` file with torchvision's names.

    `"imagenet"` are torchvision's ResNet-50 weights. The last layer, `fc`, keeps its initial weights if the number of
    classes differs.
    """
    if str(source) == "imagenet":
        try:
            from torchvision.models import ResNet50_Weights
        except (ImportError, RuntimeError):  # a torchvision of another torch fails with RuntimeError
            raise InputError(
                "Expected torchvision, which has the ImageNet weights, got none that fits torch. Install it, or pass a"
                " .safetensors file."
            ) from None
        weights = ResNet50_Weights.DEFAULT.get_state_dict(progress=False)
    else:
        weights = read_tensors(Path(source))[0]
    head = {name: value for name, value in network.state_dict().items() if name.startswith("fc.")}
    if any(name not in weights or weights[name].shape != value.shape for name, value in head.items()):
        weights = {**weights, **head}
    try:
        network.load_state_dict(weights)
    except RuntimeError as error:
        raise _misfit(source, error) from None


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
    tensors, header = read_tensors(path)
    if not {"settings", "history"} <= header.keys():
        raise FileError(f"Expected a checkpoint of dualt in {path}, got another file.")
    stored, wanted = header["settings"], json.loads(json.dumps(settings))
    for name in wanted:
        if stored.get(name) != wanted[name]:
            raise InputError(
                f"The checkpoint {path} was made with {name} = {stored.get(name)!r}, not {wanted[name]!r}:"
                " resume with the same settings, or train in another folder."
            )
    state: dict[int, dict[str, Tensor]] = {}
    for name, value in _below(tensors, "optimizer.").items():
        number, _, key = name.partition(".")
        state.setdefault(int(number), {})[key] = value
    try:
        modules.load_state_dict(_below(tensors, "now."))
    except RuntimeError as error:
        raise _misfit(path, error) from None
    optimizer.load_state_dict({**optimizer.state_dict(), "state": state})
    return _below(tensors, "best."), header["history"]


@dataclass(frozen=True, eq=False)
class Model:
    """Networks whose probabilities are averaged, how samples become their inputs, and their outputs classes."""

    networks: Sequence[nn.Module]
    network: str | None  # name in `NETWORKS`; None is the user's own
    options: Mapping[str, Any]  # of the network
    input_shape: tuple[int, ...]
    class_names: tuple[str, ...]
    center: NDArray[np.float64]  # samples are standardised: (x − center) / scale
    scale: NDArray[np.float64]
    feature_names: tuple[str, ...] | None = None  # columns of the table that it was trained on, in order
    # Whatever else describes the model: method, matrix, accuracy. Plain numbers, strings and lists.
    about: Mapping[str, Any] = field(default_factory=dict)

    def predict_probs(self, samples: Any, device: str = "auto") -> NDArray[np.float32]:
        """Return the probabilities of the clean class, (n, C)."""
        place, shape = torch_device(device), sample_shape(samples)
        if shape != self.input_shape:
            raise InputError(f"Expected samples of shape {self.input_shape}, as in training, got {shape}.")
        if isinstance(samples, np.ndarray) and samples.dtype.kind == "f":
            check_finite(samples, "the samples")
        if len(shape) == 3 and len(samples):
            top = samples.max() if isinstance(samples, np.ndarray) else 255
            if samples.dtype == np.uint8 and top > 1 >= self.center.max():
                raise InputError(f"Expected pixels from 0 to 1, as in training, got bytes up to {top}. Divide by 255.")
            if samples.dtype.kind == "f" and top <= 1 < self.center.max():
                raise InputError(f"Expected pixels from 0 to 255, as in training, got up to {top:g}. Multiply by 255.")
        for network in self.networks:
            network.to(place)
        inputs = as_inputs(samples, self.center, self.scale, place)
        probs: NDArray[np.float32] = predict_probs(self.networks, inputs).numpy()
        check_finite(probs, "the outputs")  # numbers far outside the training data may overflow inside the network
        return probs

    def save(self, folder: str | Path) -> None:
        """Write the model into `folder`, which is created if it does not exist."""
        header = {name: value for name, value in vars(self).items() if name != "networks"}
        header |= {"center": self.center.tolist(), "scale": self.scale.tolist()}
        tensors = nn.ModuleList(self.networks).state_dict()
        write_tensors(make_folder(folder) / MODEL_FILE, tensors, {"model": header})

    @classmethod
    def load(cls, folder: str | Path, network: Callable[..., nn.Module] | None = None) -> Model:
        """Read a model folder; `network` is the function that built it, if it was not one of ours."""
        path = Path(folder) / MODEL_FILE
        if not path.exists():
            raise FileError(f"Expected a folder that dualt train wrote, got {folder}, which has no {MODEL_FILE}.")
        weights, header = read_tensors(path)
        try:
            content: dict[str, Any] = dict(header["model"])
            shape = tuple(int(size) for size in content["input_shape"])
            class_names = check_class_names(content["class_names"], len(content["class_names"]))
            center, scale = (np.asarray(content[key], np.float64) for key in ("center", "scale"))
            columns = None if content["feature_names"] is None else tuple(map(str, content["feature_names"]))
            name, options, about = content["network"], dict(content["options"]), dict(content["about"])
        except (KeyError, TypeError, ValueError, IndexError, OverflowError) as error:
            raise FileError(f"Expected a model that dualt train wrote in {path}, got another file ({error}).") from None
        if name is None and network is None:
            raise InputError(f"The model in {folder} has a network of its own: pass the function that builds it.")
        networks = []
        try:
            for number in sorted({key.partition(".")[0] for key in weights}):
                # Our own networks get the file's tensors as they are: a header that claims any size takes no memory.
                with torch.device("meta" if network is None else "cpu"):
                    built = build_network(network or name, shape, len(class_names), **options)
                built.load_state_dict(_below(weights, f"{number}."), assign=network is None)
                networks.append(built)
        except (RuntimeError, TypeError) as error:
            raise error if isinstance(error, DualtError) else _misfit(path, error) from None
        return cls(networks, name, options, shape, class_names, center, scale, columns, about)

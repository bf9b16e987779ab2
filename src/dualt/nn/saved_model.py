"""A trained model as one safetensors file: the weights, and everything else as JSON in its header."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from dualt.datasets.dataset import check_finite
from dualt.errors import DualtError, FileError, InputError
from dualt.files import make_folder
from dualt.nn.networks import build_network, predict_probs
from dualt.nn.samples import as_bytes, as_inputs, sample_shape, torch_device
from dualt.nn.tensor_files import below, read_tensors, write_tensors
from dualt.validation import check_class_names

MODEL_FILE = "model.safetensors"


@dataclass(frozen=True, eq=False)
class Model:
    """Networks whose probabilities are averaged, how samples become their inputs, and their outputs classes."""

    networks: Sequence[nn.Module]
    network: str | None  # name in `NETWORKS`; None is the user's own
    options: Mapping[str, Any]  # of the network
    input_shape: tuple[int, ...]
    class_names: tuple[str, ...]
    mean: NDArray[np.float64]  # mean and std standardise samples
    std: NDArray[np.float64]
    # Whatever else describes the model: method, matrix, accuracy. Plain numbers, strings and lists.
    about: Mapping[str, Any] = field(default_factory=dict)
    feature_names: tuple[str, ...] | None = None  # columns of the table that it was trained on, in order
    on_bytes: bool = False  # trained on uint8, divided by 255

    def predict_probs(self, samples: Any, device: str = "auto") -> NDArray[np.float32]:
        """Return the probabilities of the clean class, (n, C)."""
        place, shape = torch_device(device), sample_shape(samples)
        if shape != self.input_shape:
            raise InputError(f"Expected samples of shape {self.input_shape}, as in training, got {shape}.")
        if self.on_bytes and isinstance(samples, np.ndarray):
            samples = as_bytes(samples)
        elif not self.on_bytes and samples.dtype == np.uint8 and np.max(self.mean) > 1:
            samples = samples[:].astype(np.float32)  # the model was trained on numbers like these, not divided by 255
        if isinstance(samples, np.ndarray) and samples.dtype.kind == "f":
            check_finite(samples, "the samples")
        inputs = as_inputs(samples, self.mean, self.std, place)
        for network in self.networks:
            network.to(place)
        probs: NDArray[np.float32] = predict_probs(self.networks, inputs).numpy()
        check_finite(probs, "the outputs")  # numbers far outside the training data may overflow inside the network
        return probs

    def save(self, folder: str | Path) -> None:
        """Write the model into `folder`, which is created if it does not exist."""
        header = {name: value for name, value in vars(self).items() if name != "networks"}
        header |= {name: np.asarray(header[name]).tolist() for name in ("mean", "std")}
        tensors = nn.ModuleList(self.networks).state_dict()
        write_tensors(make_folder(folder) / MODEL_FILE, tensors, {"model": header})

    @classmethod
    def load(cls, folder: str | Path, network: Callable[..., nn.Module] | None = None) -> Model:
        """Read a model folder; `network` is the function that built it, if it was not one of ours."""
        path = Path(folder) / MODEL_FILE
        try:
            weights, header = read_tensors(path)
        except FileError as error:
            raise FileError(f"{error} Expected a folder that dualt train wrote.") from None
        try:
            content: dict[str, Any] = dict(header["model"])
            shape = tuple(int(size) for size in content["input_shape"])
            class_names = check_class_names(content["class_names"], len(content["class_names"]))
            mean, std = (np.asarray(content[key], np.float64) for key in ("mean", "std"))
            columns = None if content["feature_names"] is None else tuple(map(str, content["feature_names"]))
            name, options, about = content["network"], dict(content["options"]), dict(content["about"])
            on_bytes = bool(content["on_bytes"])
        except (KeyError, TypeError, ValueError, IndexError, OverflowError) as error:
            raise FileError(f"Expected a model that dualt train wrote in {path}, got another file ({error}).") from None
        if name is None and network is None:
            raise InputError(f"The model in {folder} has a network of its own: pass the function that builds it.")
        numbers = {key.partition(".")[0] for key in weights}
        networks = []
        try:
            for number in sorted(numbers):
                # Our own networks get the file's tensors as they are: a header that claims any size takes no memory.
                with torch.device("meta" if network is None else "cpu"):
                    built = build_network(network or name, shape, len(class_names), **options)
                built.load_state_dict(below(weights, f"{number}."), assign=network is None)
                networks.append(built)
        except (RuntimeError, TypeError) as error:
            if isinstance(error, DualtError):
                raise
            reason = str(error).strip().splitlines()[-1].strip()
            raise InputError(f"The weights in {path} have another architecture: {reason}") from None
        return cls(networks, name, options, shape, class_names, mean, std, about, columns, on_bytes)

"""Saved models: a header that does not fit the weights, or is not ours, is refused."""

import numpy as np
import pytest

from dualt.errors import DualtError, FileError
from dualt.nn.networks import build_network
from dualt.nn.storage import MODEL_FILE, Model, read_tensors, write_tensors


@pytest.fixture
def folder(tmp_path):
    one = np.ones(4)
    Model([build_network("mlp-small", (4,), 3)], "mlp-small", {}, (4,), ("a", "b", "c"), one, one).save(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    "change",
    [
        {"input_shape": [10**12]},
        {"input_shape": [0]}, {"center": ["x"]},
        {"options": {"width": 10**9}}, {"options": {"depth": 3}}, {"class_names": ["a", "a", "b"]}, {"network": 3},
    ],
)  # fmt: skip
def test_a_header_that_does_not_fit_the_weights_is_refused(folder, change):
    tensors, header = read_tensors(folder / MODEL_FILE)
    write_tensors(folder / MODEL_FILE, tensors, {"model": {**header["model"], **change}})
    with pytest.raises(DualtError):
        Model.load(folder)
    missing = {name: value for name, value in header["model"].items() if name not in change}
    write_tensors(folder / MODEL_FILE, tensors, {"model": missing})
    with pytest.raises(FileError, match="Expected a model that dualt train wrote"):
        Model.load(folder)


def test_weights_without_a_header_are_no_model(folder):
    tensors, _ = read_tensors(folder / MODEL_FILE)
    write_tensors(folder / MODEL_FILE, tensors, {})
    with pytest.raises(FileError, match="Expected a model that dualt train wrote"):
        Model.load(folder)

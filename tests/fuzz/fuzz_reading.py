"""Read a file as a user would, and check what was got: the laws that valid data keep."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import fuzz_samples as samples
import numpy as np

from dualt import io
from dualt.audit import read_audit
from dualt.datasets.folder import load_folder
from dualt.io.shards import open_shards
from dualt.issues import apply_review, read_review
from dualt.label_arrays import as_label_array


def probabilities(path: Path) -> None:
    found = io.load_probabilities(path)
    assert found.class_names is None or all(type(name) is str for name in found.class_names)
    np.array(found.values)


def labels(path: Path) -> None:
    assert as_label_array(io.load_labels(path)).size


def transition(path: Path) -> None:
    matrix, names = io.load_named_transition(path)
    np.testing.assert_allclose(matrix.sum(axis=1), 1)
    assert names is None or len(names) == len(matrix)


def dataset(load: Callable[[Path], object]) -> Callable[[Path], None]:
    def read(path: Path) -> None:
        data = load(path)
        assert len(data.train_x) == len(data.train_y) > 0
        assert 0 <= data.train_y.min() <= data.train_y.max() < data.n_classes
        np.asarray(data.train_x[:1])

    return read


def review(path: Path) -> None:
    decisions = read_review(path)
    assert len(apply_review(samples.OLD, decisions)) == len(samples.OLD)


def audit(path: Path) -> None:
    found = read_audit(path)
    rows, given, true = found.rows, found.given, found.true
    assert len(rows) == len(given) == len(true) > 0


def images(path: Path) -> None:
    assert np.asarray(load_folder(path.parents[1], size=4).train_x[:]).dtype == np.uint8


def model(path: Path) -> None:
    from dualt.nn.training.model import Model

    model = Model.load(path.parent)
    probs = model.predict_probs(np.ones((2, *model.input_shape), np.float32))
    assert probs.shape == (2, len(model.class_names))


def weights(path: Path) -> None:
    from dualt.nn.networks import build_network
    from dualt.nn.networks.weights import load_weights

    load_weights(build_network("mlp-small", (4,), 3), path)


def checkpoint(path: Path) -> None:
    state = samples.state()
    state.resume(path, {"epochs": 3})
    assert len(state.history) > 0


def preset(path: Path) -> None:
    from dualt.reproduce import runs_of
    from dualt.reproduce.experiments import parse_change, parse_experiment

    text = path.read_bytes().decode("utf-8", "replace")
    key, _ = parse_change(text)
    assert key
    runs_of(parse_experiment(text, "figure2", "smoke"))


def summary(path: Path) -> None:
    stored = io.load_summary(path)
    assert stored.summary.n_samples > 0
    assert len(stored.class_names) == stored.summary.n_classes
    assert io.merge_summaries([stored]).summary == stored.summary


def shards(path: Path) -> None:
    from dualt.estimators import estimate_posterior
    from dualt.rows import NoisyPosterior

    shards = open_shards(path.parent, label="label")
    posterior = NoisyPosterior.from_blocks(shards.blocks, shards.class_names)
    matrix = estimate_posterior(posterior).transition
    np.testing.assert_allclose(matrix.sum(axis=1), 1)

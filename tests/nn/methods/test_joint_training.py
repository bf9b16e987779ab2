"""Network and matrix learned together: losses against loops, the matrix nears the truth, resume to the bit."""

import math

import numpy as np
import pytest
import torch

import dualt
from dualt.datasets import load_dataset, split_dataset
from dualt.errors import InputError
from dualt.nn.config import TrainingConfig
from dualt.nn.methods import Batch, build_method
from dualt.nn.run import Stages, training_data

N_CLASSES, N_SAMPLES = 4, 12
MATRIX = np.array([[0.8, 0.2], [0.3, 0.7]])


@pytest.fixture
def batch():
    rng = np.random.default_rng(0)
    labels = torch.from_numpy(rng.integers(N_CLASSES, size=N_SAMPLES))
    x = torch.from_numpy(rng.normal(size=(N_SAMPLES, N_CLASSES)))
    return Batch(x, labels, torch.arange(N_SAMPLES), rng, torch.no_grad)


def with_weights(name, **options):
    """Return a method whose matrix is not the one it starts with, and that matrix from loops."""
    method = build_method(name, n_classes=N_CLASSES, **options)
    weights = np.random.default_rng(1).normal(size=(N_CLASSES, N_CLASSES))
    with torch.no_grad():
        method.weight.copy_(torch.from_numpy(weights))
    rows = []
    for i in range(N_CLASSES):
        row = [1.0 if i == j else 1 / (1 + N_CLASSES * math.exp(-2 * weights[i, j])) for j in range(N_CLASSES)]
        rows.append([value / sum(row) for value in row])
    return method, rows


def forward_loss(batch, matrix):
    total = 0.0
    for logits, label in zip(batch.x.tolist(), batch.labels.tolist(), strict=True):
        weights = [math.exp(value) for value in logits]
        total -= math.log(sum(w / sum(weights) * matrix[i][label] for i, w in enumerate(weights)))
    return total / N_SAMPLES


def test_the_matrix_starts_half_way_to_pure_noise():
    for n_classes in (2, 10):
        start = build_method("volminnet", n_classes=n_classes).learned_transition
        expected = (np.eye(n_classes) + np.full((n_classes, n_classes), 1 / n_classes)) / 2
        np.testing.assert_allclose(start, expected, rtol=1e-6)


def test_volminnet(batch):
    method, matrix = with_weights("volminnet", volume_weight=0.3)
    np.testing.assert_allclose(method.learned_transition, matrix, rtol=1e-5)
    (loss,) = method([lambda x: x], batch)
    expected = forward_loss(batch, matrix) + 0.3 * math.log(abs(np.linalg.det(matrix)))
    assert loss.item() == pytest.approx(expected, rel=1e-5)


def test_gradients_reach_the_matrix(batch):
    method, _ = with_weights("volminnet")
    (loss,) = method([lambda x: x], batch)
    loss.backward()
    others = ~np.eye(N_CLASSES, dtype=bool)
    assert (method.weight.grad.numpy()[others] != 0).all()
    assert (method.weight.grad.diagonal() == 0).all()


def test_the_diagonal_stays_the_largest_of_its_row():
    method = build_method("volminnet", n_classes=N_CLASSES)
    for value in (-1e3, 1e3):
        with torch.no_grad():
            method.weight.fill_(value)
        matrix = method.learned_transition.numpy()
        assert np.isfinite(matrix).all()
        assert (matrix.diagonal() == matrix.max(axis=1)).all()
        np.testing.assert_allclose(matrix.sum(axis=1), 1, rtol=1e-6)


@pytest.fixture(scope="module")
def data():
    dataset = load_dataset("synthetic", n_samples=1500, n_test=500)
    return training_data(split_dataset(dataset, MATRIX, random_state=0))


def run_of(data, config, **options):
    return Stages(data, ("0", "1"), config, **options).run()


def config(name, **changes):
    return TrainingConfig(
        "mlp-small", name, recipe="paper", **{"epochs": 6, "batch_size": 32, "learning_rate": 0.1, **changes}
    )


def test_the_learned_matrix_is_near_the_truth(data):
    run = run_of(data, config("volminnet"))
    assert run.test_accuracy > 0.95
    assert (run.transition, run.estimate, list(run.stages)) == (None, None, ["volminnet"])
    assert dualt.l1_error(run.learned_transition, MATRIX) < 0.15 * dualt.l1_error(np.eye(2), MATRIX)
    assert run.to_dict()["learned_transition"] == run.learned_transition.tolist()


def test_other_options_do_not_resume(data, tmp_path):
    quick = {"epochs": 1, "method_options": {"volume_weight": 0.1}}
    run_of(data, config("volminnet", **quick), folder=tmp_path)
    run_of(data, config("volminnet", **quick), folder=tmp_path, resume=True)
    with pytest.raises(InputError, match="options"):
        run_of(data, config("volminnet", epochs=1), folder=tmp_path, resume=True)


def test_revision_shows_what_it_has_learned(data):
    run = run_of(data, config("revision", learning_rate=1e-3, epochs=2, transition=MATRIX))
    np.testing.assert_array_equal(run.transition, MATRIX)
    assert 0 < dualt.l1_error(run.learned_transition, MATRIX) < 0.2
    assert run_of(data, config("ce", epochs=1)).learned_transition is None


def test_wrong_options_are_named():
    for value in ("much", -1.0, math.nan):
        with pytest.raises(InputError, match="at least 0"):
            build_method("volminnet", n_classes=3, volume_weight=value)
    with pytest.raises(InputError, match="needs n_classes"):
        build_method("volminnet")
    with pytest.raises(InputError, match=r"'gamma'\. Its options: volume_weight"):
        TrainingConfig(method="volminnet", method_options={"gamma": 0.1})
    with pytest.raises(InputError, match=r"'forward' has no option 'alpha'.*none"):
        TrainingConfig(method="forward", method_options={"alpha": 1})

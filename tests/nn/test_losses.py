"""Losses and selection against formulas written out in loops, in double precision."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn import functional as F  # noqa: N812

from dualt import noise
from dualt.errors import InputError, TransitionError
from dualt.nn.losses import (
    BackwardLoss,
    ForwardLoss,
    RevisedLoss,
    ReweightedLoss,
    backward_loss,
    forward_loss,
    revised_loss,
    revised_transition,
    reweighted_loss,
    small_loss_selection,
)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.bfloat16])
def test_a_matrix_may_be_a_tensor_of_any_float_type(dtype):
    matrix = torch.eye(3, dtype=dtype, requires_grad=True)
    assert torch.equal(ForwardLoss(matrix).transition, torch.eye(3))


def softmax_row(row):
    top = max(row)
    weights = [math.exp(value - top) for value in row]
    return [weight / sum(weights) for weight in weights]


def by_hand(logits, labels, matrix):
    """Return p_y and (p @ matrix)_y of every row: the probability of the label as true class, and as given."""
    pairs = []
    for row, label in zip(logits.tolist(), labels.tolist(), strict=True):
        p = softmax_row(row)
        pairs.append((p[label], sum(p[i] * matrix[i][label] for i in range(len(p)))))
    return np.array(pairs).T


@st.composite
def batches(draw):
    n_classes = draw(st.integers(2, 6))
    n = draw(st.integers(1, 7))
    seed = draw(st.integers(0, 2**31))
    rng = np.random.default_rng(seed)
    logits = torch.from_numpy(rng.normal(size=(n, n_classes)) * draw(st.sampled_from([0.1, 1.0, 5.0])))
    labels = torch.from_numpy(rng.integers(n_classes, size=n))
    kind = draw(st.sampled_from(["random", "pair", "identity"]))
    matrix = {
        "random": noise.random_diagonal_dominant(n_classes, 0.3, seed),
        "pair": noise.pair(n_classes, 0.45 if n_classes > 2 else 0.3),
        "identity": np.eye(n_classes),
    }[kind]
    return logits, labels, torch.from_numpy(matrix)


def numeric_gradient(function, at, step=1e-6):
    gradient = torch.zeros_like(at)
    for index in np.ndindex(*at.shape):
        up, down = at.clone(), at.clone()
        up[index] += step
        down[index] -= step
        gradient[index] = (function(up) - function(down)) / (2 * step)
    return gradient


@given(batches())
def test_forward_matches_the_loop(batch):
    logits, labels, matrix = batch
    expected = -np.log(by_hand(logits, labels, matrix.tolist())[1])
    np.testing.assert_allclose(forward_loss(logits, labels, matrix, reduction="none"), expected, rtol=1e-7, atol=1e-13)
    assert forward_loss(logits, labels, matrix).item() == pytest.approx(np.mean(expected))
    assert forward_loss(logits, labels, matrix, reduction="sum").item() == pytest.approx(np.sum(expected))


@given(batches())
def test_backward_matches_the_loop(batch):
    logits, labels, matrix = batch
    inverse = np.linalg.inv(matrix.numpy())
    expected = []
    for row, label in zip(logits.tolist(), labels.tolist(), strict=True):
        logs = [math.log(p) for p in softmax_row(row)]
        expected.append(-sum(inverse[label, j] * logs[j] for j in range(len(logs))))
    np.testing.assert_allclose(backward_loss(logits, labels, matrix, reduction="none"), expected, rtol=1e-9, atol=1e-9)


@given(batches())
def test_reweighted_matches_the_loop(batch):
    logits, labels, matrix = batch
    true, given = by_hand(logits, labels, matrix.tolist())
    expected = -true / given * np.log(true)
    # −log p written out loses the digits of a loss near zero, hence the absolute tolerance.
    losses = reweighted_loss(logits, labels, matrix, reduction="none")
    np.testing.assert_allclose(losses, expected, rtol=1e-9, atol=1e-13)
    assert reweighted_loss(logits, labels, matrix).item() == pytest.approx(np.mean(expected))


@given(batches())
def test_revised_matches_the_loop(batch):
    logits, labels, matrix = batch
    slack = torch.from_numpy(np.random.default_rng(0).uniform(0, 0.05, matrix.shape))
    revised = (matrix + slack).numpy()
    revised = revised / revised.sum(axis=1, keepdims=True)
    true, given = by_hand(logits, labels, revised.tolist())
    actual = revised_loss(logits, labels, matrix, slack, reduction="none")
    np.testing.assert_allclose(actual, -true / given * np.log(true), rtol=1e-9, atol=1e-13)


@given(batches())
def test_gradients_match_differences(batch):
    logits, labels, matrix = batch
    slack = torch.from_numpy(np.random.default_rng(1).uniform(0.01, 0.05, matrix.shape))
    weights = torch.from_numpy(np.divide(*by_hand(logits, labels, matrix.tolist())))
    cases = [
        (lambda z: forward_loss(z, labels, matrix), logits),
        (lambda z: backward_loss(z, labels, matrix), logits),
        (lambda z: revised_loss(z, labels, matrix, slack), logits),
        (lambda s: revised_loss(logits, labels, matrix, s), slack),
    ]
    for function, at in cases:
        leaf = at.clone().requires_grad_()
        function(leaf).backward()
        np.testing.assert_allclose(leaf.grad, numeric_gradient(function, at), rtol=1e-4, atol=1e-7)
    # The weights of reweighting are constants, so its gradient is that of the weighted cross entropy.
    leaf = logits.clone().requires_grad_()
    reweighted_loss(leaf, labels, matrix).backward()
    fixed = numeric_gradient(lambda z: (weights * F.cross_entropy(z, labels, reduction="none")).mean(), logits)
    np.testing.assert_allclose(leaf.grad, fixed, rtol=1e-4, atol=1e-7)


@pytest.mark.parametrize("loss", [ForwardLoss, BackwardLoss, ReweightedLoss, RevisedLoss])
def test_the_matrix_is_in_the_state_dict(loss):
    saved, other = loss(noise.pair(3, 0.3)), loss(noise.symmetric(3, 0.2))
    logits, labels = torch.randn(6, 3, generator=torch.Generator().manual_seed(2)), torch.arange(6) % 3
    np.testing.assert_allclose(saved.state_dict()["transition"], noise.pair(3, 0.3), rtol=1e-6)
    assert not torch.equal(saved(logits, labels), other(logits, labels))
    other.load_state_dict(saved.state_dict())
    assert torch.equal(saved(logits, labels), other(logits, labels))


def test_backward_is_unbiased():
    matrix = torch.from_numpy(noise.random_diagonal_dominant(4, 0.4, 5))
    logits = torch.tensor([[0.3, -1.0, 2.0, 0.1]], dtype=torch.float64)
    for clean in range(4):
        each = backward_loss(logits.expand(4, 4), torch.arange(4), matrix, reduction="none")
        torch.testing.assert_close(
            (matrix[clean] * each).sum(), F.cross_entropy(logits, torch.tensor([clean])).double()
        )


def test_slack_learns_where_the_matrix_is_zero():
    slack = torch.zeros(3, 3, requires_grad=True)
    matrix = torch.from_numpy(noise.pair(3, 0.4)).float()
    revised_loss(torch.tensor([[2.0, 1.0, 0.0]]), torch.tensor([0]), matrix, slack).backward()
    assert matrix[1, 0] == 0
    assert slack.grad[1, 0] != 0


@pytest.mark.parametrize("scale", [1e2, 1e3, 1e4])
@pytest.mark.parametrize("n_classes", [2, 10, 1000])
def test_certain_networks_and_zero_entries_stay_finite(scale, n_classes):
    logits = scale * torch.eye(n_classes)[:8].roll(1, 0)
    logits = logits.clone().requires_grad_()
    labels = torch.arange(len(logits)) % n_classes
    matrix = torch.from_numpy(noise.pair(n_classes, 0.45)).float()
    slack = torch.zeros_like(matrix, requires_grad=True)
    for loss in (
        forward_loss(logits, labels, matrix),
        reweighted_loss(logits, labels, matrix),
        revised_loss(logits, labels, matrix, slack),
    ):
        logits.grad = slack.grad = None
        loss.backward()
        assert torch.isfinite(loss)
        assert torch.isfinite(logits.grad).all()
    assert torch.isfinite(slack.grad).all()


@pytest.mark.parametrize("scale", [1e2, 1e4])
def test_revised_keeps_the_loss_of_a_label_without_probability(scale):
    logits = scale * torch.randn(64, 5, generator=torch.Generator().manual_seed(0))
    labels, no_slack = torch.arange(64) % 5, torch.zeros(5, 5)
    given = logits.clone().requires_grad_()
    loss = revised_loss(given, labels, torch.eye(5), no_slack)
    loss.backward()
    plain = logits.clone().requires_grad_()
    F.cross_entropy(plain, labels).backward()
    torch.testing.assert_close(loss.detach(), F.cross_entropy(logits, labels))
    torch.testing.assert_close(given.grad, plain.grad)


def test_revised_without_slack_is_reweighting_however_sure_the_network_is():
    logits = 1e2 * torch.randn(64, 5, generator=torch.Generator().manual_seed(0))
    labels, matrix = torch.arange(64) % 5, torch.from_numpy(noise.pair(5, 0.4)).float()
    found = revised_loss(logits, labels, matrix, torch.zeros(5, 5), reduction="none")
    torch.testing.assert_close(found, reweighted_loss(logits, labels, matrix, reduction="none"), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("scale", [1.0, 1e2, 1e4])
def test_revised_through_classes_that_are_never_labelled_right_stays_finite(scale):
    logits = (scale * torch.randn(64, 3, generator=torch.Generator().manual_seed(0))).requires_grad_()
    # Class 0 is always labelled 1, and no class is ever labelled 0.
    matrix, slack = torch.tensor([[0.0, 1, 0], [0, 1, 0], [0, 1e-20, 1]]), torch.zeros(3, 3, requires_grad=True)
    revised_loss(logits, torch.arange(64) % 3, matrix, slack).backward()
    assert torch.isfinite(logits.grad).all()
    assert torch.isfinite(slack.grad).all()


def test_forward_keeps_the_digits_of_tiny_probabilities():
    # The label can only come from class 1, whose probability e⁻²⁰⁰ is no float32.
    matrix = torch.tensor([[1.0, 0.0], [0.5, 0.5]])
    loss = forward_loss(torch.tensor([[200.0, 0.0]]), torch.tensor([1]), matrix)
    assert loss.item() == pytest.approx(200 + math.log(2), rel=1e-6)


def test_an_impossible_label_moves_nothing():
    logits = torch.tensor([[1.0, 2.0]], requires_grad=True)
    loss = forward_loss(logits, torch.tensor([1]), torch.tensor([[1.0, 0.0], [1.0, 0.0]]))
    loss.backward()
    assert math.isfinite(loss.item())
    torch.testing.assert_close(logits.grad, torch.zeros(1, 2), atol=1e-4, rtol=0)


def test_rows_stay_on_the_simplex():
    matrix = torch.from_numpy(noise.symmetric(4, 0.2)).float()
    slack = torch.randn(4, 4, generator=torch.Generator().manual_seed(1))
    revised = revised_transition(matrix, slack)
    assert (revised >= 0).all()
    torch.testing.assert_close(revised.sum(1), torch.ones(4))
    wiped_out = revised_transition(matrix, torch.full((4, 4), -1.0))
    torch.testing.assert_close(wiped_out, matrix)


def test_modules_agree_with_the_functions():
    logits, labels = torch.randn(6, 3, generator=torch.Generator().manual_seed(2)), torch.arange(6) % 3
    array = noise.random_diagonal_dominant(3, 0.3, 1)
    matrix = torch.from_numpy(array).float()
    pairs = (ForwardLoss, forward_loss), (BackwardLoss, backward_loss), (ReweightedLoss, reweighted_loss)
    for module, function in pairs:
        torch.testing.assert_close(module(array)(logits, labels), function(logits, labels, matrix))
    revised = RevisedLoss(matrix)
    torch.testing.assert_close(revised(logits, labels), revised_loss(logits, labels, matrix, torch.zeros(3, 3)))
    assert [name for name, _ in revised.named_parameters()] == ["slack"]
    torch.testing.assert_close(revised.revised, matrix)


@pytest.mark.parametrize("loss", [BackwardLoss, ForwardLoss, ReweightedLoss, RevisedLoss])
@pytest.mark.parametrize("label", [-100, -1, 3])
def test_a_label_that_is_no_class_is_refused(loss, label):
    module, logits, labels = loss(noise.symmetric(3, 0.2)), torch.zeros(4, 3), torch.tensor([0, 1, label, 2])
    with pytest.raises(InputError, match=rf"labels from 0 to 2, got {label} at place 2\. Leave"):
        module(logits, labels)
    kept = labels.clamp(0, 2) == labels
    assert module(logits[kept], labels[kept]).isfinite()
    with pytest.raises((RuntimeError, ValueError), match=r"size|shape"):
        module(logits, labels[:2].clamp(0, 2))


def test_bad_input_is_named():
    with pytest.raises(TransitionError, match="pass the transpose"):
        ForwardLoss([[0.9, 0.3], [0.1, 0.7]])
    with pytest.raises(InputError, match=r"logits of 3 classes.*got 2"):
        ForwardLoss(noise.symmetric(3, 0.2))(torch.zeros(1, 2), torch.tensor([0]))
    with pytest.raises(TransitionError, match="singular"):
        BackwardLoss(np.full((2, 2), 0.5))
    with pytest.raises(InputError, match="reduction 'mean', 'sum' or 'none', got 'avg'"):
        forward_loss(torch.zeros(1, 2), torch.tensor([0]), torch.eye(2), reduction="avg")


@given(st.lists(st.floats(0, 10), min_size=1, max_size=20), st.floats(0, 1))
def test_the_smallest_are_kept_and_never_none(losses, rate):
    tensor = torch.tensor(losses, dtype=torch.float64)
    kept = small_loss_selection(tensor, rate)
    assert 1 <= len(kept) <= len(losses)
    assert abs(len(kept) - max(1, (1 - rate) * len(losses))) < 1 + 1e-6
    dropped = set(range(len(losses))) - set(kept.tolist())
    assert all(losses[out] >= tensor[kept].max() for out in dropped)


@pytest.mark.parametrize(("rate", "n_kept"), [(0.0, 10), (0.9, 1), (0.2, 8), (0.45, 5), (1.0, 1)])
def test_the_number_kept_is_what_a_person_would_count(rate, n_kept):
    assert len(small_loss_selection(torch.arange(10.0), rate)) == n_kept

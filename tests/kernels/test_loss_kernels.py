"""The compiled losses against their twins in torch, in single and in double precision, and where they give way."""

from __future__ import annotations

import copy
from unittest import mock

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dualt import kernels, noise
from dualt.errors import TrainingError
from dualt.nn.losses import RevisedLoss, ReweightedLoss

pytestmark = pytest.mark.skipif(kernels.library is None, reason="no compiled library")
LOSSES = {
    "reweighted": ReweightedLoss,
    "bounded": lambda matrix: ReweightedLoss(matrix, max_weight=1.1),
    "revised": RevisedLoss,
}


@pytest.fixture(params=LOSSES.values(), ids=LOSSES)
def loss(request):
    return request.param(noise.pair(4, 0.3))


def without_library():
    return mock.patch.object(kernels, "library", None)


def is_compiled(value):
    return type(value.grad_fn).__name__ == "_KnownBackward"


def value_and_gradients(loss, logits, labels):
    """Return three times the loss, its gradients, and whether the compiled library gave them."""
    leaf = logits.detach().clone(memory_format=torch.preserve_format).requires_grad_()
    value = loss(leaf, labels)
    return (3 * value.detach(), *torch.autograd.grad(3 * value, (leaf, *loss.parameters()))), is_compiled(value)


def twin(loss, logits, labels):
    with without_library():
        values, compiled = value_and_gradients(loss, logits, labels)
    assert not compiled
    return values


def assert_close(actual, expected, tolerance):
    """Compare, by the largest entry of each; entries are sums, in which larger ones cancel."""
    for a, b in zip(actual, expected, strict=True):
        torch.testing.assert_close(a.double(), b.double(), rtol=0, atol=tolerance * max(1, b.abs().max().item()))


def batch(n=6, n_classes=4, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(n, n_classes, generator=generator), torch.randint(n_classes, (n,), generator=generator)


@st.composite
def cases(draw):
    """Return a loss and a batch: few or many classes, certain networks, zeros in the matrix, rows wiped out."""
    n, n_classes = draw(st.integers(1, 300)), draw(st.integers(2, 120))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    logits = rng.normal(size=(n, n_classes)) * draw(st.sampled_from([0.1, 1.0, 5.0]))
    if draw(st.booleans()):
        logits = rng.choice([-80.0, 0.0, 80.0], size=(n, n_classes))
    matrix = {
        "random": lambda: noise.random_diagonal_dominant(n_classes, 0.3, rng),
        "pair": lambda: noise.pair(n_classes, 0.4),
        "identity": lambda: np.eye(n_classes),
    }[draw(st.sampled_from(["random", "pair", "identity"]))]()
    loss = LOSSES[draw(st.sampled_from(list(LOSSES)))](matrix)
    with torch.no_grad():
        for slack in loss.parameters():
            slack.copy_(torch.from_numpy(rng.uniform(-0.2, 0.2, slack.shape) * draw(st.sampled_from([0, 0.1, 1]))))
            slack[rng.random(n_classes) < draw(st.sampled_from([0, 0.3]))] = -2
    return loss, torch.from_numpy(logits).float(), torch.from_numpy(rng.integers(n_classes, size=n))


@given(cases())
def test_equals_the_twin(case):
    loss, logits, labels = case
    actual, compiled = value_and_gradients(loss, logits, labels)
    assert compiled
    assert_close(actual, twin(loss, logits, labels), 1e-5)
    assert_close(actual, twin(copy.deepcopy(loss).double(), logits.double(), labels), 1e-5)


def test_is_exact_to_the_last_digits_on_an_ordinary_batch(loss):
    logits, labels = batch(128)
    actual, compiled = value_and_gradients(loss, logits, labels)
    assert compiled
    assert_close(actual, twin(copy.deepcopy(loss).double(), logits.double(), labels), 1e-6)


def revised_by_hand(logits, labels, matrix, slack):
    """Return the mean revised loss, sample by sample."""
    rows = np.maximum(matrix + slack, 0)
    rows /= rows.sum(axis=1, keepdims=True)
    total = 0
    for row, label in zip(logits, labels, strict=True):
        probs = np.exp(row) / np.exp(row).sum()
        total -= probs[label] / (probs @ rows[:, label]) * np.log(probs[label])
    return total / len(labels)


def test_gradients_are_differences_of_the_loss_written_out():
    matrix, (logits, labels), rng = noise.symmetric(4, 0.3), batch(), np.random.default_rng(1)
    loss = RevisedLoss(matrix)
    loss.slack.data.copy_(torch.from_numpy(rng.uniform(-0.2, 0.1, (4, 4))))  # takes some entries below zero
    (value, *gradients), _ = value_and_gradients(loss, logits, labels)
    at = [logits.double().numpy(), labels.numpy(), matrix, loss.slack.detach().double().numpy()]
    assert value.item() == pytest.approx(3 * revised_by_hand(*at), rel=1e-6)
    for varied, gradient in zip((0, 3), gradients, strict=True):
        for index in np.ndindex(*at[varied].shape):
            up, down = (at[varied].copy() for _ in range(2))
            up[index] += 1e-6
            down[index] -= 1e-6
            rise = revised_by_hand(*at[:varied], up, *at[varied + 1 :])
            fall = revised_by_hand(*at[:varied], down, *at[varied + 1 :])
            assert gradient[index].item() == pytest.approx(3 * (rise - fall) / 2e-6, abs=2e-6)


def test_a_label_without_probability_pulls_as_in_the_twin():
    """Where it is next to impossible that the label is given, the divisor is bounded, and a constant."""
    logits, labels = torch.tensor([[60.0, -10.0, 0.0]]), torch.tensor([1])
    loss = RevisedLoss(np.eye(3))
    actual, _ = value_and_gradients(loss, logits, labels)
    assert actual[0].item() == pytest.approx(3 * 70 * np.exp(-70) / 1e-30, rel=1e-5)
    for a, b in zip(actual, twin(loss, logits, labels), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-12)


@pytest.mark.parametrize("odd", [float("nan"), float("inf"), float("-inf")])
def test_what_is_no_number_stays_visible(loss, odd):
    logits, labels = batch()
    logits[2, (labels[2] + 1) % 4] = odd
    actual, compiled = value_and_gradients(loss, logits, labels)
    assert compiled
    for a, b in zip(actual, twin(loss, logits, labels), strict=True):
        torch.testing.assert_close(a, b, equal_nan=True)


@pytest.mark.parametrize("label", [-1, 4, 2**40, -(2**62), -100])
def test_a_label_that_is_no_class_is_refused_as_by_torch(loss, label):
    logits, labels = batch()
    labels[3] = label
    with without_library(), pytest.raises(IndexError) as expected:
        loss(logits, labels)
    with pytest.raises(IndexError) as refused:
        loss(logits, labels)
    assert str(refused.value) == str(expected.value)


def test_an_empty_batch_is_what_torch_makes_of_it(loss):
    empty = torch.zeros(0, 4), torch.zeros(0, dtype=torch.long)
    for a, b in zip(value_and_gradients(loss, *empty)[0], twin(loss, *empty), strict=True):
        torch.testing.assert_close(a, b, equal_nan=True)


@pytest.mark.parametrize(
    ("change_logits", "change_labels"),
    [
        (lambda z: z.t().contiguous().t(), lambda y: y),
        (lambda z: z.double(), lambda y: y),
        (lambda z: z, lambda y: torch.stack([y, y], 1)[:, 0]),
    ],
    ids=["strided logits", "double logits", "strided labels"],
)
def test_gives_way_to_the_twin(loss, change_logits, change_labels):
    logits, labels = batch()
    reference, compiled = value_and_gradients(loss, logits, labels)
    assert compiled
    actual, compiled = value_and_gradients(loss, change_logits(logits), change_labels(labels))
    assert not compiled
    assert_close(actual, reference, 1e-6)


def test_a_slack_of_another_shape_or_type_is_left_to_torch():
    (logits, labels), loss = batch(), RevisedLoss(noise.pair(4, 0.3))
    for slack in (torch.zeros(1, 4), torch.zeros(4, 4).double(), torch.zeros(4, 8)[:, ::2]):
        value = torch.func.functional_call(loss, {"slack": slack.requires_grad_()}, (logits, labels))
        assert not is_compiled(value)
        torch.testing.assert_close(value.float(), loss(logits, labels))


def test_half_precision_logits_pass_their_gradient_back(loss):
    logits, labels = batch()
    half = logits.bfloat16().requires_grad_()
    loss(half, labels).backward()
    expected = value_and_gradients(loss, half.detach().float(), labels)[0][1]
    torch.testing.assert_close(3 * half.grad.float(), expected, rtol=2e-2, atol=1e-4)


def test_is_the_same_bit_for_bit_every_time(loss):
    first, again = (value_and_gradients(loss, *batch(128))[0] for _ in range(2))
    assert all(torch.equal(a, b) for a, b in zip(first, again, strict=True))


def test_gradients_add_up_and_can_be_taken_twice(loss):
    logits, labels = batch()
    leaf = logits.clone().requires_grad_()
    value = loss(leaf, labels)
    value.backward(retain_graph=True)
    once = leaf.grad.clone()
    value.backward()
    torch.testing.assert_close(leaf.grad, 2 * once)


def test_the_grad_mode_is_respected(loss):
    logits, labels = batch()
    logits.requires_grad_()
    for mode in (torch.no_grad(), torch.inference_mode()):
        with mode:
            assert loss(logits, labels).grad_fn is None
    for parameter in loss.parameters():
        parameter.requires_grad_(False)
        loss(logits, labels).backward()
        assert parameter.grad is None
        parameter.requires_grad_()


def test_a_second_derivative_is_refused_and_there_is_a_way(loss):
    logits, labels = batch()
    logits.requires_grad_()
    with pytest.raises(TrainingError, match="reduction='none'"):
        torch.autograd.grad(loss(logits, labels), logits, create_graph=True)
    loss.reduction = "none"
    (gradient,) = torch.autograd.grad(loss(logits, labels).mean(), logits, create_graph=True)
    gradient.square().sum().backward()
    assert logits.grad.abs().max() > 0


@pytest.mark.filterwarnings("ignore")  # torch's, of its own parts
def test_transforms_and_traces_see_the_twin(loss):
    logits, labels = batch()
    value, gradient, *_ = twin(loss, logits, labels)
    torch.testing.assert_close(3 * torch.func.grad(loss)(logits, labels), gradient)
    torch.testing.assert_close(3 * torch.func.vmap(loss)(logits[None], labels[None]), value[None])
    traced = torch.jit.trace(loss, (torch.zeros_like(logits), labels), check_trace=False)
    torch.testing.assert_close(3 * traced(logits, labels), value)
    compiled = torch.compile(loss, backend="eager", fullgraph=True)
    torch.testing.assert_close(3 * compiled(logits, labels), value)


@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")
def test_forward_derivatives_are_refused_by_torch(loss):
    logits, labels = batch()
    with torch.autograd.forward_ad.dual_level(), pytest.raises(RuntimeError, match="jvp"):
        loss(torch.autograd.forward_ad.make_dual(logits, logits), labels)

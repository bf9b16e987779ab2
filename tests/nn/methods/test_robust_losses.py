"""Losses without a matrix against references written as loops."""

import math

import numpy as np
import pytest
import torch

from dualt.nn.methods.elr import early_learning_loss
from dualt.nn.methods.gce import generalized_cross_entropy

LOGITS = torch.from_numpy(np.random.default_rng(0).normal(size=(9, 4)) * 3)
LABELS = torch.from_numpy(np.random.default_rng(1).integers(4, size=9))


def softmax(row):
    total = sum(math.exp(value) for value in row)
    return [math.exp(value) / total for value in row]


@pytest.mark.parametrize("q", [0.05, 0.7, 1.0])
def test_generalized_cross_entropy(q):
    expected = [(1 - softmax(row)[y] ** q) / q for row, y in zip(LOGITS.tolist(), LABELS.tolist(), strict=True)]
    assert generalized_cross_entropy(LOGITS, LABELS, q).item() == pytest.approx(np.mean(expected))


def test_a_small_q_is_cross_entropy():
    expected = torch.nn.functional.cross_entropy(LOGITS, LABELS).item()
    assert generalized_cross_entropy(LOGITS, LABELS, 1e-6).item() == pytest.approx(expected, rel=1e-4)


def test_early_learning_loss():
    targets = LOGITS.flip(0).softmax(1)
    total = 0.0
    for row, y, target in zip(LOGITS.tolist(), LABELS.tolist(), targets.tolist(), strict=True):
        probs = softmax(row)
        agreement = sum(t * p for t, p in zip(target, probs, strict=True))
        total += -math.log(probs[y]) + 3 * math.log(1 - (1 - 1e-4) * agreement)
    assert early_learning_loss(LOGITS, LABELS, targets, 3.0).item() == pytest.approx(total / 9)


def test_early_learning_pulls_a_contradicting_label_less():
    """The gradient at the label is smaller where the targets speak against it: that is what stops memorising."""
    logits = torch.tensor([[3.0, 0.0]], requires_grad=True)
    targets, label = torch.tensor([[0.95, 0.05]]), torch.tensor([1])
    (plain,) = torch.autograd.grad(torch.nn.functional.cross_entropy(logits, label), logits)
    (kept,) = torch.autograd.grad(early_learning_loss(logits, label, targets), logits)
    assert kept[0, 1] > plain[0, 1]


def test_full_agreement_has_a_finite_loss():
    logits, label = torch.tensor([[200.0, 0.0]], requires_grad=True), torch.tensor([0])
    loss = early_learning_loss(logits, label, torch.tensor([[1.0, 0.0]]))
    loss.backward()
    assert loss.item() == pytest.approx(3 * math.log(1e-4), rel=1e-3)
    assert bool(torch.isfinite(logits.grad).all())


def test_the_gradient_of_early_learning_is_that_of_its_loss():
    logits, targets = LOGITS.clone().requires_grad_(), LOGITS.flip(0).softmax(1)
    assert torch.autograd.gradcheck(lambda z: early_learning_loss(z, LABELS, targets, 3.0), logits)

"""The losses of DivideMix against loops; its targets are in test_methods.py."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dualt.nn.methods.dividemix import mixmatch_loss, small_loss_probability

RNG = np.random.default_rng(0)
LOGITS = torch.from_numpy(RNG.normal(size=(9, 4)) * 2)
TARGETS = torch.from_numpy(RNG.dirichlet(np.ones(4), size=9))
PRIOR = [0.1, 0.2, 0.3, 0.4]


def test_wrong_labels_have_large_losses():
    rng = np.random.default_rng(1)
    wrong = rng.random(3_000) < 0.4
    losses = np.where(wrong, rng.normal(4, 0.8, 3_000), rng.exponential(0.4, 3_000)).clip(0)
    assert ((small_loss_probability(losses) > 0.5) != wrong).mean() > 0.95


@given(st.lists(st.floats(0, 60), min_size=1, max_size=30))
def test_any_losses_give_probabilities(losses):
    found = small_loss_probability(losses)
    assert ((found >= 0) & (found <= 1)).all()


def test_equal_losses_are_all_small():
    assert small_loss_probability(np.full(5, 0.3)).tolist() == [1.0] * 5


@pytest.mark.parametrize("n_labelled", [0, 4, 9])
def test_mixmatch_loss(n_labelled):
    labelled = torch.arange(9) < n_labelled
    entropies, errors, mean = [], [], [0.0] * 4
    for row, target, has_label in zip(LOGITS.tolist(), TARGETS.tolist(), labelled.tolist(), strict=True):
        total = sum(math.exp(value) for value in row)
        probs = [math.exp(value) / total for value in row]
        mean = [m + p / 9 for m, p in zip(mean, probs, strict=True)]
        if has_label:
            entropies.append(-sum(t * math.log(p) for t, p in zip(target, probs, strict=True)))
        else:
            errors.append(sum((p - t) ** 2 for p, t in zip(probs, target, strict=True)) / 4)
    expected = sum(entropies) / max(len(entropies), 1) + 25 * sum(errors) / max(len(errors), 1)
    expected += sum(p * math.log(p / m) for p, m in zip(PRIOR, mean, strict=True))
    prior = torch.tensor(PRIOR, dtype=torch.float64)
    found = mixmatch_loss(LOGITS, TARGETS, labelled, prior, 25.0)
    assert found.item() == pytest.approx(expected)

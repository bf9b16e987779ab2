"""Small-loss selection, disagreement and mixup."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn import functional as F  # noqa: N812

from dualt.nn.losses import disagreement, mixup, mixup_loss, small_loss_selection


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


def test_disagreement_finds_different_classes():
    a = torch.tensor([[2.0, 1.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 3.0]])
    b = torch.tensor([[9.0, 1.0, 0.0], [5.0, 1.0, 0.0], [4.0, 0.0, 3.0]])
    assert disagreement(a, b).tolist() == [1, 2]
    assert len(disagreement(a, a)) == 0


def test_mixup_matches_the_loop():
    x = torch.randn(5, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    labels = torch.tensor([0, 1, 2, 1, 0])
    mixed = mixup(x, labels, 7)
    rng = np.random.default_rng(7)
    share, partner = rng.beta(1, 1), rng.permutation(5)
    for row in range(5):
        expected = share * x[row] + (1 - share) * x[partner[row]]
        torch.testing.assert_close(mixed.x[row], expected)
        assert mixed.partner_labels[row] == labels[partner[row]]
    logits = torch.randn(5, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    log_probs = F.log_softmax(logits, 1)
    by_hand = -sum(
        share * log_probs[row, labels[row]] + (1 - share) * log_probs[row, labels[partner[row]]] for row in range(5)
    )
    torch.testing.assert_close(mixup_loss(logits, mixed), by_hand / 5)


def test_mixup_leaves_its_input_alone():
    x = torch.ones(2, 2)
    mixup(x, torch.tensor([0, 1]), 0)
    assert torch.equal(x, torch.ones(2, 2))

"""Which samples of a batch to learn from."""

from __future__ import annotations

import torch
from torch import Tensor

from dualt.validation import check_fraction


def small_loss_selection(losses: Tensor, forget_rate: float) -> Tensor:
    """Return the indices of the (1 − forget_rate)·n samples with the smallest losses, at least one.

    Examples
    --------
    >>> import torch
    >>> small_loss_selection(torch.tensor([0.9, 0.1, 0.5, 0.2]), 0.5)
    tensor([1, 3])
    """
    check_fraction(forget_rate, "forget_rate", inclusive=True)
    # Rounded first: 1 − 0.9 is a little more than a tenth, and must not keep less than a tenth of ten.
    n_kept = max(1, int(round((1 - forget_rate) * len(losses), 6)))
    return torch.argsort(losses.detach(), stable=True)[:n_kept]


def disagreement(logits_a: Tensor, logits_b: Tensor) -> Tensor:
    """Return the indices of the samples that two networks put in different classes; perhaps none.

    Examples
    --------
    >>> import torch
    >>> disagreement(torch.tensor([[1.0, 0.0], [1.0, 0.0]]), torch.tensor([[3.0, 0.0], [0.0, 2.0]]))
    tensor([1])
    """
    return torch.nonzero(logits_a.argmax(1) != logits_b.argmax(1)).squeeze(1)

"""MentorNet, self-paced: a network learns from its small-loss samples."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from dualt.nn.losses.corrected import cross_entropies
from dualt.nn.losses.selection import small_loss_selection
from dualt.nn.methods.base import Batch, Network, SelectionMethod


class MentorNet(SelectionMethod):
    """Cross entropy over the samples of the batch with the smallest losses.

    References
    ----------
    Jiang et al., MentorNet: learning data-driven curriculum for very deep neural networks on corrupted
    labels, ICML 2018.
    """

    def forward(self, networks: Sequence[Network], batch: Batch) -> Sequence[Tensor]:
        """Return the mean loss over the kept samples."""
        losses = cross_entropies(networks[0](batch.x), batch.labels)
        return [losses[small_loss_selection(losses, self.forget_rate(batch))].mean()]

"""MentorNet, self-paced: a network learns from the samples that it finds easy."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from dualt.nn.losses import small_loss_selection
from dualt.nn.methods.base import SELECTION_RECIPE, SelectionMethod
from dualt.nn.training import Batch, Network

RECIPE = SELECTION_RECIPE


class MentorNet(SelectionMethod):
    """Cross entropy over the samples of the batch with the smallest losses.

    References
    ----------
    Jiang et al., MentorNet: learning data-driven curriculum for very deep neural networks on corrupted
    labels, ICML 2018.
    """

    def forward(self, networks: Sequence[Network], batch: Batch) -> Sequence[Tensor]:
        """Return the mean loss over the kept samples."""
        losses = F.cross_entropy(networks[0](batch.x), batch.labels, reduction="none")
        return [losses[small_loss_selection(losses, self.forget_rate(batch))].mean()]

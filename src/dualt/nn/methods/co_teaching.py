"""Co-teaching: two networks, each learns from the samples with a small loss in the other."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from dualt.nn.losses.corrected import cross_entropies
from dualt.nn.losses.selection import small_loss_selection
from dualt.nn.methods.base import Batch, Network, SelectionMethod


class CoTeaching(SelectionMethod):
    """Cross entropy of each network over the other's small-loss samples.

    References
    ----------
    Han et al., Co-teaching: robust training of deep neural networks with extremely noisy labels,
    NeurIPS 2018.
    """

    n_networks = 2

    def forward(self, networks: Sequence[Network], batch: Batch) -> Sequence[Tensor]:
        """Return the mean loss of each network over the samples that its peer keeps."""
        rate = self.forget_rate(batch)
        first, second = (cross_entropies(network(batch.x), batch.labels) for network in networks)
        return [first[small_loss_selection(second, rate)].mean(), second[small_loss_selection(first, rate)].mean()]

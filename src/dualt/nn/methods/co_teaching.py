"""Co-teaching: two networks, each learns from the samples that the other finds easy."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from dualt.nn.losses.corrected import cross_entropies
from dualt.nn.losses.selection import mean_of_small
from dualt.nn.methods.base import SELECTION_RECIPE, SelectionMethod
from dualt.nn.training import Batch, Network

RECIPE = SELECTION_RECIPE


class CoTeaching(SelectionMethod):
    """Cross entropy of each network over the other's small-loss samples.

    References
    ----------
    Han et al., Co-teaching: robust training of deep neural networks with extremely noisy labels,
    NeurIPS 2018.
    """

    n_networks = 2

    def forward(self, networks: Sequence[Network], batch: Batch) -> Sequence[Tensor]:
        """Return the mean loss of each network over what its peer keeps."""
        rate = self.forget_rate(batch)
        first, second = (cross_entropies(network(batch.x), batch.labels) for network in networks)
        return [mean_of_small(first, second, rate), mean_of_small(second, first, rate)]

"""Co-teaching: two networks, each learns from the samples that the other finds easy."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from dualt.nn.losses import small_loss_selection
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
        first, second = (F.cross_entropy(net(batch.x), batch.labels, reduction="none") for net in networks)
        return [
            first[small_loss_selection(second, rate)].mean(),
            second[small_loss_selection(first, rate)].mean(),
        ]

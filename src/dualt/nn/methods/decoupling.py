"""Decoupling: two networks learn only where they disagree."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from dualt.nn.losses import disagreement
from dualt.nn.methods.base import SELECTION_RECIPE
from dualt.nn.training import Batch, Method, Network

RECIPE = SELECTION_RECIPE


class Decoupling(Method):
    """Cross entropy over the samples that the two networks put in different classes.

    A batch without any is skipped: there is nothing to learn from it.

    References
    ----------
    Malach and Shalev-Shwartz, Decoupling "when to update" from "how to update", NeurIPS 2017.
    """

    n_networks = 2

    def forward(self, networks: Sequence[Network], batch: Batch) -> Sequence[Tensor | None]:
        """Return the mean loss of each network over the disagreements."""
        both = [network(batch.x) for network in networks]
        chosen = disagreement(both[0], both[1])
        if not len(chosen):
            return [None, None]
        labels = batch.labels.index_select(0, chosen)
        return [F.cross_entropy(logits.index_select(0, chosen), labels) for logits in both]

"""Decoupling: two networks learn only where they disagree."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from dualt.nn.losses.corrected import cross_entropies
from dualt.nn.losses.selection import mean_where
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
    replicable = True
    skips = True

    def forward(self, networks: Sequence[Network], batch: Batch) -> Sequence[Tensor | None]:
        """Return the mean loss of each network over the disagreements."""
        both = [network(batch.x) for network in networks]
        differ = both[0].argmax(-1) != both[1].argmax(-1)
        if not differ.any():
            return [None, None]
        return [mean_where(cross_entropies(logits, batch.labels), differ) for logits in both]

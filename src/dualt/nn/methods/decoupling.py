"""Decoupling: two networks learn only where they disagree."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from dualt.nn.losses.selection import disagreement
from dualt.nn.methods.base import SELECTION_RECIPE, Batch, Method, Network


class Decoupling(Method):
    """Cross entropy over the samples that the two networks put in different classes.

    A batch without such samples is skipped.

    References
    ----------
    Malach and Shalev-Shwartz, Decoupling "when to update" from "how to update", NeurIPS 2017.
    """

    recipe = SELECTION_RECIPE
    n_networks = 2

    def forward(self, networks: Sequence[Network], batch: Batch) -> Sequence[Tensor | None]:
        """Return the mean loss of each network over the disagreements."""
        both = [network(batch.x) for network in networks]
        rows = disagreement(*both)
        if not len(rows):
            return [None, None]
        return [F.cross_entropy(logits[rows], batch.labels[rows]) for logits in both]

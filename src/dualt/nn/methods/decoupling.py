"""Decoupling: two networks learn only where they disagree."""

from torch.nn import functional as F  # noqa: N812

from dualt.nn.methods.base import Batch, Losses, Method, Networks, SelectionMethod


class Decoupling(Method):
    """Cross entropy over the samples that the two networks put in different classes.

    A batch without such samples is skipped.

    Malach and Shalev-Shwartz, Decoupling "when to update" from "how to update", NeurIPS 2017.
    """

    recipe = SelectionMethod.recipe
    n_networks = 2

    def forward(self, networks: Networks, batch: Batch) -> Losses:
        both = [network(batch.x) for network in networks]
        differ = both[0].argmax(1) != both[1].argmax(1)
        if not differ.any():
            return [None, None]
        return [F.cross_entropy(logits[differ], batch.labels[differ]) for logits in both]

"""Co-teaching: two networks, each learns from the samples with a small loss in the other."""

from dualt.nn.losses import cross_entropies, small_loss_selection
from dualt.nn.methods.base import Batch, Losses, Networks, SelectionMethod


class CoTeaching(SelectionMethod):
    """Cross entropy of each network over the other's small-loss samples.

    Han et al., Co-teaching: robust training of deep neural networks with extremely noisy labels, NeurIPS 2018.
    """

    n_networks = 2

    def forward(self, networks: Networks, batch: Batch) -> Losses:
        rate = self.rate * batch.ramp
        first, second = (cross_entropies(network(batch.x), batch.labels) for network in networks)
        return [first[small_loss_selection(second, rate)].mean(), second[small_loss_selection(first, rate)].mean()]

"""MentorNet, self-paced: a network learns from its small-loss samples."""

from dualt.nn.losses import cross_entropies, small_loss_selection
from dualt.nn.methods.base import Batch, Losses, Networks, SelectionMethod


class MentorNet(SelectionMethod):
    """Cross entropy over the samples of the batch with the smallest losses.

    Jiang et al., MentorNet: learning data-driven curriculum for very deep neural networks on corrupted labels, ICML
    2018.
    """

    def forward(self, networks: Networks, batch: Batch) -> Losses:
        losses = cross_entropies(networks[0](batch.x), batch.labels)
        return [losses[small_loss_selection(losses, self.rate * batch.ramp)].mean()]

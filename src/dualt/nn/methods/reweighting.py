"""Reweighting: cross entropy, weighted by how likely each given label is the true one."""

from dualt.nn.losses import reweighted_loss
from dualt.nn.methods.base import Batch, Losses, Networks, TransitionMethod
from dualt.nn.recipe import Recipe


class Reweighting(TransitionMethod):
    """β · cross entropy with β = p_y / (p @ transition)_y held constant; starts from the CE network.

    Liu and Tao, Classification with noisy labels by importance reweighting, TPAMI 2016.
    """

    recipe = Recipe(epochs=200, learning_rate=0.01, momentum=0.9, milestones=(40, 80))
    starts_from = "ce"

    def forward(self, networks: Networks, batch: Batch) -> Losses:
        return [reweighted_loss(networks[0](batch.x), batch.labels, self.transition)]

"""Forward: the network predicts the clean class, and the given label through the matrix."""

from dualt.nn.losses import forward_loss
from dualt.nn.methods.base import Batch, Losses, Networks, TransitionMethod
from dualt.nn.recipe import Recipe


class Forward(TransitionMethod):
    """−log (softmax(f(x)) @ transition)[label].

    Patrini et al., Making deep neural networks robust to label noise, CVPR 2017.
    """

    recipe = Recipe(epochs=200, learning_rate=0.01, milestones=(50, 100, 150))

    def forward(self, networks: Networks, batch: Batch) -> Losses:
        return [forward_loss(networks[0](batch.x), batch.labels, self.transition)]

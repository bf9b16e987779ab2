"""Forward: the network predicts the clean class, and the given label through the matrix."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from dualt.nn.losses import forward_loss
from dualt.nn.methods.base import Batch, Network, TransitionMethod
from dualt.nn.recipe import Recipe


class Forward(TransitionMethod):
    """−log (softmax(f(x)) @ transition)[label].

    References
    ----------
    Patrini et al., Making deep neural networks robust to label noise, CVPR 2017.
    """

    recipe = Recipe(epochs=200, learning_rate=0.01, milestones=(50, 100, 150))

    def forward(self, networks: Sequence[Network], batch: Batch) -> Sequence[Tensor]:
        """Return the mean forward loss of the batch."""
        return [forward_loss(networks[0](batch.x), batch.labels, self.transition)]

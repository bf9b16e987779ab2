"""CE: cross entropy on the given labels, the baseline and the source of the noisy posterior."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from dualt.nn.losses.corrected import mean_cross_entropy
from dualt.nn.training import Batch, Method, Network, Recipe

RECIPE = Recipe(epochs=100, learning_rate=0.01, milestones=(50,))


class CrossEntropy(Method):
    """−log softmax(f(x))[label]."""

    replicable = True

    def forward(self, networks: Sequence[Network], batch: Batch) -> Sequence[Tensor]:
        """Return the mean cross entropy of the batch."""
        return [mean_cross_entropy(networks[0](batch.x), batch.labels)]

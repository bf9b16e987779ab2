"""CE: cross entropy on the given labels, the baseline and the source of the noisy posterior."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from dualt.nn.methods.base import Batch, Method, Network


class CrossEntropy(Method):
    """−log softmax(f(x))[label]."""

    def forward(self, networks: Sequence[Network], batch: Batch) -> Sequence[Tensor]:
        """Return the mean cross entropy of the batch."""
        return [F.cross_entropy(networks[0](batch.x), batch.labels)]

"""CE: cross entropy on the given labels, the baseline and the source of the noisy posterior."""

from torch.nn import functional as F  # noqa: N812

from dualt.nn.methods.base import Batch, Losses, Method, Networks


class CrossEntropy(Method):
    """−log softmax(f(x))[label]."""

    def forward(self, networks: Networks, batch: Batch) -> Losses:
        return [F.cross_entropy(networks[0](batch.x), batch.labels)]

"""Mixup: cross entropy on convex pairs of samples."""

import torch
from torch.nn import functional as F  # noqa: N812

from dualt.nn.methods.base import Batch, Losses, Method, Networks
from dualt.nn.recipe import Recipe


class Mixup(Method):
    """Every sample is mixed with a partner, in a share drawn once per batch from Beta(1, 1).

    Zhang et al., mixup: beyond empirical risk minimization, ICLR 2018.
    """

    recipe = Recipe(epochs=200, learning_rate=0.1, momentum=0.9, milestones=(100, 150), report="last-ten")

    def forward(self, networks: Networks, batch: Batch) -> Losses:
        share = float(batch.rng.beta(1.0, 1.0))
        partner = torch.from_numpy(batch.rng.permutation(len(batch.x))).to(batch.x.device)
        logits = networks[0](batch.x[partner].lerp_(batch.x, share))
        own, partners = (F.cross_entropy(logits, labels) for labels in (batch.labels, batch.labels[partner]))
        return [share * own + (1 - share) * partners]

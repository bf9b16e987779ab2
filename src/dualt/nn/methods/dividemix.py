"""DivideMix: two networks; each learns from the labels that seem right by the other's losses, and guesses the rest."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from dualt.errors import InputError
from dualt.nn.losses.mixmatch import divided_targets, mixmatch_loss, small_loss_probability
from dualt.nn.methods.base import Batch, Method, Network
from dualt.nn.prediction import batch_probs
from dualt.nn.recipe import Recipe
from dualt.nn.samples import Part

# The ramp of the recipe covers ten epochs of warm-up by cross entropy and sixteen in which the guesses gain weight.
RECIPE = Recipe(
    epochs=300, learning_rate=0.02, momentum=0.9, weight_decay=5e-4, batch_size=64, milestones=(150,), ramp=27
)
_WARM_UP = 10 / 26


class DivideMix(Method):
    """MixMatch on labels that are probably right; those of the other samples are guessed by both networks.

    Before every epoch after the warm-up, a mixture of two Gaussians on the losses of each network gives the
    probability that each label is right, which the other network learns from. With augmentation, samples
    are seen twice in each batch, else once. Unlike in the authors' code, the numbers of labelled and unlabelled samples
    in a batch vary, guesses are made without dropout, and the expected class frequencies are those of the given labels,
    not uniform.

    Parameters
    ----------
    n_samples, n_classes
        Size of the table of these probabilities, which checkpoints keep.
    unlabelled_weight
        λ_u of the paper: weight of the guessed labels.
    threshold
        Probability above which a label counts as right.
    alpha
        Parameter of the Beta distribution of mixing shares.
    temperature
        Of the sharpening.

    References
    ----------
    Li, Socher and Hoi, DivideMix: learning with noisy labels as semi-supervised learning, ICLR 2020.
    """

    n_networks = 2
    clean: Tensor
    prior: Tensor

    def __init__(
        self,
        n_samples: int,
        n_classes: int,
        *,
        unlabelled_weight: float = 25.0,
        threshold: float = 0.5,
        alpha: float = 4.0,
        temperature: float = 0.5,
    ) -> None:
        super().__init__()
        if not unlabelled_weight >= 0:
            raise InputError(f"Expected an unlabelled_weight from 0 on, got {unlabelled_weight!r}.")
        if not 0 < threshold < 1:
            raise InputError(f"Expected a threshold between 0 and 1, got {threshold!r}.")
        for name, value in (("alpha", alpha), ("temperature", temperature)):
            if not value > 0:
                raise InputError(f"Expected {name} above 0, got {value!r}.")
        self.unlabelled_weight, self.threshold, self.alpha, self.temperature = (
            unlabelled_weight, threshold, alpha, temperature
        )  # fmt: skip
        self.register_buffer("clean", torch.ones(self.n_networks, n_samples))
        self.register_buffer("prior", torch.full((n_classes,), 1 / n_classes))

    def begin_epoch(self, networks: Sequence[Network], part: Part, ramp: float) -> None:
        """Compute how probably each label is right under each network, after the warm-up."""
        if ramp < _WARM_UP:
            return
        counts = torch.bincount(part.labels, minlength=len(self.prior))
        self.prior.copy_(counts / counts.sum())
        for own, network in zip(self.clean, networks, strict=True):
            probs = torch.cat(list(batch_probs(network, part.inputs)))
            losses = -probs.gather(1, part.labels[:, None]).clamp_min(1e-30).log()[:, 0]
            own.copy_(torch.from_numpy(small_loss_probability(losses.cpu().numpy())))

    def forward(self, networks: Sequence[Network], batch: Batch) -> Sequence[Tensor]:
        """Return the loss of each network: cross entropy while it warms up, then that of MixMatch."""
        if batch.ramp < _WARM_UP:
            return [F.cross_entropy(network(batch.x), batch.labels) for network in networks]
        if batch.rows is None or batch.evaluating is None:
            raise InputError("DivideMix needs the rows of the batch's samples.")
        views = [batch.x] if batch.look_again is None else [batch.x, batch.look_again()]
        with batch.evaluating():
            each = [torch.stack([network(x).softmax(1) for x in views]).mean(0) for network in networks]
        guess = torch.stack(each).mean(0)
        x = torch.cat(views)
        losses = []
        for number, network in enumerate(networks):
            clean = self.clean[1 - number, batch.rows]
            targets = divided_targets(
                batch.labels, clean, each[number], guess, threshold=self.threshold, temperature=self.temperature
            )
            share = float(batch.rng.beta(self.alpha, self.alpha))
            share = max(share, 1 - share)
            partner = torch.from_numpy(batch.rng.permutation(len(x))).to(x.device)
            targets = targets.repeat(len(views), 1)
            losses.append(
                mixmatch_loss(
                    network(share * x + (1 - share) * x[partner]),
                    share * targets + (1 - share) * targets[partner],
                    (clean > self.threshold).repeat(len(views)),
                    self.prior,
                    self.unlabelled_weight * (batch.ramp - _WARM_UP) / (1 - _WARM_UP),
                )
            )
        return losses

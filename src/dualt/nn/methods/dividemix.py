"""DivideMix: two networks; each learns from the labels that seem right by the other's losses, and guesses the rest."""

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.mixture import GaussianMixture
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from dualt.nn.methods.base import Batch, Losses, Method, Networks
from dualt.nn.networks import batch_probs
from dualt.nn.recipe import Recipe
from dualt.nn.samples import Part

# As published: a label counts as right above this probability, guesses are sharpened, samples mixed, and the squared
# error of guesses is weighted by λ_u.
_THRESHOLD, _TEMPERATURE, _ALPHA, _UNLABELLED_WEIGHT = 0.5, 0.5, 4.0, 25.0
_WARM_UP = 10 / 26
# A component narrower than this would be a single sample; as in the authors' code.
_LEAST_VARIANCE = 5e-4


class DivideMix(Method):
    """MixMatch on labels that are probably right; those of the other samples are guessed by both networks.

    Before every epoch after the warm-up, a mixture of two Gaussians on the losses of each network gives the probability
    that each label is right, which the other network learns from. With augmentation, samples are seen twice in each
    batch. Unlike in the authors' code, the numbers of labelled and unlabelled samples in a batch vary, guesses are made
    without dropout, and the expected class frequencies are those of the given labels.

    Li, Socher and Hoi, DivideMix: learning with noisy labels as semi-supervised learning, ICLR 2020.
    """

    # The ramp of the recipe covers ten epochs of warm-up by cross entropy and sixteen in which the guesses gain weight.
    recipe = Recipe(
        epochs=300, learning_rate=0.02, momentum=0.9, weight_decay=5e-4, batch_size=64, milestones=(150,), ramp=27
    )
    ramp_share = 0.9
    n_networks = 2
    # Found anew before every epoch: how probably each label is right by each network, and the share of each class.
    clean: Tensor
    prior: Tensor

    def begin_epoch(self, networks: Networks, part: Part, ramp: float) -> None:
        if ramp < _WARM_UP:
            return
        clean = []
        for network in networks:
            probs = torch.cat(list(batch_probs(network, part.inputs)))
            losses = -probs.gather(1, part.labels[:, None]).clamp_min(1e-30).log()[:, 0]
            clean.append(torch.from_numpy(small_loss_probability(losses.cpu().numpy())).to(losses))
        self.clean = torch.stack(clean)
        counts = torch.bincount(part.labels, minlength=probs.shape[1])
        self.prior = counts / counts.sum()

    def forward(self, networks: Networks, batch: Batch) -> Losses:
        if batch.ramp < _WARM_UP:
            return [F.cross_entropy(network(batch.x), batch.labels) for network in networks]
        views = [batch.x] if batch.look_again is None else [batch.x, batch.look_again()]
        with batch.evaluating():
            each = [torch.stack([network(x).softmax(1) for x in views]).mean(0) for network in networks]
        guess = torch.stack(each).mean(0)
        given = torch.zeros_like(guess).scatter_(1, batch.labels[:, None], 1.0)
        x = torch.cat(views)
        losses = []
        for number, network in enumerate(networks):
            clean = self.clean[1 - number, batch.rows]
            # Labels are refined by the network's own probabilities where they are probably right, guessed elsewhere.
            weight = clean[:, None].to(guess.dtype)
            mixed = torch.where(weight > _THRESHOLD, weight * given + (1 - weight) * each[number], guess)
            sharpened = mixed ** (1 / _TEMPERATURE)
            targets = (sharpened / sharpened.sum(1, keepdim=True)).repeat(len(views), 1)
            share = float(batch.rng.beta(_ALPHA, _ALPHA))
            share = max(share, 1 - share)
            partner = torch.from_numpy(batch.rng.permutation(len(x))).to(x.device)
            inputs, outputs = (share * each + (1 - share) * each[partner] for each in (x, targets))
            labelled = (clean > _THRESHOLD).repeat(len(views))
            unlabelled_weight = _UNLABELLED_WEIGHT * (batch.ramp - _WARM_UP) / (1 - _WARM_UP)
            losses.append(mixmatch_loss(network(inputs), outputs, labelled, self.prior, unlabelled_weight))
        return losses


def small_loss_probability(losses: ArrayLike) -> NDArray[np.float64]:
    """Return P(component of the smaller losses | loss) under a mixture of two Gaussians; 1 if all losses are equal."""
    x = np.asarray(losses, np.float64)[:, None]
    if not np.ptp(x) > 0:
        return np.ones(len(x))
    x = (x - x.min()) / np.ptp(x)
    halves = [[x[x <= x.mean()].mean()], [x[x > x.mean()].mean()]]
    mixture = GaussianMixture(2, means_init=halves, reg_covar=_LEAST_VARIANCE, random_state=0).fit(x)
    return np.asarray(mixture.predict_proba(x)[:, mixture.means_.argmin()])


def mixmatch_loss(logits: Tensor, targets: Tensor, labelled: Tensor, prior: Tensor, unlabelled_weight: float) -> Tensor:
    """Return cross entropy where labelled + weight · squared error elsewhere + KL(prior ‖ mean prediction) (Eq. 10–13).

    The first two terms are means over their own rows, zero if there are none. `prior` (C,) has the expected share of
    each class.
    """
    log_probs, n_labelled = logits.log_softmax(1), labelled.sum()
    probs = log_probs.exp()
    entropy = -(targets * log_probs).sum(1) * labelled
    error = (probs - targets).square().mean(1) * ~labelled
    mean = probs.mean(0).clamp_min(1e-12)
    regular = (prior * (prior.clamp_min(1e-12) / mean).log()).sum()
    right, guessed = n_labelled.clamp_min(1), (len(labelled) - n_labelled).clamp_min(1)
    return entropy.sum() / right + unlabelled_weight * error.sum() / guessed + regular

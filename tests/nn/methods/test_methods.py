"""Each method's batch loss against one written out in loops, and each learns."""

import math

import numpy as np
import pytest
import torch

from dualt import noise
from dualt.errors import InputError, TransitionError
from dualt.nn.methods import METHODS, Batch, build_method
from dualt.nn.samples import Part, as_inputs

N_CLASSES = 4
MATRIX = noise.random_diagonal_dominant(N_CLASSES, 0.4, 3)


class Scripted:
    """A network that answers with prepared logits, or a linear function of its input."""

    def __init__(self, seed):
        generator = torch.Generator().manual_seed(seed)
        self.weight = torch.randn(6, N_CLASSES, generator=generator, dtype=torch.float64)

    def __call__(self, x):
        return x @ self.weight


@pytest.fixture
def batch():
    rng = np.random.default_rng(0)
    x = torch.from_numpy(rng.normal(size=(12, 6)))
    labels = torch.from_numpy(rng.integers(N_CLASSES, size=12))
    return Batch(x, labels, torch.arange(12), np.random.default_rng(1), torch.no_grad, ramp=5 / 9)


def probabilities(network, x):
    rows = []
    for row in network(x).tolist():
        weights = [math.exp(value) for value in row]
        rows.append([weight / sum(weights) for weight in weights])
    return rows


def losses_of(network, batch):
    return [-math.log(p[y]) for p, y in zip(probabilities(network, batch.x), batch.labels.tolist(), strict=True)]


def test_ce(batch):
    (loss,) = build_method("ce")([Scripted(0)], batch)
    assert loss.item() == pytest.approx(np.mean(losses_of(Scripted(0), batch)))


def test_mixup(batch):
    (loss,) = build_method("mixup")([Scripted(0)], batch)
    rng = np.random.default_rng(1)
    share, partner = rng.beta(1, 1), rng.permutation(12)
    total = 0.0
    for row in range(12):
        mixed = share * batch.x[row] + (1 - share) * batch.x[partner[row]]
        (p,) = probabilities(Scripted(0), mixed[None])
        own, other = batch.labels[row].item(), batch.labels[partner[row]].item()
        total -= share * math.log(p[own]) + (1 - share) * math.log(p[other])
    assert loss.item() == pytest.approx(total / 12)


def test_decoupling(batch):
    networks = [Scripted(0), Scripted(1)]
    losses = build_method("decoupling")(networks, batch)
    first, second = (np.argmax(probabilities(network, batch.x), axis=1) for network in networks)
    chosen = [row for row in range(12) if first[row] != second[row]]
    assert 0 < len(chosen) < 12
    for network, loss in zip(networks, losses, strict=True):
        each = losses_of(network, batch)
        assert loss.item() == pytest.approx(np.mean([each[row] for row in chosen]))


def kept_of(losses, rate):
    n_kept = max(1, math.floor((1 - rate) * len(losses) + 1e-6))
    return sorted(range(len(losses)), key=lambda row: losses[row])[:n_kept]


def test_mentornet(batch):
    method = build_method("mentornet", MATRIX)
    (loss,) = method([Scripted(0)], batch)
    each = losses_of(Scripted(0), batch)
    rate = (1 - np.diagonal(MATRIX).mean()) * 5 / 9
    assert loss.item() == pytest.approx(np.mean([each[row] for row in kept_of(each, rate)]))


def test_co_teaching(batch):
    networks = [Scripted(0), Scripted(1)]
    first, second = build_method("co-teaching", MATRIX)(networks, batch)
    rate = (1 - np.diagonal(MATRIX).mean()) * 5 / 9
    mine, theirs = losses_of(networks[0], batch), losses_of(networks[1], batch)
    assert first.item() == pytest.approx(np.mean([mine[row] for row in kept_of(theirs, rate)]))
    assert second.item() == pytest.approx(np.mean([theirs[row] for row in kept_of(mine, rate)]))


def test_the_forget_rate_rises_over_ten_epochs():
    method, recipe = build_method("co-teaching", noise.symmetric(4, 0.45)), METHODS["co-teaching"].recipe
    rates = [method.rate * recipe.ramp_at(epoch) for epoch in (0, 3, 9, 10, 199)]
    assert rates == pytest.approx([0, 0.15, 0.45, 0.45, 0.45])


@pytest.mark.parametrize("name", ["forward", "reweighting", "revision"])
def test_forward_reweighting_and_revision_at_its_start(name, batch):
    (loss,) = build_method(name, MATRIX)([Scripted(0)], batch)
    total = 0.0
    for p, y in zip(probabilities(Scripted(0), batch.x), batch.labels.tolist(), strict=True):
        given = sum(p[i] * MATRIX[i, y] for i in range(N_CLASSES))
        total -= math.log(given) if name == "forward" else p[y] / given * math.log(p[y])
    assert loss.item() == pytest.approx(total / 12, rel=1e-6)


def test_revision_validates_through_the_revised_matrix():
    method = build_method("revision", MATRIX)
    with torch.no_grad():
        method.slack += 0.1 * torch.eye(N_CLASSES)
    probs = torch.eye(N_CLASSES)
    expected = (MATRIX + 0.1 * np.eye(N_CLASSES)) / 1.1
    np.testing.assert_allclose(method.to_noisy(probs), expected, rtol=1e-6)
    np.testing.assert_allclose(build_method("forward", MATRIX).to_noisy(probs), MATRIX, rtol=1e-6)
    assert torch.equal(build_method("ce").to_noisy(probs), probs)


def test_bad_requests_are_named():
    with pytest.raises(InputError, match="'forward' needs a transition"):
        build_method("forward")
    with pytest.raises(TransitionError, match="square"):
        build_method("forward", np.ones((2, 3)) / 3)


def divided(batch):
    """DivideMix with four labels in doubt, as each network sees it after the warm-up."""
    method, rows = build_method("dividemix"), torch.arange(12) + 5
    method.clean, method.prior = torch.ones(2, 20), torch.full((N_CLASSES,), 1 / N_CLASSES)
    method.clean[0, rows[:4]], method.clean[1, rows[4:8]] = 0.2, 0.3
    return method, batch._replace(rows=rows)


@pytest.mark.parametrize("ramp", [10 / 26, 18 / 26, 1.0])
def test_dividemix(batch, ramp):
    method, batch = divided(batch._replace(ramp=ramp))
    networks = [Scripted(0), Scripted(1)]
    losses = method(networks, batch)
    probs = [probabilities(network, batch.x) for network in networks]
    rng = np.random.default_rng(1)
    for own in range(2):
        clean = [0.3 if own == 0 and 4 <= row < 8 else 0.2 if own == 1 and row < 4 else 1.0 for row in range(12)]
        targets = []
        for row, label in enumerate(batch.labels.tolist()):
            kept = clean[row]
            target = [(probs[0][row][k] + probs[1][row][k]) / 2 for k in range(N_CLASSES)]
            if kept > 0.5:
                target = [kept * (k == label) + (1 - kept) * probs[own][row][k] for k in range(N_CLASSES)]
            targets.append([p**2 / sum(q**2 for q in target) for p in target])
        share = rng.beta(4, 4)
        share, partner = max(share, 1 - share), rng.permutation(12)
        entropy, error, mean = [], [], np.zeros(N_CLASSES)
        for row in range(12):
            mixed = share * batch.x[row] + (1 - share) * batch.x[partner[row]]
            target = share * np.array(targets[row]) + (1 - share) * np.array(targets[partner[row]])
            (p,) = probabilities(networks[own], mixed[None])
            mean += np.array(p) / 12
            if clean[row] > 0.5:
                entropy.append(-sum(t * math.log(q) for t, q in zip(target, p, strict=True)))
            else:
                error.append(np.mean((np.array(p) - target) ** 2))
        regular = sum(0.25 * math.log(0.25 / value) for value in mean)
        expected = np.mean(entropy) + 25 * (26 * ramp - 10) / 16 * np.mean(error) + regular
        assert losses[own].item() == pytest.approx(expected)


def test_dividemix_warms_up_by_cross_entropy_for_ten_epochs_and_raises_its_weight_over_sixteen(batch):
    recipe = METHODS["dividemix"].recipe
    method, batch = divided(batch)
    networks = [Scripted(0), Scripted(1)]
    for epoch in (0, 9):
        first, _ = method(networks, batch._replace(ramp=recipe.ramp_at(epoch)))
        assert first.item() == pytest.approx(np.mean(losses_of(networks[0], batch)))
    first, _ = method(networks, batch._replace(ramp=recipe.ramp_at(10)))
    assert first.item() != pytest.approx(np.mean(losses_of(networks[0], batch)))
    assert recipe.ramp_at(26) == 1


def test_dividemix_judges_labels_by_the_losses_of_each_network():
    labels = torch.tensor([0, 0, 0, 1, 1, 1, 2, 2, 3, 3])
    wrong = torch.tensor([2, 7])
    true = labels.clone()
    true[wrong] = 3 - true[wrong]
    part = Part(as_inputs(8 * np.eye(4, dtype=np.float32)[true.numpy()]), labels)
    method = build_method("dividemix")
    method.begin_epoch([lambda x: x, lambda x: 0 * x], part, 0.5)
    assert (method.clean[0] < 0.5).nonzero().flatten().tolist() == wrong.tolist()
    assert bool((method.clean[1] == 1).all()), "a network without an opinion doubts none"
    assert method.prior.tolist() == pytest.approx([0.3, 0.3, 0.2, 0.2])


def test_dividemix_looks_twice_where_there_is_an_augmentation(batch):
    method, batch = divided(batch._replace(ramp=1.0))
    networks = [Scripted(0), Scripted(1)]
    again = batch._replace(look_again=lambda: batch.x, rng=np.random.default_rng(1))
    seen = []

    def counting(x):
        seen.append(len(x))
        return networks[0](x)

    method([counting, networks[1]], again)
    assert seen == [12, 12, 24], "two views to guess by, and both to learn from"

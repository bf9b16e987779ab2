import json
import pickle

import numpy as np
import pytest

import dualt
from dualt import noise
from dualt.errors import FileError, InputError
from dualt.estimators import comparable
from dualt.io import load_transition


def sharp_case(seed, n=3000, n_classes=4):
    """Over-confident, right predictions: counting estimators have no bias here."""
    rng = np.random.default_rng(seed)
    truth = noise.random_diagonal_dominant(n_classes, 0.3, 5)
    clean = rng.integers(0, n_classes, n)
    noisy = noise.corrupt(clean, truth, random_state=rng)
    probs = np.eye(n_classes)[clean] * 0.98 + 0.005
    probs += 1e-4 * rng.random(probs.shape)
    return probs / probs.sum(axis=1, keepdims=True), noisy, truth


@pytest.mark.slow
@pytest.mark.parametrize("estimator", ["spade", "dual-t"])
def test_intervals_cover_the_truth_as_often_as_they_say(estimator):
    """200 data sets × 16 entries at 90 %: where there is no bias, coverage is near nominal."""
    inside = []
    for seed in range(200):
        probs, noisy, truth = sharp_case(seed, n=600)
        low, high = dualt.estimate_transition(probs, noisy, estimator).confidence_interval(0.9)
        inside.append((low <= truth) & (truth <= high))
    assert 0.85 < np.mean(inside) < 0.96


def test_a_zero_count_does_not_claim_certainty():
    """No error among 30 labels rules out rates above 1 − 0.05^(1/30), not all rates."""
    estimate = dualt.estimate_transition([[0.9, 0.1]] * 30 + [[0.1, 0.9]] * 30, [0] * 30 + [1] * 30, "spade")
    low, high = estimate.confidence_interval(0.95)
    assert high[0, 1] == pytest.approx(1 - 0.05 ** (1 / 30))
    assert low[0, 0] == pytest.approx(0.05 ** (1 / 30))
    with pytest.raises(InputError, match="level"):
        estimate.confidence_interval(95)


def test_noise_rate_is_the_share_of_wrong_labels():
    probs, noisy, _ = sharp_case(1, n=40_000)
    estimate = dualt.estimate_transition(probs, noisy, "spade")
    clean = probs.argmax(axis=1)
    assert estimate.noise_rate == pytest.approx(np.mean(noisy != clean), abs=1e-3)
    np.testing.assert_allclose(estimate.clean_prior, np.bincount(clean) / len(clean), atol=1e-3)


def test_intervals_are_reproducible_and_grow_with_the_level():
    probs, noisy, _ = sharp_case(2)
    for estimator in comparable(n_classes=3):
        first, second = (dualt.estimate_transition(probs, noisy, estimator) for _ in range(2))
        np.testing.assert_array_equal(first.confidence_interval(0.9)[1], second.confidence_interval(0.9)[1])
        narrow, wide = first.confidence_interval(0.5), first.confidence_interval(0.99)
        assert (wide[0] <= narrow[0]).all()
        assert (narrow[1] <= wide[1]).all()


@pytest.mark.parametrize("options", [{}, {"anchor": "quantile"}])
def test_anchor_variants_have_intervals(options):
    rng = np.random.default_rng(0)
    estimate = dualt.estimate_transition(rng.dirichlet(np.ones(3), 400), rng.integers(0, 3, 400), "dual-t", **options)
    low, high = estimate.confidence_interval()
    assert (high - low).min() > 0


def test_saved_estimates_come_back(tmp_path):
    probs, noisy, _ = sharp_case(3)
    estimate = dualt.estimate_transition(probs, noisy, class_names=["ant", "bee", "cat", "dog"])
    for suffix, atol in ((".json", 0), (".npy", 0), (".csv", 1e-9)):
        path = tmp_path / f"t{suffix}"
        estimate.save(path)
        np.testing.assert_allclose(load_transition(path)[0], estimate.transition, atol=atol + 1e-15)
    content = json.loads((tmp_path / "t.json").read_text())
    assert content["class_names"] == ["ant", "bee", "cat", "dog"]
    assert content["noise_rate"] == pytest.approx(estimate.noise_rate)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["t.csv", "t.json", "t.npy"]


def test_saving_where_it_cannot_be_done_says_so(tmp_path):
    estimate = dualt.estimate_transition([[0.9, 0.1], [0.1, 0.9]], [0, 1])
    with pytest.raises(FileError, match="does not exist"):
        estimate.save(tmp_path / "absent" / "t.json")
    with pytest.raises(FileError, match="ends in"):
        estimate.save(tmp_path / "t.txt")
    with pytest.raises(FileError, match="folder"):
        estimate.save(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_replicates_do_not_touch_the_data():
    """Two hundred replicates after the rows are gone."""
    rng = np.random.default_rng(0)
    probs, labels = rng.dirichlet(np.ones(5), 2000), rng.integers(0, 5, 2000)
    estimate = dualt.estimate_transition(probs, labels)
    probs[:] = np.nan
    replicates = estimate.replicates
    assert replicates.shape == (200, 5, 5)
    assert np.isfinite(replicates).all()


def test_hostile_class_names_survive_a_csv(tmp_path):
    names = ["=cmd()", 'a "quoted", name']
    estimate = dualt.estimate_transition([[0.9, 0.1], [0.1, 0.9]], [0, 1], class_names=names)
    estimate.save(tmp_path / "t.csv")
    assert (tmp_path / "t.csv").read_text().startswith("'=cmd()")
    matrix, read_names = load_transition(tmp_path / "t.csv")
    np.testing.assert_allclose(matrix, estimate.transition, atol=1e-9)
    assert list(read_names) == names


def estimated(n_classes=3, estimator="dual-t"):
    rng = np.random.default_rng(0)
    probs, labels = rng.dirichlet(np.full(n_classes, 0.1), 2000), rng.integers(0, n_classes, 2000)
    labels = np.where(rng.random(2000) < 0.6, probs.argmax(axis=1), labels)
    probs = 0.6 * probs + 0.4 / n_classes
    return dualt.estimate_transition(probs, labels, estimator, out_of_fold=True)


def test_an_estimate_is_an_array():
    estimate = estimated()
    np.testing.assert_array_equal(np.asarray(estimate), estimate.transition)
    assert np.asarray(estimate, np.float32).dtype == np.float32
    assert np.array(estimate, copy=True) is not estimate.transition
    assert dualt.l1_error(estimate, estimate) == 0


def test_the_matrix_cannot_be_changed():
    estimate = estimated()
    before = estimate.fit.transition.copy()
    for matrix in (estimate.transition, np.asarray(estimate), pickle.loads(pickle.dumps(estimate)).transition):
        with pytest.raises(ValueError, match="read-only"):
            matrix[0, 0] = 0
    np.array(estimate, copy=True)[0, 0] = 0
    np.testing.assert_array_equal(estimate.transition, before)


def test_print_shows_the_matrix_and_the_rate_and_nothing_is_bootstrapped(monkeypatch):
    monkeypatch.setattr(dualt.TransitionEstimate, "replicates", None)
    estimate = dualt.estimate_transition(
        [[0.9, 0.1], [0.1, 0.9]] * 50, [0, 1] * 50, "spade", class_names=["ant", "bee"]
    )
    assert str(estimate).splitlines() == [
        "About 0 % of the labels look wrong by spade. (100 rows, spade)",
        "P(given label | true class), %",
        "true \\ given   ant   bee",
        "ant          100.0   0.0",
        "bee            0.0 100.0",
    ]
    assert repr(estimate) == (
        "TransitionEstimate(estimator='spade', n_samples=100, n_classes=2, noise_rate=0.000,"
        " noise_rate_interval=(0.000, 1.000))"
    )
    many = str(estimated(30))
    assert "the 12 of 30 classes whose labels are wrong most often" in many
    assert len(many.splitlines()) == 15

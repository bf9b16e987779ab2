"""Every notice: data that calls for it, and data that nearly does."""

import numpy as np
import pytest

import dualt
from dualt import noise
from dualt.results import diagnostics
from dualt.rows.scaling import scale_classes

N_CLASSES, PER_CLASS = 3, 200


def labelled(transition=None, per_class=PER_CLASS):
    transition = noise.symmetric(N_CLASSES, 0.2) if transition is None else np.asarray(transition)
    clean = np.repeat(np.arange(len(transition)), per_class)
    return clean, noise.corrupt(clean, transition, random_state=0, exact=True)


def confident(classes, n_classes=N_CLASSES, sure=0.96):
    return np.full((len(classes), n_classes), (1 - sure) / (n_classes - 1)) + np.eye(n_classes)[classes] * (
        sure - (1 - sure) / (n_classes - 1)
    )


def plain():
    """Confident predictions of the clean class, a fifth of the labels wrong: nothing to say."""
    clean, noisy = labelled()
    return confident(clean), noisy


def without_labels(n_last):
    """The last class keeps `n_last` labels."""
    probs, noisy = plain()
    last = np.flatnonzero(noisy == N_CLASSES - 1)
    keep = np.ones(len(noisy), bool)
    keep[last[n_last:]] = False
    return probs[keep], noisy[keep]


def never_predicted():
    clean, noisy = labelled()
    return confident(np.where(clean == 2, 1, clean)), noisy


def two_alike(share):
    """Classes 1 and 2 leave the same labels, but for `share` of them."""
    clean, noisy = labelled([[0.8, 0.1, 0.1], [0.1, 0.45 + share, 0.45 - share], [0.1, 0.45 - share, 0.45 + share]])
    return confident(clean), noisy


def mostly_wrong(rate):
    clean, noisy = labelled(noise.asymmetric({0: {1: rate}, 1: {2: 0.1}}, class_names=range(3)))
    return confident(clean), noisy


def agreeing(share):
    noisy = np.repeat(np.arange(N_CLASSES), 1000)
    predicted = noisy.copy()
    predicted[: round((1 - share) * len(noisy))] = 1
    return confident(predicted), noisy


def at_chance(signal):
    """Predictions that have nothing, or a little, to do with the labels."""
    rng = np.random.default_rng(0)
    noisy = rng.integers(0, N_CLASSES, 3000)
    return confident(np.where(rng.random(3000) < signal, noisy, rng.integers(0, N_CLASSES, 3000)), sure=0.5), noisy


def contradicted():
    probs, labels = agreeing(0.99)
    return probs, (labels + 1) % N_CLASSES


def weighted(weight):
    """Exact posteriors in which one class is likelier, as by a class weight in fitting."""
    rng = np.random.default_rng(0)
    posterior = rng.dirichlet(np.full(N_CLASSES, 0.5), 4000)
    labels = (posterior.cumsum(axis=1) < rng.random((4000, 1))).sum(axis=1).clip(0, N_CLASSES - 1)
    return scale_classes(posterior, np.array([weight, *np.ones(N_CLASSES - 1)])), labels


CASES = {
    "other-shares": ("clean-count", weighted(4.0), weighted(1.3)),
    "low-agreement": ("t", contradicted(), agreeing(0.5)),
    "few-labels": ("spade", without_labels(29), without_labels(30)),
    "class-never-predicted": ("spade", never_predicted(), plain()),
    "near-singular": ("spade", two_alike(0.0), two_alike(0.05)),
    "off-diagonal-row": ("spade", mostly_wrong(0.55), mostly_wrong(0.45)),
    "looks-in-sample": ("spade", agreeing(0.981), agreeing(0.979)),
    "weak-classifier": ("spade", at_chance(0.0), at_chance(0.3)),
    "hard-predictions": ("clean-count", (np.eye(N_CLASSES)[labelled()[0]], labelled()[1]), plain()),
}


def codes(estimator, data):
    return [notice.code for notice in dualt.estimate_transition(*data, estimator).warnings]


@pytest.mark.parametrize("code", CASES)
def test_a_notice_comes_when_it_should_and_only_then(code):
    estimator, calling, nearly = CASES[code]
    assert code in codes(estimator, calling)
    assert code not in codes(estimator, nearly)


@pytest.mark.parametrize("estimator", ["clean-count", "views", "spade", "selective", "dual-t"])
def test_what_is_known_of_the_rows_is_carried_and_heeded(estimator):
    """In-sample probabilities are dual-T's trade, and nobody guesses where it is known."""
    probs, given = agreeing(0.99)
    probs = np.stack([probs, agreeing(0.985)[0]]) if estimator == "views" else probs
    found = {
        known: dualt.estimate_transition(probs, given, estimator, out_of_fold=known) for known in (None, True, False)
    }
    warned = {known: {notice.code for notice in estimate.warnings} for known, estimate in found.items()}
    assert all(estimate.out_of_fold is known for known, estimate in found.items())
    assert all(estimate.to_dict()["out_of_fold"] is known for known, estimate in found.items())
    assert [known for known in found if "looks-in-sample" in warned[known]] == [None]
    assert [known for known in found if "in-sample" in warned[known]] == ([] if estimator == "dual-t" else [False])


@pytest.mark.parametrize("estimator", ["dual-t", "spade", "confident-joint"])
def test_plain_data_gives_no_notice(estimator):
    assert codes(estimator, plain()) == []


def test_notices_name_the_classes_and_say_what_to_do():
    probs, noisy = without_labels(0)
    estimate = dualt.estimate_transition(probs, noisy, "spade", class_names=["ant", "bee", "cat"])
    (notice,) = [notice for notice in estimate.warnings if notice.code == "few-labels"]
    assert "'cat'" in notice.message
    assert "'ant'" not in notice.message
    assert str(notice) == f"{notice.message} {notice.advice}"
    assert notice.advice.endswith(".")


def test_figures_by_hand():
    probs = np.array([[0.7, 0.3], [0.9, 0.1], [0.2, 0.8], [0.4, 0.6]])
    figures = dualt.estimate_transition(probs, [0, 1, 1, 1], "spade").diagnostics
    assert figures.label_counts.tolist() == [1, 3]
    assert figures.predicted_counts.tolist() == [2, 2]
    assert figures.support.tolist() == [2, 2]
    assert figures.agreement == 0.75
    assert figures.condition_number == pytest.approx(np.linalg.cond([[0.5, 0.5], [0, 1]]))
    assert figures.to_dict()["label_counts"] == [1, 3]


def test_the_condition_number_of_many_classes_is_left_out(monkeypatch):
    monkeypatch.setattr(diagnostics, "_MOST_CLASSES", 2)
    figures = dualt.estimate_transition(*plain(), "spade").diagnostics
    assert figures.condition_number is None
    assert figures.to_dict()["condition_number"] is None
    assert codes("spade", plain()) == []

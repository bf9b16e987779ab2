"""Training dynamics: running means, and what ranks by them."""

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.metrics import roc_auc_score
from sklearn.neural_network import MLPClassifier

import dualt
from dualt.errors import InputError


def outputs(n_epochs=4, n_samples=7, n_classes=3, seed=0):
    return np.random.default_rng(seed).dirichlet(np.ones(n_classes), (n_epochs, n_samples)).astype(np.float32)


def loop_margin(row, label):
    return row[label] - max(p for other, p in enumerate(row) if other != label)


def test_means_are_those_of_a_loop():
    probs = outputs()
    dynamics = dualt.TrainingDynamics(7)
    rng = np.random.default_rng(1)
    for epoch, table in enumerate(probs):
        for rows in np.array_split(rng.permutation(7), 3):
            dynamics.record(epoch, 0.9995 * table[rows], rows)  # one up to rounding
    np.testing.assert_allclose(dynamics.mean_probs, probs.mean(axis=0), rtol=1e-5)
    expected = [[np.mean([loop_margin(table[row], c) for table in probs]) for c in range(3)] for row in range(7)]
    np.testing.assert_allclose(dynamics.mean_margins, expected, atol=1e-6)
    assert (dynamics.n_epochs, dynamics.n_recorded.tolist()) == (4, [4] * 7)


def test_logits_are_the_same_as_their_softmax():
    logits = np.random.default_rng(0).normal(size=(3, 5, 4)).astype(np.float32)
    powers = np.exp(logits)
    one, other = dualt.TrainingDynamics(5), dualt.TrainingDynamics(5)
    for epoch in range(3):
        one.record(epoch, logits[epoch])
        other.record(epoch, powers[epoch] / powers[epoch].sum(axis=1, keepdims=True))
    np.testing.assert_allclose(one.mean_probs, other.mean_probs, rtol=1e-5)
    tensors = pytest.importorskip("torch").tensor(logits, requires_grad=True)
    third = dualt.TrainingDynamics(5)
    third.record(0, tensors[0], tensors.new_tensor([4, 3, 2, 1, 0]).long())
    np.testing.assert_allclose(third.mean_probs[::-1], (powers[0] / powers[0].sum(axis=1, keepdims=True)), rtol=1e-5)


def test_logits_between_zero_and_one_are_logits():
    logits = np.random.default_rng(0).random((500, 10)).astype(np.float32)
    powers = np.exp(logits)
    for given in (logits, logits[:1], np.zeros((3, 10))):
        dynamics = dualt.TrainingDynamics(len(given))
        dynamics.record(0, given)
        expected = powers[: len(given)] / powers[: len(given)].sum(axis=1, keepdims=True) if given.any() else 0.1
        np.testing.assert_allclose(dynamics.mean_probs, np.broadcast_to(expected, given.shape), rtol=1e-5)
    some = dualt.TrainingDynamics(10)
    some.record(0, np.where(np.arange(10) < 4, 0.25, 0.1)[:, None].repeat(4, axis=1))  # most rows decide
    np.testing.assert_allclose(some.mean_probs, 0.25)


def test_memory_does_not_grow_with_epochs():
    dynamics = dualt.TrainingDynamics(7)
    dynamics.record(0, outputs()[0])
    sizes = [value.nbytes for value in vars(dynamics).values() if isinstance(value, np.ndarray)]
    for epoch in range(1, 30):
        dynamics.record(epoch, outputs()[0])
    assert [value.nbytes for value in vars(dynamics).values() if isinstance(value, np.ndarray)] == sizes


def test_labels_are_ranked_by_their_mean_margin():
    probs = outputs(n_samples=200)
    dynamics = dualt.TrainingDynamics(200)
    for epoch, table in enumerate(probs):
        dynamics.record(epoch, table)
    labels = np.array(["ant", "bee", "cow"])[np.arange(200) % 3]
    issues = dualt.find_label_issues(dynamics, labels)
    margins = np.array([np.mean([loop_margin(t[row], row % 3) for t in probs]) for row in range(200)])
    assert issues.ranking.tolist() == np.argsort(margins, kind="stable").tolist()
    np.testing.assert_allclose(issues.probability_right, (1 + margins) / 2, atol=1e-6)
    assert (issues.is_issue == (issues.suggested != issues.given)).all()
    assert (margins[issues.is_issue] < 0).all()
    assert (margins[~issues.is_issue] >= 0).mean() > 0.5
    assert issues.expected_count == issues.is_issue.sum()
    assert issues.transition_estimate is None
    assert len(dualt.find_label_issues(dynamics, labels, top=11).indices) == 11
    assert dualt.find_label_issues(dynamics, labels, threshold=0.2).is_issue.sum() == (margins < -0.6).sum()


def test_a_matrix_from_elsewhere_ranks_by_bayes_rule(tmp_path):
    dynamics = dualt.TrainingDynamics(50)
    dynamics.record(0, outputs(1, 50)[0])
    labels, matrix = np.arange(50) % 3, dualt.noise.pair(3, 0.3)
    found = dualt.find_label_issues(dynamics, labels, matrix)
    expected = dualt.find_label_issues(dynamics.mean_probs, labels, matrix)
    np.testing.assert_array_equal(found.probability_right, expected.probability_right)
    for more in ({"estimator": "spade"}, {"verified": ([0, 1], [0, 1])}):
        with pytest.raises(InputError, match="no matrix is estimated from them"):
            dualt.find_label_issues(dynamics, labels, **more)
    issues = dualt.find_label_issues(dynamics, labels)
    issues.save(tmp_path / "issues.csv")
    issues.to_report(tmp_path / "page.html")
    assert (tmp_path / "page.html").stat().st_size > 1000


def test_one_training_run_finds_wrong_labels_that_its_end_does_not():
    """A network that learns labels by heart doubts them on the way; its last word does not."""
    features, clean = load_digits(return_X_y=True)
    features, clean = features[:600] / 16, clean[:600]
    given = dualt.noise.corrupt(clean, dualt.noise.symmetric(10, 0.2), random_state=0)
    network = MLPClassifier((128,), batch_size=32, learning_rate_init=0.003, random_state=0)
    dynamics = dualt.TrainingDynamics(600)
    for epoch in range(40):
        network.partial_fit(features, given, classes=range(10))
        dynamics.record(epoch, network.predict_proba(features))
    last = network.predict_proba(features)[np.arange(600), given]
    whole = dualt.find_label_issues(dynamics, given).probability_right
    scores = [roc_auc_score(given == clean, score) for score in (last, whole)]
    assert scores[1] > max(scores[0] + 0.01, 0.95)


BAD = {
    "other length": (lambda d: d.record(0, outputs()[0][:3]), "3 outputs and 7 examples"),
    "indices of other length": (lambda d: d.record(0, outputs()[0], [0, 1]), "7 outputs and 2 examples"),
    "an index beyond": (lambda d: d.record(0, outputs()[0][:1], [7]), "from 0 to 6, got 7"),
    "an odd row": (lambda d: d.record(0, outputs()[0] * (np.arange(7) != 4)[:, None]), "sum to 1.* got 0 in row 4"),
    "one column": (lambda d: d.record(0, np.ones((7, 1))), "a column per class"),
    "classes that change": (lambda d: [d.record(0, outputs()[0]), d.record(1, np.eye(7))], "3 classes as before"),
    "not a number": (lambda d: d.record(0, np.full((7, 2), np.nan)), "diverged"),
    "an example left out": (lambda d: [d.record(0, outputs()[0][:6], range(6)), d.mean_probs], "none of example 6"),
    "labels of other length": (lambda d: [d.record(0, outputs()[0]), dualt.find_label_issues(d, [0, 1])], "7 rows"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_gets_one_clear_error(case):
    act, match = BAD[case]
    with pytest.raises(InputError, match=match):
        act(dualt.TrainingDynamics(7))

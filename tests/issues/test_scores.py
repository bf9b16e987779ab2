import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_digits, make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import dualt
from dualt import noise
from dualt.crossfit import out_of_fold_probabilities
from dualt.errors import InputError, TransitionError, UnknownNameError
from dualt.issues.label_issues import flag
from dualt.issues.scores import find_posterior_issues, second_likeliest
from dualt.rows import as_posterior
from dualt.transition import EM_STEPS, clean_prior, early_posterior
from tests.strategies import transitions


def issues_by_loops(probs, labels, transition):
    """Bayes' rule on calibrated probabilities, with the clean posterior after plain EM steps, row by row."""
    n_classes = len(transition)
    power = as_posterior(probs, labels, [str(k) for k in range(n_classes)]).power
    probs = probs**power / (probs**power).sum(axis=1, keepdims=True)
    right, best, certainty = [], [], []
    for p, y in zip(probs, labels, strict=True):
        q = [1 / n_classes] * n_classes
        for _ in range(EM_STEPS):
            noisy = [sum(q[i] * transition[i][j] for i in range(n_classes)) for j in range(n_classes)]
            q = [q[i] * sum(transition[i][j] * p[j] / max(noisy[j], 1e-300) for j in range(n_classes))
                 for i in range(n_classes)]  # fmt: skip
        weights = [q[i] * transition[i][y] for i in range(n_classes)]
        total = max(sum(weights), 1e-300)
        right.append(weights[y] / total)
        best.append(int(np.argmax(weights)))
        certainty.append(right[-1] if best[-1] == y else max(weights) / total)
    return np.array(right), np.array(best), np.array(certainty)


@given(transitions(), st.integers(0, 10_000))
def test_scores_equal_a_loop(transition, seed):
    rng = np.random.default_rng(seed)
    n_classes = len(transition)
    probs, labels = rng.dirichlet(np.ones(n_classes), 20), rng.integers(0, n_classes, 20)
    names = [str(k) for k in range(n_classes)]
    found = dualt.find_label_issues(probs, labels, transition, class_names=names)
    right, _, certainty = issues_by_loops(probs, labels, transition)
    np.testing.assert_allclose(found.probability_right, right, atol=1e-5)
    np.testing.assert_allclose(found.suggested_probability, certainty, atol=1e-5)


def test_exact_posteriors_give_exact_probabilities():
    """Separable classes: the true class is certain, so a label is right or wrong with certainty."""
    transition = noise.pair(4, 0.3)
    clean = np.repeat(np.arange(4), 100)
    given_labels = noise.corrupt(clean, transition, random_state=0, exact=True)
    found = dualt.find_label_issues(transition[clean], given_labels, transition)
    assert found.expected_count == pytest.approx(120, abs=0.5)
    np.testing.assert_array_equal(found.is_issue, given_labels != clean)
    np.testing.assert_array_equal(found.suggested, clean)


@pytest.fixture(scope="module", params=["digits", "made"])
def case(request):
    if request.param == "digits":
        return load_digits(return_X_y=True), make_pipeline(StandardScaler(), LogisticRegression(C=0.01))
    made = make_classification(
        3000, 20, n_informative=12, n_redundant=2, n_classes=6, n_clusters_per_class=1, class_sep=2.0, random_state=1
    )
    return made, LogisticRegression()


@pytest.mark.parametrize(("name", "gain"), [("pair-0.45", 0.15), ("sym-0.2", -0.01), ("sym-0.5", -0.01)])
def test_ranking_beats_self_confidence_where_noise_has_structure(case, name, gain):
    (features, clean), model = case
    transition = noise.from_name(name, int(clean.max()) + 1)
    given_labels = noise.corrupt(clean, transition, random_state=3)
    probs = out_of_fold_probabilities(model, features, given_labels)
    found = dualt.find_label_issues(probs, given_labels)
    wrong = given_labels != clean
    ours = average_precision_score(wrong, -found.probability_right)
    plain = average_precision_score(wrong, -probs[np.arange(len(clean)), given_labels])
    assert ours >= plain + gain
    if name == "sym-0.2":
        assert 0.8 <= found.is_issue.sum() / wrong.sum() <= 1.2


def test_one_count_everywhere():
    rng = np.random.default_rng(0)
    clean = rng.integers(0, 3, 900)
    given_labels = noise.corrupt(clean, noise.symmetric(3, 0.2), random_state=1)
    probs = np.eye(3)[clean] * 0.8 + 0.2 / 3
    found = dualt.find_label_issues(probs, given_labels)
    off = found.by_pair.sum() - np.trace(found.by_pair)
    assert found.expected_count == pytest.approx(off)
    assert found.is_issue.sum() == len(found.indices) == round(found.expected_count)
    assert found.by_pair.sum() == pytest.approx(900, rel=1e-3)
    np.testing.assert_allclose(found.by_pair.sum(axis=1), np.bincount(given_labels), rtol=2e-2)
    assert found.expected_count == pytest.approx(found.transition_estimate.noise_rate * 900)
    np.testing.assert_array_equal(np.sort(found.indices), np.flatnonzero(found.is_issue))
    assert (np.diff(found.probability_right[found.ranking]) >= 0).all()
    probs[::2] = np.eye(3)[given_labels[::2]] * 0.8 + 0.2 / 3  # repeats half of the wrong labels
    found = dualt.find_label_issues(probs, given_labels, noise.symmetric(3, 0.2))
    assert found.probably_wrong.sum() < 100 < 170 < found.is_issue.sum() == round(found.expected_count)


def test_budget_and_threshold():
    rng = np.random.default_rng(0)
    probs, labels = rng.dirichlet(np.ones(3), 100), rng.integers(0, 3, 100)
    matrix = noise.symmetric(3, 0.3)
    assert dualt.find_label_issues(probs, labels, matrix, top=7).is_issue.sum() == 7
    found = dualt.find_label_issues(probs, labels, matrix, threshold=0.4)
    np.testing.assert_array_equal(found.is_issue, found.probability_right < 0.4)
    np.testing.assert_array_equal(np.sort(found.indices), np.flatnonzero(found.is_issue))


def test_a_doubted_classifier_still_flags_what_it_contradicts():
    """It is right, yet agrees with the labels no more often than the most frequent one would: no rate is claimed."""
    rng = np.random.default_rng(0)
    true = (rng.random(3000) < 0.05).astype(int)
    given = np.where(rng.random(3000) < 0.35, 1 - true, true)
    probs = np.where(true[:, None] == np.arange(2), 0.64, 0.36)
    issues = dualt.find_label_issues(probs, given)
    assert issues.transition_estimate.doubt is not None
    assert (true != given)[issues.is_issue].mean() > 0.9


def test_the_matrix_may_be_given_estimated_before_or_by_name():
    rng = np.random.default_rng(0)
    probs, labels = rng.dirichlet(np.ones(3), 100), rng.integers(0, 3, 100)
    estimate = dualt.estimate_transition(probs, labels, "spade")
    by_name = dualt.find_label_issues(probs, labels, estimator="spade")
    by_estimate, by_matrix = (dualt.find_label_issues(probs, labels, t) for t in (estimate, estimate.transition))
    np.testing.assert_array_equal(by_name.probability_right, by_estimate.probability_right)
    np.testing.assert_array_equal(by_name.probability_right, by_matrix.probability_right)
    assert by_name.transition_estimate.estimator == "spade"
    assert by_estimate.transition_estimate is estimate
    assert by_matrix.transition_estimate is None


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"transition": np.eye(3)}, TransitionError, "2×2 transition matrix, got 3×3"),
        ({"transition": [[0.5, 0.1], [0.5, 0.9]]}, TransitionError, "pass the transpose"),
        ({"estimator": "dual"}, UnknownNameError, "Did you mean 'dual-t'"),
        ({"transition": "dual-t"}, InputError, "estimator='dual-t'"),
        ({"transition": np.eye(2), "estimator": "dual-t"}, InputError, "got both"),
        ({"threshold": 0.5, "top": 3}, InputError, "got both"),
        ({"threshold": 1.5}, InputError, "threshold"),
        ({"top": -1}, InputError, "at least 0"),
    ],
)
def test_bad_input_is_refused(arguments, error, message):
    with pytest.raises(error, match=message):
        dualt.find_label_issues([[0.5, 0.5], [0.4, 0.6]], [0, 1], **arguments)


def test_a_label_that_the_matrix_rules_out_is_wrong_for_sure():
    found = dualt.find_label_issues([[1.0, 0.0], [0.0, 1.0]], [1, 1], np.eye(2))
    np.testing.assert_allclose(found.probability_right, [0, 1])
    posterior = as_posterior([[1.0, 0.0], [0.0, 1.0]], [0, 1])
    assert second_likeliest(posterior, found, np.arange(2), np.ones(2)) == [(1, 0), (0, 0)], "never the label itself"


def test_a_row_that_the_matrix_rules_out_is_suggested_its_clean_class():
    """No class can leave these labels with these probabilities: the likeliest clean class is suggested, not class 0."""
    probs = [[0, 0, 1.0], [0, 0, 1.0], [1, 0, 0], [0, 1, 0]]
    found = dualt.find_label_issues(probs, [1, 2, 0, 1], np.eye(3), top=1)
    assert found.suggested[0] == 2
    assert found.suggested_probability[0] == 1
    assert found.probability_right[0] == 0
    assert found.is_issue.tolist() == [True, False, False, False]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_no_suggestion_has_probability_zero(dtype):
    """Not even where the matrix says that no class leaves the label that the classifier expects."""
    found = dualt.find_label_issues(np.eye(2, dtype=dtype), [0, 1], [[1.0, 0.0], [1.0, 0.0]])
    np.testing.assert_allclose(found.suggested_probability, [0.5, 0.5], atol=1e-3)
    assert (found.probability_right <= 0.501).all()


def test_labels_that_the_matrix_takes_to_be_right_are_ranked_by_their_probability():
    rng = np.random.default_rng(0)
    probs, labels = rng.dirichlet(np.ones(3), 200), np.arange(200) % 3
    found = dualt.find_label_issues(probs, labels, np.eye(3))
    assert found.probability_right.min() > 0.999
    lowest = np.argsort(probs[np.arange(200), labels])[:20]
    assert len(np.intersect1d(found.ranking[:20], lowest)) >= 17  # calibrated, they change places
    assert not found.is_issue.any()


@given(st.integers(0, 1000), st.integers(-1, 13))
def test_flags_are_those_of_a_loop(seed, top):
    """Preferred first, then the least probable, the first of equals, as many as are expected to be wrong."""
    rng = np.random.default_rng(seed)
    right, preferred = (rng.integers(0, 9, 12) / 8).astype(np.float32), rng.random(12) < 0.2
    expected = rng.random() * 13
    order = sorted(range(12), key=lambda row: (not preferred[row], right[row], row))
    count = max(round(expected), int(preferred.sum()))
    assert flag(right, preferred, expected).tolist() == [row in order[:count] for row in range(12)]
    lowest = sorted(range(12), key=lambda row: (right[row], row))[: max(top, 0)]
    assert flag(right, preferred, expected, top=top).tolist() == [row in lowest for row in range(12)]
    assert flag(right[:1], preferred[:1], 0, top=1).tolist() == [True]
    assert flag(right, preferred, expected, threshold=0.5).tolist() == [value < 0.5 for value in right]


@given(transitions(), st.integers(0, 1000))
def test_pairs_and_second_classes_equal_a_loop(transition, seed):
    rng, n_classes = np.random.default_rng(seed), len(transition)
    transition = 0.9 * transition + 0.1 / n_classes
    probs, labels = rng.dirichlet(np.ones(n_classes), 20), rng.integers(0, n_classes, 20)
    posterior = as_posterior(probs, labels, [str(k) for k in range(n_classes)])
    found = find_posterior_issues(posterior, transition)
    prior, counts = clean_prior(transition, np.bincount(labels, minlength=n_classes)), np.bincount(labels)
    for label, count in enumerate(counts):
        joint = [prior[true] * transition[true, label] for true in range(n_classes)]
        np.testing.assert_allclose(found.by_pair[label], count * np.array(joint) / sum(joint))
    power = posterior.power
    clean = early_posterior(probs**power / (probs**power).sum(axis=1, keepdims=True), transition)
    second = second_likeliest(posterior, found, np.arange(20), found.probability_right)
    for row, (best, share) in enumerate(second):
        others = {k: clean[row, k] * transition[k, labels[row]] for k in range(n_classes) if k != labels[row]}
        assert best == max(others, key=others.get)
        assert share == pytest.approx(
            (1 - found.probability_right[row]) * others[best] / sum(others.values()), abs=1e-4
        )


def test_verified_rows_are_certain_and_calibrate_other_rows():
    rng = np.random.default_rng(0)
    clean = rng.integers(0, 3, 600)
    labels = noise.corrupt(clean, noise.pair(3, 0.3), random_state=1)
    probs = rng.dirichlet(np.ones(3), 600) * 0.5 + 0.5 * np.eye(3)[clean]
    rows = np.union1d(rng.choice(600, 200, replace=False), [0, 599])
    estimate = dualt.estimate_transition(probs, labels, verified=(rows, clean[rows]))
    for found in (
        dualt.find_label_issues(probs, labels, verified=(rows, clean[rows])),
        dualt.find_label_issues(probs, labels, estimate),
    ):
        np.testing.assert_array_equal(found.suggested[rows], clean[rows])
        np.testing.assert_array_equal(found.suggested_probability[rows], 1)
        np.testing.assert_array_equal(found.probability_right[rows], labels[rows] == clean[rows])
        np.testing.assert_allclose(found.by_pair, estimate.audit.joint.T)
    # Rows of other data: the calibration holds, but nothing is known for sure.
    moved = dualt.find_label_issues(np.roll(probs, 1, axis=0), np.roll(labels, 1), estimate)
    fewer = dualt.find_label_issues(probs[1:], labels[1:], estimate)
    predicted = estimate.audit.calibration.predict(probs, labels)
    for other, kept in ((moved, np.roll(predicted, 1, axis=0)), (fewer, predicted[1:])):
        np.testing.assert_array_equal(other.suggested, kept.argmax(axis=1))
        np.testing.assert_allclose(other.suggested_probability, kept.max(axis=1), rtol=1e-4)

import pickle
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn import config_context
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.ensemble import StackingClassifier, VotingClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score
from sklearn.model_selection import GridSearchCV, GroupKFold, StratifiedKFold, train_test_split
from sklearn.multiclass import OneVsRestClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

import dualt
from dualt import noise
from dualt.crossfit import out_of_fold_probabilities
from dualt.errors import InputError, LabelsError, TransitionError, UnknownNameError
from dualt.rows.scaling import scale_classes, share_factors
from dualt.transition import EM_STEPS

CORRECTIONS = ["reweight", "posterior", "clean"]


@pytest.fixture(scope="module")
def digits():
    return load_digits(return_X_y=True)


@pytest.mark.parametrize("correction", CORRECTIONS)
@pytest.mark.filterwarnings("ignore")
def test_scikit_learn_accepts_it(correction):
    # Folds of repeated rows are other folds, and the matrix counts every label once.
    repeated = "a weight of two is not a row given twice where folds are drawn"
    failing = {f"check_sample_weight_equivalence_on_{kind}_data": repeated for kind in ("dense", "sparse")}
    check_estimator(dualt.RobustClassifier(correction=correction), on_skip=None, expected_failed_checks=failing)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_it_beats_the_plain_classifier_on_pair_noise(digits, seed):
    features, clean = digits
    train, test, train_y, test_y = train_test_split(features, clean, test_size=0.3, stratify=clean, random_state=seed)
    noisy = noise.corrupt(train_y, noise.pair(10, 0.3), random_state=seed)
    plain = LogisticRegression().fit(train, noisy).score(test, test_y)
    robust = dualt.RobustClassifier(LogisticRegression()).fit(train, noisy).score(test, test_y)
    assert robust > plain


def small_case(seed=0, n=240):
    """Three clear blobs with string labels, a quarter of them wrong."""
    rng = np.random.default_rng(seed)
    clean = np.arange(n) % 3
    features = rng.normal(size=(n, 4)) + 3 * np.eye(3, 4)[clean]
    names = np.array(["ant", "bee", "cat"])
    return features, noise.corrupt(names[clean], noise.symmetric(3, 0.25), random_state=seed), names[clean]


@pytest.mark.parametrize("correction", CORRECTIONS)
def test_string_labels_sparse_features_and_attributes(correction):
    features, noisy, clean = small_case()
    model = dualt.RobustClassifier(LogisticRegression(), correction=correction).fit(sp.csr_matrix(features), noisy)
    assert model.classes_.tolist() == ["ant", "bee", "cat"]
    assert model.score(sp.csr_matrix(features), clean) > 0.9
    probs = model.predict_proba(sp.csr_matrix(features))
    np.testing.assert_allclose(probs.sum(axis=1), 1)
    np.testing.assert_array_equal(model.classes_[probs.argmax(axis=1)], model.predict(sp.csr_matrix(features)))
    assert model.transition_estimate_.n_samples == len(noisy)
    assert model.label_issues_.is_issue.sum() > 20
    assert model.n_features_in_ == 4


def test_texts_in_a_pipeline_and_a_search():
    features, noisy, clean = small_case(n=900)
    texts = [" ".join(["red", "green", "blue"][int(row.argmax() % 3)] for _ in range(3)) for row in features]
    pipeline = make_pipeline(TfidfVectorizer(), LogisticRegression())
    model = dualt.RobustClassifier(pipeline).fit(texts, noisy)
    assert model.score(texts, clean) > 0.8
    search = GridSearchCV(dualt.RobustClassifier(LogisticRegression(), cv=3), {"classifier__C": [0.1, 1.0]}, cv=2)
    assert search.fit(features, noisy).best_params_["classifier__C"] in (0.1, 1.0)
    outer = make_pipeline(StandardScaler(), dualt.RobustClassifier(GaussianNB()))
    assert outer.fit(features, noisy).score(features, clean) > 0.85


def test_clone_and_pickle_keep_it_whole():
    features, noisy, _ = small_case()
    model = dualt.RobustClassifier(LogisticRegression(C=0.5), correction="posterior", estimator="dual-t", cv=4)
    assert clone(model).get_params()["classifier__C"] == 0.5
    model.fit(features, noisy)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict_proba(features), model.predict_proba(features))
    np.testing.assert_array_equal(
        again.transition_estimate_.confidence_interval()[0], model.transition_estimate_.confidence_interval()[0]
    )


def test_importance_weights_by_hand():
    """With a known matrix and a base that records them, the weights are q_y / (q @ T)_y."""
    features, noisy, _ = small_case()
    transition = noise.symmetric(3, 0.25)
    dualt.RobustClassifier(Recorder(), transition=transition).fit(features, noisy)
    labels = np.searchsorted(["ant", "bee", "cat"], noisy)
    probs = out_of_fold_probabilities(GaussianNB(), features, labels)
    for p, y, weight in zip(probs, labels, Recorder.seen["weights"], strict=True):
        q = np.full(3, 1 / 3)
        for _ in range(EM_STEPS):
            q = q * (transition @ (p / (q @ transition)))
        assert weight == pytest.approx(min(10, q[y] / (q @ transition)[y]), rel=1e-6)


def test_a_matrix_by_which_all_labels_are_wrong_cannot_weigh_them():
    features, noisy, clean = small_case()
    swapped = noise.pair(3, 1.0)
    with pytest.raises(InputError, match="all are wrong"):
        dualt.RobustClassifier(GaussianNB(), transition=swapped).fit(features, noisy)
    given = noise.corrupt(clean, swapped, random_state=0)
    model = dualt.RobustClassifier(GaussianNB(), correction="posterior", transition=swapped).fit(features, given)
    assert model.score(features, clean) > 0.9


def test_a_classifier_without_weights_names_the_other_corrections():
    features, noisy, clean = small_case()
    with pytest.raises(InputError, match="correction='posterior' or correction='clean'"):
        dualt.RobustClassifier(KNeighborsClassifier()).fit(features, noisy)
    with pytest.raises(InputError, match="takes no sample_weight"):
        dualt.RobustClassifier(KNeighborsClassifier(), correction="clean").fit(features, noisy, np.ones(len(noisy)))
    for correction in ("posterior", "clean"):
        model = dualt.RobustClassifier(KNeighborsClassifier(), correction=correction).fit(features, noisy)
        assert model.score(features, clean) > 0.85


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"correction": "weight"}, UnknownNameError, "Did you mean 'reweight'"),
        ({"transition": np.eye(2)}, TransitionError, "3×3"),
        ({"transition": "spade"}, InputError, "estimator='spade'"),
        ({"estimator": "spade", "transition": np.eye(3)}, InputError, "got both"),
        ({"estimator": "spad"}, UnknownNameError, "Did you mean 'spade'"),
        ({"cv": 1}, InputError, "two folds"),
    ],
)
def test_bad_settings_are_named(settings, error, message):
    features, noisy, _ = small_case()
    with pytest.raises(error, match=message):
        dualt.RobustClassifier(**settings).fit(features, noisy)


def test_a_class_with_a_single_member_does_not_stop_it():
    features, noisy, clean = small_case()
    noisy = noisy.copy()
    noisy[0] = "dog"
    model = dualt.RobustClassifier(GaussianNB(), correction="clean").fit(features, noisy)
    assert model.classes_.tolist() == ["ant", "bee", "cat", "dog"]
    assert (model.predict(features)[1:] == clean[1:]).mean() > 0.8


def test_verified_labels_enter_the_matrix():
    features, noisy, clean = small_case()
    rows = np.random.default_rng(0).choice(len(noisy), 60, replace=False)
    model = dualt.RobustClassifier(GaussianNB()).fit(features, noisy, verified=(rows, clean[rows]))
    assert model.transition_estimate_.estimator.endswith("+ 60 verified")
    assert model.score(features, clean) > 0.9
    with pytest.raises(LabelsError, match="'dog'"):
        dualt.RobustClassifier(GaussianNB()).fit(features, noisy, verified=([0], ["dog"]))
    with pytest.raises(InputError, match="verified labels or a transition"):
        dualt.RobustClassifier(GaussianNB(), transition=np.eye(3)).fit(features, noisy, verified=([0], ["ant"]))


@pytest.mark.parametrize("names", [["b", "a", "c"], [10, 3, 7], [1.0, 0.0, 2.0]])
def test_estimate_and_issues_carry_the_names_of_the_classes(names):
    clean = np.arange(150) % 3
    given = noise.corrupt(clean, noise.pair(3, 0.2), random_state=0)
    features = np.random.default_rng(0).normal(size=(150, 3)) + 4 * np.eye(3)[clean]
    model = dualt.RobustClassifier().fit(features, np.array(names)[given])
    assert model.transition_estimate_.class_names == tuple(str(name).removesuffix(".0") for name in sorted(names))
    first = model.label_issues_.given[0]
    assert model.label_issues_.class_names[first] == str(names[given[0]]).removesuffix(".0")


class Recorder(GaussianNB):
    """Keeps the weights of its last fit."""

    seen: ClassVar[dict] = {}

    def fit(self, X, y, sample_weight=None):
        self.seen["rows"], self.seen["weights"] = len(X), sample_weight
        return super().fit(X, y, sample_weight)


def test_sample_weights_count_in_folds_and_at_the_end():
    features, noisy, clean = small_case()
    wrong = noisy != clean
    known = np.where(wrong, 0.0, 2.0)
    for correction in CORRECTIONS:
        model = dualt.RobustClassifier(Recorder(), correction=correction, transition=np.eye(3))
        model.fit(features, noisy, sample_weight=known)
        np.testing.assert_allclose(Recorder.seen["weights"], known)
        assert model.score(features, clean) == GaussianNB().fit(features, clean, known).score(features, clean)
    model = dualt.RobustClassifier(Recorder(), transition=noise.symmetric(3, 0.25)).fit(features, noisy)
    importance, right = Recorder.seen["weights"], model.label_issues_.probability_right
    model.fit(features, noisy, sample_weight=np.full(len(noisy), 3.0))
    np.testing.assert_allclose(Recorder.seen["weights"], 3 * importance)
    model.fit(features, noisy, sample_weight=known)
    assert not np.array_equal(model.label_issues_.probability_right, right), "the folds were weighted as well"
    with pytest.raises(ValueError, match="Negative values"):
        model.fit(features, noisy, sample_weight=-known)
    cleaned = dualt.RobustClassifier(Recorder(), correction="clean").fit(features, noisy, sample_weight=1 + known)
    assert len(Recorder.seen["weights"]) == Recorder.seen["rows"]
    assert cleaned.score(features, clean) > 0.9


def test_a_poor_estimate_is_told_once():
    rng = np.random.default_rng(0)
    features, labels = rng.normal(size=(300, 5)), rng.integers(3, size=300)
    with pytest.warns(dualt.errors.DualtWarning, match="always giving the most frequent one") as told:
        dualt.RobustClassifier(LogisticRegression()).fit(features, labels)
    assert len(told) == 1
    assert told[0].filename == __file__, "where the user called it"


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (np.eye(3)[np.arange(240) % 3], r"got \(240, 3\). For one-hot rows pass their argmax"),
        (np.ones((240, 2), int), "several classes at once"),
        ([["a"], ["a", "b"]] * 120, "one label per example"),
        (np.repeat("ant", 240), "one class"),
    ],
)
def test_labels_that_are_none_or_several_are_named(labels, message):
    features, *_ = small_case()
    with pytest.raises(InputError, match=message):
        dualt.RobustClassifier().fit(features, labels)


@pytest.mark.parametrize("names", [[1, 2, 3], [5, 7, 9], ["c", "a", "b"], [2.0, 4.0, 0.0]])
@pytest.mark.parametrize("correction", CORRECTIONS)
def test_class_weights_go_to_the_classes_that_they_name(names, correction):
    """Without noise to correct, it is what the plain classifier predicts, at the end and in every fold."""
    features, noisy, _ = small_case()
    labels = np.array(names)[np.searchsorted(["ant", "bee", "cat"], noisy)]
    base = LogisticRegression(class_weight=dict(zip(names, (30, 1, 1), strict=True)))
    model = dualt.RobustClassifier(base, correction=correction, transition=np.eye(3)).fit(features, labels)
    expected = clone(base).fit(features, labels).predict(features)
    assert (expected == names[0]).mean() > 0.4
    np.testing.assert_array_equal(model.predict(features), expected)
    np.testing.assert_array_equal(model.classifier_.predict(features), expected)
    transition = noise.symmetric(3, 0.25)
    model.set_params(transition=transition).fit(features, labels)
    probs = np.zeros((len(labels), 3))
    for train, test in StratifiedKFold(5, shuffle=True, random_state=0).split(features, labels):
        probs[test] = clone(base).fit(features[train], labels[train]).predict_proba(features[test])
    codes = np.unique(labels, return_inverse=True)[1]
    probs = scale_classes(probs, share_factors(probs, codes))
    issues = dualt.find_label_issues(probs, codes, transition)
    np.testing.assert_allclose(model.label_issues_.probability_right, issues.probability_right, rtol=1e-4)


def test_its_issues_keep_the_index():
    features, noisy, _ = small_case()
    index = pd.Index([f"row {row}" for row in range(len(noisy))])
    frame, series = pd.DataFrame(features, index=index), pd.Series(noisy, index=index)
    for x, y in ((frame, series), (frame, noisy), (features, series)):
        assert dualt.RobustClassifier(GaussianNB()).fit(x, y).label_issues_.to_frame().index.equals(index)
    assert dualt.RobustClassifier(GaussianNB()).fit(features, noisy).label_issues_.index is None


@pytest.mark.filterwarnings("ignore::dualt.errors.DualtWarning")
def test_groups_stay_in_one_fold():
    """Each example occurs twice: a memory of them agrees with the labels, unless twins share a fold."""
    rng = np.random.default_rng(0)
    features = np.repeat(rng.normal(size=(100, 2)), 2, axis=0)
    labels, groups = np.repeat(rng.integers(0, 2, 100), 2), np.repeat(np.arange(100), 2)

    def noise_rate(cv, **given):
        memory = dualt.RobustClassifier(KNeighborsClassifier(1), correction="posterior", estimator="spade", cv=cv)
        return memory.fit(features, labels, **given).transition_estimate_.noise_rate

    assert noise_rate(5) < 0.2
    assert noise_rate(5, groups=groups) > 0.3
    assert noise_rate(GroupKFold(3), groups=groups.astype(str).tolist()) > 0.3


STRENGTHS = {"C": [0.1, 1.0]}


@pytest.mark.parametrize(
    "base",
    [
        GridSearchCV(LogisticRegression(), STRENGTHS, cv=3),
        GridSearchCV(
            make_pipeline(StandardScaler(), LogisticRegression()), {"logisticregression__C": [0.1, 1.0]}, cv=3
        ),
        make_pipeline(StandardScaler(), GridSearchCV(LogisticRegression(), STRENGTHS, cv=3)),
        VotingClassifier([("a", LogisticRegression()), ("b", GaussianNB()), ("c", "drop")], voting="soft"),
        StackingClassifier([("a", LogisticRegression()), ("b", GaussianNB())], LogisticRegression()),
        StackingClassifier([("a", LogisticRegression()), ("b", GaussianNB())]),
        make_pipeline(StandardScaler(), StackingClassifier([("a", LogisticRegression()), ("b", GaussianNB())])),
    ],
)
def test_what_wraps_a_classifier_that_takes_weights_takes_them(base):
    """An example of weight 0 is not there."""
    features, noisy, clean = small_case()
    known = (noisy == clean).astype(float)
    model = dualt.RobustClassifier(base, transition=np.eye(3)).fit(features, noisy, known)
    assert model.score(features, clean) > 0.97
    assert dualt.RobustClassifier(base).fit(features, noisy).score(features, clean) > 0.9


@pytest.mark.parametrize(
    ("base", "named"),
    [
        (GridSearchCV(KNeighborsClassifier(), {"n_neighbors": [3]}), "KNeighborsClassifier"),
        (make_pipeline(StandardScaler(), KNeighborsClassifier()), "KNeighborsClassifier"),
        (OneVsRestClassifier(LogisticRegression()), "OneVsRestClassifier"),
    ],
)
def test_what_takes_no_weights_inside_is_named(base, named):
    features, noisy, _ = small_case()
    with pytest.raises(InputError, match=f"^{named}.fit takes no sample_weight"):
        dualt.RobustClassifier(base).fit(features, noisy)


def test_weights_are_routed_where_scikit_learn_routes_them():
    features, noisy, clean = small_case()
    with config_context(enable_metadata_routing=True):
        last = LogisticRegression().set_fit_request(sample_weight=True)
        base = make_pipeline(StandardScaler().set_fit_request(sample_weight=False), last)
        model = dualt.RobustClassifier(base, transition=np.eye(3)).fit(features, noisy, (noisy == clean).astype(float))
    assert model.score(features, clean) > 0.97


@pytest.mark.parametrize("correction", ["clean", "posterior", "reweight"])
def test_weights_of_classes_are_taken_into_account(correction):
    """Of a rare class: balanced weights make the probabilities those of other labels than were given."""
    rng = np.random.default_rng(11)
    clean = rng.choice(2, 4000, p=[0.8, 0.2])
    X = rng.normal(size=(4000, 4)) + 2.5 * np.eye(4)[clean]
    given = dualt.noise.corrupt(clean[:2000], dualt.noise.symmetric(2, 0.1), random_state=5)
    base = LogisticRegression(class_weight="balanced")
    robust = dualt.RobustClassifier(base, correction=correction).fit(X[:2000], given)
    assert abs(robust.transition_estimate_.noise_rate - (given != clean[:2000]).mean()) < 0.03
    plain = balanced_accuracy_score(clean[2000:], base.fit(X[:2000], given).predict(X[2000:]))
    assert balanced_accuracy_score(clean[2000:], robust.predict(X[2000:])) > plain + 0.01
    np.testing.assert_allclose(robust.predict_proba(X[2000:]).sum(axis=1), 1)


@pytest.mark.parametrize("missing", [None, np.nan, ""])
def test_examples_without_a_label_are_set_aside(missing):
    features, noisy, clean = small_case()
    labels = noisy.astype(object)
    labels[[3, 70]] = missing
    kept = np.delete(np.arange(len(labels)), [3, 70])
    given = {"sample_weight": np.linspace(1, 2, len(labels)), "groups": np.arange(len(labels)) // 2}
    model = dualt.RobustClassifier().fit(features, labels, **given)
    alone = dualt.RobustClassifier().fit(
        features[kept], labels[kept], **{name: values[kept] for name, values in given.items()}
    )
    np.testing.assert_array_equal(model.transition_, alone.transition_)
    np.testing.assert_array_equal(model.predict_proba(features), alone.predict_proba(features))
    assert len(model.label_issues_) == len(labels)
    assert not model.label_issues_.is_issue[[3, 70]].any()
    np.testing.assert_array_equal(np.flatnonzero(model.label_issues_.is_issue), kept[alone.label_issues_.is_issue])
    checked = kept[::4]
    audited = dualt.RobustClassifier().fit(features, labels, verified=(checked, clean[checked]))
    assert audited.transition_estimate_.estimator.endswith(f"{len(checked)} verified")
    with pytest.raises(InputError, match="row 3, which has none"):
        dualt.RobustClassifier().fit(features, labels, verified=([3, 5], ["ant", "bee"]))

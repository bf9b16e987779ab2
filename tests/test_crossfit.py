"""Out-of-fold probabilities: folds, groups, missing labels, every kind of data, and what is refused."""

import re

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from joblib import parallel_config
from scipy import sparse
from sklearn.datasets import load_digits, load_iris
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.model_selection import GroupKFold, KFold, RepeatedStratifiedKFold, StratifiedKFold, cross_val_predict
from sklearn.naive_bayes import GaussianNB, MultinomialNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

import dualt
from dualt.crossfit import ImageFeatures, cross_fit, out_of_fold_probabilities
from dualt.crossfit.examples import columns_of
from dualt.crossfit.table_model import TableModel
from dualt.errors import InputError, LabelsError, UnknownNameError

BAYES = make_pipeline(CountVectorizer(), MultinomialNB())
WORDS = {"animal": ["fox", "hen", "cat", "owl"], "drink": ["tea", "milk", "cola", "beer"], "sea": ["crab", "wave"]}


def texts_of(n_rows=90, wrong=0.1, seed=0):
    """Texts of three classes, given labels of which some are wrong, and the true ones."""
    rng = np.random.default_rng(seed)
    names = np.array(list(WORDS))
    clean = names[rng.integers(3, size=n_rows)]
    given = np.where(rng.random(n_rows) < wrong, names[rng.integers(3, size=n_rows)], clean)
    return [" ".join(rng.choice(WORDS[name], 4)) for name in clean], given, clean


def test_it_is_what_cross_val_predict_gives():
    features, labels = load_iris(return_X_y=True)
    features, labels = np.delete(features, 142, axis=0), np.delete(labels, 142)  # a copy of row 101
    found = cross_fit(features, labels, model=GaussianNB(), cv=4, random_state=3)
    folds = StratifiedKFold(4, shuffle=True, random_state=3)
    expected = cross_val_predict(GaussianNB(), features, labels, cv=folds, method="predict_proba")
    np.testing.assert_allclose(found.pred_probs, expected)
    for number, (_, test) in enumerate(folds.split(features, labels)):
        assert (found.fold[test] == number).all()


def test_texts_and_the_way_to_issues():
    texts, given, clean = texts_of(wrong=0.15)
    found = dualt.cross_fit(texts, given)
    assert found.class_names == ("animal", "drink", "sea")
    np.testing.assert_allclose(found.pred_probs.sum(axis=1), 1)
    assert np.asarray(found).shape == (90, 3) == (len(found), 3)
    issues = dualt.find_label_issues(found, given)
    assert issues.class_names == found.class_names
    assert issues.texts == list(texts)
    assert found[[4, 2]].texts == [texts[4], texts[2]]
    assert texts[issues.indices[0]] in issues._repr_html_()
    wrong = np.flatnonzero(given != clean)
    assert {*issues.ranking[: len(wrong)]} == {*wrong}
    assert found.agreement == pytest.approx((given == clean).mean(), abs=0.03)


@pytest.mark.parametrize("missing", [None, np.nan, "", pd.NA])
def test_a_row_without_a_label_is_predicted_and_not_learnt_from(missing):
    texts, given, clean = texts_of()
    labels = given.astype(object)
    labels[[0, 50]] = missing
    found = cross_fit(texts, labels)
    assert np.flatnonzero(~found.labelled).tolist() == np.flatnonzero(found.fold < 0).tolist() == [0, 50]
    assert [found.class_names[code] for code in found.pred_probs[[0, 50]].argmax(axis=1)] == clean[[0, 50]].tolist()
    kept = np.delete(np.arange(90), [0, 50])
    alone = cross_fit([texts[row] for row in kept], given[kept], model=BAYES)
    both = cross_fit(texts, labels, model=BAYES)
    np.testing.assert_allclose(both.pred_probs[kept], alone.pred_probs)
    assert len(dualt.find_label_issues(both[both.labelled], labels[both.labelled])) == 88


@pytest.mark.parametrize("missing", [None, np.nan, "", pd.NA])
def test_a_row_without_a_label_is_never_flagged(missing):
    texts, given, _ = texts_of(wrong=0.15)
    labels = pd.Series(given.astype(object), index=[f"row {row}" for row in range(90)])
    labels.iloc[[0, 50]] = missing
    probs = cross_fit(texts, labels, model=BAYES)
    issues = dualt.find_label_issues(probs, labels.sample(frac=1, random_state=0))
    alone = dualt.find_label_issues(probs[probs.labelled], labels[probs.labelled])
    assert len(issues) == 90
    assert issues.n_labelled == 88
    assert not issues.is_issue[[0, 50]].any()
    np.testing.assert_array_equal(issues.probability_right[probs.labelled], alone.probability_right)
    assert issues.indices.tolist() == np.flatnonzero(probs.labelled)[alone.indices].tolist()
    assert issues.to_frame().index.equals(labels.index)
    assert issues.to_frame()["given"].isna().to_numpy().nonzero()[0].tolist() == [0, 50]
    assert len(dualt.find_label_issues(probs, given)) == 90, "labels that came later are judged"
    assert dualt.estimate_transition(probs, labels).n_samples == 88
    with pytest.raises(InputError, match="90 rows and 89 labels"):
        dualt.find_label_issues(probs, labels.to_numpy()[:89])
    with pytest.raises(InputError, match="row 0, which has none"):
        dualt.find_label_issues(probs, labels, verified=(np.arange(20), given[:20]))


@pytest.mark.parametrize("model", [None, LogisticRegression()])
def test_a_class_that_no_row_has(model):
    x = np.random.default_rng(0).normal(size=(60, 2))
    labels = np.eye(4)[(x[:, 0] > 0).astype(int) * 2]  # one-hot, of 0 and 2
    found = cross_fit(x, labels, model=model)
    assert found.pred_probs.shape == (60, 4)
    np.testing.assert_allclose(found.pred_probs.sum(axis=1), 1)
    assert not found.pred_probs[:, [1, 3]].any()


def test_an_estimate_knows_that_the_probabilities_are_out_of_fold():
    features, labels = load_iris(return_X_y=True)
    probs = cross_fit(features, labels, model=GaussianNB())
    assert dualt.estimate_transition(probs, labels).out_of_fold is True
    assert dualt.estimate_transition(probs[:100:2], labels[:100:2], class_names=probs.class_names).out_of_fold is True
    assert dualt.find_label_issues(probs, labels).transition_estimate.out_of_fold is True
    assert dualt.estimate_transition(probs, labels, out_of_fold=False).out_of_fold is False
    assert dualt.estimate_transition(probs.pred_probs, labels).out_of_fold is None
    column = probs.to_frame().set_axis(["out_of_fold", "b", "c"], axis=1)
    names = np.array(column.columns)
    assert dualt.estimate_transition(column, names[labels]).out_of_fold is None


def test_groups_stay_in_one_fold_and_rows_without_one_are_free():
    """Each example occurs twice, nearly: its neighbour is always right, unless twins share a fold."""
    rng = np.random.default_rng(0)
    features = np.repeat(rng.normal(size=(100, 2)), 2, axis=0) + 1e-4 * rng.random((200, 2))
    labels, groups = np.repeat(rng.integers(0, 2, 100), 2), np.repeat(np.arange(100), 2)
    memory = KNeighborsClassifier(1)
    assert cross_fit(features, labels, model=memory).agreement > 0.8
    found = cross_fit(features, labels, model=memory, groups=groups)
    assert 0.3 < found.agreement < 0.7
    assert (found.fold[::2] == found.fold[1::2]).all()
    index = pd.Index(rng.permutation(200))
    shuffled = pd.Series(groups, index).sample(frac=1, random_state=0)
    again = cross_fit(pd.DataFrame(features, index), pd.Series(labels, index), model=memory, groups=shuffled)
    np.testing.assert_array_equal(again.fold, found.fold)
    some = groups.astype(object)
    some[40:] = None
    free = cross_fit(features, labels, model=memory, groups=some)
    assert (free.fold[:40:2] == free.fold[1:40:2]).all()
    assert (free.fold[40::2] != free.fold[41::2]).any()


@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow"])
def test_tables_of_numbers_and_categories(kind):
    make = {"pandas": pd.DataFrame, "arrow": pa.table}.get(kind) or pytest.importorskip("polars").DataFrame
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, 200)
    colours = np.where(rng.random(200) < 0.9, np.array(["red", "ü,\n"])[labels], "grey").astype(object)
    colours[5] = None
    numbers = rng.normal(size=200)
    numbers[7] = np.nan
    found = cross_fit(make({"size": numbers, "colour": colours}), labels, quick=True)
    assert found.agreement > 0.85


def test_columns_are_numbers_if_their_texts_are(caplog):
    table = np.array([["1.5", "7", "a"], ["", "x", "b"], ["NA", "9", "a"]], dtype=object)
    values, categorical = columns_of(table, 3)
    assert caplog.messages == ["Column 1 is taken for categories: row 1 has 'x', no number."]
    assert categorical.tolist() == [False, True, True]
    np.testing.assert_array_equal(values[:, 0], [1.5, np.nan, np.nan])
    assert values[0, 2] == values[2, 2] != values[1, 2]
    many = columns_of(np.array([[f"id{row}"] for row in range(1000)], dtype=object))
    assert many.values.max() < 255


@pytest.mark.parametrize("written", [False, True], ids=["dates", "texts"])
def test_dates_are_numbers(written):
    days = ["2020-01-02", None, "2020-01-01"]
    values, categorical = columns_of(pd.DataFrame({"day": days if written else pd.to_datetime(days)}))
    assert not categorical.any()
    assert values[0, 0] - values[2, 0] == 86_400
    assert np.isnan(values[1, 0])
    times = columns_of(np.array([["2020-01-01 12:00"], ["2020-01-01T13:00:00+01:00"]], dtype=object))
    assert times.values[0, 0] == times.values[1, 0] == values[2, 0] + 43_200
    assert columns_of(np.array([["2020-01-01"], ["soon"]], dtype=object)).categorical.all()


@pytest.mark.parametrize("written", ["%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d.%m.%Y %H:%M", "%d %b %Y"])
def test_dates_are_numbers_however_they_are_written(written):
    days = pd.Series(pd.date_range("2024-01-05", periods=40, freq="9D"))
    values, categorical = columns_of(pd.DataFrame({"day": days.dt.strftime(written)}))
    assert not categorical.any()
    np.testing.assert_array_equal(values[:, 0], (days - pd.Timestamp(0)).dt.total_seconds())


def test_numbers_may_have_decimal_commas_and_marks_at_thousands():
    written = [["0.5", "0,5"], ["-1,234.0", "-1.234,0"], ["", ""], ["80", "80"], ["1,234,567.25", "1.234.567,25"]]
    values, categorical = columns_of(np.array(written, dtype=object))
    assert not categorical.any()
    np.testing.assert_array_equal(values.T, 2 * [[0.5, -1234, np.nan, 80, 1234567.25]])


@pytest.mark.parametrize("texts", [["3-4", "5-6"], ["31.01.2024", "2024-01-31"], ["192.168.0.1", "10.0.0.1"], ["", ""]])
def test_what_is_no_date_is_none(texts):
    values, categorical = columns_of(np.array([[text] for text in texts], dtype=object))
    assert categorical.all() or np.isnan(values).all()


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("quick", [False, True])
@pytest.mark.parametrize("n_filled", [0, 1, 2])
def test_columns_may_be_empty_or_almost(n_filled, quick):
    """Boosted trees refuse a column that is empty in the rows of a fold."""
    features = np.random.default_rng(0).normal(size=(500, 3))
    labels = features[:, 0] > 0
    features[n_filled:, 2] = np.nan
    assert cross_fit(features, labels, quick=quick).agreement > 0.95


def test_an_index_travels():
    features, labels = load_iris(return_X_y=True, as_frame=True)
    features = features.sample(frac=1, random_state=0)
    found = cross_fit(features, labels, model=GaussianNB())
    assert found.to_frame().index.equals(features.index)
    assert found.agreement > 0.9, "labels are brought into the order of the data"
    part = found[found.labelled & (np.arange(150) < 30)]
    assert part.index.equals(features.index[:30])
    assert dualt.find_label_issues(found, labels).to_frame().index.equals(features.index)
    with pytest.raises(InputError, match="index of the probabilities, or of the data"):
        cross_fit(features, labels.set_axis(labels.index + 1))


def test_images_in_any_layout_are_told_apart():
    features, labels = load_digits(return_X_y=True)
    chosen = np.flatnonzero(labels < 3)[:240]
    images, labels = (features[chosen] * 15).astype(np.uint8).reshape(-1, 8, 8), labels[chosen]
    with threadpool_limits(2):
        found = cross_fit(images, labels)
    assert found.agreement > 0.97
    np.testing.assert_array_equal(cross_fit(images, labels).members, found.members, "with any number of BLAS threads")
    learnt = ImageFeatures(n_filters=20, n_components=10).fit(images)
    grey = learnt.transform(images)
    np.testing.assert_allclose(learnt.transform(images[:, None]), grey, atol=1e-3)
    np.testing.assert_allclose(learnt.transform(images[..., None]), grey, atol=1e-3)
    np.testing.assert_allclose(learnt.transform(images / 255), grey, atol=1e-3)
    model = make_pipeline(ImageFeatures(n_filters=20, n_components=10), LogisticRegression(C=0.1))
    assert cross_fit(images, labels, model=model, cv=2).agreement > 0.9


def test_sparse_matrices_and_own_models_of_texts():
    texts, given, _ = texts_of()
    counts = CountVectorizer().fit_transform(texts)
    assert cross_fit(sparse.csr_array(counts), given).agreement > 0.8
    series, listed = (cross_fit(own, given, model=BAYES).pred_probs for own in (pd.Series(texts), texts))
    np.testing.assert_allclose(series, listed)


def test_the_result_does_not_depend_on_the_number_of_jobs():
    texts, given, _ = texts_of(60)
    with parallel_config(backend="threading"):
        both = cross_fit(texts, given, n_jobs=2)
    np.testing.assert_array_equal(both.pred_probs, cross_fit(texts, given).pred_probs)


def test_progress_is_told():
    told = []
    cross_fit(*load_iris(return_X_y=True), model=GaussianNB(), on_progress=lambda *t: told.append(t))
    assert told == [("fitting", done, 5) for done in range(1, 6)]


def test_large_data_are_judged_by_one_fold(monkeypatch):
    texts, given, _ = texts_of()
    every = cross_fit(texts, given)
    monkeypatch.setattr("dualt.crossfit.models._ALL_FOLDS_COMPARE", 10)
    one = cross_fit(texts, given)
    assert (one.fold == every.fold).all()
    np.testing.assert_allclose(one.pred_probs.sum(axis=1), 1)
    if one.model == every.model:
        np.testing.assert_allclose(one.pred_probs, every.pred_probs)


def test_rare_classes_do_not_lower_the_number_of_folds():
    """A class of two members is known to the models that judge it; one of a single member cannot be."""
    rng = np.random.default_rng(0)
    labels = np.array(["a"] * 30 + ["b"] * 30 + ["two"] * 2 + ["one"])
    features = rng.normal(size=(63, 2)) + 5 * (np.unique(labels, return_inverse=True)[1][:, None] == [0, 1])
    features[60:62] = [[-9, -9], [-9, -8.9]]
    found = cross_fit(features, labels, model=KNeighborsClassifier(1))
    assert found.fold.max() == 4
    assert found.pred_probs[60:62, found.class_names.index("two")].tolist() == [1, 1]
    assert found.pred_probs[62, found.class_names.index("one")] == 0
    for model in (None, GaussianNB()):
        assert cross_fit(features, labels, model=model).pred_probs.shape == (63, 4)


BAD = {
    "one class": ({"labels": ["a"] * 90}, LabelsError, "at least two classes, got only"),
    "no labels": ({"labels": None}, LabelsError, "at least one label, got none"),
    "an empty list of labels": ({"labels": []}, LabelsError, "at least one label, got none"),
    "only missing labels": ({"labels": [None, ""] * 45}, LabelsError, "at least one label, got none"),
    "ids as labels": ({"labels": np.arange(90)}, LabelsError, "90 different ones in 90 rows. Are they ids"),
    "the labels among the columns": (
        {"data": pd.DataFrame({"x": range(90), "kind": 0}), "labels": pd.Series(["a", "b"] * 45, name="kind")},
        InputError,
        "got the labels 'kind' among them",
    ),
    "other length": ({"labels": ["a", "b"] * 20}, InputError, "90 rows and 40 labels"),
    "one fold": ({"cv": 1}, InputError, "two folds"),
    "few groups": ({"groups": np.arange(90) % 3}, InputError, "as many groups as folds, 5, got 3. Ask for 3 folds"),
    "one group": ({"groups": np.zeros(90)}, InputError, "cannot be divided"),
    "groups of other rows": ({"groups": [1, 2]}, InputError, "one group per row, 90"),
    "groups that are classes": (
        {"groups": np.arange(90) % 2, "labels": np.arange(90) % 2, "cv": 2},
        InputError,
        "classes?",
    ),
    "a class of a model": ({"model": GaussianNB}, TypeError, "instance of scikit-learn estimator instead of a class"),
    "no classifier": ({"model": "svm"}, InputError, "with predict_proba, got str"),
    "no probabilities": ({"model": RidgeClassifier()}, InputError, "CalibratedClassifierCV"),
    "unknown kind": ({"kind": "tabel"}, UnknownNameError, "Did you mean 'table'"),
    "numbers as texts": ({"data": np.arange(90.0)}, InputError, "Numbers are a table"),
    "texts without words": ({"data": [""] * 90}, InputError, "texts with words"),
    "infinity": ({"data": pd.DataFrame({"x": [0, np.inf] * 45})}, InputError, "column 'x', got inf at row 1"),
    "five dimensions": ({"data": np.zeros((90, 1, 1, 1, 1))}, InputError, "5 dimensions"),
    "a negative seed": ({"random_state": -1}, InputError, r"from 0 to 4294967295 as random_state, got -1\."),
    "a seed beyond scikit-learn's": ({"random_state": 2**32}, InputError, "got 4294967296"),
    "tiny images": ({"data": np.zeros((90, 3, 3))}, InputError, "at least 4×4"),
    "folds that leave rows out": (
        {"cv": [(np.arange(45, 90), np.arange(45)), (np.arange(45), np.arange(46, 90))]},
        InputError,
        "test every row once, got row 45 in 0 folds",
    ),
    "repeated folds": (
        {"cv": RepeatedStratifiedKFold(n_splits=2, n_repeats=10)},
        InputError,
        "every row once, got row 0 in 10 folds of cv=RepeatedStratifiedKFold",
    ),
    "folds by groups without any": ({"cv": GroupKFold(3)}, InputError, "cv=GroupKFold.*'groups' parameter"),
    "no folds": ({"cv": "five"}, InputError, "cv='five'"),
    "an empty list of folds": ({"cv": []}, InputError, "test every row once, got row 0 in 0 folds"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_gets_one_clear_error(case):
    given, error, match = BAD[case]
    texts, labels, _ = texts_of()
    arguments = {"data": texts, "labels": labels} | given
    with pytest.raises(error, match=match):
        cross_fit(arguments.pop("data"), arguments.pop("labels"), **arguments)


def test_a_splitter_sets_the_folds():
    features, labels = load_iris(return_X_y=True)
    order = np.random.default_rng(0).permutation(150)
    found = cross_fit(features[order], labels[order], model=GaussianNB(), cv=KFold(3))
    assert found.fold.tolist() == [0] * 50 + [1] * 50 + [2] * 50


def test_it_says_what_it_is_in_a_line():
    rng = np.random.default_rng(0)
    features = rng.normal(size=(600, 3))
    labels = np.where(features[:, 0] > 0, "yes", "no").astype(object)
    labels[5] = None
    model = make_pipeline(StandardScaler(), StandardScaler(), LogisticRegression(C=0.1))
    found = dualt.cross_fit(features, labels, model=model, cv=3)
    start = "OutOfFold(n_samples=600, n_classes=2, model=Pipeline(steps=["
    assert re.fullmatch(rf"{re.escape(start)}.{{,88}}…\)", repr(found)), "one line"


def test_probabilities_of_a_model_with_class_weights_are_those_of_the_labels():
    rng = np.random.default_rng(0)
    labels = rng.choice(2, 1000, p=[0.9, 0.1])
    X = rng.normal(size=(1000, 3)) + 1.5 * np.eye(2, 3)[labels]
    found = dualt.cross_fit(X, labels, model=LogisticRegression(class_weight="balanced"))
    plain = out_of_fold_probabilities(LogisticRegression(class_weight="balanced"), X, labels)
    assert plain[:, 1].mean() > 0.2
    assert found.pred_probs[:, 1].mean() == pytest.approx(labels.mean(), abs=0.001)
    np.testing.assert_array_equal(found.pred_probs[:, 1].argsort(), plain[:, 1].argsort())


def test_several_models_and_their_mean():
    texts, given, _ = texts_of(120)
    found = cross_fit(texts, given)
    assert found.members.shape == (4, 120, 3)
    np.testing.assert_allclose(found.members.sum(axis=2), 1, atol=1e-5)
    np.testing.assert_allclose(found.pred_probs, found.members.mean(axis=0), atol=1e-6)
    assert found.determined
    assert found[10:20].members.shape == (4, 10, 3)
    quick = cross_fit(texts, given, quick=True)
    assert quick.members.shape == (1, 120, 3)
    np.testing.assert_allclose(quick.members[0], found.members[0])


@pytest.mark.parametrize(("columns", "n_models", "determined"), [(3, 4, False), (120, 4, True)])
def test_many_columns_of_numbers_are_an_embedding(columns, n_models, determined):
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, 150)
    features = rng.normal(size=(150, columns)) + 2 * np.eye(3, columns)[labels]
    for data in (features, pd.DataFrame(features)):
        found = cross_fit(data, labels, cv=2)
        assert (len(found.members), found.determined) == (n_models, determined)
        assert ("Forest" in found.model) == (not determined)
    assert cross_fit(features, labels, kind="embedding", quick=True).determined
    assert not cross_fit(features, labels, kind="table", quick=True).determined


def test_own_models_are_members():
    features, labels = load_iris(return_X_y=True)
    found = cross_fit(features, labels, model=[GaussianNB(), KNeighborsClassifier()])
    for member, model in zip(found.members, (GaussianNB(), KNeighborsClassifier()), strict=True):
        np.testing.assert_allclose(member, cross_fit(features, labels, model=model).pred_probs, atol=1e-6)


def test_texts_in_several_columns_and_numbers_beside_them():
    texts, given, clean = texts_of(120, wrong=0)
    rng = np.random.default_rng(1)
    half = rng.random(120) < 0.5
    frame = pd.DataFrame(
        {
            "subject": np.where(half, texts, "nothing"),
            "message": np.where(half, "nothing", texts),
            "price": rng.random(120),
        }
    )
    assert cross_fit(frame[["subject", "message"]], given, text=["subject", "message"], quick=True).agreement > 0.95
    assert cross_fit(frame[["message"]], given, text="message", quick=True).agreement < 0.9
    # Decides where the message does not.
    frame["price"] = np.where(half, np.unique(clean, return_inverse=True)[1], np.nan)
    found = cross_fit(frame.drop(columns="subject"), given, text="message")
    assert found.agreement > 0.95
    assert len(found.members) == 5
    with pytest.raises(UnknownNameError, match="message"):
        cross_fit(frame, given, text="mesage")


def test_near_copies_stay_in_one_fold():
    rng = np.random.default_rng(0)
    words = np.array([f"{a}{b}" for a in "bcdfghklmn" for b in "aeiou"])
    texts = [" ".join(rng.choice(words, 8)) for _ in range(60)]
    copies = [f"{' '.join(reversed(text.split())).upper()} {row}!" for row, text in enumerate(texts[:20])]
    labels = rng.integers(0, 2, 80)
    found = cross_fit([*texts, *copies], labels, quick=True)
    assert (found.fold[:20] == found.fold[60:]).all()
    numbers = rng.normal(size=(80, 2))
    numbers[60:] = numbers[:20]
    again = cross_fit(numbers, labels, model=GaussianNB())
    assert (again.fold[:20] == again.fold[60:]).all()
    categories = rng.integers(0, 3, size=(80, 2))
    repeated = cross_fit(categories, labels, model=GaussianNB())
    assert len(np.unique(repeated.fold[(categories == categories[0]).all(axis=1)])) > 1


def test_a_splitter_sets_the_folds_and_those_that_train_on_what_they_test_are_refused():
    features, labels = load_iris(return_X_y=True)
    folds = [(train, test) for train, test in KFold(3, shuffle=True, random_state=0).split(features)]
    for leak in (0, -150):
        with pytest.raises(InputError, match=f"row {folds[0][1][0]} in both parts of fold 0"):
            cross_fit(features, labels, model=GaussianNB(), cv=[(np.append(a, b[0] + leak), b) for a, b in folds])
    with pytest.raises(InputError, match="index 150 is out of bounds"):
        cross_fit(features, labels, model=GaussianNB(), cv=[(train, test + 1) for train, test in folds])
    masks = [tuple(np.isin(np.arange(150), rows) for rows in fold) for fold in folds]
    splitter = KFold(3, shuffle=True, random_state=0)
    for found in (cross_fit(features, labels, model=GaussianNB(), cv=cv) for cv in (folds, masks, splitter)):
        assert all((found.fold[test] == number).all() for number, (_, test) in enumerate(folds))


@pytest.mark.parametrize("text", [None, ["said"]], ids=["table", "text"])
def test_new_rows_are_predicted_one_by_one(text):
    """The probabilities of a row do not depend on others; unknown categories, blanks and outliers are no error."""
    rng = np.random.default_rng(0)
    labels = rng.integers(2, size=600)
    words = np.array([["cold ice", "snow winter"], ["warm sun", "beach summer"]])[labels, rng.integers(2, size=600)]
    sizes = np.where(rng.random(600) < 0.8 * labels, "", np.char.mod("%.0f", rng.normal(2, 1, 600)))
    table = pd.DataFrame({"said": words, "size": sizes, "kind": list("abcd") * 150})
    new = table.iloc[:6].copy()
    new.loc[0, "kind"], new.loc[1, "size"], new.loc[2, "size"], new.loc[3, "said"] = "unseen", "", "many", ""
    new.loc[4, "size"], new.loc[5, "size"] = "-1000", "-1000000"
    table = table if text else table.drop(columns="said")
    found = dualt.cross_fit(table, labels, text=text, quick=True)

    def predict(new, given=labels):
        return TableModel(table.assign(y=given), "y", text or [], found.choices, found.weights, 0).predict_probs(new)

    names, probs = predict(new)
    assert names == ("0", "1")
    np.testing.assert_allclose(probs.sum(axis=1), 1)
    for row in (0, 2, 4, 5):
        np.testing.assert_allclose(predict(new.iloc[[row]])[1], probs[[row]], atol=1e-9)
    some = np.where(np.arange(600) < 500, labels.astype(object), None)
    assert (predict(table.iloc[500:], some)[1].argmax(axis=1) == labels[500:]).mean() > 0.7

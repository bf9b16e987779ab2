"""How a model is chosen, what each member counts, and features and labels as the models get them."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.optimize import minimize
from sklearn.datasets import load_iris
from sklearn.exceptions import DataConversionWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict

from dualt.crossfit import ImageFeatures, image_features
from dualt.crossfit.examples import learnable_columns, read_examples
from dualt.crossfit.folds import encode_labels, make_folds
from dualt.crossfit.models import Family, families_of, fit_family, member_weights
from dualt.errors import InputError, LabelsError


@pytest.mark.parametrize("wrong", [0.0, 0.3, 0.6])
def test_the_most_regularised_within_a_standard_error_is_chosen(wrong):
    """And none is tried after one that is worse than the one before."""
    features, labels = load_iris(return_X_y=True)
    rng = np.random.default_rng(0)
    labels = np.where(rng.random(150) < wrong, rng.integers(3, size=150), labels)
    models, folds = [LogisticRegression(C=c, max_iter=5000) for c in (0.001, 0.01, 0.1, 1, 10)], make_folds(labels, 4)
    losses = []
    for model in models:
        probs = cross_val_predict(model, features, labels, cv=folds, method="predict_proba")
        losses.append(-np.log(np.maximum(probs[np.arange(150), labels], 1e-3)))
    means = [loss.mean() for loss in losses]
    n_tried = next((k + 1 for k in range(1, 5) if means[k] > means[k - 1]), 5)
    best = int(np.argmin(means[:n_tried]))
    limit = means[best] + losses[best].std() / np.sqrt(150)
    tried = []
    choice, probs = fit_family(
        Family(features, models), labels, 3, folds, n_jobs=None, on_progress=lambda *told: tried.append(told)
    )
    assert choice == next(k for k in range(n_tried) if means[k] <= limit)
    expected = cross_val_predict(models[choice], features, labels, cv=folds, method="predict_proba")
    np.testing.assert_allclose(probs, expected, atol=1e-6)
    assert tried == [("choosing a model", k + 1, 5) for k in range(n_tried)]


def test_members_count_as_the_mixture_that_fits_the_labels_best():
    rng = np.random.default_rng(0)
    members, labels = rng.dirichlet(np.ones(3), (4, 500)), rng.integers(-1, 3, 500)
    members[1, np.arange(500), labels] += 0.3
    members[2, np.arange(500), labels] += 0.2
    members /= members.sum(axis=2, keepdims=True)
    known = np.flatnonzero(labels >= 0)
    right = np.maximum(members[:, known, labels[known]], 1e-3)
    simplex = {"type": "eq", "fun": lambda w: w.sum() - 1}
    best = minimize(lambda w: -np.log(w @ right).mean(), np.full(4, 0.25), bounds=[(0, 1)] * 4, constraints=[simplex])
    found = member_weights(members, labels, weighted=True)
    assert found.sum() == pytest.approx(1)
    assert np.log(found @ right).mean() >= -best.fun - 1e-3
    np.testing.assert_allclose(found, best.x, atol=0.05)
    np.testing.assert_array_equal(member_weights(members, labels, weighted=False), 0.25)


def test_neither_texts_nor_numbers_beside_them_drown_the_other():
    rng = np.random.default_rng(0)
    words = np.array(["fox", "hen", "tea", "milk", "crab", "wave"])
    texts = [" ".join(rng.choice(words, 4)) for _ in range(80)]
    frame = pd.DataFrame({"said": texts, "size": 1000 * rng.normal(size=80), "age": rng.normal(size=80)})
    families = list(families_of(read_examples(frame, text="said"), np.arange(80) % 2, 0))
    *_, neighbours, _ = families
    assert [len(family.classifiers) for family in families] == [5, 1, 1, 2, 4]
    squares = (neighbours.features**2).mean(axis=0)
    assert squares[:-2].sum() == pytest.approx(1)
    assert squares[-2:].sum() == pytest.approx(1)
    *_, kernel = families_of(read_examples(frame[["size", "age"]]), np.arange(80) % 2, 0)
    assert kernel.classifiers[0][0].gamma == 1 / 4, "half a column's share"


@pytest.mark.parametrize(("value", "n_families"), [(1.0, 2), (0.0, 2), (-1.0, 1)])
def test_only_counts_are_for_bayes(value, n_families):
    counts = sparse.csr_array([[value, 0.0], [3 * abs(value), 2 * abs(value)]] * 5)
    assert len(list(families_of(read_examples(counts), np.arange(10) % 2, 0))) == n_families


@pytest.mark.parametrize(("n_classes", "n_sizes"), [(10, 2), (30, 1)])
def test_large_trees_need_rows_of_every_class(n_classes, n_sizes):
    table = pd.DataFrame(np.random.default_rng(0).normal(size=(600, 2)), columns=["a", "b"])
    _, boosting, *_ = families_of(read_examples(table), np.arange(600) % n_classes, 0)
    assert len(boosting.classifiers) == n_sizes


def test_texts_may_be_one_column():
    texts = np.array(["a fox", "tea", None], object)
    assert read_examples(texts[:, None], "text").texts == read_examples(texts).texts == [["a fox", "tea", ""]]
    with pytest.raises(InputError, match=r"one per row, got .* shape \(3, 2\)"):
        read_examples(np.stack([texts, texts], axis=1), "text")


def test_columns_are_texts_features_and_ids():
    rows = range(20)
    table = pd.DataFrame({
        "said": [f"tea and {row}" for row in rows], "kind": list("ab") * 10, "price": [str(row**2) for row in rows],
        "slogan": ["tea and milk"] * 20, "code": [f"x{row}" for row in rows], "row": [str(row) for row in rows],
        "orderId": [str(7 * row) for row in rows],
    })  # fmt: skip
    assert learnable_columns(table) == (["said"], ["kind", "price", "slogan"], ["code", "row", "orderId"])
    assert learnable_columns(table[:19]) == (["said"], [name for name in table if name != "said"], []), "few rows"


@pytest.mark.parametrize("text", ["我想退货，请告诉我怎么办", "荷物がまだ届きません", "ฉันลืมรหัสผ่านของฉัน"])
def test_texts_without_blanks_are_texts(text):
    table = pd.DataFrame({"said": [f"{text}{row}" for row in range(20)], "city": ["北京", "上海"] * 10})
    assert learnable_columns(table) == (["said"], ["city"], [])


def test_labels_with_some_missing_are_those_that_are_left():
    for labels in ([3, None, 1, 3], [3.0, np.nan, 1.0, 3.0]):
        classes, codes = encode_labels(np.array(labels, object), "X", missing=True)
        assert classes.tolist() == [1, 3]
        assert codes.tolist() == [1, -1, 0, 1]
    with pytest.warns(DataConversionWarning, match="column-vector"):
        assert encode_labels(np.array([[0], [1], [0]]), "X")[1].tolist() == [0, 1, 0]
    with pytest.raises(LabelsError, match="that are classes"):
        encode_labels(np.array([1, "a", 1], object), "X")


@pytest.mark.parametrize("images", [np.zeros((5, 8)), np.full((5, 8, 8), "x"), np.zeros((5, 1, 1, 8, 8))])
def test_what_is_no_image_is_refused(images):
    with pytest.raises(InputError, match="images of shape"):
        ImageFeatures().fit(images)


def test_images_have_at_least_four_pixels_each_way():
    images = np.random.default_rng(0).random((40, 4, 4))
    learnt = ImageFeatures(n_filters=5, n_components=2)
    features = learnt.fit_transform(images)
    assert features.shape == (40, 2)
    assert features.std() == pytest.approx(1, rel=1e-3)
    np.testing.assert_allclose(learnt.transform(images), features, atol=1e-4)
    with pytest.raises(InputError, match="4×4 pixels, got 4×3"):
        ImageFeatures().fit(images[:, :, :3])


def test_responses_are_those_of_a_loop_over_patches():
    """In each quadrant, the mean of what exceeds the threshold in either sign, of every filter."""
    images = np.random.default_rng(0).random((12, 9, 7)).astype(np.float32)
    learnt = ImageFeatures(n_filters=5, n_components=2).fit(images)
    side = learnt.patch_side_
    height, width = 10 - side, 8 - side
    expected = np.zeros((12, 2, 2, 2, 5))
    for number, image in enumerate(images):
        strong = {place: [] for place in np.ndindex(2, 2, 2)}
        for row, column in np.ndindex(height, width):
            patch = image[row : row + side, column : column + side].ravel()
            patch = (patch - patch.mean()) / np.sqrt(patch.var() + 1.5e-4)
            response = patch @ learnt.filters_ - learnt.bias_
            for place, sign in enumerate((1, -1)):
                quadrant = int(row >= height // 2), int(column >= width // 2), place
                strong[quadrant].append(np.maximum(sign * response - image_features._THRESHOLD, 0))
        for quadrant, found in strong.items():
            expected[(number, *quadrant)] = np.mean(found, axis=0)
    found = learnt._responses(images, np.arange(12), None)
    np.testing.assert_allclose(found, np.sqrt(expected.reshape(12, -1)), atol=1e-4)

"""RobustNetClassifier: scikit-learn's contract, string labels, folders."""

import re

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import parametrize_with_checks
from torch import nn

import dualt
from dualt.errors import DualtWarning, FileError, InputError, TransitionError, UnknownNameError
from dualt.nn.classifier import RobustNetClassifier
from dualt.nn.config import TrainingConfig
from dualt.nn.run import Stages
from dualt.nn.samples import Part, TrainingData, as_inputs

QUICK = {"epochs": 8, "network_options": {"hidden": (16,), "dropout": 0.0}, "folds": 2, "random_state": 0}


@parametrize_with_checks([RobustNetClassifier(**{**QUICK, "epochs": 24})])
def test_scikit_learn_contract(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def digits():
    x, y = load_digits(return_X_y=True)
    return x[:1200], dualt.noise.corrupt(y, dualt.noise.pair(10, 0.3))[:1200], x[1200:], y[1200:]


def test_string_labels_and_the_clean_class(digits):
    x, given, x_test, y_test = digits
    names = np.array([f"digit {number}" for number in range(10)])
    model = RobustNetClassifier(random_state=0, folds=3)
    model.fit(x, names[given])
    assert list(model.classes_) == sorted(names)
    assert (model.predict(x_test) == names[y_test]).mean() > 0.9
    probs = model.predict_proba(x_test)
    np.testing.assert_allclose(probs.sum(axis=1), 1)
    assert model.transition_estimate_.class_names == tuple(sorted(names))
    np.testing.assert_allclose(model.transition_, model.transition_estimate_.transition)
    assert list(model.history_) == ["ce", "ce-fold-1", "ce-fold-2", "ce-fold-3", "forward"]
    assert (model.method_, model.distrust_) == ("forward", None)


def test_images_and_convolutions():
    data = load_digits()
    images = np.rint(data.images * 255 / 16).astype(np.uint8)[:600]
    model = RobustNetClassifier("lenet", "ce", folds=1, random_state=0)
    model.fit(images, data.target[:600])
    assert model.model_.input_shape == (1, 8, 8)
    assert (model.predict(images) == data.target[:600]).mean() > 0.6


@pytest.fixture(scope="module")
def bytes_model(tmp_path_factory):
    """Images of bytes, a classifier that was trained on them, and the same loaded from its folder."""
    data = load_digits()
    images = np.rint(data.images * 255 / 16).astype(np.uint8)[:300]
    model = RobustNetClassifier(method="ce", **QUICK).fit(images, data.target[:300])
    folder = tmp_path_factory.mktemp("bytes")
    model.save(folder)
    return images, model, RobustNetClassifier.load(folder)


def test_the_same_pixels_give_the_same_classes_whatever_their_dtype(bytes_model):
    images, *models = bytes_model
    expected = models[0].predict_proba(images)
    for model in models:
        for dtype in (np.int64, np.float32):
            np.testing.assert_array_equal(model.predict_proba(images.astype(dtype)), expected)
        with pytest.raises(InputError, match=r"from 0 to 255.*got up to 1"):
            model.predict(images.astype(np.float32) / 255)


def test_bytes_are_refused_by_a_model_of_pixels_up_to_one():
    images = load_digits().images[:100] / 16
    model = RobustNetClassifier(method="ce", **QUICK).fit(images, load_digits().target[:100])
    with pytest.raises(InputError, match=r"from 0 to 1.*got bytes up to 255"):
        model.predict(np.rint(255 * images).astype(np.uint8))


def test_images_come_with_or_without_their_channel(bytes_model):
    images, *models = bytes_model
    for model in models:
        np.testing.assert_array_equal(model.predict_proba(images[:, None]), model.predict_proba(images))
        with pytest.raises(InputError, match="Expected samples of shape"):
            model.predict(images[:, :7])


def test_a_loaded_model_knows_its_columns(tmp_path, digits):
    frame = pd.DataFrame(digits[0][:200, :12], columns=[f"pixel {number}" for number in range(12)])
    model = RobustNetClassifier(**{**QUICK, "epochs": 1}).fit(frame, digits[1][:200])
    model.save(tmp_path)
    loaded = RobustNetClassifier.load(tmp_path)
    np.testing.assert_array_equal(loaded.predict(frame), model.predict(frame))
    with pytest.raises(ValueError, match="passed during fit"):
        loaded.predict(frame[frame.columns[::-1]])


def test_a_method_that_is_not_used_is_told(tmp_path):
    rng = np.random.default_rng(0)
    model = RobustNetClassifier(method="forward", **QUICK)
    with pytest.warns(DualtWarning, match="plain cross entropy instead of 'forward'"):
        model.fit(rng.normal(size=(120, 3)), rng.integers(2, size=120))
    model.save(tmp_path)
    loaded = RobustNetClassifier.load(tmp_path)
    assert (loaded.method_, loaded.distrust_) == ("ce", model.distrust_)
    assert isinstance(model.distrust_, str)


def test_a_callback_sees_every_epoch(digits):
    x, given, *_ = digits
    seen = []
    model = RobustNetClassifier(method="mixup", **QUICK)
    model.fit(x[:200], given[:200], on_epoch=lambda stage, record: seen.append((stage, record.loss)))
    assert seen == [("mixup", loss) for loss in model.history_["mixup"]["loss"]]


def own_network(input_shape, n_classes):
    return nn.Linear(input_shape[0], n_classes)


@pytest.mark.parametrize(("network", "method"), [("mlp", "auto"), (own_network, "auto"), ("mlp", "revision")])
def test_saved_and_loaded_it_predicts_the_same(tmp_path, digits, network, method):
    x, given, *_ = digits
    options = {**QUICK, "network_options": QUICK["network_options"] if network == "mlp" else None}
    model = RobustNetClassifier(network, method, **options).fit(x[:200], given[:200])
    model.save(tmp_path / "model")
    loaded = RobustNetClassifier.load(tmp_path / "model", network=None if network == "mlp" else network)
    np.testing.assert_array_equal(loaded.predict_proba(x), model.predict_proba(x))
    np.testing.assert_array_equal(loaded.classes_, model.classes_)
    np.testing.assert_array_equal(loaded.transition_, model.transition_)
    np.testing.assert_array_equal(loaded.learned_transition_, model.learned_transition_)
    assert (model.learned_transition_ is None) == (method == "auto")
    assert sorted(path.name for path in (tmp_path / "model").iterdir()) == ["model.safetensors"]


def test_damaged_folders_are_named(tmp_path, digits):
    x, given, *_ = digits
    with pytest.raises(FileError, match="Expected a folder that dualt train wrote"):
        RobustNetClassifier.load(tmp_path)
    RobustNetClassifier(own_network, "ce", epochs=1).fit(x[:100], given[:100]).save(tmp_path)
    with pytest.raises(InputError, match="pass the function that builds it"):
        RobustNetClassifier.load(tmp_path)
    with pytest.raises(InputError, match="another architecture"):
        RobustNetClassifier.load(tmp_path, network=lambda shape, n: nn.Linear(shape[0], n, bias=False))
    weights = tmp_path / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:50])
    with pytest.raises(FileError, match="truncated, damaged"):
        RobustNetClassifier.load(tmp_path, network=own_network)


def test_clone_and_bad_requests(digits):
    x, given, *_ = digits
    copy = clone(RobustNetClassifier("lenet", "revision", "spade", epochs=3))
    assert (copy.network, copy.method, copy.estimator, copy.epochs) == ("lenet", "revision", "spade", 3)
    with pytest.raises(NotFittedError):
        copy.predict(x)
    with pytest.raises(UnknownNameError, match="Did you mean 'forward'"):
        RobustNetClassifier(method="foward").fit(x[:50], given[:50])
    with pytest.raises(TransitionError, match=r"10×10 transition matrix, got 3×3"):
        RobustNetClassifier(transition=np.eye(3)).fit(x, given)
    with pytest.raises(InputError, match="Expected images"):
        RobustNetClassifier("resnet18").fit(x[:50], given[:50])


@pytest.mark.parametrize(
    ("labels", "said"),
    [
        ([0, 1, None, 1], "None at row 2. Drop"),
        (["a", "b", pd.NA, "b"], "<NA> at row 2. Drop"),
        (pd.array([0, 1, pd.NA, 1], dtype="Int64"), "at row 2"),
        ([0.0, 1.0, np.inf, 1.0], "inf at row 2. Drop"),
        ([0.0, 1.0, np.nan, 1.0], "nan at row 2. Drop"),
        ([0.5, 1.0, 0.2, 0.7], "labels that are classes: "),
        (np.zeros(4), "labels of at least two classes, got one class: [0.0]."),
        (np.eye(4), "fit one RobustNetClassifier per class."),
    ],
)
def test_labels_that_are_missing_or_no_classes_are_named(labels, said):
    with pytest.raises(InputError, match=re.escape(said)):
        RobustNetClassifier().fit(np.eye(4), labels)


def test_an_estimate_whose_classes_are_in_another_order_is_put_in_this_one(digits):
    x, given, _, _ = digits
    order = [3, 1, 4, 0, 5, 9, 2, 6, 8, 7]
    names = [f"digit {number}" for number in order]
    truth = dualt.noise.pair(10, 0.3)
    texts = np.array([f"digit {number}" for number in given])
    estimate = dualt.estimate_transition(truth[np.ix_(given, order)], texts, "spade", class_names=names)
    model = RobustNetClassifier(transition=estimate, method="forward", **QUICK).fit(x, texts)
    assert list(model.classes_) == sorted(names)
    place = [names.index(name) for name in model.classes_]
    np.testing.assert_allclose(model.transition_, estimate.transition[np.ix_(place, place)])


def test_channels_may_come_last():
    rng = np.random.default_rng(0)
    pixels, labels = rng.integers(256, size=(40, 8, 6, 3), dtype=np.uint8), np.arange(40) % 2
    last = RobustNetClassifier(method="ce", epochs=1, folds=1, random_state=0).fit(pixels, labels)
    first = clone(last).fit(pixels.transpose(0, 3, 1, 2), labels)
    np.testing.assert_array_equal(last.predict_proba(pixels), first.predict_proba(pixels.transpose(0, 3, 1, 2)))


@pytest.mark.parametrize("n_outputs", [9, 12])
def test_a_network_of_other_outputs_than_classes_is_refused(digits, n_outputs):
    x, given, _, _ = digits
    with pytest.raises(InputError, match=rf"10 outputs.*got .*\({n_outputs},\)"):
        RobustNetClassifier(lambda shape, _: nn.Linear(shape[0], n_outputs), "ce", epochs=1).fit(x, given)


class BagOfWords(nn.Module):
    """Looks words up by their numbers."""

    def __init__(self, n_classes, n_words=20):
        super().__init__()
        self.words, self.head = nn.Embedding(n_words, 8), nn.Linear(8, n_classes)

    def forward(self, x):
        return self.head(self.words(x.long()).mean(dim=1))


def test_networks_that_look_numbers_up_are_trained_on_samples_as_they_are():
    """As the docstring says: the classifier standardises, and the pipeline beneath it need not."""
    assert "standardised" in RobustNetClassifier.__doc__
    assert "dualt.nn.run.Stages" in RobustNetClassifier.__doc__
    rng = np.random.default_rng(0)
    clean = rng.integers(2, size=600)
    words = rng.integers(10, size=(600, 6)) + 10 * clean[:, None] * (rng.random((600, 6)) < 0.8)
    given = torch.from_numpy(dualt.noise.corrupt(clean, dualt.noise.symmetric(2, 0.2), random_state=0))
    data = TrainingData(Part(as_inputs(words), given), 500)
    config = TrainingConfig(network=lambda shape, n_classes: BagOfWords(n_classes), epochs=10, folds=2, random_state=0)
    run = Stages(data, ("0", "1"), config).run()
    found = run.networks[0](torch.from_numpy(words)).argmax(dim=1).numpy()
    assert (found == clean).mean() > 0.85
    with pytest.raises(IndexError, match="index out of range"):
        RobustNetClassifier(lambda shape, n_classes: BagOfWords(n_classes), epochs=1).fit(words, given.numpy())

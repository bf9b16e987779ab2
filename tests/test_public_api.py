"""The names that users rely on, and that registry, classes and functions agree."""

import inspect
import subprocess
import sys

import numpy as np
import pytest
from sklearn.base import clone

import dualt
from dualt.estimators import ESTIMATORS
from dualt.estimators import sklearn as classes

PROBS = np.random.default_rng(0).dirichlet(np.ones(3), 60)
LABELS = np.arange(60) % 3
CLASSES = {
    name: found
    for name, found in vars(classes).items()
    if inspect.isclass(found) and issubclass(found, classes.TransitionEstimator) and hasattr(found, "estimator")
}
PROMISED = (
    "estimate_transition", "TransitionEstimate", "TEstimator", "DualTEstimator", "clean_posterior", "l1_error",
    "to_noisy", "compose", "noise_rates", "noise", "io", "estimators", "errors", "transition", "__version__",
    "from_cleanlab", "plot_curves", "plot_transition",
)  # fmt: skip
FIELDS = (
    "transition", "estimator", "n_samples", "class_names", "noise_rate", "noise_rates", "t_club", "t_spade", "anchors",
    "confidence_interval", "diagnostics", "warnings", "to_dict", "save", "plot", "to_frame", "to_cleanlab",
)  # fmt: skip


@pytest.mark.parametrize("name", dualt.__all__)
def test_every_public_name_is_there(name):
    assert getattr(dualt, name) is not None
    assert name in dir(dualt)


@pytest.mark.parametrize("module", ["noise", "io", "estimators", "datasets", "report"])
def test_every_name_of_a_module_is_there(module):
    found = __import__(f"dualt.{module}", fromlist=["*"])
    assert all(getattr(found, name) is not None for name in found.__all__)
    assert len(set(found.__all__)) == len(found.__all__)


def test_promised_names():
    assert set(PROMISED) <= set(dualt.__all__)
    assert {"symmetric", "pair", "asymmetric", "random_diagonal_dominant", "corrupt"} <= set(dualt.noise.__all__)
    assert {"t", "dual-t", "spade", "confident-joint", "top-count", "oracle"} <= ESTIMATORS.keys()


@pytest.mark.parametrize("name", ["estimate", "Estimator", "_private"])
def test_other_names_are_not(name):
    for module in (dualt, dualt.estimators):
        with pytest.raises(AttributeError, match=name):
            getattr(module, name)


@pytest.mark.parametrize("field", FIELDS)
def test_an_estimate_has_its_fields(field):
    for method in ("dual-t", "confident-joint"):
        assert hasattr(dualt.estimate_transition(PROBS, LABELS, method), field)


def test_public_functions_and_classes_say_what_they_do():
    for name in dualt.__all__:
        if callable(getattr(dualt, name)):
            first = (inspect.getdoc(getattr(dualt, name)) or "").partition("\n")[0]
            assert first.endswith("."), name


def test_every_estimator_that_needs_no_truth_has_a_class():
    needed = {name for name, entry in ESTIMATORS.items() if not entry.needs_clean_labels}
    assert {found.estimator for found in CLASSES.values()} == needed
    assert CLASSES.keys() <= set(dualt.__all__)
    assert CLASSES.keys() <= set(dualt.estimators.__all__)


def test_every_estimator_says_what_it_does_in_one_line():
    for entry in ESTIMATORS.values():
        assert 10 < len(entry.summary) < 100
        assert "\n" not in entry.summary


@pytest.mark.parametrize("name", CLASSES)
def test_classes_take_what_the_functions_take(name):
    function = ESTIMATORS[CLASSES[name].estimator].function
    assert CLASSES[name]().get_params() == (function.__kwdefaults__ or {})


@pytest.mark.parametrize("name", CLASSES)
def test_classes_are_thin(name):
    estimator = CLASSES[name]()
    assert estimator.fit(PROBS, LABELS, class_names=["a", "b", "c"]) is estimator
    expected = dualt.estimate_transition(PROBS, LABELS, estimator.estimator)
    np.testing.assert_array_equal(estimator.transition_, expected.transition)
    assert estimator.class_names_ == ("a", "b", "c")
    assert estimator.estimate_.estimator == estimator.estimator
    copy = clone(estimator)
    assert copy.get_params() == estimator.get_params()
    assert not hasattr(copy, "transition_")


def test_parameters_reach_the_estimator():
    fitted = dualt.TEstimator(anchor="top-mean", top_k=3).fit(PROBS, LABELS)
    expected = dualt.estimate_transition(PROBS, LABELS, "t", anchor="top-mean", top_k=3)
    np.testing.assert_array_equal(fitted.transition_, expected.transition)
    assert clone(fitted).set_params(top_k=2).top_k == 2


def test_errors_are_what_python_expects_too():
    for error, builtin in (
        (dualt.errors.InputError, ValueError),
        (dualt.errors.LabelsError, ValueError),
        (dualt.errors.FileError, OSError),
        (dualt.errors.UnknownNameError, ValueError),
        (dualt.errors.MissingExtraError, ImportError),
        (dualt.errors.TrainingError, RuntimeError),
        (dualt.errors.DualtWarning, UserWarning),
    ):
        assert issubclass(error, builtin)
        assert error is dualt.errors.DualtWarning or issubclass(error, dualt.errors.DualtError)


@pytest.mark.parametrize("use", ["dualt.losses", "dualt.RobustNetClassifier"])
def test_an_absent_extra_is_named(use):
    """Without torch, what needs it says which extra brings it, in Python and on the command line."""
    hide = "import sys; sys.modules['torch'] = None; import dualt; from dualt.errors import MissingExtraError\n"
    code = hide + f"try: {use}\nexcept MissingExtraError as error: print(error)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout == f"{use} needs the extra [train]: pip install 'dualt[train]'\n"
    code = hide + "sys.argv = ['dualt', 'train', 'digits', '-o', 'm']; from dualt.cli import main; main()"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (found.returncode, found.stderr) == (
        2,
        "error: dualt train needs the extra [train]: pip install 'dualt[train]'\n",
    )

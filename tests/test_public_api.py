"""The names that users rely on, their types, and that registry, classes and functions agree."""

import ast
import importlib
import inspect
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone

import dualt
from dualt.estimators import ESTIMATORS
from dualt.estimators import sklearn as classes

ROOT = Path(dualt.__file__).parent
PROBS = np.random.default_rng(0).dirichlet(np.ones(3), 60)
LABELS = np.arange(60) % 3
CLASSES = {
    name: found
    for name, found in vars(classes).items()
    if inspect.isclass(found) and issubclass(found, classes.TransitionEstimator) and hasattr(found, "estimator")
}
PROMISED = (
    "estimate_transition", "TransitionEstimate", "TEstimator", "DualTEstimator", "clean_posterior", "l1_error",
    "to_noisy", "noise", "io", "estimators", "errors", "transition", "__version__",
    "plot_transition", "find_label_issues", "LabelIssues", "RobustClassifier",
    "RobustNetClassifier", "Audit", "noisy_accuracy", "losses", "rows", "results", "issues", "audit", "report",
    "crossfit", "datasets", "cross_fit", "OutOfFold", "TrainingDynamics",
)  # fmt: skip
FIELDS = (
    "transition", "estimator", "n_samples", "class_names", "noise_rate", "noise_rates", "t_club", "t_spade", "anchors",
    "noise_rate_interval", "audit", "confidence_interval", "diagnostics", "warnings", "to_dict", "save", "plot",
    "summary", "doubt", "rows_summary", "to_frame",
)  # fmt: skip


@pytest.mark.parametrize("name", dualt.__all__)
def test_every_public_name_is_there(name):
    assert getattr(dualt, name) is not None
    assert name in dir(dualt)


def test_public_modules_are_imported_by_their_names():
    modules = {name: found for name in dualt.__all__ if inspect.ismodule(found := getattr(dualt, name))}
    assert all(importlib.import_module(f"dualt.{name}") is module for name, module in modules.items())


def test_promised_names():
    assert set(PROMISED) <= set(dualt.__all__)
    assert {"symmetric", "pair", "asymmetric", "random_diagonal_dominant", "corrupt"} <= set(dualt.noise.__all__)
    assert {"t", "dual-t", "spade", "confident-joint", "oracle"} <= ESTIMATORS.keys()
    for module in ("noise", "io", "estimators", "datasets", "report", "issues", "results", "rows", "audit"):
        found = importlib.import_module(f"dualt.{module}")
        assert all(hasattr(found, name) for name in found.__all__)
    estimate = dualt.estimate_transition(PROBS, LABELS, "confident-joint")
    assert all(hasattr(estimate, field) for field in FIELDS)


@pytest.mark.parametrize("name", ["estimate", "Estimator", "_private"])
def test_other_names_are_not(name):
    for module in (dualt, dualt.estimators):
        with pytest.raises(AttributeError, match=name):
            getattr(module, name)


def stub_imports():
    """Return what the stub imports: the module of every name."""
    tree = ast.parse((ROOT / "__init__.pyi").read_text())
    imports = [node for node in tree.body if isinstance(node, ast.ImportFrom)]
    aliases = [(node.module, alias) for node in imports for alias in node.names]
    assert all(alias.asname == alias.name for _, alias in aliases), "only `import x as x` makes a name public"
    return {alias.name: module for module, alias in aliases}


def test_type_checkers_see_the_same_names():
    found = stub_imports()
    assert {*found, "__version__"} == set(dualt.__all__)
    assert len(set(dualt.__all__)) == len(dualt.__all__)
    for name, module in found.items():
        public = getattr(dualt, name)
        assert getattr(importlib.import_module(module), name) is public
    assert (ROOT / "py.typed").exists()


# What a user may write, and the type that a checker should see.
USES = {
    "dualt.estimate_transition(probs, labels)": "dualt.results.estimate.TransitionEstimate",
    "dualt.estimate_transition(probs, labels).transition": "numpy.ndarray",
    "dualt.find_label_issues(probs, labels)": "dualt.issues.label_issues.LabelIssues",
    "dualt.find_label_issues(probs, labels, np.eye(2), top=1).indices": "numpy.ndarray",
    "dualt.find_label_issues([[0.2, 0.8]], ['a'], estimator='t')": "dualt.issues.label_issues.LabelIssues",
    "dualt.find_label_issues(collection, labels)": "Any",
    "dualt.RobustClassifier(n_jobs=2).fit(probs, labels)": "dualt.classifier.RobustClassifier",
    "dualt.RobustNetClassifier()": "dualt.nn.classifier.RobustNetClassifier",
    "dualt.losses.ForwardLoss(np.eye(2))": "dualt.nn.losses.ForwardLoss",
    "dualt.DualTEstimator()": "dualt.estimators.sklearn.DualTEstimator",
    "dualt.noise.pair(3, 0.3)": "numpy.ndarray",
    "dualt.report.render_report(None)": "str",
    "dualt.l1_error(np.eye(2), np.eye(2))": "float",
}
MISTAKES = {
    "dualt.no_such_name": "has no attribute",
    "dualt.find_label_issues(probs, labels, method='t')": "Unexpected keyword argument",
    "dualt.find_label_issues(probs, labels).to_report('page.html', titel='')": "Unexpected keyword argument",
}
USER_SCRIPT = """import dualt
import numpy as np

class Collection:
    def __dask_graph__(self) -> dict[str, str]: ...

collection, labels = Collection(), [0, 1, 0, 1]
probs: np.typing.NDArray[np.float64] = np.full((4, 2), 0.5)
"""
# What is checked is our types, not those of the libraries, which would take minutes.
USER_CONFIG = """[mypy]
strict = True
disable_error_code = empty-body
[mypy-dualt.*]
ignore_errors = True
[mypy-torch.*,sklearn.*,pandas.*,scipy.*,matplotlib.*,dask.*,pyarrow.*]
follow_imports = skip
ignore_missing_imports = True
"""


def test_a_users_type_checker_sees_real_types(tmp_path):
    pytest.importorskip("mypy")
    (tmp_path / "mypy.ini").write_text(USER_CONFIG)
    lines = [*(f"reveal_type({use})" for use in USES), *MISTAKES]
    (tmp_path / "user.py").write_text(USER_SCRIPT + "\n".join(lines) + "\n")
    command = [sys.executable, "-m", "mypy", "--config-file", "mypy.ini", "--cache-dir", os.devnull, "user.py"]
    environment = {**os.environ, "MYPYPATH": str(ROOT.parent)}
    run = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    said = {}
    for line, words in re.findall(r"^user\.py:(\d+): (.*)$", run.stdout, re.MULTILINE):
        said.setdefault(int(line) - USER_SCRIPT.count("\n") - 1, words)
    expected = [*(f'note: Revealed type is "{kind}' for kind in USES.values()), *MISTAKES.values()]
    for place, words in enumerate(expected):
        assert words in said.get(place, "nothing"), (lines[place], run.stdout, run.stderr)
    assert said.keys() == set(range(len(lines))), run.stdout


def test_public_functions_and_classes_say_what_they_do():
    for name in dualt.__all__:
        if callable(getattr(dualt, name)):
            first = (inspect.getdoc(getattr(dualt, name)) or "").partition("\n")[0]
            assert first.endswith("."), name


def test_every_estimator_that_needs_no_truth_has_a_class():
    needed = {name for name, entry in ESTIMATORS.items() if not (entry.needs_clean_labels or entry.needs_members)}
    assert {found.estimator for found in CLASSES.values()} == needed
    assert CLASSES.keys() <= set(dualt.__all__)


@pytest.mark.parametrize("name", CLASSES)
def test_classes_are_thin_and_take_what_the_functions_take(name):
    estimator = CLASSES[name]()
    assert estimator.get_params() == (ESTIMATORS[estimator.estimator].function.__kwdefaults__ or {})
    assert estimator.fit(PROBS, LABELS, class_names=["a", "b", "c"]) is estimator
    expected = dualt.estimate_transition(PROBS, LABELS, estimator.estimator)
    np.testing.assert_array_equal(estimator.transition_, expected.transition)
    assert estimator.class_names_ == ("a", "b", "c")
    assert estimator.estimate_.estimator == estimator.estimator
    copy = clone(estimator)
    assert copy.get_params() == estimator.get_params()
    assert not hasattr(copy, "transition_")


def test_parameters_reach_the_estimator():
    fitted = dualt.TEstimator(anchor="quantile", quantile=0.5).fit(PROBS, LABELS)
    expected = dualt.estimate_transition(PROBS, LABELS, "t", anchor="quantile", quantile=0.5)
    np.testing.assert_array_equal(fitted.transition_, expected.transition)
    assert clone(fitted).set_params(quantile=0.9).quantile == 0.9


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
    assert found.returncode == 2
    assert found.stderr == "error: dualt train needs the extra [train]: pip install 'dualt[train]'\n"

"""Input that was once taken for something else, or ended in a traceback: refused in one line, or set right."""

import json

import numpy as np
import pytest
from sklearn.model_selection import RepeatedStratifiedKFold, TimeSeriesSplit

import dualt
from dualt import kernels
from dualt.errors import InputError, ProbabilitiesError
from dualt.files import json_text
from dualt.rng import stream
from dualt.rows import as_posterior
from dualt.transition import early_posterior
from tests.cli.commands import refused, run


@pytest.fixture
def files(tmp_path):
    rng = np.random.default_rng(0)
    probs = rng.dirichlet(np.full(4, 0.2), 300)
    labels = probs.argmax(axis=1)
    labels[::7] = (labels[::7] + 1) % 4
    np.save(tmp_path / "p.npy", probs)
    np.save(tmp_path / "l.npy", labels)
    rows = [f"{a:.3f},{b:.3f},{int(a > 0)}" for a, b in rng.normal(size=(60, 2))]
    (tmp_path / "t.csv").write_text("\n".join(["a,b,label", *rows]))
    return tmp_path


def test_an_output_is_no_input_even_if_that_is_named_by_a_text(files):
    before = (files / "t.csv").read_bytes()
    assert "also an input" in refused("predict", files, files / "t.csv", "-o", files / "t.csv")
    assert (files / "t.csv").read_bytes() == before


@pytest.mark.parametrize("seed", [-1, 2**32])
def test_seeds_are_whole_numbers_from_zero_on(files, seed):
    message = refused("audit", files / "l.npy", "-o", files / "a.csv", "--random-state", seed)
    assert "Invalid value for '--random-state'" in message
    with pytest.raises(InputError, match=rf"seed from 0 to .*, got {seed}"):
        stream(seed, "noise")


@pytest.mark.parametrize("features", ["x", 5, np.zeros(6), np.full((6, 2), np.nan), [["a"]] * 6, np.zeros((6, 0))])
def test_features_of_hoc_are_numbers(features):
    with pytest.raises(InputError, match=r"Expected (finite|numeric) features"):
        dualt.estimate_transition(np.eye(3)[[0, 1, 2, 0, 1, 2]], [0, 1, 2, 0, 1, 2], "hoc", features=features)


def test_a_posterior_of_labels_that_no_class_leaves_is_one():
    rng = np.random.default_rng(0)
    transition = np.array([[0.5, 0.5, 0], [0.2, 0.8, 0], [0.5, 0.5, 0]])
    centres = np.repeat(np.arange(3), 30)
    features = rng.normal(size=(90, 3)) + 4 * np.eye(3)[centres]
    model = dualt.RobustClassifier(correction="posterior", transition=transition).fit(features, centres)
    np.testing.assert_allclose(model.predict_proba(features).sum(axis=1), 1)
    np.testing.assert_array_equal(early_posterior(np.array([[0.0, 0, 1]]), transition), [[0, 0, 1]])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("total", "accepted"), [(0.987, False), (0.988, True), (1.012, True), (1.013, False)])
@pytest.mark.parametrize("compiled", [True, False])
def test_row_sums_have_one_rule_away_from_rounded_ones(dtype, total, accepted, compiled, monkeypatch):
    if not compiled:
        monkeypatch.setattr(kernels, "library", None)
    elif not kernels.library:
        pytest.skip("no compiled kernels")
    probs = np.tile(np.array([total / 3] * 3, dtype), (40, 1))
    if accepted:
        assert as_posterior(probs, np.arange(40) % 3).summary.n_samples == 40
    else:
        with pytest.raises(ProbabilitiesError, match="sum to 1"):
            _ = as_posterior(probs, np.arange(40) % 3).summary


def test_json_has_no_infinity(files):
    np.save(files / "one.npy", np.tile([[0.5, 0.5]], (20, 1)))
    np.save(files / "two.npy", np.arange(20) % 2)
    result = run("estimate", files / "one.npy", files / "two.npy", "-e", "t", "--json", "-o", files / "e.json")
    assert json.loads(result.stdout, parse_constant=pytest.fail)["diagnostics"]["condition_number"] is None
    json.loads((files / "e.json").read_text(), parse_constant=pytest.fail)


def test_json_text_leaves_finite_content_alone():
    content = {"a": [1.5, "Infinity", None], "b": {"c": [float("inf"), (float("nan"), -0.0)]}}
    assert json.loads(json_text(content)) == {"a": [1.5, "Infinity", None], "b": {"c": [None, [None, -0.0]]}}


def test_control_characters_of_file_names_reach_no_terminal(files):
    folder = files / "evil\x1b]0;owned\x07\x9b2J\u202e"
    folder.mkdir()
    for name in ("p.npy", "l.npy"):
        (folder / name).write_bytes((files / name).read_bytes())
    data = (folder / "p.npy", folder / "l.npy")
    for code, *arguments in (
        (0, "estimate", *data),
        (0, "issues", *data, "-o", folder / "i.csv", "--report", folder / "r.html"),
        (2, "issues", folder / "absent.npy", data[1]),
        (2, "estimate", data[1], data[1]),
        (0, "audit", data[1], "-o", folder / "a.csv"),
    ):
        output = run(*arguments, code=code).output
        assert not {*output} & {*"\x1b\x07\x9b\u202e"}, arguments


def test_a_list_of_classes_that_is_empty(files):
    (files / "r.csv").write_text("index,old,new\n0,0,1\n")
    for name, text in (("none.txt", "\n"), ("none.json", "[]")):
        (files / name).write_text(text)
        arguments = ("apply-review", files / "t.csv", files / "r.csv", "-o", files / "new.csv", "--classes")
        assert "Expected class names in" in refused(*arguments, files / name)


def test_folds_that_leave_rows_out_are_named():
    labels = np.tile(np.arange(3), 30)
    features = np.random.default_rng(0).normal(size=(90, 3)) + 3 * np.eye(3)[labels]
    with pytest.raises(InputError, match=r"row 0 in 0 folds of cv=TimeSeriesSplit"):
        dualt.RobustClassifier(cv=TimeSeriesSplit(3)).fit(features, labels)
    with pytest.raises(InputError, match="every row once"):
        dualt.RobustClassifier(cv=RepeatedStratifiedKFold(n_splits=2, n_repeats=2)).fit(features, labels)


@pytest.mark.parametrize("estimator", ["t", "dual-t", "spade", "clean-count", "confident-joint", "joint", "selective"])
def test_labels_that_contradict_the_predictions_are_noticed(estimator):
    probs = np.random.default_rng(0).dirichlet(np.full(5, 0.05), 600)
    labels = probs.argmax(axis=1)
    codes = [notice.code for notice in dualt.estimate_transition(probs, (labels + 1) % 5, estimator).warnings]
    assert codes[0] == "low-agreement"
    labels[::3] = (labels[::3] + 1) % 5
    noisy = dualt.estimate_transition(probs, labels, estimator)
    assert "low-agreement" not in [notice.code for notice in noisy.warnings]


def test_a_classifier_at_chance_is_not_called_contradictory():
    rng = np.random.default_rng(0)
    estimate = dualt.estimate_transition(rng.dirichlet(np.ones(5), 500), rng.integers(0, 5, 500), "spade")
    assert "low-agreement" not in [notice.code for notice in estimate.warnings]


@pytest.mark.parametrize("option", ["--set=width=nan", "--set=width=inf", "--set=width=0", "--random-state=-1"])
def test_training_options_that_cannot_be(files, option):
    pytest.importorskip("torch")
    arguments = ("train", files / "t.csv", "-o", files / "m", "--network", "mlp", "--epochs", "1", option)
    assert ("random-state" if "random" in option else "width") in refused(*arguments)
    assert not (files / "m" / "model.json").exists()

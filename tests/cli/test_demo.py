"""`dualt demo`: the main job where the truth is known."""

import json

import pytest
from typer.testing import CliRunner

from dualt.cli import app
from dualt.estimators import ESTIMATORS


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*arguments):
    return CliRunner().invoke(app, ["demo", *arguments])


def test_every_estimator_is_held_against_the_truth(folder):
    result = run("--noise", "sym-0.2", "--no-network", "--json", "--random-state", "3", "--report", "page.html")
    assert result.exit_code == 0, result.exception
    content = json.loads(result.stdout)
    assert content["errors"].keys() == ESTIMATORS.keys()
    # Counting the truth itself errs by sampling only: some 135 labels a class, ten entries.
    assert content["errors"]["oracle"] < 0.2
    # A fifth of the 1,347 training labels.
    assert content["wrong"] == pytest.approx(269, abs=50)
    assert content["flagged_and_wrong"] <= min(content["flagged"], content["wrong"])
    assert content["flagged_and_wrong"] > 0.8 * content["flagged"]
    assert content["accuracy"].keys() == {"plain", "robust"}
    assert [path.name for path in folder.iterdir()] == ["page.html"]


def test_the_picture_is_for_people(folder):
    result = run("--no-network")
    assert result.exit_code == 0, result.exception
    assert "1,347 images of digits" in result.stdout
    for name in ESTIMATORS:
        assert name in result.stdout
    assert "Next" in result.stdout
    assert "5. A network on the same images: left out (--no-network)" in result.stdout


def test_where_torch_is_missing_it_says_how_to_get_it(folder, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert "5. A network on the same images: pip install 'dualt[train]'" in run().stdout


def test_the_page_opens_if_asked(folder, monkeypatch):
    opened = []
    monkeypatch.setattr("typer.launch", opened.append)
    result = run("--no-network", "--open", "--json")
    assert result.exit_code == 0, result.exception
    assert opened == [str(folder / "demo-report.html")]


@pytest.mark.slow
def test_networks_are_trained_too(folder):
    pytest.importorskip("torch")
    result = run("--json")
    assert result.exit_code == 0, result.exception
    accuracy = json.loads(result.stdout)["accuracy"]
    assert accuracy.keys() == {"plain", "robust", "cross entropy", "forward"}
    assert accuracy["forward"] > accuracy["cross entropy"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--noise", "pears-0.3"], "Unknown noise 'pears'"),
        (["--noise", "pair"], "Expected noise like"),
        (["--noise", "sym-200"], "rate"),
        (["--noise", "sym-nan"], "rate"),
        (["--report", "absent/page.html"], "does not exist"),
    ],
)
def test_mistakes_are_refused_and_nothing_is_written(folder, arguments, message):
    result = run(*arguments)
    assert result.exit_code == 2
    assert result.stderr.startswith("error: ")
    assert message in result.stderr
    assert result.stdout == ""
    assert list(folder.iterdir()) == []

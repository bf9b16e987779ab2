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
    result = run("--json")
    assert result.exit_code == 0, result.exception
    content = json.loads(result.stdout)
    assert content["errors"].keys() == ESTIMATORS.keys() - {"views"}, "all that need one model"
    # Counting the truth itself errs by sampling only: some 135 labels a class, ten entries.
    assert content["errors"]["oracle"] < 0.2
    # 30 % of the 1,347 training labels.
    assert content["wrong"] == pytest.approx(404, abs=50)
    assert content["flagged_and_wrong"] <= min(content["flagged"], content["wrong"])
    assert content["flagged_and_wrong"] > 0.8 * content["flagged"]
    assert content["wrong_after_correction"] < 0.5 * content["wrong"]
    assert min(content["accuracy"][name] for name in ("corrected", "noise-aware")) > content["accuracy"]["as given"]
    assert [path.name for path in folder.iterdir()] == ["demo-report.html"]


def test_the_finding_comes_first(folder):
    result = run()
    assert result.exit_code == 0, result.exception
    words = ("truly wrong", "labels as given", "corrected labels", "given label", "hoc", "Next")
    order = [result.stdout.index(each) for each in words]
    assert order == sorted(order)

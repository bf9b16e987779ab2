"""`dualt demo`: the main job where the truth is known."""

import json

import pytest

from tests.cli.commands import run


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_finding_is_held_against_the_truth(folder):
    content = json.loads(run("demo", "--json").stdout)
    assert content["error"] < 0.2
    # 30 % of the 1,347 training labels.
    assert content["wrong"] == pytest.approx(404, abs=50)
    assert content["flagged_and_wrong"] <= min(content["flagged"], content["wrong"])
    assert content["flagged_and_wrong"] > 0.8 * content["flagged"]
    assert content["wrong_after_correction"] < 0.5 * content["wrong"]
    assert min(content["accuracy"][name] for name in ("corrected", "noise-aware")) > content["accuracy"]["as given"]
    assert [path.name for path in folder.iterdir()] == ["demo-report.html"]


def test_the_finding_comes_first(folder):
    shown = run("demo").stdout
    words = ("truly wrong", "labels as given", "corrected labels", "given label", "Next")
    order = [shown.index(each) for each in words]
    assert order == sorted(order)

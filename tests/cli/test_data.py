"""`dualt data get`; downloads themselves are in tests/datasets/test_download.py."""

import json

from typer.testing import CliRunner

from dualt.cli.data import app
from dualt.errors import FileError, UnknownNameError


def run(*words):
    return CliRunner().invoke(app, ["get", *map(str, words)])


def test_get_says_what_was_downloaded(tmp_path, monkeypatch):
    monkeypatch.setenv("DUALT_DATA", str(tmp_path))
    new = [tmp_path / "MNIST/raw/x.gz"]
    monkeypatch.setattr("dualt.datasets.download", lambda name: list(new))
    assert f"downloaded {new[0]}" in run("mnist").stdout
    answer = json.loads(run("mnist", "--json").stdout)
    assert answer == {"name": "mnist", "root": str(tmp_path), "fetched": [str(new.pop())]}
    assert "already in" in run("mnist").stdout
    assert run("digits").stdout == "digits: built in, nothing to download\n"


def test_mistakes_are_errors_and_help_has_an_example():
    assert isinstance(run("minst").exception, UnknownNameError)
    assert isinstance(run("clothing1m").exception, FileError)
    assert "Example: dualt data get mnist" in run("--help").stdout

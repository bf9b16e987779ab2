"""`dualt data`, run as a user would."""

import hashlib
import json
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pytest
from typer.testing import CliRunner

from dualt.cli.data import app
from dualt.datasets import REGISTRY, publishers
from dualt.errors import FileError, UnknownNameError

run = CliRunner().invoke


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@pytest.fixture
def served(tmp_path, monkeypatch):
    """Let this machine play the publisher of MNIST, with one file; return its content."""
    content = b"not quite idx"
    (tmp_path / "x.gz").write_bytes(content)
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(tmp_path))) as http:
        url, checksum = f"http://127.0.0.1:{http.server_port}/x.gz", f"md5:{hashlib.md5(content).hexdigest()}"
        monkeypatch.setattr(publishers, "SOURCES", {"mnist": (publishers.RemoteFile(url, checksum, "MNIST/raw/x.gz"),)})
        thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield content
        http.shutdown()
        thread.join()


def test_list_tells_what_is_here(tmp_path):
    (tmp_path / "MNIST/raw").mkdir(parents=True)
    result = run(app, ["list", "--data-dir", str(tmp_path), "--json"])
    assert result.exit_code == 0
    listed = json.loads(result.stdout)
    assert listed["root"] == str(tmp_path)
    present = {row["name"]: row["present"] for row in listed["datasets"]}
    assert list(present) == list(REGISTRY)
    assert {name for name, here in present.items() if here} == {"synthetic", "digits", "mnist"}


def test_list_for_people(tmp_path, monkeypatch):
    monkeypatch.setenv("DUALT_DATA", str(tmp_path))
    lines = run(app, ["list"]).stdout.splitlines()
    assert lines[0] == f"Data sets in {tmp_path}:"
    assert [line.split()[0] for line in lines[1:]] == list(REGISTRY)
    assert "not here" in next(line for line in lines if "cifar100" in line)


def test_get_fetches_once_and_again_by_force(tmp_path, served):
    arguments = ["get", "mnist", "--data-dir", str(tmp_path / "root")]
    target = tmp_path / "root/MNIST/raw/x.gz"
    result = run(app, [*arguments, "--json"])
    assert result.exit_code == 0
    assert json.loads(result.stdout) == {"name": "mnist", "root": str(tmp_path / "root"), "fetched": [str(target)]}
    assert target.read_bytes() == served
    assert "already in" in run(app, arguments).stdout
    target.write_bytes(b"damaged")
    assert f"fetched {target}" in run(app, [*arguments, "--force"]).stdout
    assert target.read_bytes() == served


def test_get_of_what_is_built_in():
    assert run(app, ["get", "digits"]).stdout == "digits: built in, nothing to fetch\n"


def test_mistakes_are_errors_of_ours():
    assert isinstance(run(app, ["get", "minst"]).exception, UnknownNameError)
    assert isinstance(run(app, ["get", "clothing1m"]).exception, FileError)


@pytest.mark.parametrize("command", ["get", "list"])
def test_help_shows_an_example(command):
    result = run(app, [command, "--help"])
    assert result.exit_code == 0
    assert f"Example: dualt data {command}" in result.stdout

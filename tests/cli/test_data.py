"""`dualt data`, run as a user would."""

import hashlib
import json
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pytest
from typer.testing import CliRunner

from dualt.cli.data import app
from dualt.datasets import published
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
        monkeypatch.setattr(published, "SOURCES", {"mnist": (published.RemoteFile(url, checksum, "MNIST/raw/x.gz"),)})
        thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield content
        http.shutdown()
        thread.join()


def test_get_downloads_what_is_missing(tmp_path, served):
    arguments = ["get", "mnist", "--data-dir", str(tmp_path / "root")]
    target = tmp_path / "root/MNIST/raw/x.gz"
    result = run(app, [*arguments, "--json"])
    assert result.exit_code == 0
    assert json.loads(result.stdout) == {"name": "mnist", "root": str(tmp_path / "root"), "fetched": [str(target)]}
    assert target.read_bytes() == served
    assert "already in" in run(app, arguments).stdout
    target.unlink()
    assert f"downloaded {target}" in run(app, arguments).stdout


def test_get_of_what_is_built_in():
    assert run(app, ["get", "digits"]).stdout == "digits: built in, nothing to download\n"


def test_mistakes_are_errors_of_ours():
    assert isinstance(run(app, ["get", "minst"]).exception, UnknownNameError)
    assert isinstance(run(app, ["get", "clothing1m"]).exception, FileError)


def test_help_shows_an_example():
    assert "Example: dualt data get mnist" in run(app, ["get", "--help"]).stdout

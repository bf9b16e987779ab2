"""Downloading from a server on this machine."""

import hashlib
import io
import re
import shutil
import tarfile
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pytest

from dualt.datasets import REGISTRY, download
from dualt.datasets.catalog import Entry
from dualt.datasets.synthetic import load_synthetic
from dualt.errors import FileError, UnknownNameError


class Handler(SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def do_GET(self):
        self.server.requests.append(self.path)
        super().do_GET()


@pytest.fixture
def server(tmp_path):
    folder = tmp_path / "served"
    folder.mkdir()
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(folder))) as http:
        http.requests = []
        http.folder = folder
        http.url = f"http://127.0.0.1:{http.server_port}"
        thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield http
        http.shutdown()
        thread.join()


def serve(server, name, content):
    """Return the address of a file and its checksum."""
    (server.folder / name).write_bytes(content)
    return {f"{server.url}/{name}": hashlib.md5(content).hexdigest()}


@pytest.fixture
def get(tmp_path, monkeypatch):
    """Return a function that downloads files as the data set `toy`, below `tmp_path/root`."""

    def get(files):
        monkeypatch.setenv("DUALT_DATA", str(tmp_path / "root"))
        monkeypatch.setitem(REGISTRY, "toy", Entry(load_synthetic, "toy", files))
        return download("toy")

    return get


def tar_bytes(*members):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        for name, content in members:
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


def left_below(root):
    return sorted(str(path.relative_to(root)) for path in root.rglob("*")) if root.exists() else []


def test_files_and_archives_are_put_in_place(server, tmp_path, get):
    root = tmp_path / "root"
    assert get(serve(server, "one.gz", b"x" * 200_000)) == [root / "toy/one.gz"]
    assert (root / "toy/one.gz").read_bytes() == b"x" * 200_000
    shutil.rmtree(root)
    assert get(serve(server, "two.tar.gz", tar_bytes(("toy/a.bin", b"a"), ("junk", b"")))) == [root / "toy"]
    assert left_below(root) == ["toy", "toy/a.bin"]


def test_what_is_there_is_kept(server, tmp_path, get):
    (tmp_path / "root/toy").mkdir(parents=True)
    (tmp_path / "root/toy/old.bin").write_bytes(b"old")
    assert get(serve(server, "two.tar.gz", tar_bytes(("toy/a.bin", b"new")))) == []
    assert server.requests == []
    assert left_below(tmp_path / "root") == ["toy", "toy/old.bin"]


def test_a_file_with_a_wrong_checksum_is_refused_and_removed(server, tmp_path, get):
    tampered = dict.fromkeys(serve(server, "one.gz", b"tampered"), hashlib.md5(b"original").hexdigest())
    with pytest.raises(FileError, match=r"Refused http.*one\.gz: expected the MD5"):
        get(serve(server, "zero.gz", b"fine") | tampered)
    assert left_below(tmp_path / "root") == ["toy", "toy/zero.gz"]


def test_a_missing_file_or_server_is_an_error(server, tmp_path, get):
    for url in (f"{server.url}/absent.gz", "http://127.0.0.1:9/absent.gz"):
        with pytest.raises(FileError, match=r"Cannot download http.*absent\.gz"):
            get({url: "0" * 32})
        assert left_below(tmp_path / "root") == []


def test_names(monkeypatch):
    monkeypatch.setenv("DUALT_DATA", "/nowhere")
    assert download("digits") == []
    with pytest.raises(UnknownNameError, match="Did you mean 'cifar10'"):
        download("cifar-10")
    with pytest.raises(FileError, match=r"on request.*github\.com/Cysu.*/nowhere/clothing1M/noisy_train_key_list"):
        download("clothing1m")


def test_every_source_is_encrypted_and_checked():
    files = [file for entry in REGISTRY.values() for file in entry.files.items()]
    for url, md5 in files:
        assert url.startswith("https://")
        assert re.fullmatch("[0-9a-f]{32}", md5)
    assert len({md5 for _, md5 in files}) == len(files) == 10

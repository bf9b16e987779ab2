"""Downloading from a server on this machine."""

import hashlib
import io
import re
import tarfile
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pytest

from dualt.datasets import REGISTRY, download
from dualt.datasets.published import SOURCES, RemoteFile
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
    (server.folder / name).write_bytes(content)
    return f"{server.url}/{name}", f"md5:{hashlib.md5(content).hexdigest()}"


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


def test_plain_files_and_archives_are_put_in_place(server, tmp_path):
    root = tmp_path / "new" / "root"
    sources = {
        "toy": (
            RemoteFile(*serve(server, "one.gz", b"x" * 200_000), "Toy/raw/one.gz"),
            RemoteFile(*serve(server, "two.tar.gz", tar_bytes(("toy-bin/a.bin", b"a"), ("junk", b""))), "toy-bin"),
        )
    }
    assert download("toy", root, sources=sources) == [root / "Toy/raw/one.gz", root / "toy-bin"]
    assert left_below(root) == ["Toy", "Toy/raw", "Toy/raw/one.gz", "toy-bin", "toy-bin/a.bin"]
    assert (root / "Toy/raw/one.gz").read_bytes() == b"x" * 200_000


def test_what_is_there_is_kept(server, tmp_path):
    archive = serve(server, "two.tar.gz", tar_bytes(("toy-bin/a.bin", b"new")))
    sources = {"toy": (RemoteFile(*archive, "toy-bin"),)}
    (tmp_path / "root/toy-bin").mkdir(parents=True)
    (tmp_path / "root/toy-bin/old.bin").write_bytes(b"old")
    assert download("toy", tmp_path / "root", sources=sources) == []
    assert server.requests == []
    assert left_below(tmp_path / "root") == ["toy-bin", "toy-bin/old.bin"]


def test_a_file_with_a_wrong_checksum_is_refused_and_removed(server, tmp_path):
    url, _ = serve(server, "one.gz", b"tampered")
    good = RemoteFile(*serve(server, "zero.gz", b"fine"), "Toy/zero.gz")
    sources = {"toy": (good, RemoteFile(url, f"md5:{hashlib.md5(b'original').hexdigest()}", "Toy/one.gz"))}
    with pytest.raises(FileError, match=r"Refused http.*one\.gz: expected the checksum md5:"):
        download("toy", tmp_path / "root", sources=sources)
    assert left_below(tmp_path / "root") == ["Toy", "Toy/zero.gz"]


@pytest.mark.parametrize("name", ["../escaped", "toy-bin/../../escaped"])
def test_an_archive_that_leads_out_is_refused_and_nothing_stays(server, tmp_path, name):
    archive = serve(server, "evil.tar.gz", tar_bytes(("toy-bin/a.bin", b"a"), (name, b"evil")))
    with pytest.raises(FileError, match=r"Cannot unpack .*evil\.tar\.gz"):
        download("toy", tmp_path / "root", sources={"toy": (RemoteFile(*archive, "toy-bin"),)})
    assert left_below(tmp_path / "root") == []
    assert not list(tmp_path.rglob("*escaped*"))


def test_an_archive_without_its_folder_is_refused(server, tmp_path):
    archive = serve(server, "x.tar.gz", tar_bytes(("other/a.bin", b"a")))
    with pytest.raises(FileError, match=r"the folder 'toy-bin' in http.*x\.tar\.gz"):
        download("toy", tmp_path / "root", sources={"toy": (RemoteFile(*archive, "toy-bin"),)})
    assert left_below(tmp_path / "root") == []


def test_a_missing_file_or_server_is_told(server, tmp_path):
    for url in (f"{server.url}/absent.gz", "http://127.0.0.1:9/absent.gz"):
        with pytest.raises(FileError, match=r"Cannot download http.*absent\.gz"):
            download("toy", tmp_path / "root", sources={"toy": (RemoteFile(url, "md5:" + "0" * 32, "t.gz"),)})
        assert left_below(tmp_path / "root") == []


def test_a_root_that_cannot_be_made_is_told(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(FileError, match="Cannot write below"):
        download("mnist", tmp_path / "file" / "root")


def test_names():
    assert download("digits", "/nowhere") == []
    with pytest.raises(UnknownNameError, match="Did you mean 'cifar10'"):
        download("cifar-10")
    with pytest.raises(FileError, match=r"on request.*github\.com/Cysu.*/nowhere/clothing1M/noisy_train_key_list"):
        download("clothing1m", "/nowhere")


def test_every_source_is_encrypted_checked_and_where_its_loader_looks():
    assert {*SOURCES, "clothing1m"} == set(REGISTRY)
    for name, files in SOURCES.items():
        for file in files:
            assert file.url.startswith("https://")
            assert re.fullmatch(r"md5:[0-9a-f]{32}", file.checksum)
            assert file.target.startswith(REGISTRY[name].folder)
    assert len({file.checksum for files in SOURCES.values() for file in files}) == 10

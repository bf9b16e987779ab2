"""No file makes `dualt` run code: no call that could is in the source, and hostile files are tried on readers."""

import ast
import contextlib
import io
import os
import pickle
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

import dualt
from dualt.errors import DualtError

sys.path.insert(0, str(Path(__file__).parent))
from test_one_gate import ALL

ROOT = Path(dualt.__file__).parent
# It reads operations and carries out those that build numbers, strings, lists and arrays; it calls nothing.
FORBIDDEN_MODULES = {
    "pickle",
    "cPickle",
    "_pickle",
    "cloudpickle",
    "dill",
    "marshal",
    "shelve",
    "yaml",
    "telnetlib",
    "pickletools",
}
FORBIDDEN_CALLS = {
    "eval", "exec", "compile", "__import__", "os.system", "os.popen", "torch.load", "joblib.load", "pickle.load",
    "pickle.loads", "yaml.load", "tempfile.mktemp", "shutil.unpack_archive", "torch.hub.load",
}  # fmt: skip
FORBIDDEN_ENDINGS = (".from_pickle", ".read_pickle")


def names_of_imports(node):
    if isinstance(node, ast.Import):
        return {alias.name.partition(".")[0] for alias in node.names}
    return {(node.module or "").partition(".")[0]} if isinstance(node, ast.ImportFrom) else set()


@pytest.mark.parametrize("path", sorted(ROOT.rglob("*.py")), ids=lambda path: str(path.relative_to(ROOT)))
def test_the_source_has_no_call_that_runs_what_a_file_says(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        assert not names_of_imports(node) & FORBIDDEN_MODULES
        if not isinstance(node, ast.Call):
            continue
        name, text = ast.unparse(node.func), ast.unparse(node)
        assert name not in FORBIDDEN_CALLS
        assert not name.endswith(FORBIDDEN_ENDINGS)
        assert not name.endswith(".extractall") or "filter='data'" in text
        assert "shell=True" not in text
        assert "verify=False" not in text
        assert "allow_pickle=True" not in text
        if name in ("np.load", "numpy.load", "npy.read_array", "np.save"):
            assert "allow_pickle=False" in text


@pytest.mark.parametrize("source", ["import pickle", "eval('1')", "subprocess.run('x', shell=True)", "np.load(path)"])
def test_the_rule_finds_what_it_forbids(source, tmp_path):
    (tmp_path / "bad.py").write_text(source)
    with pytest.raises(AssertionError):
        test_the_source_has_no_call_that_runs_what_a_file_says(tmp_path / "bad.py")


class Hostile:
    """Its pickle makes a file when it is loaded."""

    def __init__(self, canary):
        self.canary = canary

    def __reduce__(self):
        return os.mkdir, (str(self.canary),)


def object_array(canary):
    stream = io.BytesIO()
    np.save(stream, np.array([Hostile(canary)], dtype=object), allow_pickle=True)
    return stream.getvalue()


def archive(**members):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as zipped:
        for name, content in members.items():
            zipped.writestr(name, content)
    return stream.getvalue()


def torch_file(canary):
    torch = pytest.importorskip("torch")
    stream = io.BytesIO()
    torch.save({"weight": Hostile(canary)}, stream)
    return stream.getvalue()


PAYLOADS = {
    "pickle 0": lambda canary: pickle.dumps(Hostile(canary), 0),
    "pickle 2": lambda canary: pickle.dumps(Hostile(canary), 2),
    "pickle 5": lambda canary: pickle.dumps({"data": Hostile(canary)}, 5),
    ".npy of objects": object_array,
    ".npz of objects": lambda canary: archive(**{
        f"{name}.npy": object_array(canary) for name in ("probs", "X", "y", "label", "version")
    }),
    ".npz of pickles": lambda canary: archive(**{"probs.npy": pickle.dumps(Hostile(canary)), "data.pkl": b""}),
    "torch.save": torch_file,
}  # fmt: skip


@pytest.mark.parametrize("payload", PAYLOADS)
def test_the_payload_works_where_it_is_let_in(payload, tmp_path):
    """It does what it threatens, so that the test below can fail."""
    content = PAYLOADS[payload](tmp_path / "ran")
    if payload == "torch.save":
        import torch

        torch.load(io.BytesIO(content), weights_only=False)
    elif payload.startswith("pickle"):
        pickle.loads(content)
    elif payload == ".npz of pickles":
        pickle.loads(zipfile.ZipFile(io.BytesIO(content)).read("probs.npy"))
    else:
        loaded = np.load(io.BytesIO(content), allow_pickle=True)
        assert payload == ".npy of objects" or loaded["probs"] is not None
    assert (tmp_path / "ran").exists()


@pytest.mark.parametrize(("name", "read"), ALL)
def test_no_reader_runs_a_payload(name, read, tmp_path):
    path, canary = tmp_path / name, tmp_path / "ran"
    for payload, make in PAYLOADS.items():
        path.write_bytes(make(canary))
        with contextlib.suppress(DualtError):
            read(path)
        assert not canary.exists(), payload

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
FORBIDDEN_MODULES = {"pickle", "_pickle", "cloudpickle", "dill", "marshal", "shelve", "yaml", "pickletools"}
FORBIDDEN_CALLS = {
    "eval", "exec", "compile", "__import__", "os.system", "os.popen", "torch.load", "joblib.load", "pickle.load",
    "pickle.loads", "yaml.load", "tempfile.mktemp", "shutil.unpack_archive", "torch.hub.load",
}  # fmt: skip


def names_of_imports(node):
    if isinstance(node, ast.Import):
        return {alias.name.partition(".")[0] for alias in node.names}
    return {(node.module or "").partition(".")[0]} if isinstance(node, ast.ImportFrom) else set()


def forbidden(source):
    """Return the statements of a source that could run what a file says, or pickle."""
    for node in ast.walk(ast.parse(source)):
        if names_of_imports(node) & FORBIDDEN_MODULES:
            yield ast.unparse(node)
        if isinstance(node, ast.Call):
            name, text = ast.unparse(node.func), ast.unparse(node)
            if (
                name in FORBIDDEN_CALLS
                or name.endswith((".from_pickle", ".read_pickle"))
                or (name.endswith(".extractall") and "filter='data'" not in text)
                or any(words in text for words in ("shell=True", "verify=False", "allow_pickle=True"))
                or (name in ("np.load", "npy.read_array", "np.save") and "allow_pickle=False" not in text)
            ):
                yield text


def test_the_source_has_no_call_that_runs_what_a_file_says():
    found = {path.name: [*forbidden(path.read_text(encoding="utf-8"))] for path in ROOT.rglob("*.py")}
    assert {name: statements for name, statements in found.items() if statements} == {}


@pytest.mark.parametrize("source", ["import pickle", "eval('1')", "subprocess.run('x', shell=True)", "np.load(path)"])
def test_the_rule_finds_what_it_forbids(source):
    assert [*forbidden(source)]


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
    "pickle": lambda canary: pickle.dumps({"data": Hostile(canary)}),
    ".npy of objects": object_array,
    ".npz of objects": lambda canary: archive(**{
        f"{name}.npy": object_array(canary) for name in ("probs", "X", "y", "label", "version")
    }),
    ".npz of pickles": lambda canary: archive(**{"probs.npy": pickle.dumps(Hostile(canary)), "data.pkl": b""}),
    "torch.save": torch_file,
}  # fmt: skip


@pytest.mark.parametrize(("name", "read"), ALL)
def test_no_reader_runs_a_payload(name, read, tmp_path):
    path, canary = tmp_path / name, tmp_path / "ran"
    for payload, make in PAYLOADS.items():
        path.write_bytes(make(canary))
        with contextlib.suppress(DualtError):
            read(path)
        assert not canary.exists(), payload

"""One gate opens inputs: no reader hangs on a pipe, reads a device without end, or takes a folder for a file."""

import ast
import os
from importlib import import_module
from pathlib import Path

import pytest

import dualt
from dualt import io
from dualt.audit import read_sheet
from dualt.datasets import load_dataset
from dualt.datasets.images import image_size_and_mode
from dualt.datasets.published import read_idx
from dualt.errors import FileError
from dualt.io.arrays import open_npz
from dualt.issues import read_review
from dualt.report import text_previews

ROOT = Path(dualt.__file__).parent
GATE = ROOT / "files.py"
FILES = [path for path in sorted(ROOT.rglob("*.py")) if path != GATE]
OPENERS = (
    "open", "fdopen", "read_text", "read_bytes", "write_text", "write_bytes", "ZipFile", "GzipFile", "ParquetFile",
    "fromfile", "tofile", "memmap", "mmap", "np.load", "torch.load", "loadtxt", "genfromtxt", "load_file", "safe_open",
    "savefig", "copyfile", "copy2",
)  # fmt: skip
# What takes a stream or a name that the gate has passed, a temporary file of our own, or a file of the package.
ALLOWED = {
    "cli/guard.py": {"values[name].open('wb')", "target.read_bytes()"},
    "datasets/images.py": {"Image.open(stream, formats="},
    "datasets/published.py": {"gzip.GzipFile(fileobj=file)", "tarfile.open(fileobj=stream"},
    "io/arrays.py": {"zipfile.ZipFile(stream)", "self._archive.open(entry)", "mmap.mmap(stream.fileno()"},
    "io/load.py": {"ParquetTable.open(path)", "JsonLinesTable.open(path)", "TextTable.open(path"},
    "io/parquet.py": {"pq.ParquetFile(check_readable(path)"},
    "io/rewrite.py": {"zipfile.ZipFile(stream)", "zipfile.ZipFile(out", "new.open("},
    "io/shards.py": {"block.open()"},
    "io/text_table.py": {"np.loadtxt(stream"},
    "nn/networks/weights.py": {"load_file(check_readable(path))"},
    "nn/training/checkpoint.py": {"safe_open(check_readable(path)"},
    "nn/training/folder.py": {"os.open(path, os.O_RDWR | os.O_CREAT"},
    "report/page.py": {"(folder / name).read_text("},
    "reproduce/figures.py": {"figure.savefig(stream"},
    "reproduce/experiments.py": {"(files('dualt.reproduce') / "},
    "reproduce/results.py": {"(files('dualt.reproduce') / "},
    "reproduce/sweep.py": {"os.open(path, os.O_RDWR | os.O_APPEND"},
}


def openings(source):
    """Yield the calls that open a file, or may do so."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            if name != "read_text" and (name in OPENERS or name.rpartition(".")[2] in OPENERS):
                yield ast.unparse(node)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_nothing_else_opens_a_file(path):
    allowed = ALLOWED.get(path.relative_to(ROOT).as_posix(), set())
    assert [call for call in openings(path.read_text()) if not call.startswith(tuple(allowed))] == []


@pytest.mark.parametrize(
    "source", ["open(path)", "safe_open(path)", "path.open()", "Path(x).read_text()", "np.load(path)", "gzip.open(p)"]
)
def test_the_rule_finds_what_it_forbids(source):
    assert list(openings(source)) == [source]


def npz(path):
    with open_npz(path):
        pass


def networks(module):
    pytest.importorskip("torch")
    return import_module(f"dualt.nn.{module}")


READERS = {
    "x.npy": [io.load_probabilities, io.load_labels, io.load_transition],
    "x.npz": [npz, io.load_summary, load_dataset],
    "x.csv": [io.load_probabilities, io.load_labels, load_dataset],
    "x.tsv": [io.load_probabilities],
    "x.parquet": [io.load_probabilities, io.load_labels, load_dataset],
    "x.txt": [io.load_labels, io.load_class_names],
    "x.json": [io.load_class_names, io.load_transition],
    "x.gz": [lambda path: read_idx(path, 3)],
    "x.png": [image_size_and_mode],
    "lines.txt": [lambda path: text_previews(path, [0], n_samples=1)],
    "review.csv": [read_review],
    "audit.csv": [read_sheet],
    "model.json": [lambda path: networks("training.model").Model.load(path.parent)],
    "w.safetensors": [
        lambda path: networks("networks.weights").read_weights(path),
        lambda path: networks("training.checkpoint").read_checkpoint(path),
    ],
}


@pytest.mark.parametrize(("name", "read"), [(name, read) for name, readers in READERS.items() for read in readers])
def test_what_is_no_regular_file_is_refused(tmp_path, name, read):
    for kind, message in (
        ("pipe", "device or a pipe"),
        ("zero", "device or a pipe"),
        ("folder", "folder"),
        ("gone", "o such"),
    ):
        path = tmp_path / kind / name
        path.parent.mkdir()
        if kind == "pipe":
            os.mkfifo(path)
        elif kind == "zero":
            path.symlink_to("/dev/zero")
        elif kind == "folder":
            path.mkdir()
        with pytest.raises(FileError, match=message):
            read(path)


def test_json_of_any_size_is_not_read(tmp_path):
    with (tmp_path / "t.json").open("wb") as stream:
        stream.truncate(1 << 40)
    with pytest.raises(FileError, match=r"at most 67,108,864 bytes, got 1,099,511,627,776 in .*t\.json"):
        io.load_transition(tmp_path / "t.json")

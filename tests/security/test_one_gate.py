"""One gate opens inputs: no reader hangs on a pipe, reads a device without end, or takes a folder for a file."""

import os
from importlib import import_module

import numpy as np
import pandas as pd
import pytest

from dualt import io
from dualt.audit import read_sheet
from dualt.datasets import load_dataset
from dualt.errors import DualtError, FileError
from dualt.io.load import load_array
from dualt.io.table_columns import choose_columns
from dualt.issues import read_review


def read_weights(path):
    pytest.importorskip("torch")
    return import_module("dualt.nn.storage").read_tensors(path)


READERS = {
    "x.npy": [io.load_labels, io.load_transition],
    "x.npz": [lambda path: load_array(path, ["x"]), load_dataset],
    "x.csv": [io.read_table, io.open_table, io.load_labels, load_dataset],
    "x.tsv": [io.read_table],
    "x.jsonl": [io.read_table],
    "x.parquet": [io.read_table, io.load_labels, load_dataset],
    "x.txt": [io.load_labels, io.load_class_names],
    "x.json": [io.load_class_names, io.load_transition],
    "review.csv": [read_review],
    "audit.csv": [read_sheet],
    "w.safetensors": [read_weights],
}
ALL = [(name, read) for name, readers in READERS.items() for read in readers]


@pytest.mark.parametrize(("name", "read"), ALL)
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


@pytest.mark.parametrize("ending", ["csv", "tsv", "jsonl", "parquet", "feather", "npy", "npz"])
def test_a_damaged_file_is_read_or_refused_with_one_error_that_names_it(tmp_path, ending):
    path, rng = tmp_path / f"t.{ending}", np.random.default_rng(0)
    frame = pd.DataFrame({"p_a": [0.25, 0.5], "p_b": [0.75, 0.5], "label": ["a", 'b "c"']})
    if ending == "npy":
        np.save(path, frame[["p_a", "p_b"]].to_numpy())
    elif ending == "npz":
        np.savez_compressed(path, probs=frame[["p_a", "p_b"]].to_numpy())
    else:
        io.write_table(path, frame)
    content = path.read_bytes()
    for _ in range(100):
        damaged = bytearray(content[: rng.integers(len(content) // 2, len(content) + 1)])
        for place in rng.integers(0, len(damaged), 3):
            damaged[place] = rng.integers(256)
        path.write_bytes(damaged)
        try:
            if ending in ("npy", "npz"):
                load_array(path)
            else:
                table = io.open_table(path)
                table.read_numbers(choose_columns(table)[0])
        except DualtError as error:
            assert f"t.{ending}" in str(error)  # noqa: PT017

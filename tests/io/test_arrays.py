"""`.npy` and `.npz`: mapped, checked, never unpickled."""

import io
import os

import numpy as np
import pytest

from dualt.errors import FileError
from dualt.io.load import load_array, open_npz
from tests.strategies import is_mapped

ARRAY = np.arange(12.0).reshape(4, 3)


class Trap:
    """Leaves a mark where it is unpickled."""

    def __init__(self, mark):
        self.mark = mark

    def __reduce__(self):
        return os.mkdir, (str(self.mark),)


def saved(array, **options):
    stream = io.BytesIO()
    np.save(stream, array, **options)
    return stream.getvalue()


@pytest.mark.parametrize("dtype", ["<f2", "<f4", ">f8", "i8", "u1", "?", "<U5"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_arrays_come_back_mapped(tmp_path, dtype, order):
    array = np.asarray(ARRAY.astype(dtype), order=order)
    np.save(tmp_path / "a.npy", array)
    found = load_array(tmp_path / "a.npy")
    assert is_mapped(found)
    assert not found.flags.writeable
    np.testing.assert_array_equal(found, array)


def test_an_empty_array_is_read(tmp_path):
    np.save(tmp_path / "a.npy", np.empty((0, 3)))
    assert load_array(tmp_path / "a.npy").shape == (0, 3)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"1,2\n3,4\n",
        saved(ARRAY)[:-1],
        saved(ARRAY)[:60],
        saved(ARRAY).replace(b"(4, 3)", b"(-4,3)"),
        saved(ARRAY).replace(b"(4, 3), }        ", b"(4, 9999999), }  "),
        saved(ARRAY).replace(b"}    ", b"(   ("),
        saved(ARRAY).replace(b"<f8", b"<q9"),
    ],
)
def test_damaged_files_are_refused(tmp_path, content):
    (tmp_path / "a.npy").write_bytes(content)
    with pytest.raises(FileError, match=r"a\.npy"):
        load_array(tmp_path / "a.npy")


def test_objects_are_refused_and_never_unpickled(tmp_path):
    mark = tmp_path / "mark"
    trap = np.array([Trap(mark), 1], dtype=object)
    np.save(tmp_path / "a.npy", trap, allow_pickle=True)
    np.savez(tmp_path / "a.npz", probs=trap)
    with pytest.raises(FileError, match=r"a\.npy.*Python objects.*nothing is unpickled"):
        load_array(tmp_path / "a.npy")
    with pytest.raises(FileError, match=r"a\.npz.*Python objects"):
        load_array(tmp_path / "a.npz", ["probs"])
    assert not mark.exists()
    np.load(tmp_path / "a.npy", allow_pickle=True)
    assert mark.exists(), "the trap must be armed, else the test shows nothing"


def test_a_single_value_is_no_array_of_rows(tmp_path):
    np.savez(tmp_path / "a.npz", probs=3)
    with pytest.raises(FileError, match=r"an array of rows in .*a\.npz, got a single value"):
        load_array(tmp_path / "a.npz")


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_npz_by_name_or_as_the_only_array(tmp_path, save):
    save(tmp_path / "two.npz", probs=ARRAY, other=ARRAY + 1)
    np.testing.assert_array_equal(load_array(tmp_path / "two.npz", ["absent", "probs"]), ARRAY)
    save(tmp_path / "one.npz", anything=ARRAY)
    np.testing.assert_array_equal(load_array(tmp_path / "one.npz", ["probs"]), ARRAY)
    with pytest.raises(FileError, match=r"named x or y in .*two\.npz, got probs, other"):
        load_array(tmp_path / "two.npz", ["x", "y"])
    with open_npz(tmp_path / "two.npz") as archive:
        np.testing.assert_array_equal(archive["other"], ARRAY + 1)


def test_npz_cut_short_anywhere_is_refused(tmp_path):
    np.savez_compressed(tmp_path / "whole.npz", probs=ARRAY)
    content = (tmp_path / "whole.npz").read_bytes()
    for length in range(0, len(content), 7):
        (tmp_path / "a.npz").write_bytes(content[:length])
        with pytest.raises(FileError, match=r"a\.npz"):
            load_array(tmp_path / "a.npz", ["probs"])

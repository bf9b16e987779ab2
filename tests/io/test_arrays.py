"""`.npy` and `.npz`: mapped, checked, never unpickled."""

import io
import mmap
import os
import tracemalloc
import zipfile

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dualt.errors import FileError
from dualt.io.arrays import open_npz, read_npy, read_npz

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
    found = read_npy(tmp_path / "a.npy")
    assert isinstance(found.base, mmap.mmap)
    assert not found.flags.writeable
    assert found.dtype == array.dtype
    np.testing.assert_array_equal(found, array)


def test_an_empty_array_is_read(tmp_path):
    np.save(tmp_path / "a.npy", np.empty((0, 3)))
    assert read_npy(tmp_path / "a.npy").shape == (0, 3)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "empty"),
        (b"1,2\n3,4\n", "a.npy as .npy"),
        (saved(ARRAY)[:-1], "promises 224 bytes, the file has 223"),
        (saved(ARRAY)[:60], "a.npy as .npy"),
        (saved(ARRAY)[:7], "a.npy as .npy"),
        (saved(ARRAY).replace(b"(4, 3)", b"(-4,3)"), r"shape \(-4, 3\)"),
        (saved(ARRAY).replace(b"(4, 3), }     ", b"(4000000000, 3), }"[:14]), "a.npy as .npy"),
        (saved(ARRAY).replace(b"(4, 3), }        ", b"(4, 9999999), }  "), "promises 320,000,096"),
        (saved(ARRAY).replace(b"}    ", b"(   ("), "a.npy as .npy"),
        (saved(ARRAY).replace(b"<f8", b"<q9"), "a.npy as .npy"),
        (saved(ARRAY).replace(b"NUMPY\x01", b"NUMPY\x09"), "a.npy as .npy"),
    ],
)
def test_damaged_files_are_refused(tmp_path, content, message):
    (tmp_path / "a.npy").write_bytes(content)
    with pytest.raises(FileError, match=message):
        read_npy(tmp_path / "a.npy")


def test_objects_are_refused_and_never_unpickled(tmp_path):
    mark = tmp_path / "mark"
    trap = np.array([Trap(mark), 1], dtype=object)
    np.save(tmp_path / "a.npy", trap, allow_pickle=True)
    np.savez(tmp_path / "a.npz", probs=trap)
    with pytest.raises(FileError, match=r"Refused .*a\.npy: it holds Python objects"):
        read_npy(tmp_path / "a.npy")
    with pytest.raises(FileError, match=r"Refused probs in .*a\.npz: it holds Python objects"):
        read_npz(tmp_path / "a.npz", ["probs"])
    assert not mark.exists()
    np.load(tmp_path / "a.npy", allow_pickle=True)
    assert mark.exists(), "the trap must be armed, else the test shows nothing"


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=300)
@given(st.lists(st.tuples(st.integers(0, 127), st.sampled_from(b"()-9'L{}, \n\x00\xff")), min_size=1, max_size=4))
def test_any_header_is_read_or_refused(tmp_path, changes):
    content = bytearray(saved(ARRAY))
    for place, value in changes:
        content[place] = value
    (tmp_path / "a.npy").write_bytes(content)
    try:
        read_npy(tmp_path / "a.npy")
    except FileError as error:
        assert "a.npy" in str(error)  # noqa: PT017


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_npz_by_name_or_as_the_only_array(tmp_path, save):
    save(tmp_path / "two.npz", probs=ARRAY, other=ARRAY + 1)
    np.testing.assert_array_equal(read_npz(tmp_path / "two.npz", ["absent", "probs"]), ARRAY)
    save(tmp_path / "one.npz", anything=ARRAY)
    np.testing.assert_array_equal(read_npz(tmp_path / "one.npz", ["probs"]), ARRAY)
    with pytest.raises(FileError, match=r"named x or y in .*two\.npz, got probs, other"):
        read_npz(tmp_path / "two.npz", ["x", "y"])
    with open_npz(tmp_path / "two.npz") as archive:
        assert archive.names == ("probs", "other")
        np.testing.assert_array_equal(archive.read("other"), ARRAY + 1)


def test_npz_cut_short_anywhere_is_refused(tmp_path):
    np.savez_compressed(tmp_path / "whole.npz", probs=ARRAY)
    content = (tmp_path / "whole.npz").read_bytes()
    for length in range(0, len(content), 7):
        (tmp_path / "a.npz").write_bytes(content[:length])
        with pytest.raises(FileError, match=r"a\.npz"):
            read_npz(tmp_path / "a.npz", ["probs"])


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=200)
@given(st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 255)), min_size=1, max_size=3))
def test_a_damaged_npz_is_read_or_refused(tmp_path, changes):
    stream = io.BytesIO()
    np.savez_compressed(stream, probs=ARRAY)
    content = bytearray(stream.getvalue())
    for place, value in changes:
        content[place % len(content)] = value
    (tmp_path / "a.npz").write_bytes(content)
    try:
        read_npz(tmp_path / "a.npz", ["probs"])
    except FileError as error:
        assert "a.npz" in str(error)  # noqa: PT017


def test_a_lying_header_takes_no_memory(tmp_path):
    with zipfile.ZipFile(tmp_path / "liar.npz", "w") as archive:
        archive.writestr("probs.npy", saved(ARRAY).replace(b"(4, 3), }         ", b"(4, 999999999), } "))
    (tmp_path / "liar.npy").write_bytes(saved(ARRAY).replace(b"(4, 3), }         ", b"(4, 999999999), } "))
    tracemalloc.start()
    with pytest.raises(FileError, match=r"probs promises 32,000,000,096 bytes, there are 224"):
        read_npz(tmp_path / "liar.npz", ["probs"])
    with pytest.raises(FileError, match=r"promises 32,000,000,096 bytes"):
        read_npy(tmp_path / "liar.npy")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 5 << 20


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("ending", [".npy", ".npz"])
def test_characters_that_do_not_exist_are_refused(tmp_path, ending, order):
    """Python fails on such texts in unforeseen places, as in `lower`."""
    path = tmp_path / f"names{ending}"
    texts = np.array([0x61, 0x110000], f"{order}u4").view(f"{order}U1")
    np.save(path, texts) if ending == ".npy" else np.savez(path, texts=texts)
    with pytest.raises(FileError, match="characters that do not exist"):
        read_npy(path) if ending == ".npy" else read_npz(path, ["texts"])
    texts = np.array(["a", "ü", "\U0010ffff"], f"{order}U1")
    np.save(path, texts) if ending == ".npy" else np.savez(path, texts=texts)
    assert (read_npy(path) if ending == ".npy" else read_npz(path, ["texts"])).tolist() == texts.tolist()

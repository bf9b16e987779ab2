"""The reader of pickles against pickle itself for plain data, and against hostile files."""

import os
import pickle
import pickletools
import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dualt.datasets.pickled import read_pickle
from dualt.errors import FileError

plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary(min_size=1),
    lambda inner: st.lists(inner) | st.tuples(inner, inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@pytest.fixture(scope="module")
def scratch(tmp_path_factory):
    return tmp_path_factory.mktemp("pickles") / "file"


@pytest.mark.parametrize("protocol", [2, 3, 4])
@settings(deadline=None)
@given(value=plain)
def test_plain_data_reads_as_pickle_reads_it(scratch, protocol, value):
    scratch.write_bytes(pickle.dumps(value, protocol))
    assert read_pickle(scratch) == value


@pytest.mark.parametrize("protocol", [2, 3, 4])
@pytest.mark.parametrize("dtype", ["u1", "i1", "<i2", "<u4", "<i8", "<f4", "<f8", "?"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_arrays_read_as_pickle_reads_them(scratch, protocol, dtype, order):
    array = np.asarray(np.arange(24).reshape(2, 3, 4), dtype, order=order)
    scratch.write_bytes(pickle.dumps({"a": array, "again": array, "list": [array]}, protocol))
    got = read_pickle(scratch)
    for copy in (got["a"], got["again"], got["list"][0]):
        np.testing.assert_array_equal(copy, array)
        assert copy.dtype == array.dtype
    assert got["a"].flags.writeable


def test_bytes_keys_become_text(scratch):
    scratch.write_bytes(pickle.dumps({b"data": 1}, 4))
    assert read_pickle(scratch) == {"data": 1}


class Evil:
    def __init__(self, function, *arguments):
        self.call = function, arguments

    def __reduce__(self):
        return self.call


@pytest.mark.parametrize("protocol", range(6))
def test_a_hostile_pickle_runs_nothing(scratch, tmp_path, protocol):
    witness = tmp_path / "witness"
    for evil in (Evil(os.mkdir, str(witness)), Evil(eval, f"__import__('os').mkdir({str(witness)!r})")):
        scratch.write_bytes(pickle.dumps({"data": evil}, protocol))
        with pytest.raises(FileError, match="Refused"):
            read_pickle(scratch)
        assert not witness.exists()
    pickle.loads(scratch.read_bytes())
    assert witness.exists(), "the file is harmless: the test tests nothing"
    witness.rmdir()


def test_the_name_that_a_hostile_file_wants_is_told(scratch):
    scratch.write_bytes(pickle.dumps(Evil(os.system, "true"), 2))
    with pytest.raises(FileError, match=r"names 'posix\.system'"):
        read_pickle(scratch)


def assemble(*parts):
    return b"".join(part if isinstance(part, bytes) else pickle.dumps(part, 2)[2:-1] for part in parts) + b"."


RECONSTRUCT = b"cnumpy.core.multiarray\n_reconstruct\n" + b"cnumpy\nndarray\n" + b"K\x00\x85U\x01b\x87R"
BYTES = b"cnumpy\ndtype\n" + b"U\x02u1K\x00K\x01\x87R"


def array_state(shape, data, dtype=BYTES):
    sides = b"(" + b"".join(b"\x8a" + bytes([8]) + struct.pack("<q", side) for side in shape) + b"t"
    return RECONSTRUCT + b"(K\x01" + sides + dtype + b"\x89" + b"T" + struct.pack("<i", len(data)) + data + b"tb"


def test_the_hand_written_array_is_a_pickle(scratch):
    """So that the refusals below are about what they say."""
    scratch.write_bytes(assemble(array_state((2, 3), b"abcdef")))
    np.testing.assert_array_equal(read_pickle(scratch), [[97, 98, 99], [100, 101, 102]])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "Refused"),
        (b"not a pickle", "Refused"),
        (pickle.dumps([1, 2, 3], 2)[:-1], "Refused"),
        (pickle.dumps("x" * 300, 2)[:50], "Refused"),
        (b"\x80\x02.", "empty"),
        (b"\x80\x02\x85.", "stack is empty"),
        (b"\x80\x02K\x01K\x02a.", "not a list"),
        (b"\x80\x02K\x01U\x01aK\x02s.", "not a dict"),
        (b"\x80\x02K\x01..", "more bytes follow"),
        (b"\x80\x02K\x01a.", "Refused"),
        (b"\x80\x02K\x01K\x02R.", "calls something that is not a function"),
        (b"\x80\x02K\x01}b.", "sets the state of a int"),
        (b"\x80\x02h\x05.", "Refused"),
        (b"\x80\x02Pspy\n.", "PERSID is not allowed"),
        (assemble(array_state((10**6, 10**6), bytes(100))), "100 bytes, which do not fit its shape"),
        (assemble(array_state((-1, -6), b"abcdef")), "shape of an array"),
        (assemble(array_state((6,), b"abcdef", b"cnumpy\ndtype\nU\x02O8K\x00K\x01\x87R")), "unusual arguments"),
        (assemble(array_state((6,), b"abcdef", b"K\x01")), "something else than numbers"),
        (pickle.dumps(np.array([{}, []], dtype=object), 2), "unusual arguments"),
        (pickle.dumps(np.zeros(3, ">f8"), 2), "unusual type"),
        (pickle.dumps(np.zeros(3, "i4,f8"), 2), "unusual arguments"),
        (pickle.dumps({(1, 2): 3}, 2), "a key of a dict is of type tuple"),
    ],
)
def test_anything_else_is_refused(scratch, content, message):
    scratch.write_bytes(content)
    with pytest.raises(FileError, match=message) as caught:
        read_pickle(scratch)
    assert str(scratch) in str(caught.value)


def test_a_small_file_cannot_fill_the_memory(scratch):
    """A megabyte of text, encoded again and again from the memo: ten bytes of file for each megabyte."""
    text = "x" * (1 << 20)
    encode = b"c_codecs\nencode\nh\x00U\x06latin1\x86R0"
    content = b"\x80\x02X" + struct.pack("<I", len(text)) + text.encode() + b"q\x00" + encode.replace(b"0", b"") * 50
    list(pickletools.genops(content + b"."))
    scratch.write_bytes(content + b".")
    with pytest.raises(FileError, match="blows itself up"):
        read_pickle(scratch)


def test_deep_nesting_does_not_overflow(scratch):
    scratch.write_bytes(b"\x80\x02)" + b"\x85" * 50_000 + b".")
    value, depth = read_pickle(scratch), 0
    while value:
        value, depth = value[0], depth + 1
    assert depth == 50_000

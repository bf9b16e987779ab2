"""Small files that unpack to gigabytes are refused before they are unpacked."""

import numpy as np
import pytest

from dualt import io
from dualt.errors import FileError
from dualt.files import check_expansion


@pytest.fixture(autouse=True)
def small_limit(monkeypatch):
    monkeypatch.setattr("dualt.files._EXPANDED", 1 << 24)


@pytest.fixture
def parquet(tmp_path):
    """A function that writes a Parquet file of one value, over and over, and returns its path."""
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")

    def write(value, n_rows, n_groups):
        path = tmp_path / "x.parquet"
        table = pa.table({"label": pa.repeat(pa.scalar(value), n_rows)})
        with pq.ParquetWriter(path, table.schema) as writer:
            for _ in range(n_groups):
                writer.write_table(table)
        return path

    return write


def test_labels_repeated_without_end_are_refused(parquet):
    path = parquet(3, 1_000_000, 2)
    assert path.stat().st_size < 20_000
    with pytest.raises(FileError, match=r"unpack to at most [\d,]+ bytes, .*got 48,000,000\. If .*\.npy"):
        io.load_labels(path)
    with pytest.raises(FileError, match="unpack"):
        io.load_texts(path, "label")


def test_long_names_count_as_wide_as_they_are(parquet):
    """Each group is small enough, all together are not."""
    path = parquet("x" * 900, 4_000, 4)
    with pytest.raises(FileError, match="unpack"):
        io.load_labels(path)
    texts = io.load_texts(path, "label")  # rows of the same text share it
    assert len(texts) == 16_000
    assert len({id(text) for text in texts}) <= 4


def test_repeated_labels_of_a_usual_size_are_read(parquet):
    labels = io.load_labels(parquet("cat", 200_000, 2))
    assert labels.shape == (400_000,)
    assert set(labels[::1000].tolist()) == {"cat"}


@pytest.mark.parametrize("codec", ["zstd", "gzip", "brotli", "lz4"])
def test_pages_count_as_large_as_they_say(codec, tmp_path):
    """Forty texts, in pages that unpack to a megabyte each; the file's description of its sizes is not asked."""
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    table, path = pa.table({"label": ["x" * 1_000_000] * 40}), tmp_path / "x.parquet"
    pq.write_table(table, path, compression=codec, use_dictionary=False, write_statistics=False)
    assert path.stat().st_size < 200_000
    for read in (io.load_labels, lambda path: io.load_texts(path, "label")):
        with pytest.raises(FileError, match=r"unpack to at most [\d,]+ bytes, .*got 40,000,\d\d\d\. "):
            read(path)


@pytest.mark.parametrize("n_texts", [20_000, 40])
def test_texts_that_repeat_the_one_before(n_texts, tmp_path):
    """Some hundred bytes of what is new in each of many texts, and a few texts that are long."""
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    path, texts = tmp_path / "x.parquet", ["x" * (20_000_000 // n_texts + number) for number in range(n_texts)]
    pq.write_table(
        pa.table({"label": texts}), path, compression="zstd", use_dictionary=False, write_statistics=False,
        column_encoding={"label": "DELTA_BYTE_ARRAY"},
    )  # fmt: skip
    assert path.stat().st_size < 1_000
    for read in (io.load_labels, lambda path: io.load_texts(path, "label")):
        with pytest.raises(FileError, match="unpack to at most"):
            read(path)


def test_a_description_of_columns_that_overlap_is_refused(tmp_path):
    """Each would be walked through: without end, if there are many."""
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"label": ["x"] * 8}), path, compression="zstd", write_statistics=False)
    whole, size = path.read_bytes(), pq.read_metadata(path).row_group(0).column(0).total_compressed_size
    # Field 7, of 64 bits, twice the number for its sign: a number of the same length that is larger than the file.
    field = b"\x16" + bytes([2 * size & 127 | 128, 2 * size >> 7])
    footer = len(whole) - 8 - int.from_bytes(whole[-8:-4], "little")
    place = whole.index(field, footer)
    path.write_bytes(whole[:place] + b"\x16\xff\x7f" + whole[place + 3 :])
    with pytest.raises(FileError, match="description of itself is damaged"):
        io.load_labels(path)


def test_deflated_zeros_are_refused(tmp_path):
    np.savez_compressed(tmp_path / "x.npz", pred_probs=np.zeros((300_000, 8)))
    with pytest.raises(FileError, match="unpack to at most"):
        io.load_probabilities(tmp_path / "x.npz")


def test_the_limit_grows_with_the_file(tmp_path):
    (tmp_path / "x").write_bytes(bytes(1000))
    check_expansion((1 << 24) + 64_000, tmp_path / "x")
    with pytest.raises(FileError, match="unpack"):
        check_expansion((1 << 24) + 64_001, tmp_path / "x")


def test_texts_that_are_no_utf8_are_refused(tmp_path):
    """Found by fuzzing."""
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    pq.write_table(pa.table({"label": ["cat", "dog"]}), tmp_path / "x.parquet", compression="none")
    (tmp_path / "x.parquet").write_bytes((tmp_path / "x.parquet").read_bytes().replace(b"cat", b"\x80at"))
    for read in (io.load_labels, lambda path: io.load_texts(path, "label")):
        with pytest.raises(FileError, match="as Parquet"):
            read(tmp_path / "x.parquet")

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

"""Parquet of other writers: every encoding of texts is read, and a corrected table keeps types, notes and groups."""

import datetime

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dualt import io
from dualt.io import parquet, parquet_pages

TEXTS = [f"class {number % 7}" for number in range(200)]
ENCODINGS = ["PLAIN", "DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY"]


@pytest.mark.parametrize("rows_at_once", ["group", "batch"])
@pytest.mark.parametrize("encoding", ENCODINGS)
def test_texts_of_every_encoding(encoding, rows_at_once, tmp_path, monkeypatch):
    if rows_at_once == "batch":
        monkeypatch.setattr(parquet, "_GROUP_BYTES", 0)
    path = tmp_path / "x.parquet"
    pq.write_table(
        pa.table({"label": TEXTS}), path, use_dictionary=False, column_encoding={"label": encoding}, row_group_size=90
    )
    assert io.load_labels(path, column="label").tolist() == TEXTS
    assert io.load_texts(path, "label") == TEXTS


def test_a_column_whose_dictionary_gets_too_large(tmp_path):
    """The writer goes on with plain pages."""
    path, texts = tmp_path / "x.parquet", [f"{number:0200d}" for number in range(3_000)]
    pq.write_table(pa.table({"label": texts}), path, dictionary_pagesize_limit=1_000, data_page_size=2_000)
    assert {"PLAIN", "RLE_DICTIONARY"} <= {*pq.read_metadata(path).row_group(0).column(0).encodings}
    assert io.load_texts(path, "label") == texts


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"use_dictionary": False, "column_encoding": {"text": "DELTA_BYTE_ARRAY", "label": "DELTA_LENGTH_BYTE_ARRAY"}},
        {"compression": "zstd", "row_group_size": 4},
        {"store_schema": False},
    ],
)
def test_a_corrected_table_keeps_types_notes_and_groups(options, tmp_path):
    paris = datetime.timezone(datetime.timedelta(hours=1))
    table = pa.table(
        {
            "when": pa.array([datetime.datetime(2020, 1, day, tzinfo=paris) for day in range(1, 7)]),
            "kind": pa.array(list("abcabc")).dictionary_encode(),
            "list": [["x"], ["y", "z"], [], None, ["q"], ["x"]],
            "text": ["é", None, "t", "", "u", "u"],
            "bytes": [b"1"] * 6,
            "large": pa.array(list("abcdef"), pa.large_string()),
            "half": np.ones(6, np.float16),
            "label": list("xyxyxy"),
        }
    ).replace_schema_metadata({"pandas": "{}", "mine": "kept"})
    path, new = tmp_path / "x.parquet", tmp_path / "new.parquet"
    pq.write_table(table, path, **options)
    given = io.load_labels(path, column="label")
    io.save_corrected(new, np.array(list("xxxyxy")), path, given, column="label")
    before, after = pq.ParquetFile(path), pq.ParquetFile(new)
    assert after.schema_arrow.equals(before.schema_arrow, check_metadata=True)
    assert (after.metadata.metadata or None) == before.metadata.metadata
    assert after.read().drop_columns("label").equals(before.read().drop_columns("label"))
    assert after.read()["label"].to_pylist() == list("xxxyxy")
    sizes = [
        [file.metadata.row_group(group).num_rows for group in range(file.num_row_groups)] for file in (before, after)
    ]
    assert sizes[0] == sizes[1]


def test_a_long_text_over_and_over_is_corrected_in_little_memory(tmp_path):
    n_rows, pool = 20_000, pa.proxy_memory_pool(pa.default_memory_pool())
    text = pa.DictionaryArray.from_arrays(pa.array(np.zeros(n_rows, np.int32)), pa.array(["x" * 10_000]))
    labels = np.where(np.arange(n_rows) % 2, "a", "b")
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"text": text, "label": labels}), path, store_schema=False)
    assert pq.read_schema(path).field("text").type == pa.string()
    corrected = labels.copy()
    corrected[1] = "b"
    given = io.load_labels(path, column="label")
    before = pa.default_memory_pool()
    pa.set_memory_pool(pool)
    try:
        io.save_corrected(tmp_path / "new.parquet", corrected, path, given, column="label")
    finally:
        pa.set_memory_pool(before)
    assert 0 < pool.max_memory() < 20 << 20 < n_rows * 10_000
    assert pq.read_table(tmp_path / "new.parquet", columns=["label"])["label"].to_pylist() == corrected.tolist()


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("codec", ["none", "snappy", "zstd", "gzip", "brotli", "lz4"])
def test_sizes_of_pages_are_those_that_arrow_adds_up(codec, version, tmp_path):
    path, rng = tmp_path / "x.parquet", np.random.default_rng(0)
    table = pa.table({"a": rng.random(5_000), "b": np.arange(5_000) % 3, "c": ["text"] * 5_000, "d": [[1, 2]] * 5_000})
    pq.write_table(
        table, path, compression=codec, data_page_version=version, data_page_size=4_000, row_group_size=2_000
    )
    data, metadata, columns = path.read_bytes(), pq.read_metadata(path), 0
    for column in parquet_pages._columns(data):
        group, place = divmod(columns, 4)
        said = metadata.row_group(group).column(place)
        pages = [*parquet_pages._pages(data, column)]
        # Arrow counts the headers as well, of at least 10 and, with statistics, some 100 bytes.
        headers = said.total_uncompressed_size - sum(size for size, _ in pages)
        assert 10 * len(pages) < headers < 120 * len(pages)
        assert said.path_in_schema.split(".") == [name.decode() for name in column[3]]
        columns += 1
    assert columns == 3 * 4

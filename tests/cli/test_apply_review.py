"""`dualt apply-review`: the same table comes back, other labels aside, and a review of other labels is refused."""

import csv
from pathlib import Path

import numpy as np
import pytest

from tests.cli.commands import run

LABELS = ["cat", "dog", "", 'a, "b"\nc', "dog", "007", "cat"]


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def write_review(path="review.csv", rows=((1, "dog", "cat"), (4, "dog", 'a, "b"\nc'), (6, "cat", "cat")), **columns):
    with Path(path).open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["index", "old", "new", *columns])
        writer.writerows([*row, *(values[at] for values in columns.values())] for at, row in enumerate(rows))


def apply(source, target, *options):
    return run("apply-review", source, "review.csv", "-o", target, *options)


TEXT = (
    '\ufeff"sku";text;label;price\r\n'
    'a1;"emoji 🦊; ""quoted""";"cat";1,50\r\n'
    "a2;plain;dog;2,00\r\n"
    "a2;no label;;3,00\r\n"
    "\r\n"
    'a4;"two\r\nlines";"a, ""b""\nc";\r\n'
    "a5;; dog;1e3\r\n"
    "007;x;007;-1\r\n"
    "a7;last line has no end;cat;0"
)


def cells(text):
    return [row for row in csv.reader(text.removeprefix("\ufeff").splitlines(keepends=True), delimiter=";") if row]


def test_a_csv_comes_back_with_every_cell(tmp_path):
    (tmp_path / "mine.csv").write_bytes(TEXT.encode())
    write_review(rows=[(1, "dog", "cat"), (3, 'a, "b"\nc', "dog"), (5, "007", 'a, "b"\nc'), (6, "cat", "cat")])
    apply("mine.csv", "out.csv", "--label", "label")
    expected = cells(TEXT)
    expected[2][2], expected[4][2], expected[6][2] = "cat", "dog", 'a, "b"\nc'
    assert cells((tmp_path / "out.csv").read_bytes().decode()) == expected
    assert (tmp_path / "mine.csv").read_bytes().decode() == TEXT


@pytest.mark.parametrize("kind", ["csv", "tsv", "parquet", "jsonl"])
def test_every_format_comes_back_with_all_it_had(tmp_path, kind):
    import pandas as pd

    frame = pd.DataFrame(
        {
            "id": ["007", "2", "2", "=1+1", "é", "", "z"],
            "price": [1.5, 2.0, np.nan, 1e300, -0.1, 0.1, 3.0],
            "label": [label or None for label in LABELS],
            "n": range(7),
        }
    )
    if kind == "parquet":
        frame.astype({"label": "category"}).to_parquet("mine.parquet", compression="gzip", row_group_size=3)
    elif kind == "jsonl":
        frame.to_json("mine.jsonl", orient="records", lines=True)
    else:
        frame.to_csv(f"mine.{kind}", index=False, sep="\t" if kind == "tsv" else ",")
    write_review()
    apply(f"mine.{kind}", f"out.{kind}", "--label", "label")
    expected = [*LABELS]
    expected[1], expected[4] = "cat", 'a, "b"\nc'
    read = {
        "parquet": pd.read_parquet,
        "jsonl": lambda path: pd.read_json(path, lines=True, dtype=False),
        "csv": lambda path: pd.read_csv(path, dtype={"id": str, "label": str}),
        "tsv": lambda path: pd.read_csv(path, dtype={"id": str, "label": str}, sep="\t"),
    }[kind]
    old, new = read(f"mine.{kind}"), read(f"out.{kind}")
    assert new["label"].astype(object).where(new["label"].notna(), "").tolist() == expected
    pd.testing.assert_frame_equal(new.drop(columns="label"), old.drop(columns="label"))
    assert list(new.columns) == list(old.columns)
    if kind == "parquet":
        import pyarrow.parquet as pq

        before, after = pq.ParquetFile("mine.parquet"), pq.ParquetFile("out.parquet")
        assert after.schema_arrow.equals(before.schema_arrow, check_metadata=True)


def test_an_input_is_never_replaced(tmp_path):
    path = tmp_path / "mine.csv"
    path.write_text("id,label\na,cat\nb,dog\n")
    write_review(rows=[(1, "dog", "cat")])
    for options in (["-o", "mine.csv"], ["-o", "review.csv"], []):
        run("apply-review", "mine.csv", "review.csv", "--label", "label", *options, code=2)
        assert path.read_text() == "id,label\na,cat\nb,dog\n"


@pytest.mark.parametrize("name", ["out.tsv", "out.npy"])
def test_a_table_is_not_turned_into_another_format(tmp_path, name):
    (tmp_path / "mine.csv").write_text("id,label\na,cat\nb,dog\n")
    write_review(rows=[(1, "dog", "cat")])
    refused = run("apply-review", "mine.csv", "review.csv", "--label", "label", "-o", name, code=2)
    assert "same format as mine.csv" in refused.output


def test_a_review_of_other_labels_is_refused_whole(tmp_path):
    (tmp_path / "mine.csv").write_text("id,label\na,cat\nb,dog\nc,cat\n")
    write_review(rows=[(0, "cat", "dog"), (1, "cat", "dog")])
    result = run("apply-review", "mine.csv", "review.csv", "--label", "label", "-o", "out.csv", code=2)
    assert "made for" in result.output
    assert not (tmp_path / "out.csv").exists()
    write_review(rows=[(1, "dog", "cat")], id=["b"])
    apply("mine.csv", "out.csv", "--label", "label", "--id", "id")
    write_review(rows=[(1, "dog", "cat")], id=["c"])
    result = run("apply-review", "mine.csv", "review.csv", "--label", "label", "--id", "id", "-o", "out.csv", code=2)
    assert "example c" in result.output


def test_rows_that_moved_are_found_by_their_ids(tmp_path):
    write_review(rows=[(1, "dog", "cat"), (2, "cat", "dog")], id=["b", "c"])
    path = tmp_path / "mine.csv"
    path.write_text("id,label\nc,cat\na,cat\nb,dog\n")
    apply("mine.csv", "out.csv", "--label", "label", "--id", "id")
    assert (tmp_path / "out.csv").read_text() == "id,label\nc,dog\na,cat\nb,cat\n"
    asked = ["apply-review", "mine.csv", "review.csv", "--label", "label", "--id", "id", "-o", "no.csv"]
    for content, message in {
        "id,label\nc,dog\na,dog\nb,cat\n": "labelled 'dog'",
        "id,label\nc,cat\na,cat\nx,dog\n": "no such row",
        "id,label\nb,cat\nc,cat\nb,dog\n": "ids of their own",
    }.items():
        path.write_text(content)
        result = run(*asked, code=2)
        assert message in result.output
    assert not (tmp_path / "no.csv").exists()


@pytest.mark.parametrize(
    "arguments",
    [
        ["issues", "p.npy", "l.npy", "-o", "l.npy"],
        ["issues", "p.npy", "l.npy", "--report", "p.npy"],
        ["issues", "p.npy", "l.npy", "-o", "x.csv", "--report", "./x.csv"],
        ["issues", "p.npy", "l.npy", "--classes", "names.txt", "--report", "names.txt"],
        ["issues", "p*.npy", "l*.npy", "-o", "l.npy"],
        ["estimate", "p.npy", "l.npy", "-o", "p.npy"],
        ["audit", "l.npy", "-o", "l.npy"],
    ],
)
def test_no_command_writes_over_what_it_reads(tmp_path, arguments):
    np.save("p.npy", np.tile([[0.9, 0.1], [0.1, 0.9]], (20, 1)))
    np.save("l.npy", np.tile([0, 1], 20))
    (tmp_path / "link.npy").symlink_to("l.npy")
    (tmp_path / "names.txt").write_text("a\nb\n")
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    result = run(*arguments, code=2)
    assert "Cannot write" in result.output
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before

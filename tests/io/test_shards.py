"""Shards are one data set: the same as the whole file, or an error that names the file; parsed once."""

import json
import pickle
import re
import tracemalloc
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dualt
from dualt import files
from dualt.errors import DualtError, FileError, InputError, LabelsError, ProbabilitiesError, UnknownNameError
from dualt.estimators import estimate_posterior
from dualt.io import find_shards, is_sharded, open_shards, shards, table_columns, write_table
from dualt.issues import find_posterior_issues
from dualt.rows import NoisyPosterior
from tests.cli.commands import refused, run
from tests.strategies import is_mapped, same_summary

NAMES = ("ant", "bee", "cat")


@pytest.fixture
def whole():
    rng = np.random.default_rng(0)
    probs = rng.dirichlet(np.ones(3), 500).astype(np.float32)
    return probs, rng.integers(0, 3, 500)


def write_npy(folder, probs, labels, limits=(3, 10, 11, 260)):
    """Write shards 0, 1, … of rows between the limits; with ten or more, text order would not be theirs."""
    folder.mkdir(exist_ok=True)
    for number, (p, y) in enumerate(zip(np.split(probs, limits), np.split(labels, limits), strict=True)):
        np.save(folder / f"p{number}.npy", p)
        np.save(folder / f"y{number}.npy", y)
    return folder / "p*.npy", folder / "y*.npy"


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_texts_where_probabilities_should_be_point_to_what_to_name(tmp_path, kind):
    frame = pd.DataFrame({"ticket": ["T-0", "T-1"], "text": ["a b", "c"], "queue": ["x", "y"]})
    write_table(tmp_path / f"t.{kind}", frame)
    with pytest.raises(InputError, match=r"'ticket'.*--probs.*--text or --features"):
        open_shards(tmp_path / f"t.{kind}", label="queue")


def test_ids_that_the_probabilities_do_not_have_leave_their_first_row_alone(tmp_path):
    (tmp_path / "p.csv").write_text("0.9,0.1\n0.2,0.8\n")
    (tmp_path / "y.csv").write_text("id,given\na,0\nb,1\n")
    opened = open_shards(tmp_path / "p.csv", tmp_path / "y.csv", label="given", ignored=["id"])
    assert (opened[0][0].n_rows, opened[0][0].n_classes) == (2, 2)


def estimate(opened, **options):
    return estimate_posterior(NoisyPosterior.from_blocks(opened[0], opened[1]), **options)


def assert_is_whole(opened, probs, labels, class_names=None):
    found = estimate(opened)
    wanted = dualt.estimate_transition(probs, labels, class_names=class_names)
    assert found.class_names == wanted.class_names
    assert same_summary(found.rows_summary, wanted.rows_summary)
    np.testing.assert_array_equal(found.transition, wanted.transition)


def test_natural_order(tmp_path):
    for name in ("p10.npy", "p2.npy", "p1.npy", "q3.npy", "_skipped.npy", ".hidden.npy"):
        np.save(tmp_path / name, np.zeros(1))
    assert [path.name for path in find_shards(tmp_path / "p*.npy")] == ["p1.npy", "p2.npy", "p10.npy"]
    assert [path.name for path in find_shards(tmp_path)] == ["p1.npy", "p2.npy", "p10.npy", "q3.npy"]


def test_a_name_with_a_bracket_that_is_a_file_is_that_file(tmp_path):
    path = tmp_path / "p[1].npy"
    np.save(path, np.zeros(1))
    assert not is_sharded(path)
    assert find_shards(path) == [path]
    assert not is_sharded("x" * 5000)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_npy_shards_are_the_whole(tmp_path, whole, dtype):
    probs, labels = whole[0].astype(dtype), whole[1]
    patterns = write_npy(tmp_path, probs, labels, limits=np.arange(40, 500, 40))
    opened = open_shards(*patterns)
    assert len(opened[0]) == 13
    assert is_mapped(next(opened[0][0].read())[0])
    assert_is_whole(opened, probs, labels)


def test_names_in_string_labels_are_the_union_of_all_shards(tmp_path, whole):
    probs, labels = whole[0], np.array(NAMES)[np.sort(whole[1])]  # no shard has them all
    opened = open_shards(*write_npy(tmp_path, probs, labels, limits=(100, 200, 300)))
    assert_is_whole(opened, probs, labels)
    with pytest.raises(LabelsError, match="Expected 3 different labels"):
        estimate(open_shards(tmp_path / "p0.npy", tmp_path / "y0.npy"))


def test_a_shard_of_no_rows_adds_nothing(tmp_path, whole):
    opened = open_shards(*write_npy(tmp_path, *whole, limits=(0, 100, 100)))
    assert len(opened[0]) == 2
    assert_is_whole(opened, *whole)
    with pytest.raises(InputError, match="at least one row"):
        open_shards(*write_npy(tmp_path / "empty", whole[0][:0], whole[1][:0], limits=(0,)))


def write_parquet(path, probs, labels, names=NAMES, prefix="p_", **options):
    columns = {prefix + name: probs[:, k] for k, name in enumerate(names)}
    pq.write_table(pa.table({"id": np.arange(len(probs)), **columns, "given": labels}), path, **options)


@pytest.mark.parametrize("kind", ["number", "text", "dictionary"])
def test_parquet_with_all_kinds_of_labels(tmp_path, whole, kind):
    probs, labels = whole
    given = labels if kind == "number" else pa.array(np.array(NAMES)[labels])
    given = given.dictionary_encode() if kind == "dictionary" else given
    write_parquet(tmp_path / "one.parquet", probs, given, row_group_size=100)
    opened = open_shards(tmp_path / "one.parquet", label="given", columns="p_*")
    (block,) = opened[0]
    assert block.dtype == np.float32
    assert_is_whole(opened, probs, labels if kind == "number" else np.array(NAMES)[labels], NAMES)


def test_a_folder_of_parquet_and_other_files(tmp_path, whole):
    probs, labels = whole
    for number, rows in enumerate(np.array_split(np.arange(500), 11)):
        write_parquet(tmp_path / f"part-{number}.parquet", probs[rows], labels[rows])
    (tmp_path / "_SUCCESS").touch()
    (tmp_path / "notes.csv").write_text("a,b\n")
    with pytest.raises(FileError, match=r"one format.*\.csv, \.parquet.*\*\.parquet"):
        open_shards(tmp_path, label="given", columns="p_*")
    opened = open_shards(tmp_path / "*.parquet", label="given", columns="p_*")
    assert len(opened[0]) == 11
    assert_is_whole(opened, probs, labels, NAMES)


def test_parquet_probabilities_with_labels_apart(tmp_path, whole):
    probs, labels = whole
    for number, rows in enumerate(np.array_split(np.arange(500), 3)):
        write_parquet(tmp_path / f"{number}.parquet", probs[rows], labels[rows])
        np.save(tmp_path / f"{number}.npy", labels[rows])
    opened = open_shards(tmp_path / "*.parquet", tmp_path / "*.npy")  # beside others, columns called p_ are taken
    assert_is_whole(opened, probs, labels, NAMES)
    np.save(tmp_path / "1.npy", labels[:3])
    with pytest.raises(InputError, match=r"1\.parquet and .*1\.npy: .*167 rows and 3 labels"):
        open_shards(tmp_path / "*.parquet", tmp_path / "*.npy", columns="p_*")


@pytest.mark.parametrize(
    ("pattern", "prefix", "names", "expected"),
    [
        ("p_*", "p_", NAMES, NAMES),
        ("p_*", "p_", ("0", "1", "2"), None),  # numbers are the columns' own
        ("p_*", "p_", ("2", "0", "1"), ("2", "0", "1")),
        ("[ac]*", "", ("ant", "cat"), ("ant", "cat")),  # no single star: as they are
    ],
)
def test_the_star_stands_for_the_class(tmp_path, whole, pattern, prefix, names, expected):
    write_parquet(tmp_path / "a.parquet", whole[0], whole[1], names, prefix)
    assert open_shards(tmp_path / "a.parquet", label="given", columns=pattern)[1] == expected


def test_what_is_wrong_with_a_set_of_files(tmp_path, whole):
    p, y = write_npy(tmp_path, *whole)
    with pytest.raises(FileError, match=r"match '.*none\*\.npy', got none"):
        open_shards(tmp_path / "none*.npy", y)
    (tmp_path / "y4.npy").unlink()
    with pytest.raises(InputError, match=r"got 5 for .*p\*\.npy and 4 for .*y\*\.npy"):
        open_shards(p, y)
    np.save(tmp_path / "y4.npy", whole[1][:7])
    with pytest.raises(InputError, match=r"p4\.npy and .*y4\.npy: .*240 rows and 7 labels"):
        open_shards(p, y)
    with pytest.raises(InputError, match="--label"):
        open_shards(p)
    (tmp_path / "folder").mkdir()
    with pytest.raises(FileError, match="got the folder"):
        open_shards(tmp_path / "folder", label="given")


@pytest.mark.parametrize(
    ("content", "error", "message"),
    [
        (np.full((1, 2), 0.5, np.float32), InputError, r"columns 3 without names in .*p2\.npy.* got 2"),
        (np.full(1, 0.5), ProbabilitiesError, r"In .*p2\.npy.*got shape \(1,\)"),
        (np.full((1, 3), 2, np.float32), ProbabilitiesError, r"In .*p2\.npy.*row 10"),
    ],
)
def test_a_shard_that_does_not_fit_is_named(tmp_path, whole, content, error, message):
    patterns = write_npy(tmp_path, *whole)
    np.save(tmp_path / "p2.npy", content)
    with pytest.raises(error, match=message):
        estimate(open_shards(*patterns))


def test_other_class_names_in_a_later_shard_are_refused(tmp_path, whole):
    write_parquet(tmp_path / "0.parquet", *whole)
    write_parquet(tmp_path / "1.parquet", *whole, names=("ant", "cat", "bee"))
    with pytest.raises(InputError, match=r"'bee', 'cat'\] in .*1\.parquet as in .*0\.parquet, got \['ant', 'cat'"):
        open_shards(tmp_path, label="given", columns="p_*")


@pytest.mark.parametrize("opening", [True, False], ids=["before", "while it is read"])
@pytest.mark.parametrize("kind", ["npy", "parquet"])
@pytest.mark.parametrize("harm", ["truncate", "vanish", "other rows"])
def test_a_shard_that_is_cut_short_or_gone_is_named(tmp_path, whole, opening, kind, harm, monkeypatch):
    monkeypatch.setattr(table_columns, "LARGE_TABLES", 0)
    probs, labels = whole
    if kind == "npy":
        patterns = write_npy(tmp_path, probs, labels)
    else:
        for number, rows in enumerate(np.array_split(np.arange(500), 5)):
            write_parquet(tmp_path / f"p{number}.parquet", probs[rows], labels[rows])
            np.save(tmp_path / f"y{number}.npy", labels[rows])
        patterns = tmp_path / "p*.parquet", tmp_path / "y*.npy"
    path = tmp_path / f"p3.{kind}"
    opened = None if opening else open_shards(*patterns, columns=None if kind == "npy" else "p_*")
    if harm == "truncate":
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    elif harm == "vanish":
        path.unlink()
    elif kind == "npy":
        np.save(path, probs[:30])
    else:
        write_parquet(path, probs[:30], labels[:30])
    with pytest.raises(DualtError, match=r"p3\.|got 4 for"):
        estimate(opened or open_shards(*patterns, columns=None if kind == "npy" else "p_*"))


def test_parquet_columns_that_cannot_be_probabilities(tmp_path, whole):
    probs, labels = whole
    write_parquet(tmp_path / "a.parquet", probs, np.array(NAMES)[labels])
    with pytest.raises(InputError, match=r"columns that match 'q_\*'"):
        open_shards(tmp_path / "a.parquet", label="given", columns="q_*")
    with pytest.raises(UnknownNameError, match="Did you mean 'given'"):
        open_shards(tmp_path / "a.parquet", label="givn")
    with pytest.raises(InputError, match=r"Expected numbers in column 'given'"):
        open_shards(tmp_path / "a.parquet", label="p_cat", columns="given")


def test_missing_labels_of_parquet_are_left_out_and_missing_numbers_refused(tmp_path, whole):
    probs, labels = whole
    given = pa.array([None if row == 120 else NAMES[label] for row, label in enumerate(labels)])
    write_parquet(tmp_path / "a.parquet", probs, given)
    opened = open_shards(tmp_path / "a.parquet", label="given", columns="p_*")
    assert opened[0][0].missing == [120]
    kept = np.delete(np.arange(len(labels)), 120)
    np.testing.assert_array_equal(NoisyPosterior.from_blocks(opened[0]).labelled, kept)
    write_parquet(tmp_path / "dropped.parquet", probs[kept], np.array(NAMES)[labels[kept]])
    dropped = open_shards(tmp_path / "dropped.parquet", label="given", columns="p_*")
    np.testing.assert_array_equal(estimate(opened).transition, estimate(dropped).transition)
    table = pa.table({"a": pa.array([0.5, None, 0.5]), "b": [0.5, 0.5, 0.5], "given": [0, 1, 0]})
    pq.write_table(table, tmp_path / "b.parquet")
    with pytest.raises(ProbabilitiesError, match=r"In .*b\.parquet.*nan.*row 1"):
        estimate(open_shards(tmp_path / "b.parquet", label="given"))


def peak_bytes(function):
    """Return the most memory that Python and NumPy held at a time, mapped files not counted."""
    tracemalloc.start()
    try:
        function()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("kind", ["npy", "parquet"])
def test_memory_does_not_grow_with_the_number_of_shards(tmp_path, kind, monkeypatch):
    monkeypatch.setattr(table_columns, "LARGE_TABLES", 0)
    rng = np.random.default_rng(0)
    probs = rng.dirichlet(np.ones(40), 20_000).astype(np.float32)  # 3.2 MB
    labels, names = rng.integers(0, 40, 20_000), tuple(map(str, range(40)))
    for number in range(10):
        if kind == "npy":
            np.save(tmp_path / f"p{number}.npy", probs)
        else:
            write_parquet(tmp_path / f"p{number}.parquet", probs, labels, names)
        np.save(tmp_path / f"y{number}.npy", labels)
    columns = "p_*" if kind == "parquet" else None
    opened = open_shards(tmp_path / f"p*.{kind}", tmp_path / "y*.npy", columns=columns)

    def run(n_shards):
        estimate_posterior(NoisyPosterior.from_blocks(opened[0][:n_shards]), "clean-count")

    run(1)  # imports and caches
    five, ten = peak_bytes(lambda: run(5)), peak_bytes(lambda: run(10))
    assert ten < 1.2 * five  # five more shards are 16 MB


def write_tables(folder, whole, kind, n_shards=3):
    for number, rows in enumerate(np.array_split(np.arange(500), n_shards)):
        frame = pd.DataFrame(whole[0][rows], columns=NAMES).assign(given=np.array(NAMES)[whole[1][rows]])
        path = folder / f"{number}.{kind}"
        frame.to_csv(path, index=False) if kind == "csv" else frame.to_parquet(path)


@pytest.fixture
def opened_tables(monkeypatch):
    """Count how often a table is opened."""
    counted = []

    def counting(name, function):
        def count(path, *arguments, **options):
            if Path(path).suffix in (".csv", ".parquet"):
                counted.append(path)
            return function(path, *arguments, **options)

        monkeypatch.setattr(name, count)

    for module in ("tables", "load"):
        counting(f"dualt.io.{module}.open_input", files.open_input)
    counting("pyarrow.parquet.ParquetFile", pq.ParquetFile)
    return counted


@pytest.mark.parametrize("kept", [True, False])
@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_tables_are_the_whole_kept_or_not(tmp_path, whole, kind, kept, opened_tables, monkeypatch):
    monkeypatch.setattr(table_columns, "LARGE_TABLES", 1 << 20 if kept else 0)
    write_tables(tmp_path, whole, kind)
    opened = open_shards(tmp_path, label="given")
    posterior = NoisyPosterior.from_blocks(opened[0], opened[1])
    for method in ("dual-t", "clean-count", "joint"):
        found = estimate_posterior(posterior, method)
    assert (len(opened_tables) <= 6) is kept  # a look and a reading of each
    wanted = dualt.estimate_transition(whole[0], np.array(NAMES)[whole[1]], "joint", class_names=NAMES)
    np.testing.assert_allclose(found.transition, wanted.transition, atol=1e-5)


@pytest.mark.parametrize("names", [(0, 2, 2), ("0", "1", "02"), NAMES])
@pytest.mark.parametrize("kind", ["csv", "tsv", "parquet"])
def test_a_large_table_read_in_parts_is_the_whole(tmp_path, whole, kind, names, monkeypatch):
    given = np.array(names, object)[np.where(np.arange(500) < 250, whole[1] % 2, whole[1])]
    given[::50] = given[100:200] = None  # several parts have no label, or numbers only
    frame = pd.DataFrame(whole[0], columns=NAMES).assign(given=given, score=["0.5"] * 400 + ["unknown"] * 100)
    write_table(tmp_path / f"large.{kind}", frame)

    def opened():
        blocks, _ = open_shards(tmp_path / f"large.{kind}", label="given", columns=",".join(NAMES))
        return NoisyPosterior.from_blocks(blocks)

    kept = opened()
    monkeypatch.setattr(table_columns, "LARGE_TABLES", 0)
    monkeypatch.setattr(table_columns, "_PART_CELLS", 5 * 23)
    parts = opened()
    assert max(len(labels) for _, labels in parts.blocks[0].read()) == 23
    assert same_summary(parts.summary, kept.summary)
    found, wanted = (find_posterior_issues(posterior) for posterior in (parts, kept))
    np.testing.assert_array_equal(found.transition, wanted.transition)
    pd.testing.assert_frame_equal(found.to_frame(), wanted.to_frame())
    rows = np.array([7, 3, 301, 0, 301])
    for mine, theirs in zip((parts.labelled, *parts.take(rows)), (kept.labelled, *kept.take(rows)), strict=True):
        np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_commands_read_a_large_table_in_parts(tmp_path, whole, kind, monkeypatch):
    frame = pd.DataFrame(whole[0], columns=NAMES).assign(given=np.array(NAMES)[whole[1]], id=range(1000, 1500))
    write_table(tmp_path / f"large.{kind}", frame)
    command = ["issues", tmp_path / f"large.{kind}", "--label", "given", "--id", "id", "--json"]
    kept = run(*command)
    monkeypatch.setattr(table_columns, "LARGE_TABLES", 0)
    monkeypatch.setattr(table_columns, "_PART_CELLS", 5 * 23)
    monkeypatch.setattr(table_columns, "open_table", None)
    assert run(*command).stdout == kept.stdout
    assert json.loads(kept.stdout)["issues"][0]["id"][0] == "1"


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_block_travels_without_what_it_keeps(tmp_path, whole, kind):
    write_tables(tmp_path, whole, kind, 1)
    (block,) = open_shards(tmp_path, label="given", keep=False)[0]
    sent = pickle.dumps(block)
    assert len(sent) < 2000
    again = pickle.loads(sent)
    assert again == block
    for here, there in zip(next(block.read()), next(again.read()), strict=True):
        np.testing.assert_array_equal(here, there)


def test_one_npz_has_both(tmp_path, whole):
    path = tmp_path / "d.npz"
    np.savez(path, probs=whole[0], labels=whole[1], given=whole[1])
    assert_is_whole(open_shards(path, path), *whole)
    assert_is_whole(open_shards(path, label="given"), *whole)


@pytest.mark.parametrize("kind", ["csv", "parquet"])
@pytest.mark.parametrize("command", ["estimate", "issues"])
def test_a_command_opens_a_table_at_most_three_times(tmp_path, whole, kind, command, opened_tables):
    write_tables(tmp_path, whole, kind, 1)
    report = ["--report", tmp_path / "r.html"] if command == "issues" else []
    run(command, tmp_path / f"0.{kind}", "--label", "given", "--json", *report)
    assert len(opened_tables) <= 3


@pytest.mark.parametrize(
    "arguments",
    [
        ["issues", "t.csv", "--label", "label", "--text", "text"],
        ["estimate", "t.csv", "--label", "label"],
        ["probs", "t.csv", "--label", "label", "--text", "text", "-o", "p.csv"],
        ["audit", "t.csv", "--label", "label", "-o", "s.csv"],
        ["apply-review", "t.csv", "r.csv", "--label", "label", "-o", "o.csv"],
    ],
)
def test_a_quote_that_is_never_closed_is_refused_by_every_command(tmp_path, monkeypatch, arguments):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.csv").write_text('id,text,label\n1,"abc,a\n2,def,b\n3,x,a\n')
    (tmp_path / "r.csv").write_text("index,old,new\n0,a,b\n")
    message = refused(*arguments)
    assert "t.csv" in message
    assert "never closed" in message
    assert sorted(path.name for path in tmp_path.iterdir()) == ["r.csv", "t.csv"]


@pytest.mark.parametrize(
    ("probs", "labels", "pairs"),
    [
        (["probs-2", "probs-10"], ["labels-2", "labels-10"], True),
        (["a/part-01", "a/part-02"], ["b/part-1", "b/part-2"], True),
        (["part-0", "part-1", "part-2"], ["other/part-1", "other/part-2", "other/part-3"], False),
        (["p-10", "p-11"], ["y-20", "y-21"], False),
        (["p_cat", "p_dog"], ["y_dog", "y_cat"], True),
        (["x", "y"], ["u", "v"], False),
    ],
)
def test_shards_are_paired_by_what_varies_in_their_names(probs, labels, pairs):
    paths, others = ([Path(f"{name}.npy") for name in names] for names in (probs, labels))
    if not pairs:
        with pytest.raises(InputError, match=r"pair by name.*Rename"):
            shards.pair_by_name(paths, others)
        return
    for path, other in shards.pair_by_name(paths, others):
        ends = [re.findall("[0-9]+|cat|dog", each.stem)[-1].lstrip("0") for each in (path, other)]
        assert ends[0] == ends[1]

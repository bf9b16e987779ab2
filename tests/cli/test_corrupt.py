"""`dualt corrupt`: known noise, put into labels of any kind."""

import json
import re

import numpy as np
import pytest
from typer.testing import CliRunner

import dualt
from dualt.cli import app
from dualt.io import load_labels

CLEAN = np.arange(600) % 3


def run(*arguments):
    return CliRunner().invoke(app, ["corrupt", *map(str, arguments)])


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("y.npy", CLEAN)
    (tmp_path / "out").mkdir()
    return tmp_path


@pytest.mark.parametrize("name", ["out/noisy.npy", "out/noisy.csv", "out/noisy.txt"])
def test_noise_is_put_in_at_its_rate(folder, name):
    result = run("y.npy", "--noise", "pair-0.45", "--exact", "-o", name)
    assert result.exit_code == 0, result.output
    assert f"270 of 600 labels changed (45.0%); written to {name}" in result.stdout
    noisy = load_labels(folder / name)
    assert np.count_nonzero(noisy == CLEAN) == 330
    assert np.count_nonzero(noisy == (CLEAN + 1) % 3) == 270
    assert len(list((folder / "out").iterdir())) == 1


def test_the_command_does_what_the_function_does(folder):
    result = run("y.npy", "--noise", "sym-0.3", "--random-state", 7, "-o", "out/a.npy", "--json")
    expected = dualt.noise.corrupt(CLEAN, dualt.noise.symmetric(3, 0.3), random_state=7)
    np.testing.assert_array_equal(np.load("out/a.npy"), expected)
    content = json.loads(result.stdout)
    assert content["n_changed"] == np.count_nonzero(expected != CLEAN)
    assert content["n_samples"] == 600
    np.testing.assert_allclose(content["transition"], dualt.noise.symmetric(3, 0.3))


def test_a_matrix_of_a_file(folder):
    (folder / "t.json").write_text("[[0, 1, 0], [0, 1, 0], [0, 0, 1]]")
    assert run("y.npy", "--transition", "t.json", "-o", "out/a.npy").exit_code == 0
    np.testing.assert_array_equal(np.load("out/a.npy"), np.where(CLEAN == 0, 1, CLEAN))


@pytest.mark.parametrize(
    ("labels", "noisy"),
    [
        (["a", "b", "a"], ["b", "a", "b"]),
        ([True, False], [False, True]),
        ([0.0, 1.0], [1.0, 0.0]),
        ([[1, 0], [0, 1]], [[0, 1], [1, 0]]),
    ],
)
def test_labels_come_back_in_kind(folder, labels, noisy):
    np.save("y.npy", np.array(labels))
    assert run("y.npy", "--noise", "pair-1.0", "-o", "out/a.npy").exit_code == 0
    found = np.load("out/a.npy")
    assert found.tolist() == noisy
    assert found.dtype.kind == np.array(labels).dtype.kind


def test_classes_that_count_from_one_get_no_class_zero(folder):
    """One to three stars: the next after three is one."""
    np.save("stars.npy", CLEAN + 1)
    assert run("stars.npy", "--noise", "pair-0.45", "--exact", "-o", "out/noisy.npy").exit_code == 0
    noisy = np.load("out/noisy.npy")
    assert np.count_nonzero(noisy == CLEAN + 1) == 330
    assert np.count_nonzero(noisy == (CLEAN + 1) % 3 + 1) == 270


@pytest.mark.parametrize("kind", [int, float])
def test_minus_one_and_one_are_two_classes(folder, kind):
    labels = np.array([-1, 1, 1], kind)
    np.save("signs.npy", labels)
    result = run("signs.npy", "--noise", "pair-1.0", "-o", "out/noisy.npy")
    assert result.exit_code == 0, result.output
    np.testing.assert_array_equal(np.load("out/noisy.npy"), -labels, strict=True)


def test_classes_that_no_label_shows(folder):
    np.save("y.npy", np.zeros(10, int))
    assert run("y.npy", "--noise", "pair-1.0", "--n-classes", 5, "-o", "out/a.npy").exit_code == 0
    assert np.load("out/a.npy").tolist() == [1] * 10


def test_a_column_of_a_table(folder):
    (folder / "t.csv").write_text("id,kind\n1,x\n2,y\n")
    assert run("t.csv", "--label", "kind", "--noise", "pair-1.0", "-o", "out/a.txt").exit_code == 0
    assert (folder / "out" / "a.txt").read_text() == "y\nx\n"


@pytest.mark.parametrize("kind", ["csv", "tsv", "jsonl", "parquet", "npz"])
def test_a_table_comes_back_with_all_its_columns(folder, kind):
    import pandas as pd

    frame = pd.DataFrame({"id": ["a", "b", "c"], "kind": ["x", "y", "x"], "price": [1.5, 2.0, 0.25]})
    write, read = {
        "csv": (lambda path: frame.to_csv(path, index=False), pd.read_csv),
        "tsv": (lambda path: frame.to_csv(path, index=False, sep="\t"), lambda path: pd.read_csv(path, sep="\t")),
        "jsonl": (
            lambda path: frame.to_json(path, orient="records", lines=True),
            lambda path: pd.read_json(path, lines=True),
        ),
        "parquet": (frame.to_parquet, pd.read_parquet),
        "npz": (
            lambda path: np.savez(path, **{name: np.array(frame[name].tolist()) for name in frame}),
            lambda path: pd.DataFrame(dict(np.load(path))),
        ),
    }[kind]
    write(f"t.{kind}")
    result = run(f"t.{kind}", "--label", "kind", "--noise", "pair-1.0", "-o", f"out/t.{kind}")
    assert result.exit_code == 0, result.output
    pd.testing.assert_frame_equal(read(f"out/t.{kind}"), frame.assign(kind=["y", "x", "y"]), check_dtype=False)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["y.npy"], "either --noise or --transition"),
        (["y.npy", "--noise", "sym-0.2", "--transition", "t.json"], "either --noise or --transition"),
        (["y.npy", "--noise", "pairs-0.2"], "Did you mean 'pair'"),
        (["y.npy", "--noise", "sym"], "Expected noise like"),
        (["y.npy", "--noise", "sym--1"], "noise|rate"),
        (["y.npy", "--transition", "columns.csv"], "pass the transpose"),
        (["y.npy", "--transition", "two.json"], "from 0 to 1, got 2 at row 2"),
        (["y.npy", "--noise", "sym-0.2", "--n-classes", "2"], "from 0 to 1, got 2 at row 2"),
        (["y.npy", "--noise", "sym-0.2", "--n-classes", "1"], "at least two classes"),
        (["y.npy", "--noise", "sym-0.2", "--n-classes", "0"], "at least two classes, got 0"),
        (["stars.npy", "--noise", "sym-0.2"], "-1 at row 1"),
        (["absent.npy", "--noise", "sym-0.2"], "No such file"),
        (["out", "--noise", "sym-0.2"], "got the folder"),
        (["objects.npy", "--noise", "sym-0.2"], "Python objects"),
        (["fractions.npy", "--noise", "sym-0.2"], r"0\.5 at row 1"),
        (["minus.npy", "--noise", "sym-0.2"], "-1 at row 1"),
        (["nan.npy", "--noise", "sym-0.2"], "nan at row 1"),
        (["inf.npy", "--noise", "sym-0.2"], "inf at row 1"),
        (["ids.npy", "--noise", "sym-0.2"], "1000000"),
        (["y.npy", "--noise", "sym-0.2", "--random-state", "-1"], "seed"),
        (["y.npy", "--noise", "sym-0.2", "-o", "absent/a.npy"], "does not exist"),
        (["y.npy", "--noise", "sym-0.2", "-o", "out/a.docx"], "ends in"),
        (["y.npy", "--noise", "sym-0.2", "-o", "out"], "it is a folder|ends in"),
    ],
)
def test_mistakes_are_refused_and_nothing_is_written(folder, arguments, message):
    (folder / "columns.csv").write_text("0.9,0.3,0\n0.1,0.7,0\n0,0,1\n")
    (folder / "two.json").write_text("[[0.9, 0.1], [0.1, 0.9]]")
    np.save("objects.npy", np.array([{}]), allow_pickle=True)
    for name, labels in (("fractions", [0, 0.5, 1]), ("minus", [0, -1, 1]), ("stars", [1, -1, 2]),
                         ("nan", [0, np.nan, 1]), ("inf", [0, np.inf, 1]), ("ids", [0, 1_000_000, 1])):  # fmt: skip
        np.save(f"{name}.npy", labels)
    output = [] if "-o" in arguments else ["-o", "out/a.npy"]
    result = run(*arguments, *output)
    assert result.exit_code == 2, result.exception
    assert result.stderr.startswith("error: ")
    assert re.search(message, result.stderr), result.stderr
    assert list((folder / "out").iterdir()) == []


def test_more_classes_than_the_labels_type_can_count(folder):
    np.save("y.npy", np.full(4, 255, np.uint8))
    assert run("y.npy", "--noise", "pair-1.0", "--n-classes", 300, "-o", "out/a.npy").exit_code == 0
    assert np.load("out/a.npy").tolist() == [256] * 4


def test_names_of_a_saved_matrix_decide_over_their_order(folder):
    """Rows of the file are dog, cat; sorted, the labels would be cat, dog."""
    (folder / "t.json").write_text(json.dumps({"transition": [[0, 1], [0, 1]], "class_names": ["dog", "cat"]}))
    (folder / "y.txt").write_text("cat\ndog\n")
    assert run("y.txt", "--transition", "t.json", "-o", "out/a.txt").exit_code == 0
    assert (folder / "out" / "a.txt").read_text() == "cat\ncat\n"

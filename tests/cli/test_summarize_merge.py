"""`dualt summarize` and `dualt merge`: parts read apart give what `dualt estimate` gives on all of them."""

import json
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import dualt
from dualt.cli import app

NAMES = ["cow", "ant", "bee"]
RNG = np.random.default_rng(0)
PROBS = RNG.dirichlet(np.full(3, 0.4), 300)
LABELS = np.array(NAMES)[RNG.integers(0, 3, 300)]
CUTS = (0, 20, 21, 300)


def run(*arguments):
    return CliRunner().invoke(app, list(map(str, arguments)))


def refused(result, message):
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    assert result.stderr.startswith("error: ")
    assert message in result.stderr


@pytest.fixture
def parts(tmp_path):
    """Three parts of one table, of which the second holds a single row, and their summaries."""
    frame = pd.DataFrame(PROBS, columns=NAMES).assign(given=LABELS)
    paths = []
    for number, (low, high) in enumerate(pairwise(CUTS)):
        frame[low:high].to_csv(tmp_path / f"{number}.csv", index=False)
        paths.append(tmp_path / f"{number}.npz")
        result = run("summarize", tmp_path / f"{number}.csv", "--label", "given", "-o", paths[-1])
        assert result.exit_code == 0, result.output
        assert f"{high - low:,} rows of 3 classes are summarised" in result.stdout
    return paths


@pytest.mark.parametrize("estimator", ["t", "dual-t", "spade"])
def test_merging_gives_the_estimate_of_the_whole(parts, estimator):
    content = json.loads(run("merge", *parts, "-e", estimator, "--json", "--level", "0.9").stdout)
    table = pd.concat(pd.read_csv(path.with_suffix(".csv")) for path in parts)
    expected = dualt.estimate_transition(table[NAMES], table["given"], estimator)
    assert content == json.loads(json.dumps(expected.to_dict(0.9)))


def test_dual_t_unless_another_is_wanted_and_options_reach_it(parts):
    options = ["--set", "anchor=top-mean", "--set", "top_k=3"]
    content = json.loads(run("merge", *parts, *options, "--json", "--compare").stdout)
    assert content["estimator"] == "dual-t"
    expected = dualt.estimate_transition(PROBS, LABELS, "dual-t", class_names=NAMES, anchor="top-mean", top_k=3)
    np.testing.assert_allclose(content["transition"], expected.transition)
    assert content["compared"].keys() == {"t", "dual-t", "spade"}
    np.testing.assert_allclose(content["compared"]["dual-t"]["transition"], expected.transition)


def test_merged_summaries_can_be_merged_and_estimates_written(parts, tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    assert run("merge", *parts[:2], "-o", out / "two.npz").exit_code == 0
    result = run("merge", out / "two.npz", parts[2], "-o", out / "all.npz", "-o", out / "t.json", "-o", out / "t.csv")
    assert result.exit_code == 0, result.output
    assert "No noise rate can be claimed" in result.stdout  # of random probabilities
    assert all(str(out / name) in result.stdout for name in ("all.npz", "t.json", "t.csv"))
    direct = json.loads(run("merge", *parts, "--json").stdout)
    assert json.loads(run("merge", out / "all.npz", "--json").stdout) == direct
    assert json.loads((out / "t.json").read_text()) == direct
    assert {path.name for path in out.iterdir()} == {"two.npz", "all.npz", "t.json", "t.csv"}


def test_the_picture_compares(parts):
    result = run("merge", *parts, "--compare")
    assert "300 rows, 3 classes, estimator dual-t" in result.stdout
    assert "Estimators side by side" in result.stdout


def test_summarize_for_machines(tmp_path):
    np.save(tmp_path / "p.npy", PROBS)
    np.save(tmp_path / "y.npy", LABELS)
    (tmp_path / "c.txt").write_text("\n".join(NAMES))
    files = [tmp_path / "p.npy", tmp_path / "y.npy", "--classes", tmp_path / "c.txt", "-o", tmp_path / "s.npz"]
    content = json.loads(run("summarize", *files, "--json").stdout)
    assert content == {"n_samples": 300, "class_names": NAMES, "output": str(tmp_path / "s.npz")}


def test_wrong_use_is_refused(parts, tmp_path):
    refused(run("merge", *parts, "-e", "clean-count"), "has to read the data again")
    refused(run("merge", *parts, "-e", "dual_t"), "Did you mean 'dual-t'?")
    refused(run("merge", *parts, parts[0]), "same rows in summaries number 1 and 4")
    refused(run("merge", tmp_path / "absent.npz"), "No such file")
    refused(run("merge", tmp_path / "0.csv"), "Cannot read")
    refused(run("merge", *parts, "-o", tmp_path / "absent" / "t.json"), "does not exist")
    wrong = run("merge", *parts, "-o", tmp_path / "all.npz", "-o", tmp_path / "t.docx")
    refused(wrong, "ends in .npz, .json, .npy or .csv, got 't.docx'")
    assert not (tmp_path / "all.npz").exists()
    refused(run("merge", *parts, "--level", "95"), "--level")
    refused(run("summarize", tmp_path / "0.csv", "--label", "given", "-o", tmp_path / "s.json"), "ends in .npz")
    np.savez(tmp_path / "other.npz", probs=PROBS)
    refused(run("merge", tmp_path / "other.npz"), "another kind of file")
    assert run("merge").exit_code == 2


def test_classes_are_counted_as_rows_are(tmp_path):
    labels = np.arange(1200) % 1100
    np.save(tmp_path / "p.npy", np.full((1200, 1100), 1 / 2200) + np.eye(1100)[labels] / 2)
    np.save(tmp_path / "l.npy", labels)
    said = run("summarize", tmp_path / "p.npy", tmp_path / "l.npy", "-o", tmp_path / "s.npz").stdout
    assert "1,200 rows of 1,100 classes are summarised" in said
    assert "1,200 rows, 1,100 classes, estimator t" in run("merge", tmp_path / "s.npz", "-e", "t").stdout

"""`dualt issues`, `--report` and `dualt apply-review`, typed as a user would."""

import json

import numpy as np
import pandas as pd
import pytest

from dualt import noise
from tests.cli.commands import fill_in, numbers_of, read_rows, refused, run

NAMES = ["ant", "=cmd|' /C calc'!A0", "cat"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Three clear classes, a fifth of the labels wrong, with images and texts to look at."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    clean = rng.integers(0, 3, 300)
    noisy = noise.corrupt(clean, noise.symmetric(3, 0.2), random_state=1)
    np.save("clean.npy", clean)
    np.save("probs.npy", np.eye(3)[clean] * 0.7 + 0.1)
    np.save("labels.npy", noisy)
    np.save("images.npy", rng.integers(0, 255, (300, 6, 6), dtype=np.uint8))
    (tmp_path / "names.txt").write_text("\n".join(NAMES))
    (tmp_path / "texts.txt").write_text("\n".join(f"text {i} <script>" for i in range(300)))
    return tmp_path


def test_issues_are_written_ranked_and_guarded(folder):
    result = run("issues", "probs.npy", "labels.npy", "--classes", "names.txt", "-o", "issues.csv")
    rows = read_rows("issues.csv")
    assert list(rows[0]) == ["index", "given", "suggested", "probability_right", "suggested_probability", "group"]
    wrong = np.flatnonzero(np.load("labels.npy") != np.load("clean.npy"))
    assert {int(row["index"]) for row in rows} == set(wrong)
    right = [float(row["probability_right"]) for row in rows]
    assert right == sorted(right)
    assert not any(cell.startswith("=") for row in rows for cell in row.values())
    assert "about" in result.output


def test_the_options_of_estimate_choose_the_matrix(folder):
    """`--estimator`, `--set` and `--verified` mean what they mean to `dualt estimate`, whose matrix gives the count."""
    np.save("mixed.npy", np.load("probs.npy") * 0.9 + np.random.default_rng(1).dirichlet(np.ones(3), 300) * 0.1)
    run("audit", "labels.npy", "--size", "60", "-o", "audit.csv")
    fill_in("audit.csv", np.load("clean.npy"))
    counts = set()
    for options in ([], ["-e", "t", "--set", "anchor=quantile"], ["--verified", "audit.csv"]):
        run("estimate", "mixed.npy", "labels.npy", "-o", "t.json", *options)
        direct = json.loads(run("issues", "mixed.npy", "labels.npy", "--json", *options).stdout)
        known = json.loads(run("issues", "mixed.npy", "labels.npy", "--json", "--transition", "t.json").stdout)
        assert direct["expected_count"] == pytest.approx(known["expected_count"], abs=1e-4)
        counts.add(round(direct["expected_count"], 3))
    assert len(counts) == 3, "each option changes the matrix"


@pytest.mark.slow
def test_a_cluster_reads_the_files(folder):
    pytest.importorskip("distributed")
    here, there = (json.loads(run("issues", "probs.npy", "labels.npy", "--json", *more).stdout)
                   for more in ([], ["--dask", "local"]))  # fmt: skip
    assert there["expected_count"] == pytest.approx(here["expected_count"])
    assert [row["index"] for row in there["issues"]] == [row["index"] for row in here["issues"]]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["issues", "probs.npy", "labels.npy", "--transition", "four.npy"], "3×3"),
        (["issues", "probs.npy", "labels.npy", "--transition", "four.npy", "--estimator", "t"], "got both"),
        (["issues", "probs.npy", "labels.npy", "--transition", "four.npy", "--verified", "four.npy"], "got both"),
        (["issues", "probs.npy", "labels.npy", "--transition", "four.npy", "--set", "anchor=max"], "got both"),
        (["issues", "probs.npy", "labels.npy", "--set", "shares=1"], "no option 'shares'"),
        (["issues", "probs.npy", "labels.npy", "--top", "3", "--threshold", "0.5"], "got both"),
        (["issues", "probs.npy", "labels.npy", "--report", "out/p.html", "--images", "absent"], "absent"),
        (["issues", "probs.npy", "labels.npy", "--report", "out/p.html", "--images", "empty"], "empty"),
        (["issues", "probs.npy", "labels.npy", "--report", "out/p.html", "--text", "names.txt"], "Expected a table"),
        (["issues", "probs.npy", "labels.npy", "-o", "nowhere/i.csv"], "does not exist"),
        (["issues", "data.xlsx"], "Expected a file that ends in .npy, .npz, .csv"),
        (["apply-review", "labels.npy", "other.csv", "-o", "out/c.npy"], "got '7'"),
        (["apply-review", "labels.npy", "probs.npy", "-o", "out/c.npy"], "probs.npy"),
    ],
)
def test_mistakes_get_one_clear_line_and_nothing_is_written(folder, arguments, message):
    np.save("four.npy", np.eye(4))
    (folder / "out").mkdir()
    (folder / "empty").mkdir()
    for name in ("other.csv", "data.xlsx"):
        (folder / name).write_text("index,old,new\n0,7,1\n")
    result = run(*arguments, code=2)
    assert message in result.output
    assert "Traceback" not in result.output
    assert list((folder / "out").iterdir()) == []


def review_of(path, labels, decisions):
    """Write a review as the page downloads it, of (row, new label)."""
    lines = [f"{row},id-{row},{labels[row]},{new},digest" for row, new in decisions]
    path.write_text("\n".join(["index,id,old,new,labels", *lines]) + "\n")


def test_labels_that_a_review_kept_are_not_flagged_again(folder):
    labels = np.load("labels.npy")
    before = [row["index"] for row in json.loads(run("issues", "probs.npy", "labels.npy", "--json").output)["issues"]]
    kept, changed, unflagged = before[0], before[1], next(i for i in range(300) if i not in before)
    decisions = [(kept, labels[kept]), (changed, (labels[changed] + 1) % 3), (unflagged, labels[unflagged])]
    review_of(folder / "review.csv", labels, decisions)
    result = run("issues", "probs.npy", "labels.npy", "--reviewed", "review.csv", "--report", "r.html", "--json")
    assert [row["index"] for row in json.loads(result.output)["issues"]] == [row for row in before if row != kept]
    (rows,) = numbers_of((folder / "r.html").read_text())["lists"]
    assert {rows["index"][place]: code for place, code in rows["known"]} == dict(decisions)
    # Once the review is applied, its new labels are kept labels too.
    labels[changed] = (labels[changed] + 1) % 3
    np.save("labels.npy", labels)
    result = run("issues", "probs.npy", "labels.npy", "--reviewed", "review.csv", "--json")
    assert changed not in [row["index"] for row in json.loads(result.output)["issues"]]


def test_a_page_finds_what_was_reviewed_by_its_id_where_rows_have_moved(folder):
    labels, probs = np.load("labels.npy"), np.load("probs.npy")
    rows = pd.DataFrame(probs, columns=["p_0", "p_1", "p_2"])
    rows = rows.assign(id=[f"id-{row}" for row in range(300)], label=labels)
    rows[::-1].to_csv("moved.csv", index=False)
    review_of(folder / "review.csv", labels, [(4, (labels[4] + 1) % 3), (5, labels[5])])
    options = ("--label", "label", "--id", "id", "--probs", "p_*", "--reviewed", "review.csv", "--report", "r.html")
    run("issues", "moved.csv", *options)
    (shown,) = numbers_of((folder / "r.html").read_text())["lists"]
    known = {shown["ids"][place]: code for place, code in shown["known"]}
    assert known == {"id-4": (labels[4] + 1) % 3, "id-5": labels[5]}


def test_a_review_of_other_labels_is_refused(folder):
    labels = np.load("labels.npy")
    review_of(folder / "review.csv", (labels + 1) % 3, [(4, (labels[4] + 2) % 3)])
    message = refused("issues", "probs.npy", "labels.npy", "--reviewed", "review.csv", "-o", "issues.csv")
    assert "made for other labels" in message
    assert not (folder / "issues.csv").exists()


def test_a_share_that_the_data_cannot_support_is_not_headlined(folder):
    """900 examples, a third of them unsure, with labels that follow the probabilities."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, 900)
    probs = np.full((900, 3), 0.01)
    probs[np.arange(900), labels] = 0.98
    probs[::3] = rng.dirichlet(np.ones(3), 300)
    labels[::3] = (probs[::3].cumsum(axis=1) < rng.random((300, 1))).sum(axis=1).clip(0, 2)
    np.save("probs.npy", probs)
    np.save("labels.npy", labels)
    printed = shown("issues")
    assert "look wrong (at least 0 %: overlapping classes may explain them)" in printed
    assert " of 900 labels are flagged: " in printed


@pytest.fixture
def clear(tmp_path, monkeypatch):
    """Two classes that the classifier knows, and one label in five wrong."""
    monkeypatch.chdir(tmp_path)
    clean = np.arange(200) % 2
    np.save("probs.npy", np.eye(2)[clean] * 0.96 + 0.02)
    np.save("labels.npy", np.where(np.arange(200) % 5 == 0, 1 - clean, clean))
    np.save("matrix.npy", [[0.8, 0.2], [0.2, 0.8]])
    return tmp_path


def shown(command, *options):
    return " ".join(run(command, "probs.npy", "labels.npy", *options).stdout.split())


@pytest.mark.parametrize("options", [["-e", "spade"], []])
def test_the_headline_is_that_of_the_estimate(clear, options):
    headline = shown("estimate", *options).split(". ")[0]
    assert shown("issues", *options).startswith(headline)


def test_a_given_matrix_is_taken_at_its_word(clear):
    assert shown("issues", "--transition", "matrix.npy").startswith("About 40 of 200 labels look wrong.")


def test_labels_without_a_likelier_class_are_doubtful(clear):
    """Of unsure examples, a label may be more probably wrong than others and yet the likeliest."""
    text = shown("issues", "--transition", "matrix.npy", "--top", "60", "-o", "issues.csv")
    assert sum(row["given"] == row["suggested"] for row in read_rows("issues.csv")) == 20
    said = "labels are flagged: 40 probably wrong (another class is likelier), 20 doubtful (no clear alternative)."
    assert f"60 of 200 {said}" in text
    least = shown("issues", "--transition", "matrix.npy", "--top", "1")
    assert "1 of 200 labels is flagged: 1 probably wrong (another class is likelier)." in least
    assert "doubtful" not in shown("issues", "--transition", "matrix.npy")
    np.save("labels.npy", np.load("probs.npy").argmax(axis=1))
    text = shown("issues", "--transition", "matrix.npy", "--top", "3")
    assert text.count("doubtful") == 4

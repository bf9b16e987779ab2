"""A few verified labels, from the draw to the estimate."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest

import dualt
from dualt import noise
from tests.cli.commands import fill_in, read_rows, refused, run, write_rows


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A classifier that is sure of itself but wrong about class 2: only verified labels can tell."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    clean = rng.integers(0, 3, 3000)
    noisy = noise.corrupt(clean, noise.pair(3, 0.4), random_state=1)
    seen = np.where((clean == 2) & (rng.random(3000) < 0.5), 0, clean)
    np.save("clean.npy", clean)
    np.save("labels.npy", noisy)
    np.save("probs.npy", np.eye(3)[seen] * 0.9 + 0.1 / 3)
    return tmp_path


def test_verified_labels_bring_the_estimate_nearer_to_the_truth(folder):
    run("audit", "labels.npy", "--size", "400", "-o", "audit.csv")
    fill_in("audit.csv", np.load("clean.npy"))
    plain = json.loads(run("estimate", "probs.npy", "labels.npy", "--json").stdout)
    result = run("estimate", "probs.npy", "labels.npy", "--verified", "audit.csv", "--json")
    helped = json.loads(result.stdout)
    assert helped["estimator"].endswith("+ 400 verified")
    truth = noise.pair(3, 0.4)
    assert dualt.l1_error(helped["transition"], truth) < 0.7 * dualt.l1_error(plain["transition"], truth)


@pytest.mark.parametrize("options", [[], ["--probs", "probs.npy"]])
def test_a_later_batch_keeps_the_truths_and_tells_what_was_reached(folder, options):
    run("audit", "labels.npy", "--size", 100, "-o", "audit.csv", *options)
    fill_in("audit.csv", np.load("clean.npy"))
    before = {row["index"]: row["true"] for row in read_rows("audit.csv")}
    run("audit", "labels.npy", "-o", "audit.csv", *options, code=2)
    assert {row["index"]: row["true"] for row in read_rows("audit.csv")} == before
    more = ["audit", "labels.npy", "-o", "audit.csv", "--more", 80, *options]
    told = json.loads(run(*more, "--json").stdout)
    assert (told["drawn"], told["verified"]) == (180, 100)
    rate = (np.load("labels.npy") != np.load("clean.npy")).mean()
    assert told["reached"][0] < rate < told["reached"][1]
    after = {row["index"]: row["true"] for row in read_rows("audit.csv")}
    assert before.items() <= after.items()
    assert sum(true == "" for true in after.values()) == 80
    fill_in("audit.csv", np.load("clean.npy"))
    result = run("estimate", "probs.npy", "labels.npy", "--verified", "audit.csv", "--json")
    low, high = json.loads(result.stdout)["noise_rate_interval"]
    assert low < rate < high
    done = run("audit", "labels.npy", "-o", "audit.csv", "--more", 0, *options)
    assert "180 verified labels" in done.stdout
    assert "All 180 labels of audit.csv are verified:\n dualt estimate" in done.stdout


@pytest.mark.parametrize("gap", [7, 3001], ids=["some missing", "all there"])
def test_labels_stored_as_floats_are_whole_numbers_in_the_sheet(folder, gap):
    """A person writes 1, not 1.0: nearly all labels were said to be wrong."""
    labels, clean = np.load("labels.npy"), np.load("clean.npy")
    lines = [f"{row},{'' if row % gap == gap - 1 else float(label)}" for row, label in enumerate(labels)]
    Path("floats.csv").write_text("\n".join(["id,label", *lines]))
    run("audit", "floats.csv", "-o", "audit.csv", "--size", 200)
    assert {row["given"] for row in read_rows("audit.csv")} == {"0", "1", "2"}
    fill_in("audit.csv", clean)
    reached = json.loads(run("audit", "floats.csv", "-o", "audit.csv", "--more", 5, "--json").stdout)["reached"]
    assert reached[0] < (labels != clean).mean() < reached[1]


def test_probabilities_are_not_taken_for_one_hot_labels(folder):
    assert "If these are the probabilities, they come first" in refused("audit", "probs.npy", "-o", "audit.csv")


@pytest.mark.parametrize("options", [[], ["--probs", "few_probs.npy"]])
def test_all_of_few_labels_are_drawn(folder, options):
    np.save("few.npy", np.load("labels.npy")[:100])
    np.save("few_probs.npy", np.load("probs.npy")[:100])
    run("audit", "few.npy", "-o", "all.csv", *options)
    assert sorted(int(row["index"]) for row in read_rows("all.csv")) == [*range(100)]
    run("audit", "few.npy", "-o", "some.csv", "--size", 40, *options)
    run("audit", "few.npy", "-o", "some.csv", "--more", 90, *options)
    assert sorted(int(row["index"]) for row in read_rows("some.csv")) == [*range(100)]


@pytest.mark.parametrize("command", ["estimate", "issues"])
def test_an_audit_that_is_not_filled_in_is_refused_before_models_are_fitted(folder, command):
    write_rows("tickets.csv", [{"text": f"{'ab'[row % 2]} word", "queue": "xy"[row % 2]} for row in range(60)])
    run("audit", "tickets.csv", "--label", "queue", "-o", "audit.csv")
    said = run(command, "tickets.csv", "--label", "queue", "--verified", "audit.csv", code=2).stderr
    assert said.startswith("error: Expected true labels in the column 'true'")


def test_ids_come_along(folder):
    lines = [f"row{number},{label}" for number, label in enumerate(np.load("labels.npy"))]
    Path("table.csv").write_text("\n".join(["id,label", *lines]))
    run("audit", "table.csv", "--label", "label", "--id", "id", "--size", 20, "-o", "audit.csv")
    assert all(row["id"] == f"row{row['index']}" for row in read_rows("audit.csv"))
    fill_in("audit.csv", np.load("clean.npy"))
    result = run("estimate", "probs.npy", "labels.npy", "--verified", "audit.csv")
    assert "20 of 20 rows of audit.csv are verified" in result.stderr


def test_an_audit_of_other_labels_is_refused_where_rows_have_none(folder):
    labels = [str(label) for label in np.load("labels.npy")]
    labels[3] = labels[70] = ""
    Path("table.csv").write_text("\n".join(["id,label", *(f"r{row},{label}" for row, label in enumerate(labels))]))
    run("audit", "table.csv", "--label", "label", "--size", 40, "-o", "audit.csv")
    fill_in("audit.csv", np.load("clean.npy"))
    asked = ["estimate", "probs.npy", "table.csv", "--label", "label", "--verified", "audit.csv"]
    told = run(*asked)
    assert "2 of" in told.stderr
    assert "40 of 40 rows of audit.csv are verified" in told.stderr
    row = int(read_rows("audit.csv")[0]["index"])
    labels[row] = next(label for label in labels if label not in ("", labels[row]))
    Path("table.csv").write_text("\n".join(["id,label", *(f"r{row},{label}" for row, label in enumerate(labels))]))
    message = refused(*asked)
    assert f"in row {row}" in message or "it is for other labels" in message


@pytest.mark.parametrize(
    ("options", "message"),
    [(["--more", 5], "new.csv"), (["--probs", "prob.npy"], "No such file: prob.npy"), (["--size", 0], "--size")],
)
def test_wrong_use_of_audit_writes_nothing(folder, options, message):
    assert message in refused("audit", "labels.npy", "-o", "new.csv", *options)
    assert not (folder / "new.csv").exists()


def test_an_audit_of_another_file_is_refused(folder):
    run("audit", "labels.npy", "--size", 50, "-o", "audit.csv")
    fill_in("audit.csv", np.load("clean.npy"))
    kept = Path("audit.csv").read_text()
    np.save("other.npy", np.roll(np.load("labels.npy"), 1))
    for command in (
        ["estimate", "probs.npy", "other.npy", "--verified", "audit.csv", "-o", "t.json"],
        ["issues", "probs.npy", "other.npy", "--verified", "audit.csv", "-o", "t.json"],
        ["audit", "other.npy", "--more", 10, "-o", "audit.csv"],
    ):
        assert "drawn from" in refused(*command)
    assert not (folder / "t.json").exists()
    assert Path("audit.csv").read_text() == kept


def test_rows_without_a_label_are_never_drawn_and_shift_nothing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(3)
    true = rng.integers(2, size=300)
    wrong = rng.random(300) < 0.2
    with Path("data.csv").open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(["sku", "title", "label", "p_0", "p_1"])
        for row in range(300):
            label = "" if row % 7 == 0 else true[row] ^ wrong[row]
            probs = [0.9, 0.1] if true[row] == 0 else [0.1, 0.9]
            writer.writerow([f"s{row}", f'text, "{row}"\n🦊', label, *probs])
    named = ["--label", "label", "--id", "sku", "--text", "title"]
    for more, n_drawn in (["--size", "40"], 40), (["--more", "20"], 60):
        for name, probs in ("plain.csv", []), ("drawn.csv", ["--probs", "p_*"]):
            result = run("audit", "data.csv", *named, *probs, *more, "-o", name, "--json")
            told = json.loads(result.stdout)
            rows = read_rows(name)
            assert told["indices"] == [int(row["index"]) for row in rows]
            assert [row["id"] for row in rows] == [f"s{row['index']}" for row in rows]
            assert [row["text"] for row in rows] == [f'text, "{row["index"]}"\n🦊' for row in rows]
            assert len(rows) == n_drawn
            if n_drawn == 60:
                assert [row["my note"] for row in rows] == ["kept"] * 40 + [""] * 20, "a person's own columns stay"
            for row in rows:
                assert int(row["index"]) % 7
                assert row["given"] == str(true[int(row["index"])] ^ wrong[int(row["index"])])
                row["true"], row["my note"] = str(true[int(row["index"])]), "kept"
            write_rows(name, rows)
    result = run("estimate", "data.csv", *named, "--probs", "p_*", "--verified", "drawn.csv", "--json")
    low, high = json.loads(result.stdout)["noise_rate_interval"]
    assert low < wrong[np.arange(300) % 7 > 0].mean() < high


def test_probabilities_are_made_from_texts_and_the_page_shows_the_sample_alone(folder):
    rng = np.random.default_rng(0)
    true = rng.integers(2, size=120)
    given = np.where(rng.random(120) < 0.2, 1 - true, true)
    words = np.array([["fish", "boat", "sea"], ["tree", "leaf", "wood"]])
    rows = [f"{' '.join(rng.choice(words[t], 4))},{'ab'[g]}" for t, g in zip(true, given, strict=True)]
    Path("texts.csv").write_text("\n".join(["text,label", *rows]))
    asked = ["audit", "texts.csv", "--label", "label", "--text", "text", "-o", "audit.csv"]
    run(*asked, "--size", 30, "--report", "audit.html")
    page = Path("audit.html").read_text()
    assert "suspects-review.csv" not in page
    assert "data-suggested" not in page
    assert "Labels of texts.csv" in page
    assert "dualt estimate texts.csv --label label --text text --verified audit-review.csv" in page
    later = run(*asked, "--more", 10)
    assert "dualt estimate texts.csv --label label --text text --verified audit.csv" in later.output


def test_the_page_of_a_table_shows_the_columns_of_the_row(folder):
    rng = np.random.default_rng(0)
    rows = [f"{size:.2f},{'ab'[int(size > 0)]}" for size in rng.normal(size=60)]
    Path("table.csv").write_text("\n".join(["width,label", *rows]))
    run("audit", "table.csv", "--label", "label", "--features", "width", "--size", 5, "-o", "audit.csv",
        "--report", "audit.html")  # fmt: skip
    page = Path("audit.html").read_text()
    assert '"fields":["width"]' in page
    assert all(rows[int(row["index"])].split(",")[0] in page for row in read_rows("audit.csv"))

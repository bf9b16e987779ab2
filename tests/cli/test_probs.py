"""`dualt probs`, and `dualt issues` and `dualt estimate` of data without probabilities."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from dualt import find_label_issues
from dualt.crossfit import cross_fit
from tests.cli.commands import numbers_of, refused, run

WORDS = {"animals, small": ["fox", "hen", "owl"], 'the "sea"': ["ship", "wave", "salt"], "café ☕": ["cup", "milk"]}


@pytest.fixture
def table(tmp_path, monkeypatch):
    """A data frame, written as data.csv into the working folder: ids and rows twice, labels missing and wrong."""
    monkeypatch.chdir(tmp_path)
    rng, names = np.random.default_rng(0), list(WORDS)
    clean = rng.integers(3, size=120)
    given = np.where(rng.random(120) < 0.1, (clean + 1) % 3, clean)
    frame = pd.DataFrame(
        {
            "sku": [f"{row // 2:04}" for row in range(120)],
            "title": [" ".join(rng.choice(WORDS[names[c]], 4)) + rng.choice(["", ', "so"\n🦊']) for c in clean],
            "label": np.array(names, dtype=object)[given],
            "x_1": np.where(rng.random(120) < 0.05, np.nan, clean + rng.normal(size=120) / 5).round(3),
            "x_2": np.where(clean == 0, "rot, dunkel", "grün"),
            "user": np.arange(120) // 4,
        }
    )
    frame.loc[[3, 50], "label"] = None
    frame.loc[21] = frame.loc[20]
    frame.to_csv("data.csv", index=False)
    frame.attrs["wrong"] = {row for row in range(120) if clean[row] != given[row] and row not in (3, 50)} - {21}
    return frame


def test_a_table_of_texts(table):
    said = json.loads(
        run("probs", "data.csv", "--label", "label", "--text", "title", "--id", "sku", "-o", "p.csv", "--json").stdout
    )
    made = pd.read_csv("p.csv", dtype={"sku": str})
    assert list(made) == ["index", "sku", "label", *(f"p_{name}" for name in sorted(WORDS))]
    assert made["index"].tolist() == list(range(120))
    assert made["sku"].tolist() == table["sku"].tolist()
    assert made["label"].isna().tolist() == table["label"].isna().tolist()
    found = cross_fit(table["title"], table["label"])
    np.testing.assert_allclose(made.filter(like="p_"), found.pred_probs, rtol=1e-6)
    assert (said["n_samples"], said["n_labelled"], said["folds"], said["output"]) == (120, 118, 5, "p.csv")
    assert said["agreement"] == pytest.approx(found.agreement)
    shown = run("probs", "data.csv", "--label", "label", "--text", "title", "--quick", "-o", "q.csv").stdout
    assert "dualt issues q.csv --label label" in shown


@pytest.mark.parametrize("name", ["p.csv", "p.parquet", "p.npy"])
def test_the_output_is_read_as_it_is_and_the_same_as_in_one_command(table, name):
    columns = ["--label", "label", "--id", "sku"]
    run("probs", "data.csv", *columns, "--text", "title", "--quick", "-o", name)
    one = json.loads(run("issues", "data.csv", *columns, "--text", "title", "--quick", "--json").stdout)
    columns.append("--determined")  # a file of probabilities does not say what they were made from
    two = json.loads(run("issues", name, "data.csv", *columns, "--text", "title", "--json").stdout)
    assert [row["index"] for row in one["issues"]] == [row["index"] for row in two["issues"]]
    assert one["class_names"] == sorted(WORDS)
    if name == "p.npy":
        return
    alone = json.loads(run("issues", name, *columns, "--json").stdout)
    assert [(row["index"], row["id"]) for row in alone["issues"]] == [
        (row["index"], row["id"]) for row in one["issues"]
    ]
    estimate = json.loads(run("estimate", name, "--label", "label", "--determined", "--json").stdout)
    other = json.loads(run("estimate", "data.csv", "--label", "label", "--text", "title", "--quick", "--json").stdout)
    np.testing.assert_allclose(estimate["transition"], other["transition"], atol=1e-4)


def test_columns_of_numbers_and_categories_and_groups(table):
    run("probs", "data.csv", "--features", "x_*", "--label", "label", "--group", "user", "-o", "p.npy", "--folds", "2")
    found = cross_fit(table[["x_1", "x_2"]], table["label"], cv=2, groups=table["user"])
    np.testing.assert_allclose(np.load("p.npy"), found.members, rtol=1e-6)
    several = json.loads(run("issues", "p.npy", "data.csv", "--label", "label", "--overlapping", "--json").stdout)
    expected = find_label_issues(found, table["label"])
    assert [row["index"] for row in several["issues"]] == expected.indices.tolist()
    assert found.agreement > 0.8
    listed = run("issues", "data.csv", "--features", "x_2,x_1", "--label", "label", "--quick", "--json")
    assert json.loads(listed.stdout)["issues"]
    table["x_1"] = (3000 * table["x_1"]).round(2)
    table.to_csv("data.csv", index=False)
    written = table["x_1"].map(lambda x: "" if x != x else f"{x:,}".translate({44: ".", 46: ","}))
    table.assign(x_1=written).to_csv("bar.csv", sep=";", index=False)
    table.assign(x_1=written).to_csv("quoted.csv", index=False)
    for name in ("data", "bar", "quoted"):
        run("probs", f"{name}.csv", "--features=x_*", "--label=label", "--group=user", "--quick", "-o", f"{name}.npy")
        np.testing.assert_allclose(np.load(f"{name}.npy"), np.load("data.npy"))


def test_what_is_wrong_with_a_table_is_said_in_one_line(table):
    out = ["-o", "p.csv"]
    text = ["--text", "title"]
    assert "Did you mean 'label'" in refused("probs", "data.csv", "--label", "labl", *text, *out)
    assert "Did you mean 'title'" in refused("issues", "data.csv", "--label", "label", "--text", "titel")
    table[["label"]].to_csv("labels.csv", index=False)
    said = refused("probs", "labels.csv", "--label", "label", *out)
    assert said.endswith("to learn from in labels.csv, got only label. Pass --features emb.npy.")
    pd.DataFrame(np.ones((2, 30)), columns=[f"c{place}" for place in range(30)]).to_csv("wide.csv", index=False)
    assert refused("probs", "wide.csv", "--label", "label", *text, *out).endswith("c18, c19, … 30 in all.")
    assert "match 'z_*'" in refused("probs", "data.csv", "--label", "label", "--features", "z_*", *out)
    assert "Ask for 30 folds" in refused("probs", "data.csv", *text, "--group", "user", "--folds", "99", *out)
    assert "two folds" in refused("probs", "data.csv", *text, "--folds", "1", *out)
    assert "No such file" in refused("probs", "none.csv", "--label", "label", *text, *out)
    assert ".parquet" in refused("probs", "data.csv", "--label", "label", *text, "-o", "p.xlsx")
    assert "got 'i.xlsx'" in refused(
        "issues", "data.csv", "--label", "label", *text, "-o", "i.xlsx", "--report", "p.html"
    )
    assert not Path("p.html").exists()
    assert "also an input" in refused("probs", "data.csv", "--label", "label", *text, "-o", "data.csv")
    assert "one table" in refused("issues", "data.csv", "data.csv", "--label", "label", "--features", "x_*")
    table.assign(label="same").to_csv("one.csv", index=False)
    assert "at least two classes" in refused("probs", "one.csv", "--label", "label", *text, *out)
    assert "label column 'label'" in refused("probs", "data.csv", "--label", "label", "--features", "x_1,label", *out)
    assert "label column 'label'" in refused("issues", "data.csv", "--label", "label", "--text", "label")
    assert not Path("p.csv").exists()


def test_a_model_that_knows_nothing_says_so(table):
    table.assign(noise=np.random.default_rng(1).normal(size=120)).to_csv("noise.csv", index=False)
    result = run("issues", "noise.csv", "--label", "label", "--features", "noise", "--quick")
    assert "rows it was not trained on" in result.stderr
    assert "No noise rate can be claimed" in result.stdout


@pytest.fixture
def photos(tmp_path, monkeypatch):
    """A folder per class of small images, bars across or upright, some in the wrong folder."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    for name in ("across, wide", "upright ☕"):
        Path("photos", name).mkdir(parents=True)
    for row in range(60):
        image = rng.integers(0, 60, (12, 12), dtype=np.uint8)
        image[(slice(None), slice(3, 9)) if row % 2 else (slice(3, 9), slice(None))] += 180
        name = ("across, wide", "upright ☕")[row % 2 ^ (row in (10, 31))]
        Image.fromarray(image).save(Path("photos", name, f"{row:03}.png"))
    return tmp_path / "photos"


def test_images_in_a_folder_per_class(photos):
    issues = json.loads(run("issues", "photos", "--quick", "--json", "--top=2", "--report", "page.html").stdout)[
        "issues"
    ]
    assert {row["id"] for row in issues} == {"upright ☕/010.png", "across, wide/031.png"}
    assert "data:image/png" in Path("page.html").read_text(encoding="utf-8")
    run("probs", "photos", "--quick", "-o", "p.csv")
    made = pd.read_csv("p.csv")
    assert list(made) == ["file", "label", "p_across, wide", "p_upright ☕"]
    again = json.loads(run("issues", "p.csv", "photos", "--json", "--top", "2").stdout)["issues"]
    assert [row["id"] for row in again] == [row["id"] for row in issues]


def test_images_of_several_sizes_and_what_is_no_folder_per_class(photos):
    Image.new("RGB", (70, 50)).save(photos / "across, wide" / "large.png")
    assert json.loads(run("probs", "photos", "-o", "p.csv", "--quick", "--json").stdout)["n_samples"] == 61
    for option in ("--features", "--text"):
        assert "with a table" in refused("probs", "photos", "-o", "q.csv", option, "x")
    photos.rename("train")
    Path("all").mkdir()
    Path("train").rename("all/train")
    Path("all/test").mkdir()
    assert "Pass all/train" in refused("probs", "all", "-o", "q.csv")
    assert not Path("q.csv").exists()


def test_several_columns_of_texts_and_one_plain_model(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    labels = np.array(["in", "out"])[rng.integers(2, size=80)]
    half = rng.random(80) < 0.5
    words = np.where(labels == "in", "apple pear plum", "nail screw bolt")
    frame = pd.DataFrame({"subject": np.where(half, words, "hello"), "body": np.where(half, "you", words), "y": labels})
    frame.to_csv("mail.csv", index=False)
    run("probs", "mail.csv", "--label", "y", "--text", "subject,body", "--quick", "-o", "p.npy")
    assert (np.load("p.npy").argmax(axis=1) == (labels == "out")).all()
    frame.loc[0, "y"] = "out" if labels[0] == "in" else "in"
    frame.to_csv("mail.csv", index=False)
    monkeypatch.setenv("COLUMNS", "140")
    twice = "subject,body,subject"
    shown = run("issues", "mail.csv", "--label", "y", "--text", twice, "--report", "page.html").stdout
    assert " ".join(frame.loc[0, ["subject", "body"]]) in shown
    assert words[0] in Path("page.html").read_text(encoding="utf-8")


def test_the_probabilities_of_several_models(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    clean = rng.integers(2, size=300)
    given = np.where(rng.random(300) < 0.1, 1 - clean, clean)
    members = [rng.dirichlet([1, 1], 300) * 0.4 + 0.6 * np.eye(2)[clean] for _ in range(2)]
    pd.DataFrame({"name": [f"n{row}" for row in range(300)], "y": given}).to_csv("y.csv", index=False)
    for number, member in enumerate(members):
        np.save(f"p{number}.npy", member)
    np.save("both.npy", np.stack(members))
    options = ["y.csv", "--label", "y", "--id", "name", "--determined", "--json"]
    one, two = (json.loads(run("issues", probs, *options).stdout) for probs in ("p0.npy,p1.npy", "both.npy"))
    assert one["issues"] == two["issues"]
    assert (clean != given)[[row["index"] for row in one["issues"]]].mean() > 0.9
    assert one["issues"][0]["id"] == f"n{one['issues'][0]['index']}"
    assert "file of LABELS" in refused("estimate", "both.npy")
    (tmp_path / "in").mkdir()
    for number, member in enumerate(members):  # in a folder, as tables with their own labels
        columns = {"name": [f"n{row}" for row in range(300)], "p_0": member[:, 0], "p_1": member[:, 1], "y": given}
        pd.DataFrame(columns).to_csv(f"in/p{number}.csv", index=False)
    options[0] = "--report=page.html"
    tables = json.loads(run("issues", "in/p0.csv, in/p1.csv", *options, "--text", "name").stdout)
    assert [row["index"] for row in tables["issues"]] == [row["index"] for row in one["issues"]]
    run("audit", "y.csv", "--label", "y", "--probs", "p0.npy, in/p1.csv", "--report", "audit.html", "-o", "audit.csv")
    table = pd.read_csv("in/p1.csv")
    table.astype({"y": float}).to_csv("in/p1.csv", index=False)
    assert json.loads(run("issues", "in/p0.csv,in/p1.csv", *options, "--text", "name").stdout) == tables
    table[::-1].to_csv("in/p1.csv", index=False)
    assert "labels in in/p0.csv and in/p1.csv, got another at row" in refused(
        "issues", "in/p0.csv,in/p1.csv", "--label=y"
    )
    table.assign(name=table["name"][::-1].to_numpy()).to_csv("in/p1.csv", index=False)
    assert "same order in in/p1.csv and in/p0.csv" in refused("issues", "in/p0.csv,in/p1.csv", *options)


def test_labels_that_look_alike_are_named_and_merged_and_the_review_has_them_as_written(table):
    table["label"] = table["label"].where(table.index % 9 != 0, table["label"].str.upper() + " \u200b")
    table.loc[[7, 8], "label"] = "n/a"
    table.to_csv("data.csv", index=False)
    options = ["issues", "data.csv", "--label", "label", "--text", "title", "--id", "sku", "--quick", "--json"]
    result = run(*options)
    assert "'CAFÉ ☕ \\u200b'" in result.stderr
    assert "differ only by case, accents or blanks. Pass --merge-labels." in result.stderr
    assert "'n/a' (2) look like missing labels" in result.stderr
    assert "Several rows have the same id in 'sku', and are named by row number instead: '0000'" in result.stderr
    assert result.stderr.index("differ only") < result.stderr.index("not trained on"), "before anything is estimated"
    found = json.loads(run(*options, "--merge-labels", "--report", "page.html", "--top=40", "-o", "i.csv").stdout)
    assert found["class_names"] == sorted(WORDS)
    (rows,) = numbers_of(Path("page.html").read_text(encoding="utf-8"))["lists"]
    assert rows["old"] == [table["label"][row] for row in rows["index"]]
    issues = pd.read_csv("i.csv", dtype=str, keep_default_na=False)
    assert issues["given"].tolist() == rows["old"]
    issues.rename(columns={"given": "old", "suggested": "new"})[["index", "old", "new"]].to_csv("r.csv", index=False)
    applied = run("apply-review", "data.csv", "r.csv", "--label", "label", "-o", "new.csv")
    assert "40 labels reviewed" in applied.stdout
    assert "differ only by case, accents or blanks. Those that were not reviewed stay so." in applied.stderr


def test_the_page_shows_the_columns_that_were_learned_from_or_asked_for(table):
    options = ["issues", "data.csv", "--label", "label", "--features", "x_*", "--id", "sku", "--quick"]
    said = run(*options, "--report", "page.html").stdout
    command = "dualt apply-review data.csv suspects-review.csv --label label --id sku -o data-corrected.csv"
    assert command in said
    page = Path("page.html").read_text(encoding="utf-8")
    assert command in page
    assert "<title>Labels of data.csv</title>" in page
    (rows,) = numbers_of(page)["lists"]
    assert rows["fields"] == ["x_1", "x_2"]
    assert [cells[1] for cells in rows["cells"]] == [table["x_2"][row] for row in rows["index"]]
    assert all(one != other for one, other in zip(rows["given"], rows["suggested"], strict=True))
    run(*options, "--report", "page.html", "--show", "user, title")
    assert numbers_of(Path("page.html").read_text(encoding="utf-8"))["lists"][0]["fields"] == ["user", "title"]

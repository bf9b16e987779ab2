"""`dualt votes`: from a table of votes or an export to the consensus, and on to the other commands."""

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import dualt
from tests.cli import commands
from tests.cli.commands import refused

WORDS = {"cat": ["purr", "meow", "paw"], "dog": ["bark", "bone", "tail"], "owl": ["hoot", "wing", "nest"]}


def run(*arguments):
    return commands.run(*arguments).stdout


@pytest.fixture
def truth(tmp_path, monkeypatch):
    """votes.csv in the working folder, a row per vote, and wide.csv, a column per annotator."""
    monkeypatch.chdir(tmp_path)
    rng, names = np.random.default_rng(0), list(WORDS)
    truth = pd.Series(rng.choice(names, 150), [f"x{row}" for row in range(150)])
    rows = []
    for who, right in (("ann", 0.9), ("bob", 0.75), ("cy", 0.6)):
        for item, true in truth.items():
            if rng.random() < 0.85:
                said = true if rng.random() < right else rng.choice(names)
                rows.append((item, who, said, f"{' '.join(WORDS[true][:2])} {item}"))
    votes = pd.DataFrame(rows, columns=["id", "who", "class", "text"])
    votes.to_csv("votes.csv", index=False)
    votes.pivot(index="id", columns="who", values="class").to_csv("wide.csv")
    return truth


LONG = ("votes.csv", "--item", "id", "--annotator", "who", "--label", "class")


@pytest.fixture
def export(truth):
    """export.json: the same votes as Label Studio writes them."""
    tasks = [
        {"id": item, "data": {"text": group.text.iloc[0]}, "annotations": [
            {"completed_by": {"email": who}, "result": [{"value": {"choices": [label]}}]}
            for who, label in zip(group.who, group["class"], strict=True)
        ]}
        for item, group in pd.read_csv("votes.csv").groupby("id", sort=False)
    ]  # fmt: skip
    Path("export.json").write_text(json.dumps(tasks), encoding="utf-8")


@pytest.mark.parametrize(
    ("votes", "item", "label"),
    [(LONG, "id", "class"), (("export.json",), "item", "label")],
    ids=["csv", "label-studio"],
)
def test_from_votes_to_the_corrected_table_in_three_commands(truth, export, votes, item, label):
    shown = run("votes", *votes, "--text", "text", "-o", "consensus.csv", "--annotators", "people.csv",
                "--report", "page.html", "--next", 10)  # fmt: skip
    page = Path("page.html").read_text(encoding="utf-8")
    assert (least := re.search(r"of the consensus looks wrong \((at least \d+ %)", shown))
    assert f"of the consensus looks wrong ({least[1]})" in page
    assert "Errors that the annotators share do not show." in page
    assert f"dualt audit consensus.csv --label {label} --id {item} --text text --size 100" in shown
    consensus = pd.read_csv("consensus.csv")
    assert consensus.columns.tolist() == [item, label, "probability", "votes", "agreement", "text"]
    assert (consensus[label].to_numpy() == truth[consensus[item]]).mean() > 0.95
    assert pd.read_csv("people.csv").sort_values("quality").name.tolist() == ["cy", "bob", "ann"]
    assert f"dualt apply-review consensus.csv --label {label} --id {item} suspects-review.csv" in page
    learned = commands.run("issues", "consensus.csv", "--label", label, "--id", item, "--top", 10, "-o", "found.csv")
    assert "Learning from 1 column: text (text)" in learned.stderr, "not from what the consensus says about its labels"
    found = pd.read_csv("found.csv").rename(columns={item: "id"})
    review = pd.DataFrame(
        {"index": found["index"], "id": found["id"], "old": found.given, "new": truth[found["id"]].to_numpy()}
    )
    review.to_csv("review.csv", index=False)
    run("apply-review", "consensus.csv", "review.csv", "--label", label, "--id", item, "-o", "corrected.csv")
    corrected = pd.read_csv("corrected.csv")
    right = consensus[label].mask(consensus[item].isin(review["id"]), truth[consensus[item]].to_numpy())
    pd.testing.assert_frame_equal(corrected, consensus.assign(**{label: right}))


def test_an_audit_of_the_consensus_bounds_its_rate(truth):
    first = run("votes", *LONG, "--next", 13)
    assert re.search(r"Check next: ('x\d+', ){12}… 13 in all", first)
    assert f"dualt votes {' '.join(LONG)} --next 13 -o consensus.csv --report page.html" in first
    shown = run("votes", *LONG, "-o", "consensus.csv")
    assert f"dualt votes {' '.join(LONG)} -o consensus.csv --verified audit.csv" in shown
    drawn = run("audit", "consensus.csv", "--label", "class", "--id", "id", "--size", 60, "-o", "audit.csv")
    assert drawn.splitlines()[1:] == [" dualt votes VOTES --verified audit.csv"]
    audit = pd.read_csv("audit.csv", dtype=str, keep_default_na=False)
    audit.assign(true=truth[audit.id].to_numpy()).to_csv("audit.csv", index=False)
    found = json.loads(run("votes", *LONG, "--verified", "audit.csv", "--json"))
    low, high = found["noise_rate_interval"]
    assert low <= found["noise_rate"] <= high < 0.3
    assert all(one["low"] <= one["quality"] <= one["high"] for one in found["annotators"])
    audit.assign(true=truth[audit.id].to_numpy()).drop(columns="id").to_csv("rows.csv", index=False)
    assert json.loads(run("votes", *LONG, "--verified", "rows.csv", "--json")) == found


def test_probabilities_in_a_file_are_one_more_voice(truth, export):
    long = pd.read_csv("votes.csv")
    probs = pd.get_dummies(truth[long.id.unique()]).astype(float) * 0.7 + 0.1
    np.save("probs.npy", probs)
    expected = dualt.combine_votes(long, probs).noise_rate
    wide, studio = ("wide.csv", "--item", "id"), ("export.json", "--text", "text")
    for votes, name in ((LONG, "id"), (wide, "id"), (studio, "item")):
        probs[::-1].rename_axis(name).add_prefix("p_").to_csv("probs.csv")
        found = json.loads(run("votes", *votes, "--probs", "probs.csv", "--json"))
        assert found["noise_rate"] == pytest.approx(expected)
    assert json.loads(run("votes", *LONG, "--probs", "probs.npy", "--json"))["noise_rate"] == pytest.approx(expected)
    shift = np.minimum(probs, 1 - probs).min(axis=1).to_numpy()[:, None] * np.array([1, -1, 0])
    np.save("probs.npy", np.stack([probs + shift, probs - shift]))
    assert json.loads(run("votes", *LONG, "--probs", "probs.npy", "--json"))["noise_rate"] == pytest.approx(expected)
    assert "column of probs.csv" in refused("votes", *LONG, "--probs", "probs.csv")


def test_a_class_that_wins_no_item_may_be_learned_beside(truth):
    votes = pd.read_csv("votes.csv")
    votes.loc[votes.index[votes["id"].duplicated(keep=False)][0], "class"] = "eel"
    votes.to_csv("votes.csv", index=False)
    found = json.loads(run("votes", *LONG, "--text", "text", "-o", "consensus.csv", "--json"))
    assert found["class_names"] == ["cat", "dog", "eel", "owl"]
    assert "eel" not in {*pd.read_csv("consensus.csv")["class"]}


def test_texts_may_be_in_a_table_of_their_own(truth):
    votes = pd.read_csv("votes.csv")
    votes.drop_duplicates("id")[["id", "text"]].to_csv("texts.csv", index=False)
    together = json.loads(run("votes", *LONG, "--text", "text", "--json"))
    votes.drop(columns="text").to_csv("votes.csv", index=False)
    assert json.loads(run("votes", *LONG, "--items", "texts.csv", "--text", "text", "--json")) == together
    assert "Expected --text or --features" in refused("votes", *LONG, "--items", "texts.csv")
    votes["id"] = votes["id"].str[1:].astype(int)
    votes.rename(columns={"id": "item", "who": "annotator", "class": "label"}).to_json("votes.json", orient="records")
    texts = pd.read_csv("texts.csv")
    texts.assign(item=texts["id"].str[1:]).to_csv("texts.csv", index=False)
    numbered = json.loads(run("votes", "votes.json", "--items", "texts.csv", "--text", "text", "--json"))
    assert numbered["noise_rate"] == together["noise_rate"]


def test_what_is_said_of_a_vote_does_not_come_with_the_consensus(truth):
    """Else `dualt issues` would learn the votes, and find none of their errors."""
    votes = pd.read_csv("votes.csv")
    votes.assign(seconds=range(len(votes)), shop=votes["id"].str[-1]).to_csv("votes.csv", index=False)
    wide = pd.read_csv("wide.csv").merge(votes.drop_duplicates("id")[["id", "text"]])
    wide.assign(shop="north").to_csv("wide.csv", index=False)
    columns = ["probability", "votes", "agreement", "text", "shop"]
    run("votes", *LONG, "--text", "text", "-o", "consensus.csv")
    assert pd.read_csv("consensus.csv").columns.tolist() == ["id", "class", *columns]
    wide.assign(shop="north").rename(columns={"id": "sku"}).to_csv("wide.csv", index=False)
    run("votes", "wide.csv", "--item", "sku", "--text", "text", "--features", "shop", "-o", "consensus.csv")
    assert pd.read_csv("consensus.csv").columns.tolist() == ["sku", "label", *columns]


def test_items_of_a_review_are_settled(truth):
    first = json.loads(run("votes", *LONG, "--next", 20, "--json"))
    review = pd.DataFrame({"id": first["next_items"], "old": "cat", "new": truth[first["next_items"]]})
    review.to_csv("suspects-review.csv", index=False)
    run("votes", *LONG, "--settled", "suspects-review.csv", "-o", "consensus.csv")
    after = json.loads(run("votes", *LONG, "--settled", "suspects-review.csv", "--json"))
    consensus = pd.read_csv("consensus.csv", index_col="id")
    assert (consensus["class"][review.id] == review.new.to_numpy()).all()
    assert after["noise_rate"] < first["noise_rate"]
    assert after["noise_rate_interval"][1] == 1
    assert not {*after["next_items"]} & {*review.id}
    assert "pass these with --settled" in refused("votes", *LONG, "--verified", "suspects-review.csv")


def test_names_that_look_like_formulas_come_back_from_audits_and_reviews(truth):
    votes = pd.read_csv("votes.csv")
    votes.assign(**{"class": "=" + votes["class"], "id": "@" + votes["id"]}).to_csv("votes.csv", index=False)
    run("votes", *LONG, "-o", "consensus.csv")
    run("audit", "consensus.csv", "--label", "class", "--id", "id", "--size", 60, "-o", "audit.csv")
    audit = pd.read_csv("audit.csv", dtype=str, keep_default_na=False)
    assert audit.given.str.startswith("'=").all(), "as the page's download has them"
    assert "Expected classes in the column 'true' of audit.csv" in refused("votes", *LONG, "--verified", "audit.csv")
    audit.assign(true=audit.given + " ").to_csv("audit.csv", index=False)
    assert json.loads(run("votes", *LONG, "--verified", "audit.csv", "--json"))["noise_rate_interval"][1] < 0.1


def test_the_page_shows_votes_and_annotators(truth, browser):
    run("votes", *LONG, "--text", "text", "--report", "page.html", "--next", 10)
    page = browser.new_page()
    page.goto(Path("page.html").resolve().as_uri())
    page.locator(".notes li").first.wait_for()
    notes = page.locator(".notes li").all_inner_texts()
    assert re.match(r"Classifier: \w+ \(\d+%\)$", notes[0])
    assert all(re.match(r"(ann|bob|cy) \(right \d+% of the time\): ", note) for note in notes[1:])
    assert page.locator(".card dt").first.inner_text() == "Consensus"
    assert page.locator(".tools label:visible").all_inner_texts()[1].startswith("Consensus"), "no groups: all doubtful"
    assert "label" not in page.locator("main").inner_text().lower().replace("--label", "")
    page.locator("#annotators summary").first.click()
    assert page.locator("#annotators details[open] tbody tr").count() == 3
    assert page.locator("#annotators details").count() == 3
    page.close()
    votes = pd.read_csv("votes.csv")
    pd.concat([votes, votes[votes.who == "cy"].assign(who="copy")]).to_csv("votes.csv", index=False)
    run("votes", *LONG, "--report", "page.html")
    assert ">1 thing to know before" in (text := Path("page.html").read_text(encoding="utf-8"))
    assert "copy and cy" in text.partition('<h2 id="advice-title">')[2]


def test_what_is_not_usable_is_refused(truth):
    pd.read_csv("votes.csv").drop_duplicates("id").to_csv("single.csv", index=False)
    assert "got one annotator on each" in refused("votes", "single.csv", *LONG[1:])
    pd.read_csv("votes.csv").rename(columns={"id": "n", "who": "by"}).to_csv("by.csv", index=False)
    assert "are in no other column. Name the columns" in refused("votes", "by.csv")
    assert "Expected one row per item, got several for 'x0'" in refused("votes", "by.csv", "--item", "n")
    assert "Expected a column 'annotator'" in refused("votes", "votes.csv", "--item", "id", "--annotator", "annotator")
    pd.read_csv("votes.csv").assign(minutes=range(len(pd.read_csv("votes.csv")))).to_csv("timed.csv", index=False)
    assert "one value of 'minutes' for each item, got several for 'x" in refused(
        "votes", "timed.csv", *LONG[1:], "--features", "minutes"
    )
    assert "--features emb.npy -o probs.npy, and pass --probs" in refused("votes", *LONG, "--features", "emb.npy")
    assert "also an input" in refused("votes", *LONG, "--annotators", "votes.csv")
    assert "class" in pd.read_csv("votes.csv"), "it is not overwritten"
    assert "got 'people.xlsx'" in refused("votes", *LONG, "-o", "new.csv", "--annotators", "people.xlsx")
    assert not Path("new.csv").exists()
    assert "--next" in refused("votes", *LONG, "--next", "0")
    pd.read_csv("votes.csv").rename(columns={"id": "ticket"}).to_csv("tickets.csv", index=False)
    assert "Expected a column 'item', got ticket, who, class" in refused("votes", "tickets.csv")
    pd.DataFrame({"id": ["x1", "x2"], "old": ["dog", "dog"], "new": ["cat", "dog"]}).to_csv("chosen.csv", index=False)
    assert "equal chances" in refused("votes", *LONG, "--verified", "chosen.csv")
    for index in ("148", "-1", "x1"):
        Path("rows.csv").write_text(f"index,true\n{index},cat\n")
        said = refused("votes", *LONG, "--verified", "rows.csv")
        assert f"rows from 0 to 147 as index in rows.csv, got '{index}'" in said
    Path("twice.csv").write_text("id,true\nx1,cat\nx1,dog\n")
    assert "one class per item in settled, got two for x1" in refused("votes", *LONG, "--settled", "twice.csv")
    assert "votes.csv: it is also an input" in refused("votes", *LONG, "--annotators", "votes.csv")
    assert "it is also another output" in refused("votes", *LONG, "--annotators", "a.csv", "-o", "a.csv")


@pytest.mark.parametrize("options", ["--text", "--features", "--text text --item", "--item"])
def test_columns_that_are_not_there_are_named(truth, options):
    table = "votes.csv" if "text" in options else "wide.csv"
    assert "'clas'" in (said := refused("votes", table, *options.split(), "clas")), said
    assert "Traceback" not in said

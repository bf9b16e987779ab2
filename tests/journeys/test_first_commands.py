"""The first command that somebody types for their own data: it learns from what is there, and says what comes next."""

import json
import re
import shlex
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image
from sklearn.datasets import load_digits, load_iris, make_classification

from tests.cli.commands import refused


def next_steps(result):
    """Return the commands below "Next", as lists of words."""
    below = result.stdout.partition("\nNext\n")[2].splitlines()
    return [shlex.split(line.split("   ")[0])[1:] for line in below]


@pytest.fixture
def customers(run):
    """300 customers with blanks and categories, a tenth of their labels wrong."""
    rng = np.random.default_rng(0)
    age, income = rng.integers(18, 80, 300), rng.normal(50, 15, 300).round(1)
    job = rng.choice(["clerk", "nurse", "driver"], 300)
    low = (age - 45) / 10 + (income - 50) / 10 + 2 * (job == "nurse") > 0.5
    wrong = rng.random(300) < 0.1
    frame = pd.DataFrame({"customer": [f"c{row:03}" for row in range(300)], "age": age, "income": income, "job": job})
    frame.loc[rng.random(300) < 0.05, "income"] = np.nan
    frame.loc[rng.random(300) < 0.05, "job"] = None
    frame["risk"] = np.where(low ^ wrong, "low", "high")
    frame.to_csv("customers.csv", index=False)
    frame.attrs["wrong"] = np.flatnonzero(wrong)
    return frame


def test_a_table_is_learned_from_as_it_is(run, customers):
    command = ["issues", "customers.csv", "--label", "risk"]
    result = run(*command, "--json", "-o", "issues.csv")
    learning, ids, judged, *_ = (line for line in result.stderr.splitlines() if not re.search(r": \d+ of \d+$", line))
    assert learning == "customers.csv has no probabilities. Learning from 3 columns: age, income, job"
    assert "from customer, which is different in every row. To name the rows by it, pass --id customer." in ids
    assert "5 models" in judged or "4 models" in judged
    flagged = pd.read_csv("issues.csv")["index"]
    assert np.isin(flagged, customers.attrs["wrong"]).mean() > 0.6
    named = run(*command, "--id", "customer", "--report", "page.html", "--quick")
    assert "different in every row" not in named.stderr
    customers.assign(code=customers["customer"]).to_csv("coded.csv", index=False)
    coded = run("issues", "coded.csv", "--label", "risk", "--id", "customer", "--quick").stderr
    assert "Not learning from code, which is different in every row.\n" in coded
    assert [step[0] for step in next_steps(named)] == ["apply-review"]
    assert '"income"' in Path("page.html").read_text()
    quick, by_name = (run(*command, "--quick", "--json", *more) for more in ([], ["--features", "age,income,job"]))
    assert json.loads(by_name.stdout)["issues"] == json.loads(quick.stdout)["issues"]


def test_probs_estimate_audit_and_train_learn_from_the_same_columns(run, customers):
    named = ["customers.csv", "--label", "risk", "--id", "customer"]
    table = [*named, "--quick"]
    for command in (["probs", *table, "-o", "p.csv"], ["estimate", *table], ["train", *named, "-o", "model"]):
        assert "Learning from 3 columns: age, income, job" in run(*command).stderr
    drawn = run("audit", *named, "-o", "audit.csv", "--report", "audit.html", "--size", 60)
    assert "Learning from 3 columns" in drawn.stderr
    assert "dualt estimate customers.csv --label risk --id customer --verified audit.csv" in drawn.stdout
    customers.drop(columns="risk").sample(frac=1, random_state=0).to_csv("new.csv", index=False)
    run("predict", "model", "new.csv", "-o", "predicted.csv")
    predicted = pd.read_csv("predicted.csv")
    assert predicted.columns.tolist() == ["customer", "age", "income", "job", "predicted", "probability"]
    given = customers.set_index("customer").loc[predicted["customer"], "risk"]
    assert (predicted["predicted"].to_numpy() == given.to_numpy()).mean() > 0.75


def test_texts_are_found_among_the_columns(run):
    rng = np.random.default_rng(1)
    words = {"animal": ["fox", "hen", "owl"], "drink": ["tea", "milk", "beer"]}
    true = rng.choice(list(words), 200)
    texts = [" ".join(rng.choice(words[name], 5)) + f" {row}" for row, name in enumerate(true)]
    given = np.where(rng.random(200) < 0.1, rng.choice(list(words), 200), true)
    pd.DataFrame({"label": given, "title": texts}).to_csv("titles.csv", index=False)
    result = run("issues", "titles.csv", "--json")
    assert "Learning from 1 column: title (text)" in result.stderr
    assert "Labels are those of the column label; --label takes another." in result.stderr
    assert {row["index"] for row in json.loads(result.stdout)["issues"]} == {*np.flatnonzero(given != true)}


def test_what_is_almost_probabilities_is_refused_with_both_ways_out(run):
    rng = np.random.default_rng(0)
    labels, shares = rng.choice(["cat", "dog"], 60), rng.random((60, 2))
    numbers = (labels == "dog").astype(int)
    for columns, given in ((["cat", "dog"], labels), (["p_cat", "p_dog"], labels), (["a", "b"], numbers)):
        pd.DataFrame(shares, columns=columns).assign(label=given).to_csv("data.csv", index=False)
        assert "sum to 1" in (said := refused("issues", "data.csv", "--label", "label"))
        assert said.endswith("If these are features, not probabilities, pass --features '*'.")
    for columns, given in ((["cat", "dog"], labels), (["a", "b"], numbers)):
        percent = pd.DataFrame(100 * shares / shares.sum(axis=1, keepdims=True), columns=columns)
        percent.assign(label=given).to_csv("data.csv", index=False)
        assert "percentages" in (said := refused("issues", "data.csv", "--label", "label"))
        assert said.endswith("If these are features, not probabilities, pass --features '*'.")
    right = pd.DataFrame(shares / shares.sum(axis=1, keepdims=True), columns=["a", "b"])
    right.assign(label=labels, note="n").to_csv("data.csv", index=False)
    assert "numbers in column 'note'" in refused("issues", "data.csv", "--label", "label")
    np.save("emb.npy", rng.normal(size=(60, 5)))
    np.save("labels.npy", numbers)
    assert "pass labels.npy --features emb.npy." in refused("issues", "emb.npy", "labels.npy")


def test_one_hot_columns_are_features(run):
    rng = np.random.default_rng(0)
    job, age = rng.integers(0, 3, 200), rng.integers(18, 80, 200)
    frame = pd.DataFrame(np.eye(3, dtype=int)[job], columns=["clerk", "nurse", "driver"]).assign(age=age)
    frame.assign(label=np.where(age + 20 * (job == 1) > 50, "y", "n")).to_csv("data.csv", index=False)
    assert "Learning from 4 columns" in run("issues", "data.csv", "--label", "label", "--quick").stderr


def test_an_index_that_was_written_twice_is_no_feature(run, customers):
    """Rows that were sorted by label and dropped have it in their numbers."""
    kept = customers.sort_values("risk", ignore_index=True).drop(index=range(7, 300, 50))
    kept.reset_index(names="Unnamed: 0").to_csv("customers.csv", index=False)
    result = run("issues", "customers.csv", "--label", "risk", "--quick")
    assert "Learning from 3 columns: age, income, job" in result.stderr


def test_embeddings_with_labels_in_any_file(run):
    pixels, digits = load_digits(return_X_y=True)
    given = digits[:600].copy()
    given[::20] = (given[::20] + 1) % 10
    np.save("emb.npy", pixels[:600])
    np.save("labels.npy", given)
    pd.DataFrame({"label": given}).to_csv("labels.csv", index=False)
    array, table = (
        json.loads(run("issues", name, "--features", "emb.npy", "--json").stdout)
        for name in ("labels.npy", "labels.csv")
    )
    assert array["issues"] == table["issues"]
    wrong = [row["index"] % 20 == 0 for row in array["issues"] if row["group"] == "probably wrong"]
    assert np.mean(wrong) > 0.8


def test_class_names_that_look_alike_lead_to_merging_them(run, customers):
    customers["risk"] = customers["risk"].where(customers.index % 4 > 0, customers["risk"].str.upper() + " ")
    customers.to_csv("customers.csv", index=False)
    result = run("issues", "customers.csv", "--label", "risk", "--quick")
    assert next_steps(result) == [["issues", "customers.csv", "--label", "risk", "--quick", "--merge-labels"]]
    merged = run(*next_steps(result)[0])
    assert "are taken as one class" in merged.stderr
    assert "LOW" not in merged.stdout
    run("train", "customers.csv", "--label", "risk", "--quick", "--merge-labels", "-o", "model")
    run("predict", "model", "customers.csv", "-o", "predicted.csv")
    assert set(pd.read_csv("predicted.csv")["predicted"].str.lower()) == {"low", "high"}
    assert pd.read_csv("predicted.csv")["predicted"].nunique() == 2


def test_clean_data_are_left_alone(run):
    iris = load_iris(as_frame=True)
    iris.frame.assign(target=iris.target_names[iris.target]).to_csv("iris.csv", index=False)
    learned = ["--features", "petal*"]
    result = run("issues", "iris.csv", "--label", "target", *learned)
    assert "None of the 150 labels is flagged." in result.stdout
    ((*step,),) = next_steps(result)
    assert step == ["audit", "iris.csv", "--label", "target", *learned, "-o", "audit.csv"]
    run(*step)


@pytest.mark.slow
def test_few_positives(run):
    features, true = make_classification(
        6000, 12, n_informative=6, n_redundant=2, weights=[0.96], class_sep=1.5, flip_y=0, random_state=11
    )
    chance = np.random.default_rng(0).random(6000)
    given = np.where(chance < np.where(true == 1, 0.3, 0.01), 1 - true, true)
    pd.DataFrame(features).add_prefix("x").assign(label=given).to_csv("rare.csv", index=False)
    found = json.loads(run("issues", "rare.csv", "--json").stdout)
    wrong = (given != true)[[row["index"] for row in found["issues"]]]
    assert wrong.mean() > 0.75
    assert wrong.sum() > 40


def test_broken_images_are_skipped_by_every_command(run):
    pixels, digits = load_digits(return_X_y=True)
    for row in range(150):
        Path("digits", str(digits[row] % 3)).mkdir(parents=True, exist_ok=True)
        picture = Image.fromarray((pixels[row].reshape(8, 8) * 15).astype(np.uint8))
        picture.save(Path("digits", str(digits[row] % 3), f"{row}.png"))
    Path("digits/0/a.png").write_text("no image")
    Path("digits/1/b.png").write_bytes(Path("digits/1/1.png").read_bytes()[:50])
    for command in (["issues", "--quick"], ["audit", "-o", "audit.csv", "--size", "80", "--report", "page.html"]):
        said = run(command[0], "digits", *command[1:]).stderr
        assert said.startswith("2 of 152 images cannot be read and are skipped:\n  0/a.png\n  1/b.png\n")
        assert said.count("0/a.png") == 1
    sheet = pd.read_csv("audit.csv")
    sheet["true"] = sheet["given"]
    sheet.to_csv("audit.csv", index=False)
    measured = json.loads(run("estimate", "digits", "--quick", "--verified", "audit.csv", "--json").stdout)
    assert measured["noise_rate"] < 0.05

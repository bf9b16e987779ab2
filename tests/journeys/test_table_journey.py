"""From a raw table to the corrected one, as somebody who has a CSV would go; nothing that they had is lost."""

import csv
import io
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from raw_data import CLASSES, raw_table, read, write_table
from typer.testing import CliRunner

from dualt.cli import app
from tests.cli.commands import run


def write_probabilities(rows, path):
    """Out-of-fold probabilities of a plain model of the titles; rows without a label get some too."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import cross_val_predict
    from sklearn.pipeline import make_pipeline

    titles, labels = (np.array([row[at] for row in rows[1:]]) for at in (1, 2))
    model = make_pipeline(TfidfVectorizer(), LogisticRegression(C=10))
    there = labels != ""
    names = sorted(CLASSES)
    probs = np.full((len(labels), 3), 1 / 3)
    probs[there] = cross_val_predict(model, titles[there], labels[there], cv=3, method="predict_proba")
    with Path(path).open("w", encoding="utf-8", newline="") as stream:
        csv.writer(stream).writerows([names, *probs.tolist()])


@pytest.mark.parametrize("dialect", [{}, {"delimiter": ";", "quoting": csv.QUOTE_ALL}, {"lineterminator": "\n"}])
def test_from_a_raw_csv_to_the_corrected_one(tmp_path, monkeypatch, dialect):
    monkeypatch.chdir(tmp_path)
    rows, truth = raw_table()
    write_table("raw.csv", rows, **dialect)
    write_probabilities(rows, "probs.csv")
    before = Path("raw.csv").read_bytes()
    columns = ["--label", "label", "--id", "sku"]
    run("issues", "probs.csv", "raw.csv", *columns, "--text", "title", "-o", "issues.csv", "--report", "page.html")
    flagged = read("issues.csv")
    assert [flagged[0][place] for place in (0, 1, -2, -1)] == ["index", "given", "id", "text"]
    review, expected = [["index", "id", "old", "new"]], [list(row) for row in rows]
    for index, old, *_, sku, title in flagged[1:]:
        row = rows[1 + int(index)]
        assert [old, sku] == [row[2], row[0]]
        assert title.removeprefix("'") == row[1].removeprefix("'")
        review.append([index, sku, old, truth[int(index)]])
        expected[1 + int(index)][2] = truth[int(index)]
    assert len(review) > 10
    with Path("review.csv").open("w", encoding="utf-8", newline="") as stream:
        csv.writer(stream).writerows(review)
    run("apply-review", "raw.csv", "review.csv", *columns, "-o", "corrected.csv")
    with Path("corrected.csv").open(encoding="utf-8", newline="") as stream:
        corrected = list(csv.reader(stream, **{k: v for k, v in dialect.items() if k == "delimiter"}))
    assert corrected == expected
    wrong = [sum(row[2] not in ("", true) for row, true in zip(t[1:], truth, strict=True)) for t in (rows, corrected)]
    assert wrong[1] < 0.25 * wrong[0]
    assert Path("raw.csv").read_bytes() == before
    run("apply-review", "corrected.csv", "review.csv", *columns, "-o", "again.csv", code=2)  # it is applied once


TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8)
LABEL = st.sampled_from(["", "a", "b", "a, b", '"', "007", "7", "-1", "é\n", " x", "=1"])


@st.composite
def tables(draw):
    """Header and rows: an id, a text, a label, two probabilities; at least two classes occur."""
    n_rows = draw(st.integers(2, 8))
    labels = draw(st.lists(LABEL, min_size=n_rows, max_size=n_rows).filter(lambda found: len({*found} - {""}) > 1))
    cells = draw(st.lists(st.tuples(TEXT, TEXT), min_size=n_rows, max_size=n_rows))
    shares = draw(st.lists(st.integers(1, 9), min_size=n_rows, max_size=n_rows))
    rows = [[a, b, y, str(p / 10), str((10 - p) / 10)] for (a, b), y, p in zip(cells, labels, shares, strict=True)]
    return [["id", "text, \n", "label", "p_1", "p_2"], *rows]


DIALECTS = st.fixed_dictionaries(
    {
        "delimiter": st.sampled_from([",", ";", "\t", "|"]),
        "quoting": st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
        "lineterminator": st.sampled_from(["\n", "\r\n"]),
    }
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(tables(), DIALECTS, st.booleans(), st.data())
def test_a_review_changes_labels_and_nothing_else(tmp_path_factory, rows, dialect, marked, data):
    folder = tmp_path_factory.mktemp("table")
    stream = io.StringIO(newline="")
    if any("\r" in cell for row in rows for cell in row):
        dialect |= {"quoting": csv.QUOTE_ALL}  # Python may leave it bare, and then it ends a line
    csv.writer(stream, **dialect).writerows(rows)
    content = (b"\xef\xbb\xbf" if marked else b"") + stream.getvalue().encode()
    (folder / "raw.csv").write_bytes(content)
    there = [number for number, row in enumerate(rows[1:]) if row[2]]
    names = sorted({rows[1 + number][2] for number in there})
    chosen = data.draw(st.dictionaries(st.sampled_from(there), st.sampled_from(names), min_size=1))
    with (folder / "review.csv").open("w", encoding="utf-8", newline="") as stream:
        csv.writer(stream).writerow(["index", "old", "new"])
        csv.writer(stream).writerows([number, rows[1 + number][2], new] for number, new in chosen.items())
    run("apply-review", folder / "raw.csv", folder / "review.csv", "--label", "label", "-o", folder / "out.csv")
    expected = [list(row) for row in rows]
    for number, new in chosen.items():
        expected[1 + number][2] = new
    text = (folder / "out.csv").read_bytes().decode("utf-8-sig")
    assert list(csv.reader(io.StringIO(text, newline=""), **dialect)) == expected
    assert (folder / "raw.csv").read_bytes() == content


@pytest.mark.slow
@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(tables(), DIALECTS, st.data())
def test_no_command_loses_what_the_user_had(tmp_path_factory, rows, dialect, data):
    """Whatever the command and wherever its output goes, the files that were there are there, byte for byte."""
    folder = tmp_path_factory.mktemp("commands")
    stream = io.StringIO(newline="")
    csv.writer(stream, **dialect).writerows(rows)
    (folder / "raw.csv").write_bytes(stream.getvalue().encode())
    (folder / "review.csv").write_text("index,old,new\n")
    (folder / "names.txt").write_text("x\ny\n")
    before = {path: path.read_bytes() for path in folder.iterdir()}
    names = ["raw.csv", "review.csv", "names.txt", "new.csv", "new.npy", "new.json", "new.jsonl"]
    target = folder / data.draw(st.sampled_from(names))
    given_table = [folder / "raw.csv", "--label", "label"]
    command = data.draw(
        st.sampled_from(
            [
                ["issues", *given_table, "--probs", "p_*", "--classes", folder / "names.txt", "-o", target],
                ["estimate", *given_table, "--probs", "p_*", "-o", target],
                ["issues", *given_table, "--probs", "p_*", "--report", target],
                ["audit", *given_table, "-o", target, "--size", "2"],
                ["audit", *given_table, "--probs", "p_*", "-o", target, "--size", "2"],
                ["audit", *given_table, "--more", "1", "-o", target],
                ["issues", *given_table, "--probs", "p_*", "--export", "label-studio", "-o", target],
                ["issues", *given_table, "--probs", "p_*", "--export", "argilla", "-o", target],
                ["issues", *given_table, "--features", "p_*", "-o", target],
                ["probs", *given_table, "--features", "p_*", "--folds", "2", "-o", target],
                ["issues", *given_table, "--probs", "p_*", "--reviewed", folder / "review.csv", "--report", target],
                ["apply-review", folder / "raw.csv", folder / "review.csv", "--label", "label", "-o", target],
            ]
        )
    )
    result = CliRunner().invoke(app, [str(argument) for argument in command])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    for path, content in before.items():
        if path != target or command.count(path) > 1:
            assert path.read_bytes() == content, f"{command[0]} changed {path.name}"

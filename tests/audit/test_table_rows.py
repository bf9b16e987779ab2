"""An audit of a table, used in Python on the rows that have a label."""

import csv
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import dualt
from dualt.audit import read_audit
from dualt.cli import app
from dualt.errors import InputError, LabelsError


@pytest.fixture
def audited(tmp_path, monkeypatch):
    """A table with missing labels, of which the command line has drawn a sheet that was filled in."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    true = rng.integers(3, size=400)
    given = np.array(["a", "b", "c"], dtype=object)[np.where(rng.random(400) < 0.2, (true + 1) % 3, true)]
    given[rng.random(400) < 0.1] = None
    frame = pd.DataFrame(np.eye(3)[true] * 0.7 + 0.1, columns=["p_a", "p_b", "p_c"]).assign(label=given)
    frame.to_csv("data.csv", index=False)
    asked = ["audit", "data.csv", "--label", "label", "--probs", "p_*", "--size", "60", "-o", "audit.csv"]
    assert CliRunner().invoke(app, asked).exit_code == 0
    rows = list(csv.DictReader(Path("audit.csv").read_text().splitlines()))
    with Path("audit.csv").open("w", newline="") as stream:
        writer = csv.DictWriter(stream, rows[0])
        writer.writeheader()
        writer.writerows([{**row, "true": "abc"[true[int(row["index"])]]} for row in rows])
    return frame


def probs_of(frame):
    return frame[["p_a", "p_b", "p_c"]].rename(columns=lambda name: name.removeprefix("p_"))


def test_rows_without_a_label_may_be_dropped(audited):
    kept = audited.dropna(subset="label")
    audit = read_audit("audit.csv")
    estimate = dualt.estimate_transition(probs_of(kept), kept["label"], verified=audit)
    told = CliRunner().invoke(
        app, ["estimate", "data.csv", "--label", "label", "--probs", "p_*", "--verified", "audit.csv", "-o", "t.json"]
    )
    assert told.exit_code == 0, told.output
    np.testing.assert_allclose(estimate, dualt.io.load_transition("t.json"))
    issues = dualt.find_label_issues(probs_of(kept), kept["label"], verified=audit)
    known = issues.probability_right[kept.index.get_indexer(audit.rows)]
    assert set(known.tolist()) == {0.0, 1.0}


def test_other_labels_and_dropped_ones_are_refused(audited):
    audit = read_audit("audit.csv")
    kept = audited.dropna(subset="label")
    with pytest.raises(LabelsError, match="audit of these"):
        dualt.estimate_transition(probs_of(kept[1:]), kept["label"][1:], verified=audit)
    renumbered = kept.reset_index(drop=True)
    with pytest.raises((InputError, LabelsError)):
        dualt.estimate_transition(probs_of(renumbered), renumbered["label"], verified=audit)

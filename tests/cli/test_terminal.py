"""Terminals as they are: narrow, no terminal at all, and interrupted."""

import sys
from dataclasses import replace
from io import StringIO

import numpy as np
import pytest
from rich.console import Console

import dualt
from dualt.cli import terminal
from tests.cli.commands import run


@pytest.mark.parametrize(
    ("command", "busy", "advice"),
    [
        (["estimate", "p.npy", "l.npy"], "dualt.io.open_shards", "Run it again"),
        (["train", "digits", "-o", "m"], "dualt.nn.run.Stages.run", "--resume"),
    ],
)
def test_an_interrupted_command_says_how_to_go_on(tmp_path, monkeypatch, command, busy, advice):
    def interrupt(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(busy, interrupt)
    assert advice in run(*command, code=130).output


@pytest.mark.parametrize("n_classes", [2, 4, 6, 7, 14, 20])
def test_sixty_columns_keep_the_rates(n_classes):
    rng = np.random.default_rng(0)
    true = rng.integers(n_classes, size=100 * n_classes)
    probs = np.full((len(true), n_classes), 0.1 / n_classes) + 0.9 * np.eye(n_classes)[true]
    given = np.where(rng.random(len(true)) < 0.2, (true + 1) % n_classes, true)
    names = [f"a class of a long name {k}" for k in range(n_classes)]
    out = Console(width=60, file=StringIO(), force_terminal=False)
    terminal.show_estimate(out, dualt.estimate_transition(probs, given, class_names=names))
    shown = out.file.getvalue().splitlines()
    start = next(place for place, line in enumerate(shown) if "wrong" in line and ("true" in line or "given" in line))
    rows = [line for line in shown[start + 1 :] if "%" in line][: min(n_classes, 12)]
    assert len(rows) == min(n_classes, 12)
    assert all(len(line.rstrip()) <= 60 for line in rows)


def test_texts_of_several_lines_are_one_line():
    found = dualt.find_label_issues([[0.9, 0.1], [0.2, 0.8]], [1, 1]).rethreshold(top=2)
    out = Console(width=120, file=StringIO())
    out.print(terminal.issues_table(replace(found, texts=["Subject\n\nthe message", ""])))
    assert "Subject the message" in out.file.getvalue()


@pytest.mark.parametrize("is_terminal", [True, False])
def test_progress_is_a_bar_or_a_line_now_and_then(monkeypatch, capsys, is_terminal):
    monkeypatch.setattr(terminal, "_SECONDS_BETWEEN_LINES", 0.0)
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: is_terminal)
    with terminal.progress() as advance:
        advance("folds", 1, 5)
        advance("folds", 5, 5)
        advance("reading rows", 10, 20, "a note")
    shown = capsys.readouterr()
    assert shown.out == ""
    if is_terminal:
        assert "reading rows" in shown.err
    else:
        assert shown.err.splitlines() == ["folds: 1 of 5", "folds: 5 of 5", "reading rows: a note"]

"""What the README prints works: its Python runs, its commands and options exist."""

import re
import shlex
from pathlib import Path

import numpy as np
import pytest
from typer.main import get_command

import dualt
from dualt import noise
from dualt.cli import app

README = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


def test_the_python_runs_from_top_to_bottom(capsys):
    rng = np.random.default_rng(0)
    clean = np.arange(300) % 3
    features = rng.normal(size=(300, 4)) + 3 * np.eye(3, 4)[clean]
    given = noise.corrupt(clean, noise.pair(3, 0.3), rng=0)
    probs = np.eye(3)[clean] * 0.7 + 0.1
    names = {"pred_probs": probs, "noisy_labels": given, "X": features, "noisy_y": given, "X_new": features}
    assert len(blocks("python")) >= 2
    for block in blocks("python"):
        exec(block, names)
    assert (names["model"].predict(features) == clean).mean() > 0.9
    assert isinstance(names["estimate"], dualt.TransitionEstimate)


@pytest.mark.parametrize(
    "line", [line for block in blocks("sh") for line in block.splitlines() if line[:6] == "dualt "]
)
def test_commands_and_options_exist(line):
    _, name, *words = shlex.split(line, comments=True)
    command = get_command(app).commands[name]
    known = {option for parameter in command.params for option in parameter.opts}
    for word in words:
        assert not word.startswith("-") or word in known


def test_links_point_to_files():
    for target in re.findall(r"\]\(([^)#]+)\)", README):
        assert (Path(__file__).parent.parent / target).exists(), target

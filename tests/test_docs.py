"""What README and docs print works: their code runs and prints what they show, commands, links and pictures exist.

UPDATE_DOCS=1 pytest tests/test_docs.py     writes the outputs that came into the pages
"""

import importlib
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from docs_pages import PAGES, ROOT, blocks_of, run_page, with_outputs
from typer.main import get_command

from dualt import io, noise
from dualt.cli import app

DOCS = ROOT / "docs"


def name_of(page):
    return str(page.relative_to(ROOT))


def read(page):
    return page.read_text(encoding="utf-8")


def readme_files():
    """Write the files that the README takes for granted into the current folder, and return its names."""
    rng = np.random.default_rng(0)
    clean = np.arange(300) % 3
    features = rng.normal(size=(300, 4)) + 3 * np.eye(3, 4)[clean]
    given = noise.corrupt(clean, noise.pair(3, 0.3), rng=0)
    probs = np.eye(3)[clean] * 0.7 + 0.1
    np.save("probs.npy", probs)
    np.save("images.npy", rng.integers(0, 255, (300, 8, 8), dtype=np.uint8))
    io.save_labels("labels.npy", given)
    wrong = int(np.flatnonzero(given != clean)[0])
    Path("suspects-review.csv").write_text(f"index,old,new\n{wrong},{given[wrong]},{clean[wrong]}\n", encoding="utf-8")
    return {"pred_probs": probs, "noisy_labels": given, "X": features, "noisy_y": given, "X_new": features}


@pytest.mark.usefixtures("own_registries")
@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_a_page_runs_from_top_to_bottom_and_prints_what_it_shows(page, tmp_path, monkeypatch):
    text = read(page)
    if not any(block.runs for block in blocks_of(text)):
        pytest.skip("nothing to run")
    for module in re.findall(r"<!-- needs: (\w+) -->", text):
        pytest.importorskip(module)
    monkeypatch.chdir(tmp_path)
    found = run_page(page, readme_files() if page.name == "README.md" else {})
    if found and os.environ.get("UPDATE_DOCS"):
        page.write_text(with_outputs(text, found), encoding="utf-8")
    elif found:
        block, printed = found[0]
        pytest.fail(f"{name_of(page)}:{block.line} shows\n{block.code}\nbut this came:\n{printed}")


COMMANDS = [
    pytest.param(line, id=f"{name_of(page)}:{line}")
    for page in PAGES
    for block in blocks_of(read(page))
    if block.language == "sh" and not block.runs
    for line in block.code.replace("\\\n", " ").splitlines()
    if line.startswith("dualt ")
]


@pytest.mark.parametrize("line", COMMANDS)
def test_commands_that_are_not_run_exist_with_their_options(line):
    _, *words = shlex.split(line, comments=True)
    command = get_command(app)
    while hasattr(command, "commands"):
        command = command.commands[words.pop(0)]
    known = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
    assert {word for word in words if word.startswith("-")} <= known | {"--help"}


@pytest.mark.parametrize("page", [*PAGES, ROOT / "CONTRIBUTING.md"], ids=name_of)
def test_links_point_to_files(page):
    for target in re.findall(r"\]\(([^)#:]+)[^):]*\)", re.sub(r"```.*?```", "", read(page), flags=re.DOTALL)):
        assert (page.parent / target).exists(), target


def test_every_page_is_in_the_menu():
    listed = set(re.findall(r"^(?:\w.* <)?([\w/-]+)>?$", read(DOCS / "index.md"), re.MULTILINE))
    pages = {str(page.relative_to(DOCS).with_suffix("")) for page in PAGES if DOCS in page.parents}
    assert pages - listed == {"index"}


def test_every_picture_is_shown_and_every_example_told_of():
    text = "".join(map(read, PAGES))
    for path in [*(DOCS / "pictures").glob("*.svg"), *(ROOT / "examples").glob("*.py")]:
        assert path.name in text, path


def test_the_readmes_picture_is_what_the_command_prints(monkeypatch):
    pytest.importorskip("matplotlib")
    monkeypatch.syspath_prepend(DOCS)
    pictures = importlib.import_module("pictures")
    plain = re.compile(r"<[^>]+>|\s|&#160;")
    assert plain.sub("", pictures.terminal()) == plain.sub("", read(DOCS / "estimate.svg"))


def test_the_command_reference_names_every_option(monkeypatch):
    monkeypatch.syspath_prepend(DOCS)
    text = importlib.import_module("cli_reference").commands()
    command = [sys.executable, "-m", "dualt", "train", "--help"]
    helps = subprocess.run(command, capture_output=True, text=True, check=True)
    section = text[text.index("## dualt train") : text.index("## dualt predict")]
    for option in set(re.findall(r"^│[ *]*(--[a-z][a-z0-9-]+)", helps.stdout, re.MULTILINE)) - {"--help"}:
        assert f"`{option}`" in section, option

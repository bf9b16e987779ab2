"""Blocks of the pages that need a place of their own: a fresh environment, the records of long runs."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from docs_pages import ROOT, blocks_run_by
from typer.testing import CliRunner

pytestmark = pytest.mark.slow

HERE = "tests/test_docs_elsewhere.py"
REPRODUCTION = ROOT / "docs" / "reproduction"


def own_blocks(word):
    return [block.code for block in blocks_run_by(HERE) if word in block.code]


@pytest.fixture
def clone(tmp_path):
    """A copy of the repository, without what is made in it."""
    made = shutil.ignore_patterns(".*", "site", "reproduction", "__pycache__")
    return Path(shutil.copytree(ROOT, tmp_path / "dualt", ignore=made))


def has_package_index():
    command = [sys.executable, "-m", "pip", "install", "--dry-run", "--ignore-installed", "--no-deps", "iniconfig"]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def test_the_environment_that_the_pages_set_up_runs_the_tutorial(clone):
    if not has_package_index():
        pytest.skip("pip reaches no package index")
    blocks = own_blocks("-m venv")
    assert len(blocks) == 2
    tutorial = "cd .. && python dualt/tests/docs_pages.py run dualt/docs/tutorial.md"
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    command = ["bash", "-euc", "\n".join([*blocks, "dualt --version", tutorial])]
    run = subprocess.run(command, cwd=clone, env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr[-3000:]
    assert "dualt" in run.stdout
    assert (clone.parent / "transition.json").exists()


COMMANDS = [line.split()[1:] for block in own_blocks("--out docs/reproduction") for line in block.splitlines()]


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: f"{words[1]} {words[-1]}")
def test_a_long_run_is_drawn_again_as_it_stands(words, tmp_path):
    """The command as it was typed, with --show: of the records, and of all their settings, it makes the same table."""
    pytest.importorskip("torch")
    from dualt.cli import app

    source = ROOT / words[-1]
    shutil.copy(source / "records.jsonl", tmp_path)
    result = CliRunner().invoke(app, [*words[:-1], str(tmp_path), "--show"])
    assert result.exit_code == 0, result.output
    name = f"{words[1]}.md"
    assert (tmp_path / name).read_text(encoding="utf-8") == (source / name).read_text(encoding="utf-8")


def test_every_table_of_a_long_run_has_its_command():
    drawn = {f"{words[-1].removeprefix('docs/reproduction').strip('/')}/{words[1]}.md".strip("/") for words in COMMANDS}
    assert drawn == {str(path.relative_to(REPRODUCTION)) for path in REPRODUCTION.rglob("*.md")}

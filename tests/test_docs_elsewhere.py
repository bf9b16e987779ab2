"""Blocks of the pages that need a place of their own: a fresh environment."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from docs_pages import ROOT, blocks_run_by

pytestmark = pytest.mark.slow

HERE = "tests/test_docs_elsewhere.py"


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
    blocks = [block.code for block in blocks_run_by(HERE)]
    assert len(blocks) == 2
    tutorial = "cd .. && python dualt/tests/docs_pages.py run dualt/docs/tutorial.md"
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    command = ["bash", "-euc", "\n".join([*blocks, "dualt --version", tutorial])]
    run = subprocess.run(command, cwd=clone, env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr[-3000:]
    assert "dualt" in run.stdout
    assert (clone.parent / "transition.json").exists()

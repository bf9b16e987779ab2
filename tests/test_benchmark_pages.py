"""The pages show what the benchmarks printed, and no other figure."""

import importlib
import re

import pytest
from docs_pages import ROOT

from dualt.nn.methods import METHODS


@pytest.fixture
def page(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "bench")
    return importlib.import_module("page")


@pytest.mark.parametrize("name", ["README.md", "docs/benchmarks.md", "docs/training.md"])
def test_a_page_is_what_the_kept_results_make_of_it(page, name):
    text = (ROOT / name).read_text(encoding="utf-8")
    assert ROOT / name in page.PAGES
    assert "<!-- results: " in text
    assert page.filled(text) == text, "run python bench/page.py"


def test_a_changed_result_changes_the_pages(page, tmp_path, monkeypatch):
    n_changed = 0
    for path in page.RESULTS.iterdir():
        text, n_found = re.subn(r"\| joint +\|", "| joint | 9.999 |", path.read_text(encoding="utf-8"))
        (tmp_path / path.name).write_text(text, encoding="utf-8")
        n_changed += n_found
    monkeypatch.setattr(page, "RESULTS", tmp_path)
    changed = page.filled((ROOT / "docs/benchmarks.md").read_text(encoding="utf-8"))
    assert changed.count("| joint | 9.999 |") == n_changed > 0


def test_every_benchmark_is_kept_with_its_command_and_shown(page):
    shown = "".join(path.read_text(encoding="utf-8") for path in page.PAGES)
    assert {path.stem for path in page.RESULTS.iterdir()} == set(page.COMMANDS)
    for name, command in page.COMMANDS.items():
        assert (ROOT / command.split()[0]).exists()
        assert page.kept(name).startswith(f"`python {command}`: ")
        assert f"<!-- results: {name} -->" in shown


def test_the_table_of_methods_has_every_method(page):
    head, _, *rows = page.table("methods")
    assert {*METHODS, "auto"} < {*head}
    assert {row[head.index("seeds")] for row in rows} == {"3"}


def test_the_benchmark_page_has_no_figure_that_was_typed():
    text = (ROOT / "docs/benchmarks.md").read_text(encoding="utf-8")
    typed = re.sub(r"<!-- results: .*?<!-- end -->", "", text, flags=re.DOTALL)
    assert not re.search(r"^\|", typed, re.MULTILINE)
    aims = re.sub(r"[^.\n]*aimed at \.\d+[^\n]*? joint", "", typed)
    assert not re.findall(r"\d?\.\d+|\d ?×", aims)

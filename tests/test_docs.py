"""What README and docs print works: their code runs and prints what they show, commands, links and pictures exist.

UPDATE_DOCS=1 pytest tests/test_docs.py     writes the outputs that came into the pages
"""

import importlib
import re
import shlex
import subprocess
import sys
from importlib.util import find_spec

import pytest
from docs_pages import PAGES, ROOT, blocks_of, check_page
from typer.main import get_command

from dualt.cli import app

DOCS = ROOT / "docs"


def name_of(page):
    return str(page.relative_to(ROOT))


def read(page):
    return page.read_text(encoding="utf-8")


@pytest.mark.slow
@pytest.mark.usefixtures("own_registries")
@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_a_page_runs_from_top_to_bottom_and_prints_what_it_shows(page, tmp_path, monkeypatch):
    text = read(page)
    if not any(block.runs for block in blocks_of(text)):
        pytest.skip("nothing to run")
    for module in re.findall(r"<!-- needs: (\w+) -->", text):
        if find_spec(module) is None:
            pytest.skip(f"{module} is not installed")
    monkeypatch.chdir(tmp_path)
    if "<!-- in its own process -->" not in text:
        check_page(page)
        return
    command = [sys.executable, ROOT / "tests" / "docs_pages.py", "run", page]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr


@pytest.mark.parametrize(
    ("language", "code", "complaint"),
    [
        ("python", "print(1)", "wrong.md:6 shows\n2\n\nbut this came:\n1"),
        ("sh", "echo 1", "wrong.md:6 shows\n2\n\nbut this came:\n1"),
        ("sh", "echo no >&2; false; echo 2", "wrong.md:2: no"),
    ],
)
def test_a_page_that_shows_what_does_not_come_is_found(language, code, complaint, tmp_path, monkeypatch):
    monkeypatch.delenv("UPDATE_DOCS", raising=False)
    page = tmp_path / "wrong.md"
    page.write_text(f'```{language}\n{code}\n```\n\n```text title="output"\n2\n```\n', encoding="utf-8")
    with pytest.raises(AssertionError) as failure:
        check_page(page)
    assert str(failure.value).startswith(complaint)


def test_the_tutorial_tells_the_truth_that_it_prints():
    text = read(DOCS / "tutorial.md")
    told = re.search(r"The truth is (\d+) %", text)
    printed = re.search(r"^(\d+)% of [\d,]+ labels are wrong$", text, re.MULTILINE)
    assert told.group(1) == printed.group(1)


SKETCHES = [block for block in blocks_of(read(DOCS / "cluster.md")) if block.language == "yaml"]


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_block_is_run_or_is_what_one_printed(page):
    for block in blocks_of(read(page)):
        if block.language not in ("python", "sh") and block not in SKETCHES:
            assert block.title in ("output", "formula") or block.language.startswith("{"), block
        if block.run_by:
            runner = read(ROOT / block.run_by)
            assert f"docs_pages.py blocks {block.run_by}" in runner or "blocks_run_by(" in runner


def commands_in(node):
    """Yield the command lines in a tree of YAML."""
    if isinstance(node, list):
        for value in node:
            yield from commands_in(value)
    elif isinstance(node, dict):
        for key, value in node.items():
            if key in ("command", "args"):
                yield shlex.split(value) if isinstance(value, str) else value
            else:
                yield from commands_in(value)


def test_the_only_sketches_are_of_containers_and_the_page_says_that_they_were_not_run():
    text = read(DOCS / "cluster.md")
    assert len(SKETCHES) == 2
    assert "we have not run them" in text[text.index("## Containers") : text.index("```yaml")]


@pytest.mark.parametrize("block", SKETCHES, ids=["compose", "kubernetes"])
def test_commands_of_a_sketch_exist_with_their_options(block):
    yaml, scheduler = pytest.importorskip("yaml"), pytest.importorskip("distributed.cli.dask_scheduler")
    from distributed.cli import dask_worker

    programs = {"dualt": get_command(app), ("dask", "scheduler"): scheduler.main, ("dask", "worker"): dask_worker.main}
    lines = list(commands_in(list(yaml.safe_load_all(block.code))))
    assert len(lines) == 3
    for program, *words in lines:
        command = programs.get(program) or programs[program, words.pop(0)]
        while hasattr(command, "commands"):
            command = command.commands[words.pop(0)]
        known = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
        assert {word for word in words if word.startswith("-")} <= known


def options_of(command):
    below = getattr(command, "commands", {}).values()
    own = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
    return own.union({"--help"}, *map(options_of, below))


@pytest.mark.parametrize("page", [*PAGES, ROOT / "CONTRIBUTING.md"], ids=name_of)
def test_options_that_a_page_names_exist(page):
    """Also those in running text: `dualt issues … --report` is an option of `dualt issues`."""
    commands = get_command(app).commands
    for name, words in re.findall(r"\bdualt ([a-z][a-z-]+)([^`|#\n]*)", read(page)):
        if name in commands:
            named = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", words))
            assert named <= options_of(commands[name]), f"dualt {name}{words}"


@pytest.mark.parametrize("page", [*PAGES, ROOT / "CONTRIBUTING.md"], ids=name_of)
def test_links_point_to_files(page):
    for target in re.findall(r"\]\(([^)#:]+)[^):]*\)", re.sub(r"```.*?```", "", read(page), flags=re.DOTALL)):
        assert (page.parent / target).exists(), target


def test_the_map_names_files_that_exist():
    """Paths in CONTRIBUTING.md are relative to the repository, or to the package."""
    named = set(re.findall(r"`([\w./-]+(?:/|\.py|\.md))`", read(ROOT / "CONTRIBUTING.md"))) - {"site/", "utils.py"}
    assert len(named) > 30
    assert {
        path for path in named if not (ROOT / path).exists() and not (ROOT / "src" / "dualt" / path).exists()
    } == set()


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

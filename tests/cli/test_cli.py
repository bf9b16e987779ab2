"""The command line as a whole: help, versions, exit codes."""

import subprocess
import sys
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

import dualt
from dualt import kernels
from dualt.cli import app


def commands(group, path=()):
    """Yield the words of every command, those of groups included."""
    for name, command in group.commands.items():
        yield (*path, name)
        if hasattr(command, "commands"):
            yield from commands(command, (*path, name))


COMMANDS = list(commands(typer.main.get_command(app)))


def python(*arguments, **options):
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=False, **options)


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_help_says_what_it_does_and_gives_an_example(words):
    for flag in ("--help", "-h"):
        result = CliRunner().invoke(app, [*words, flag], env={"COLUMNS": "120"})
        assert result.exit_code == 0
        assert "Usage" in result.stdout
    command = typer.main.get_command(app)
    for word in words:
        command = command.commands[word]
    if not hasattr(command, "commands"):
        assert f"dualt {' '.join(words)}" in result.stdout.partition("Example")[2]


@pytest.mark.parametrize("arguments", [["estimat"], ["--nonsense"], ["estimate", "--nonsense"]])
def test_wrong_use_is_exit_code_two(arguments):
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 2
    assert "Traceback" not in result.output


def test_python_m_dualt_is_dualt():
    assert python("-m", "dualt", "--version").stdout == f"dualt {dualt.__version__} ({kernels.status()})\n"
    wrong = python("-m", "dualt", "estimate", "absent.npy", "labels.npy")
    assert wrong.returncode == 2
    assert wrong.stdout == ""
    assert wrong.stderr == "error: No such file: labels.npy.\n"


def test_help_answers_without_loading_the_heavy_libraries():
    """One process asks for all helps in turn, so that a library that any of them loads is found at the end."""
    script = (
        "import sys\nfrom dualt.cli import app\n"
        "for line in sys.stdin.read().splitlines():\n    app(line.split(), standalone_mode=False)\n"
        "print(*sorted(sys.modules), file=sys.stderr)"
    )
    lines = ["--help", *(f"{' '.join(words)} --help" for words in COMMANDS)]
    asked = python("-c", script, input="\n".join(lines))
    assert asked.stdout.count("Usage") == len(lines)
    loaded = set(asked.stderr.split())
    assert "dualt.cli" in loaded
    assert not loaded & {"numpy", "scipy", "sklearn", "torch", "pandas", "pyarrow", "matplotlib"}


def test_progress_does_not_mix_with_results(tmp_path):
    """A command that fails says so on stderr only; one that works says nothing there."""
    (tmp_path / "y.txt").write_text("a\nb\n")
    (tmp_path / "r.csv").write_text("index,old,new\n0,a,b\n")
    works = python("-m", "dualt", "apply-review", "y.txt", "r.csv", "-o", "z.txt", cwd=tmp_path)
    assert (works.returncode, works.stderr) == (0, "")
    assert (tmp_path / "z.txt").read_text() == "b\nb\n"


@pytest.mark.parametrize("command", ["issues p.npy y.npy", "audit y.npy -o a.csv"])
def test_a_page_is_called_html(tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    for name in ("page.txt", "page"):
        result = CliRunner().invoke(app, [*command.split(), "--report", name])
        assert result.exit_code == 2
        assert result.stderr == f"error: Expected --report to end in .html or .htm, got {name}.\n"


def test_the_command_line_stays_small():
    """At most 16 files, and 135 options over all commands."""
    root = typer.main.get_command(app)
    options = 0
    for words in COMMANDS:
        command = root
        for word in words:
            command = command.commands[word]
        options += sum(parameter.param_type_name == "option" for parameter in command.params)
    assert options <= 135
    assert len(list(Path(dualt.cli.__file__).parent.glob("*.py"))) <= 16

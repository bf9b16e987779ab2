"""The command line as a whole: help, versions, exit codes."""

import subprocess
import sys

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


@pytest.mark.parametrize("words", [words for words in COMMANDS if words[0] in ("estimate", "issues", "demo")])
def test_every_command_speaks_to_machines(words):
    assert "--json" in CliRunner().invoke(app, [*words, "--help"]).stdout


def test_the_journeys_have_their_commands():
    assert {("estimate",), ("issues",), ("demo",), ("data", "get")} <= set(COMMANDS)


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_flags_show_as_flags_and_every_command_can_be_quiet(words):
    shown = CliRunner().invoke(app, [*words, "--help"], env={"COLUMNS": "120"}).stdout
    assert "<bool>" not in shown
    assert words == ("data",) or ("--quiet" in shown and "--verbose" in shown)


def test_help_lists_the_commands():
    result = CliRunner().invoke(app, ["--help"])
    assert result.exit_code == 0
    for words in COMMANDS:
        if len(words) == 1:
            assert words[0] in result.stdout


def test_no_arguments_show_the_help():
    result = CliRunner().invoke(app, [])
    assert "Usage" in result.output


def test_version():
    result = CliRunner().invoke(app, ["--version"])
    assert result.exit_code == 0
    assert result.stdout == f"dualt {dualt.__version__} ({kernels.status()})\n"


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
    assert wrong.stderr == "error: No such file: absent.npy.\n"


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


@pytest.mark.parametrize("command", ["demo", "issues p.npy y.npy", "estimate p.npy y.npy", "audit y.npy -o a.csv"])
def test_a_page_is_called_html(tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    for name in ("page.txt", "page"):
        result = CliRunner().invoke(app, [*command.split(), "--report", name])
        assert result.exit_code == 2
        assert result.stderr == f"error: Expected --report to end in .html or .htm, got {name}.\n"


@pytest.mark.parametrize("command", ["estimate", "issues", "probs"])
def test_help_lists_every_format_that_is_read(command):
    shown = CliRunner().invoke(app, [command, "--help"]).stdout
    assert all(ending in shown for ending in (".csv", ".tsv", ".parquet", ".jsonl"))

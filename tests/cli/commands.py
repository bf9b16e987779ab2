"""Runs commands as they are typed."""

from typer.testing import CliRunner

from dualt.cli import app


def run(*arguments, code=0):
    """Return the result of a command, which must exit with `code`."""
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == code, result.output or result.exception
    return result


def refused(*arguments):
    """Return what a command that is refused says on stderr, in one line."""
    return " ".join(run(*arguments, code=2).stderr.split())

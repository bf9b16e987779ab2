"""The command line: one file per command, heavy imports inside the commands so that help answers at once."""

from __future__ import annotations

import sys
from typing import Any, NoReturn

import typer

from dualt.cli import data
from dualt.cli.apply_review import apply_review
from dualt.cli.audit import audit
from dualt.cli.demo import demo
from dualt.cli.estimate import estimate
from dualt.cli.evaluate import evaluate
from dualt.cli.issues import issues
from dualt.cli.options import Command, Group
from dualt.cli.predict import predict
from dualt.cli.probs import probs
from dualt.cli.reproduce import reproduce
from dualt.cli.terminal import say
from dualt.cli.train import train
from dualt.cli.votes import votes
from dualt.errors import DualtError, TrainingError, missing_extra

# What to do after Ctrl-C.
_GO_ON = {
    "train": "run the same command, for a network with --resume, which goes on from the last checkpoint.",
    "reproduce": "run the same command to go on; finished runs are kept.",
    "data": "run the same command; finished downloads are kept.",
}


class _Commands(Group):
    """Turns our errors into one line on stderr and an exit code; anything else is a bug and shows its traceback."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except DualtError as error:
            failed = isinstance(error, TrainingError)
            _fail(f"{'failed' if failed else 'error'}: {error}", 1 if failed else 2)
        except ModuleNotFoundError as error:
            missing = missing_extra(error, f"dualt {ctx.invoked_subcommand}")
            if missing is None:
                raise
            _fail(f"error: {missing}", 2)
        except OSError as error:
            if isinstance(error, BrokenPipeError):  # whoever read our output has left, as `head` does
                raise
            _fail(f"error: {error.strerror or error}: {error.filename}", 2)
        except MemoryError as error:
            _fail(f"error: There is not enough memory for this ({str(error).rstrip('.') or 'out of memory'}).", 2)
        except KeyboardInterrupt:
            _fail(f"interrupted: {_GO_ON.get(ctx.invoked_subcommand, 'nothing was written. Run it again.')}", 130)


def _fail(message: str, code: int) -> NoReturn:
    say(message, fg="red", err=True)
    raise typer.Exit(code) from None


app = typer.Typer(
    name="dualt",
    cls=_Commands,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)
for _command in (issues, estimate, votes, audit, apply_review, probs, evaluate, train, predict, reproduce, demo):
    app.command(cls=Command)(_command)
app.add_typer(data.app, name="data")


def _show_version(wanted: bool) -> None:
    if wanted:
        from dualt import __version__, kernels

        say(f"dualt {__version__} ({kernels.status()})")
        raise typer.Exit


@app.callback()
def _options(
    version: bool = typer.Option(False, "--version", callback=_show_version, is_eager=True, help="Show the version."),
    verbose: bool = typer.Option(False, "-v", "--verbose", help="Say more on stderr."),
) -> None:
    """How noisy are your labels, which ones are wrong, and how to train well anyway."""


def main() -> None:
    """Run the command line; characters that a terminal cannot encode become "?"."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    app()

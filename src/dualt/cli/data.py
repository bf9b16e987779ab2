"""`dualt data get`: download a data set."""

from __future__ import annotations

from typing import Annotated

import typer

from dualt.cli.options import Command, Group, Json
from dualt.cli.terminal import print_json, say

app = typer.Typer(cls=Group, no_args_is_help=True)


@app.callback()
def _data() -> None:
    """Download data sets from their publishers."""


@app.command("get", cls=Command)
def get(
    name: Annotated[
        str, typer.Argument(help="mnist, fashion-mnist, cifar10, cifar100; synthetic and digits are built in.")
    ],
    as_json: Json = False,
) -> None:
    """Download a data set to $DUALT_DATA, else ~/.cache/dualt, and verify it; what is there already is kept.

    Example: dualt data get mnist
    """
    from dualt.datasets import REGISTRY, data_root, download

    fetched, root = download(name), data_root()
    if as_json:
        print_json({"name": name, "root": str(root), "fetched": [str(path) for path in fetched]})
    elif fetched:
        say(f"{name}: downloaded {', '.join(map(str, fetched))}")
    else:
        say(f"{name}: already in {root}" if REGISTRY[name].folder else f"{name}: built in, nothing to download")

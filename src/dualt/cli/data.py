"""`dualt data`: list the data sets and download them."""

from __future__ import annotations

from typing import Annotated

import typer

from dualt.cli.guard import Command, Group, shared
from dualt.cli.options import DataDir, Json, print_json
from dualt.cli.plain import say

app = typer.Typer(cls=Group, help="List the data sets and download them from their publishers.", no_args_is_help=True)


@app.command("get", cls=Command)
@shared
def get(
    name: Annotated[str, typer.Argument(help="Name of the data set; 'dualt data list' shows them.")],
    data_dir: DataDir = None,
    force: Annotated[bool, typer.Option("--force", help="Download again what is already there.")] = False,
    as_json: Json = False,
) -> None:
    """Download a data set, check it, and put it where torchvision would.

    Example: dualt data get mnist
    """
    from dualt.datasets import REGISTRY, data_root, download

    fetched = download(name, data_dir, force=force)
    root = data_root(data_dir)
    if as_json:
        print_json({"name": name, "root": str(root), "fetched": [str(path) for path in fetched]})
    elif fetched:
        say(f"{name}: fetched {', '.join(str(path) for path in fetched)}")
    elif REGISTRY[name].folders:
        say(f"{name}: already in {root} (--force fetches it again)")
    else:
        say(f"{name}: built in, nothing to fetch")


@app.command("list", cls=Command)
@shared
def list_datasets(data_dir: DataDir = None, as_json: Json = False) -> None:
    """List the data sets, and which of them are here.

    Example: dualt data list --data-dir ~/data
    """
    from dualt.datasets import REGISTRY, data_root

    root = data_root(data_dir)
    rows = [
        {"name": name, "present": entry.is_present(root), "summary": entry.summary} for name, entry in REGISTRY.items()
    ]
    if as_json:
        print_json({"root": str(root), "datasets": rows})
        return
    say(f"Data sets in {root}:")
    for row in rows:
        say(f"  {row['name']:<14} {'here' if row['present'] else 'not here':<9} {row['summary']}")

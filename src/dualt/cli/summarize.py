"""`dualt summarize`: read one part of the data now, to be merged with the others later."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

from dualt.cli.groups import Data
from dualt.cli.guard import shared
from dualt.cli.options import Json, output_option, print_json
from dualt.cli.plain import say


@shared
def summarize(
    data: Data,
    output: Annotated[Path, output_option(help="Where to write the summary: .npz.")] = Path("summary.npz"),
    as_json: Json = False,
) -> None:
    """Read a part of the data once and keep what the estimators need of it, however many rows it has.

    That is a few megabytes for up to some hundred classes, about ten for a thousand, 200 for five thousand.
    Parts can be read by different jobs on different days; `dualt merge` puts them together, as if all had been
    read at once.

    Example: `dualt summarize probs-7.npy labels-7.npy --classes names.txt -o part-7.npz`
    """
    from dualt import io

    with data.opened() as posterior:
        stored = io.StoredSummary.of(posterior.summary, posterior.coder.names)
    io.save_summary(output, stored)
    n_samples = stored.summary.n_samples
    if as_json:
        print_json({"n_samples": n_samples, "class_names": list(stored.class_names), "output": str(output)})
    else:
        say(f"{n_samples:,} rows of {len(stored.class_names):,} classes are summarised in {output}.")
        say(f"Next: dualt merge {shlex.quote(str(output))} OTHERS...")

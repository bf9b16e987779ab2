"""`dualt merge`: the estimate of all data from the summaries of its parts."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dualt.cli.guard import shared
from dualt.cli.options import Json, Level, Settings, output_option, parse_settings, print_estimate
from dualt.cli.plain import say
from dualt.errors import FileError

_ENDINGS = (".npz", ".json", ".npy", ".csv")


@shared
def merge(
    summaries: Annotated[
        list[Path], typer.Argument(metavar="SUMMARY...", help="Files that `dualt summarize` or `merge` has written.")
    ],
    estimator: Annotated[str, typer.Option("--estimator", "-e", help="Estimator: t, dual-t or spade.")] = "dual-t",
    compare: Annotated[bool, typer.Option("--compare", help="Show all three side by side.")] = False,
    settings: Settings = None,
    level: Level = 0.95,
    outputs: Annotated[
        list[Path] | None,
        output_option(help="Write the merged summary as .npz, all as .json, the matrix as .npy or .csv. Repeat."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Merge the summaries of parts of the data, and estimate how noisy the labels are in all of them.

    The parts follow each other in the order given. The result is that of one pass over all rows; no row is
    read again. Estimators that read the rows more than once, such as clean-count, need the data: `dualt estimate`.

    Example: `dualt merge part-*.npz -o all.npz -o transition.json`
    """
    from dualt import io
    from dualt.estimators import ESTIMATORS, estimate_summary
    from dualt.validation import check_fraction

    check_fraction(level, "--level")
    targets = outputs or []
    for target in targets:
        if target.suffix.lower() not in _ENDINGS:
            raise FileError(
                f"Expected a name that ends in {', '.join(_ENDINGS[:-1])} or {_ENDINGS[-1]}, got {target.name!r}."
            )
    merged = io.merge_summaries([io.load_summary(path) for path in summaries])
    chosen = estimate_summary(merged.summary, merged.class_names, estimator, **parse_settings(settings or []))
    names = [name for name, entry in ESTIMATORS.items() if entry.reads_once] if compare else []
    others = {name: estimate_summary(merged.summary, merged.class_names, name) for name in names}
    for target in targets:
        if target.suffix.lower() == ".npz":
            io.save_summary(target, merged)
        else:
            chosen.save(target, level=level)
    print_estimate(chosen, others | {estimator: chosen} if compare else {}, level, as_json=as_json)
    for target in [] if as_json else targets:
        say(f"\nWritten: {target}")

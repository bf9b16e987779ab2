"""Everything that an experiment leaves in its folder: tables in three formats, and a figure in two."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from dualt.files import atomic_write
from dualt.reproduce.figures import write_figures
from dualt.reproduce.results import Result
from dualt.reproduce.spec import Experiment
from dualt.reproduce.tables import to_csv, to_latex, to_markdown


def render(experiment: Experiment, results: Sequence[Result], out: str | Path) -> list[Path]:
    """Write tables and figures below `out`, and return the files."""
    folder = Path(out)
    texts = {
        "md": to_markdown(experiment, results),
        "tex": to_latex(experiment, results),
        "csv": to_csv(results),
    }
    paths = []
    for suffix, text in texts.items():
        path = folder / f"{experiment.name}.{suffix}"
        with atomic_write(path) as stream:
            stream.write(text)
        paths.append(path)
    return [*paths, *write_figures(experiment, results, folder)]

"""`dualt audit`: draw a few labels for a person to check."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dualt.cli.options import (
    Classes,
    Images,
    Json,
    LabelColumn,
    RandomState,
    Report,
    Text,
    print_json,
    read_posterior,
    save_report,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from dualt.rows import NoisyPosterior


def audit(
    labels: Annotated[Path, typer.Argument(metavar="LABELS", help="Given labels: .npy, .npz, .csv, .parquet, .txt.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="CSV to fill in: index, given, true.")],
    size: Annotated[int, typer.Option("--size", help="How many labels to check.")] = 200,
    random_state: RandomState = 0,
    label: LabelColumn = None,
    probs: Annotated[Path | None, typer.Option("--probs", help="Predicted probabilities, for the report.")] = None,
    report: Report = None,
    images: Images = None,
    text: Text = None,
    classes: Classes = None,
    as_json: Json = False,
) -> None:
    """Draw a random sample of labels to check by hand; a few hundred tell which estimate to trust.

    Fill in the column `true`, or check them on the page of --report and download it from there; then pass the
    file to `dualt estimate --verified`. Only a random sample will do: labels that were checked because they
    looked suspect overstate the noise.

    Example: `dualt audit labels.npy --size 200 -o audit.csv --probs probs.npy --report audit.html`
    """
    from dualt import io
    from dualt.audit import draw_audit, save_audit
    from dualt.errors import InputError
    from dualt.files import check_writable_target
    from dualt.labels import as_label_array

    if (report is None) != (probs is None):
        raise InputError("Expected --report and --probs together: the page shows what each example probably is.")
    for target in filter(None, (output, report)):
        check_writable_target(target)
    given = as_label_array(io.load_labels(labels, column=label))
    given = given.argmax(axis=1) if given.ndim == 2 else given
    rows = draw_audit(given, size, random_state=random_state)
    if report is not None and probs is not None:
        posterior = read_posterior(probs, labels, label, classes)
        _write_page(report, posterior, rows, random_state, images, text)
    save_audit(output, given, rows)
    if as_json:
        print_json({"output": str(output), "report": report and str(report), "indices": rows.tolist()})
        return
    typer.echo(f"{len(rows):,} labels to check in {output}: fill in the column 'true', then")
    typer.echo(f" dualt estimate {probs or 'PROBS'} {labels} --verified {output}")
    if report is not None:
        typer.echo(f"Or check them in a browser, {report}, and pass its download, audit-review.csv, instead.")


def _write_page(
    path: Path, posterior: NoisyPosterior, rows: NDArray[np.intp], seed: int, images: Path | None, text: Path | None
) -> None:
    """Write the report with the sample on a list of its own, in random order: its beginning is a random sample too."""
    from dualt.issues import find_posterior_issues
    from dualt.rng import stream

    found = find_posterior_issues(posterior)
    order = stream(seed, "audit").permutation(rows)
    save_report(path, found.transition_estimate, found, audit=order, images=images, text=text)

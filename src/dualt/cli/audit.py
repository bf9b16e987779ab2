"""`dualt audit`: draw a few labels for a person to check."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dualt.cli.groups import Data, Page, with_groups
from dualt.cli.options import Classes, Header, Json, LabelColumn, RandomState, check_targets, print_json


@with_groups
def audit(
    labels: Annotated[Path, typer.Argument(metavar="LABELS", help="Given labels: .npy, .npz, .csv, .parquet, .txt.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="CSV to fill in: index, given, true.")],
    page: Page,
    size: Annotated[int, typer.Option("--size", help="How many labels to check.")] = 200,
    random_state: RandomState = 0,
    label: LabelColumn = None,
    header: Header = None,
    probs: Annotated[Path | None, typer.Option("--probs", help="Predicted probabilities, for the report.")] = None,
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
    from dualt.issues import find_posterior_issues
    from dualt.labels import as_label_array
    from dualt.rng import stream

    if (page.report is None) != (probs is None):
        raise InputError("Expected --report and --probs together: the page shows what each example probably is.")
    check_targets(output, page.report)
    given = as_label_array(io.load_labels(labels, column=label, header=header))
    given = given.argmax(axis=1) if given.ndim == 2 else given
    rows = draw_audit(given, size, random_state=random_state)
    if probs is not None:
        with Data(probs, labels, label=label, header=header, classes=classes).opened() as posterior:
            found = find_posterior_issues(posterior)
        # On the page the sample has a list of its own, in random order: its beginning is a random sample too.
        order = stream(random_state, "audit").permutation(rows)
        page.write(found.transition_estimate, found, audit=order)
    save_audit(output, given, rows)
    if as_json:
        print_json({"output": str(output), "report": page.report and str(page.report), "indices": rows.tolist()})
        return
    typer.echo(f"{len(rows):,} labels to check in {output}: fill in the column 'true', then")
    typer.echo(f" dualt estimate {probs or 'PROBS'} {labels} --verified {output}")
    if page.report is not None:
        typer.echo(f"Or check them in a browser, {page.report}, and pass its download, audit-review.csv, instead.")

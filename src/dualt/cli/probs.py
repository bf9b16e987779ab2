"""`dualt probs`: out-of-fold probabilities of data that have none."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from dualt.cli.groups import Data
from dualt.cli.guard import shared
from dualt.cli.learning import Learning
from dualt.cli.options import Header, IdColumn, Json, LabelColumn, output_option, print_json
from dualt.cli.raw_data import load_raw
from dualt.errors import InputError
from dualt.files import read_json


@shared
def probs(
    data: Annotated[
        Path,
        typer.Argument(metavar="DATA", help="A table (.csv, .tsv, .parquet, .jsonl) or images in a folder per class."),
    ],
    output: Annotated[
        Path, output_option(help="Ids, labels and probabilities as .csv or .parquet, or these alone as .npy.")
    ],
    learning: Learning,
    label: LabelColumn = None,
    text: Annotated[str | None, typer.Option(help="Column of texts to learn from.")] = None,
    id_column: IdColumn = None,
    header: Header = None,
    n_jobs: Annotated[int, typer.Option(help="Number of folds that are fitted at once.")] = 1,
    as_json: Json = False,
) -> None:
    """Make the probabilities that the other commands read: out of fold, so that no model has seen what it judges.

    A plain model is chosen for the data: logistic regression on words for --text; the same, or trees, on the columns of
    --features; the same on features learnt without labels for images. Rows without a label get the probabilities of a
    model of all others. Results are kept by content in $DUALT_CACHE, by default ~/.cache/dualt/probs; delete that
    folder to clear it.

    Example: `dualt probs data.csv --label label --text title -o probs.csv`
    """
    from dualt.io.load import check_probability_ending, read_npy, save_probabilities

    check_probability_ending(output)
    if text is not None and learning.features is not None:
        raise InputError(
            "Expected --text or --features, got both: our models learn from texts, or from numbers and categories."
            " Leave one out, or name the texts among --features for a --model of your own."
        )
    source = Data(data, label=label, id_column=id_column, header=header, n_jobs=n_jobs)
    raw = load_raw(source, text, learning)
    made = learning.make(source, text, raw)
    told = read_json(made.with_suffix(".json"))
    save_probabilities(output, read_npy(made), told["class_names"], raw.beside)
    if as_json:
        print_json(told | {"output": str(output)})
        return
    from rich.markup import escape

    from dualt.cli import picture

    out = picture.console()
    out.print(
        f"\nProbabilities of {told['n_samples']:,} rows and {len(told['class_names']):,} classes, out of fold in"
        f" {told['folds']} folds, by {escape(told['model'])}.\nIt agrees with {told['agreement']:.0%} of the labels;"
        f" the most frequent class has {told['most_frequent']:.0%}.\n"
    )
    if data.is_dir() or output.suffix.lower() == ".npy":
        given = replace(source, probs=output, labels=data)
    else:  # the labels are in the table of probabilities too, below a header
        given = Data(output, label=list(raw.beside)[-1], id_column=id_column)
    steps = {f"dualt issues {given.as_typed()}": "which labels are wrong", f"Written: {output}": ""}
    picture.show_next(out, steps)

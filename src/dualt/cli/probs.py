"""`dualt probs`: out-of-fold probabilities for data that have none."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

from rich.markup import escape
from typer import Argument, Option

import dualt
from dualt.cli.options import Data, IdColumn, Jobs, Json, LabelColumn, Learning, output_option, shared
from dualt.cli.terminal import console, print_json, progress, show_next, words_of
from dualt.errors import InputError
from dualt.files import check_ending


@shared
def probs(
    data: Annotated[Path, Argument(help="A table (.csv, .tsv, .parquet, .jsonl) or images in a folder per class.")],
    output: Annotated[Path, output_option(help="Ids, labels and mean probabilities as a table; each model's as .npy.")],
    learning: Learning,
    folds: Annotated[int, Option(help="Number of folds.")] = 5,
    label: LabelColumn = None,
    id_column: IdColumn = None,
    n_jobs: Jobs = 1,
    as_json: Json = False,
) -> None:
    """Make the probabilities that the other commands read: out of fold, so that no model has seen what it judges.

    They are the mean of several models that suit the data and err differently; -o probs.npy keeps those of each model,
    and `dualt issues probs.npy LABELS` uses them all. --text and --features may go together.
    Rows without a label get the probabilities of models fitted on all others.

    Example: `dualt probs data.csv --label label --text title -o probs.csv`
    """
    from dualt.cli.inputs import learn, read_raw

    check_ending(output, dualt.io.load.PROBABILITY_FORMATS)
    raw = read_raw(Data(data, label=label, id_column=id_column), learning)
    is_array = output.suffix.lower() == ".npy"
    if is_array and learning.merge_labels:
        raise InputError("Expected a table for merged labels, -o probs.csv, got an array, which has none.")
    if is_array and data.is_dir() and len(raw.labels) < len(dualt.io.read_class_folder(data).files):
        message = f"Expected images that can be read in {data} for an array, whose rows have no names, got those above."
        raise InputError(f"{message} Remove them, or write a table: -o probs.csv.")
    with progress() as advance:
        found = learn(raw, learning, cv=folds, n_jobs=n_jobs, on_progress=advance)
    values = found.members if is_array and len(found.members) > 1 else found.pred_probs
    dualt.io.load.save_probabilities(output, values, found.class_names, raw.beside)
    content = {
        "class_names": list(found.class_names), "model": " ".join(found.model.split()),
        "folds": int(found.fold.max()) + 1, "agreement": found.agreement,
        "n_samples": len(found), "n_labelled": int(found.labelled.sum()), "output": str(output),
    }  # fmt: skip
    if as_json:
        print_json(content)
        return
    out = console()
    out.print(
        f"\nProbabilities of {len(found):,} rows and {len(found.class_names):,} classes, out of fold in"
        f" {content['folds']} folds, by {escape(str(content['model']))}."
        f"\nThey agree with {found.agreement:.0%} of the labels."
    )
    words = [str(output), str(data), *words_of(label=label, id=id_column)]
    if not is_array and not data.is_dir():  # the labels are in the table of probabilities too
        words = [str(output), *words_of(label=[*raw.beside][-1], id=id_column)]
    words.append("--determined" if found.determined else "--overlapping")  # a file does not say what it was made from
    show_next(out, {shlex.join(["dualt", "issues", *words]): "which labels are wrong"}, output)

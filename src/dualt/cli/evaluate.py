"""`dualt evaluate`: how good a model is, judged by test labels that are noisy themselves."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dualt.cli.options import Classes, Json, LabelColumn, Level, print_json
from dualt.cli.plain import say

if TYPE_CHECKING:
    from dualt.audit import NoisyAccuracy


def evaluate(
    predictions: Annotated[
        Path, typer.Argument(metavar="PREDICTIONS", help="Predicted classes, or probabilities, of the test rows.")
    ],
    labels: Annotated[Path, typer.Argument(metavar="LABELS", help="Given labels of the test rows.")],
    transition: Annotated[
        Path | None, typer.Option(help="How noisy the labels are: the .json of `dualt estimate -o`, .npy or .csv.")
    ] = None,
    verified: Annotated[
        Path | None, typer.Option(help="Labels of the test rows checked by hand; see `dualt audit`.")
    ] = None,
    against: Annotated[
        Path | None, typer.Option(help="Predictions of a second model, to tell which is better.")
    ] = None,
    label: LabelColumn = None,
    classes: Classes = None,
    level: Level = 0.95,
    as_json: Json = False,
) -> None:
    """Tell the accuracy against the unknown truth, from noisy test labels.

    With --verified it is measured, whatever the noise and the model. Without, only bounds follow; the figure through
    the matrix needs an assumption that models trained on noisy labels break, and is shown under it.

    Example: `dualt evaluate predictions.npy labels.npy --transition t.json --verified audit.csv --against other.npy`
    """
    from dualt import io
    from dualt.audit import noisy_accuracy, read_sheet
    from dualt.results import TransitionEstimate

    noise: Any = None
    if transition is not None:
        is_estimate = transition.suffix.lower() == ".json"
        noise = TransitionEstimate.load(transition) if is_estimate else io.load_transition(transition)
    sheet = None if verified is None else read_sheet(verified)
    found = noisy_accuracy(
        _predictions(predictions),
        io.load_labels(labels, column=label),
        noise,
        verified=None if sheet is None else sheet.audit(),
        against=None if against is None else _predictions(against),
        class_names=None if classes is None else io.load_class_names(classes),
        level=level,
    )
    if as_json:
        print_json(found.to_dict())
        return
    if sheet is not None:
        say(f"{found.n_verified:,} of {len(sheet.rows):,} rows of {verified} are verified.", err=True)
    _show(found)


def _predictions(path: Path) -> Any:
    """Read predicted classes (of a table the column `prediction`, or its only one), or probabilities."""
    import numpy as np

    from dualt import io
    from dualt.errors import InputError, UnknownNameError

    if path.suffix.lower() not in (".csv", ".tsv", ".parquet"):
        return io.load_labels(path)
    for column in ("prediction", None):
        with suppress(InputError, UnknownNameError):
            return io.load_labels(path, column=column)
    loaded = io.load_probabilities(path)
    names = loaded.class_names
    return loaded.values if names is None else np.array(names)[loaded.values.argmax(axis=1)]


def _show(found: NoisyAccuracy) -> None:
    from dualt.audit.evaluation import ASSUMPTION

    at = f"{100 * found.level:g} % confidence"
    if found.audited is not None:
        say(
            f"Accuracy {found.audited.estimate:.1%} ({found.audited.low:.1%} to {found.audited.high:.1%} at {at}),"
            f" measured on {found.n_verified:,} verified labels."
        )
    elif found.bounds is not None:
        low, high = found.bounds
        say(f"Accuracy between {low:.1%} and {high:.1%}: all that follows without verified labels.")
    say(f"Agreement with the given labels: {found.agreement:.1%} of {found.n_samples:,}.")
    if found.through_transition is not None:
        through = found.through_transition
        say(f"Through the matrix: {through.estimate:.1%} ({through.low:.1%} to {through.high:.1%}), if {ASSUMPTION}.")
    if found.difference is not None:
        _show_difference(found)
    if found.audited is None:
        say("To settle it: `dualt audit LABELS -o audit.csv`, then --verified audit.csv.")


def _show_difference(found: NoisyAccuracy) -> None:
    difference = found.difference
    interval = None if difference is None else difference.interval
    if difference is None or interval is None:
        return
    lead = f"{100 * interval[0]:+.1f} to {100 * interval[1]:+.1f} percentage points"
    verdict = {"first": "The first model is better", "second": "The second model is better"}
    say(f"{verdict.get(found.better or '', 'Which model is better cannot be told')}: first less second {lead}.")

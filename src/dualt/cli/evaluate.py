"""`dualt evaluate`: accuracy of a model against the unknown truth, from noisy test labels."""

from __future__ import annotations

import shlex
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

import dualt
from dualt.cli.options import Classes, Json, LabelColumn
from dualt.cli.terminal import again, print_json, say, words_of
from dualt.errors import InputError, LabelsError

if TYPE_CHECKING:
    from numpy.typing import NDArray


def evaluate(
    predictions: Annotated[Path, Argument(help="Predicted classes of the test rows, or probabilities (.npy).")],
    labels: Annotated[Path, Argument(help="Given labels of the test rows.")],
    transition: Annotated[Path | None, Option(help="How noisy the labels are: .json of `dualt estimate`.")] = None,
    verified: Annotated[Path | None, Option(help="Test labels checked by hand; see `dualt audit`.")] = None,
    against: Annotated[Path | None, Option(help="Predictions of a second model, to compare with.")] = None,
    label: LabelColumn = None,
    classes: Classes = None,
    as_json: Json = False,
) -> None:
    """Estimate the accuracy against the unknown truth, from noisy test labels.

    With --verified it is measured, whatever the noise and the model. Without, only bounds follow.

    Example: `dualt evaluate predictions.npy labels.npy --transition t.json --verified audit.csv --against other.npy`
    """
    from dualt.cli.inputs import warn_missing, warn_verified

    if transition is None and verified is None:
        raise InputError("Expected --transition or --verified, to judge noisy labels by, got neither.")
    names, noise = None if classes is None else dualt.io.load_class_names(classes), None
    if transition is not None:
        noise, own = dualt.io.load_transition(transition)
        names = own if names is None else names
        noise = dualt.transition.match_transition(noise, own, names)
    sheet = None if verified is None else dualt.audit.read_sheet(verified)
    audit = None if sheet is None else dualt.audit.audit_of(sheet)
    given = dualt.io.load_labels(labels, column=label, missing=True)
    models = {path: _predictions(path) for path in (predictions, against) if path is not None}
    for path, model in models.items():
        if len(model) != len(given):
            got = f"{len(model):,} in {path} and {len(given):,} in {labels}"
            raise LabelsError(f"Expected one prediction per label, got {got}.")
    labelled = (~dualt.labels.is_missing(given)).nonzero()[0]
    if len(labelled) < len(given):
        warn_missing(labelled, len(given))
        audit = None if audit is None else audit.among(labelled)
        given, models = given[labelled], {path: model[labelled] for path, model in models.items()}
    judge = partial(dualt.noisy_accuracy, noisy_labels=given, transition=noise, verified=audit, class_names=names)
    found = judge(models[predictions])
    if against is not None:
        try:
            found = judge(models[predictions], against=models[against])
        except InputError as error:
            raise dualt.rows.posterior.in_block(error, str(against)) from None
    if as_json:
        print_json(found.to_dict())
        return
    warn_verified(found.n_verified, sheet, verified)
    _show(found)
    if found.audited is None:
        named = shlex.join([str(labels), *words_of(label=label), "-o", "audit.csv"])
        say(f"To measure it: dualt audit {named}, then {again(None, '--verified', 'audit.csv')}")


def _predictions(path: Path) -> NDArray[Any]:
    """Read predicted classes or probabilities; in a table, the column `prediction` or `predicted`, or its only one."""
    if path.suffix.lower() not in dualt.io.tables.TABLES:
        return dualt.io.load_labels(path)
    table = dualt.io.open_table(path, "prediction")
    column = next((name for name in ("prediction", "predicted") if name in (table.names or ())), None)
    if column is None and table.n_columns > 1:
        got = ", ".join(table.names or ()) or f"{table.n_columns} columns without names"
        raise InputError(f"Expected predicted classes in a column 'prediction' or 'predicted' of {path}, got {got}.")
    return dualt.io.table_columns.check_no_missing(table.read_column(column or 0), path)


def _show(found: dualt.audit.NoisyAccuracy) -> None:
    if found.audited is not None:
        say(
            f"Accuracy {found.audited.estimate:.1%} ({found.audited.low:.1%} to {found.audited.high:.1%} at 95 %"
            f" confidence), measured on {found.n_verified:,} verified labels."
        )
    elif found.bounds is not None:
        low, high = found.bounds
        say(f"Accuracy between {low:.1%} and {high:.1%}, if the matrix is right; an audit would say more.")
    say(f"Agreement with the given labels: {found.agreement:.1%} of {found.n_samples:,}.")
    if found.difference is not None and found.difference.interval is not None:
        low, high = (round(100 * limit, 1) + 0.0 for limit in found.difference.interval)  # no -0.0
        verdicts = {"first": "The first model is better", "second": "The second model is better"}
        verdict = verdicts.get(found.better or "", "Neither model is clearly better")
        say(f"{verdict}: first minus second {low:+.1f} to {high:+.1f} percentage points.")

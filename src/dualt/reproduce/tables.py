"""Results as tables: Markdown and LaTeX to read, CSV to compute with."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass

from dualt.io.cells import guard_cell
from dualt.reproduce.claims import verdicts_of
from dualt.reproduce.departures import departures
from dualt.reproduce.grid import TRUE
from dualt.reproduce.presets import PAPER_EXPERIMENTS
from dualt.reproduce.results import Result
from dualt.reproduce.spec import Experiment, base_name

FLOOR = "oracle"
ESTIMATOR_NAMES = {"t": "T", "dual-t": "DT", "spade": "T♠", FLOOR: "oracle (floor)", TRUE: "true T"}
METHOD_NAMES = {
    "ce": "CE", "mixup": "Mixup", "decoupling": "Decoupling", "mentornet": "MentorNet", "co-teaching": "Coteaching",
    "forward": "Forward", "reweighting": "Reweighting", "revision": "Revision",
    "volminnet": "VolMinNet", "total-variation": "Total variation",
}  # fmt: skip
DATASET_NAMES = {
    "synthetic": "synthetic", "mnist": "MNIST", "fashion-mnist": "F-MNIST", "cifar10": "CIFAR10",
    "cifar100": "CIFAR100", "clothing1m": "Clothing1M",
}  # fmt: skip
_DELTAS = {"delta1": "Δ1", "delta2": "Δ2", "delta3": "Δ3"}


@dataclass(frozen=True)
class Typesetting:
    """How a format sets a number: bold, starred, plus-minus, nothing."""

    bold: Callable[[str], str]
    star: str
    plus_minus: str
    nothing: str


MARKDOWN = Typesetting(lambda text: f"**{text}**", "\\*", " ± ", "–")
LATEX = Typesetting(lambda text: f"\\mathbf{{{text}}}", "^*", " \\pm ", "--")


@dataclass(frozen=True)
class ResultTable:
    """A heading, the names of the columns, and rows of text."""

    heading: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def row_name(result: Result) -> str:
    """Return what the paper calls a row: `DT Forward`, or the estimator or quantity alone."""
    given = result.estimator or ""
    name = base_name(given)
    estimator = ESTIMATOR_NAMES.get(name, name) + given[len(name) :].replace("-", " ")
    if result.quantity == "accuracy":
        return " ".join(filter(None, (estimator, METHOD_NAMES.get(result.method or "", result.method))))
    return estimator or _DELTAS.get(result.quantity, result.quantity)


def tables_of(experiment: Experiment, results: Sequence[Result], text: Typesetting) -> list[ResultTable]:
    """Return one table per data set and, where there is a floor to compare with, one over all."""
    build = _accuracy_table if experiment.shows == "accuracies" else _curve_table
    by_dataset = {dataset: [r for r in results if r.dataset == dataset] for dataset in experiment.datasets}
    tables = [build(dataset, own, text) for dataset, own in by_dataset.items() if own]
    return [*tables, _overall_table(results, text)] if _has_floor(experiment) else tables


def _has_floor(experiment: Experiment) -> bool:
    return experiment.shows == "errors" and FLOOR in experiment.estimators


def _overall_table(results: Sequence[Result], text: Typesetting) -> ResultTable:
    """Rows are estimators; means by data set and over all points that every estimator has, and the worst point."""
    points: dict[tuple[str, str, float], dict[str, float | None]] = {}
    for result in results:
        points.setdefault((result.dataset, result.noise, result.size), {})[row_name(result)] = result.mean
    whole = {key: own for key, own in points.items() if None not in own.values()}
    datasets = list(dict.fromkeys(key[0] for key in whole))

    def errors(name: str, dataset: str | None = None) -> list[float]:
        return [own[name] or 0.0 for key, own in whole.items() if dataset in (None, key[0])]

    def mean(values: Sequence[float]) -> float | None:
        return sum(values) / len(values) if values else None

    overall = {name: mean(errors(name)) for name in dict.fromkeys(map(row_name, results))}
    best = min(
        (own for name, own in overall.items() if own is not None and name != ESTIMATOR_NAMES[FLOOR]), default=None
    )

    def row(name: str) -> tuple[str, ...]:
        own = [_number(text, 3, mean(errors(name, dataset))) for dataset in datasets]
        all_in_all = _number(text, 3, overall[name], bold=overall[name] == best)
        return (name, *own, all_in_all, _number(text, 3, max(errors(name), default=None)))

    heads = (DATASET_NAMES.get(dataset, dataset) for dataset in datasets)
    heading = f"All, means over {len(whole)} of {len(points)} points"
    return ResultTable(heading, ("", *heads, "all", "worst"), tuple(map(row, overall)))


def _accuracy_table(dataset: str, results: Sequence[Result], text: Typesetting) -> ResultTable:
    """Rows are methods; each noise has our value and, where the paper printed any, its own and the difference."""
    sizes = {result.size for result in results}
    heads = dict.fromkeys(r.noise if len(sizes) == 1 else f"{r.noise}, n={r.size:g}" for r in results)
    parts = ("", ", paper", ", difference") if any(result.published for result in results) else ("",)
    marks = _marks(results)
    rows: dict[str, list[str]] = {}
    for result in results:
        cells = rows.setdefault(row_name(result), [])
        bold, star = marks[result]
        published = result.published
        printed = published and _number(text, 2, **asdict(published))
        difference = None if result.difference is None else f"{result.difference:+.2f}"
        own = _number(text, 2, result.mean, result.sd, bold=bold, star=star)
        cells += (own, printed or text.nothing, difference or text.nothing)[: len(parts)]
    columns = (f"{head}{part}" for head in heads for part in parts)
    body = tuple((name, *cells, _seeds(r for r in results if row_name(r) == name)) for name, cells in rows.items())
    return ResultTable(DATASET_NAMES.get(dataset, dataset), ("", *columns, "seeds"), body)


def _seeds(results: Iterable[Result]) -> str:
    """Return how many seeds the results of a row have."""
    numbers = [result.n_seeds for result in results]
    low, high = min(numbers), max(numbers)
    return str(low) if low == high else f"{low}–{high}"


def _marks(results: Sequence[Result]) -> dict[Result, tuple[bool, bool]]:
    """Return (bold, star): the best estimator of a method, and the best of all, per noise."""
    marks = {}
    for result in results:
        column = [r for r in results if r.noise == result.noise and r.size == result.size and r.mean is not None]
        rivals = [r for r in column if r.method == result.method]
        best = max((r.mean or 0 for r in column), default=None)
        bold = len(rivals) > 1 and result.mean == max(r.mean or 0 for r in rivals)
        marks[result] = (bold, len(column) > 1 and result.mean is not None and result.mean == best)
    return marks


def _curve_table(dataset: str, results: Sequence[Result], text: Typesetting) -> ResultTable:
    """Rows are noise and sample size; each estimator or quantity has a column, the smallest error in bold."""
    names = list(dict.fromkeys(map(row_name, results)))
    points: dict[tuple[str, float], dict[str, Result]] = {}
    for result in results:
        points.setdefault((result.noise, result.size), {})[row_name(result)] = result
    compared = results[0].quantity == "error"
    rows = []
    for (noise, size), by_name in points.items():
        known = [r.mean for r in by_name.values() if r.mean is not None and r.estimator != FLOOR]
        n_samples = next((r.n_samples for r in by_name.values() if r.n_samples), None)
        cells = []
        for name in names:
            found = by_name[name]
            bold = compared and len(known) > 1 and found.mean == min(known)
            cells.append(_number(text, 3, found.mean, found.sd, bold=bold))
        samples = f"{n_samples:,}" if n_samples else f"{size:,.0f}" if size > 1 else f"{size:.0%}"
        rows.append((noise, samples, *cells, _seeds(by_name.values())))
    return ResultTable(DATASET_NAMES.get(dataset, dataset), ("noise", "samples", *names, "seeds"), tuple(rows))


def _number(
    text: Typesetting,
    digits: int,
    mean: float | None,
    sd: float | None = None,
    *,
    bold: bool = False,
    star: bool = False,
) -> str:
    if mean is None:
        return text.nothing
    shown = text.bold(f"{mean:.{digits}f}") if bold else f"{mean:.{digits}f}"
    return shown + (text.star if star else "") + ("" if sd is None else f"{text.plus_minus}{sd:.{digits}f}")


def to_markdown(experiment: Experiment, results: Sequence[Result]) -> str:
    """Return a document with a table per data set."""
    lines = [f"# {experiment.name}: {experiment.title}", "", _about(experiment), ""]
    for table in tables_of(experiment, results, MARKDOWN):
        lines += [
            f"## {table.heading}",
            "",
            "| " + " | ".join(table.columns) + " |",
            "|" + " --- |" * len(table.columns),
        ]
        lines += ["| " + " | ".join(row) + " |" for row in table.rows]
        lines.append("")
    return "\n".join([*lines, *_claims(experiment, results)])


def _claims(experiment: Experiment, results: Sequence[Result]) -> list[str]:
    """Return the paper's claims as a table with a verdict each; nothing for what is not the paper's."""
    head = ("## What the paper claims", "", "| claim | verdict | here |", "| --- | --- | --- |")
    rows = [f"| {v.claim} | {v.verdict} | {v.evidence} |" for v in verdicts_of(experiment.name, results)]
    return [*head, *rows, ""] if rows else []


def _about(experiment: Experiment) -> str:
    seeds = f"up to {experiment.seeds} seeds" if experiment.seeds > 1 else "one seed"
    what = {
        "accuracies": "Accuracy in percent, mean ± standard deviation. Bold: the better estimator of a method; star:"
        " the best of a column.",
        "errors": "Σ|T − T̂|/C, mean ± standard deviation. Bold: the smallest.",
        "posterior": "Mean of |P − P̂| over test points and classes, ± standard deviation.",
        "deltas": "Errors on the training part, mean ± standard deviation.",
    }[experiment.shows]
    if _has_floor(experiment):
        what += " The floor counts clean against given labels, which no estimator sees."
    changed = "; ".join(departures(experiment)) if experiment.name in PAPER_EXPERIMENTS else ""
    differs = f" Not as the authors ran it: {changed}. Compare rows, not levels." if changed else ""
    return f"Profile `{experiment.profile}`, {seeds}; {_schedule(experiment)}.{differs} {what}"


def _schedule(experiment: Experiment) -> str:
    epochs = "epochs as published" if experiment.epochs is None else f"{experiment.epochs} epochs for the posterior"
    if experiment.shows == "accuracies" and experiment.method_epochs is not None:
        epochs += f" and {experiment.method_epochs} for the other methods"
    networks = ", ".join(
        f"{name} for {dataset}" for dataset, name in experiment.network.items() if dataset in experiment.datasets
    )
    return f"{epochs}; {networks}"


def to_latex(experiment: Experiment, results: Sequence[Result]) -> str:
    """Return a `tabular` per data set, for booktabs."""
    blocks = []
    for table in tables_of(experiment, results, LATEX):
        head = " & ".join(_escape(name) for name in table.columns)
        body = [" & ".join((_escape(row[0]), *(f"${cell}$" for cell in row[1:]))) + r" \\" for row in table.rows]
        spec = "l" + "r" * (len(table.columns) - 1)
        lines = [f"% {table.heading}", rf"\begin{{tabular}}{{{spec}}}", r"\toprule", head + r" \\", r"\midrule"]
        blocks.append("\n".join([*lines, *body, r"\bottomrule", r"\end{tabular}"]))
    return "\n\n".join(blocks) + "\n"


def _escape(name: str) -> str:
    deltas = {sign: rf"$\Delta_{sign[1]}$" for sign in _DELTAS.values()}
    return deltas.get(name, name.replace("_", r"\_").replace("%", r"\%"))


def to_csv(results: Sequence[Result]) -> str:
    """Return one row per result."""
    stream = io.StringIO()
    rows = [result.to_dict() for result in results]
    writer = csv.DictWriter(stream, list(rows[0]) if rows else [], lineterminator="\n")
    writer.writeheader()
    # The name of a noise can be that of a user's file.
    writer.writerows({k: guard_cell(v) if isinstance(v, str) else v for k, v in row.items()} for row in rows)
    return stream.getvalue()

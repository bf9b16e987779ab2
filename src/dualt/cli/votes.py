"""`dualt votes`: the consensus of several annotators, what each is worth, and what to check next."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from rich.markup import escape
from typer import Argument, Option

import dualt
from dualt.cli.options import Jobs, Json, output_option
from dualt.cli.terminal import again, console, plain_table, print_json, progress, show_next, show_notices, words_of
from dualt.errors import InputError

if TYPE_CHECKING:
    from pandas import DataFrame

_LISTED = 12


def votes(
    data: Annotated[Path, Argument(metavar="VOTES", help="A row per vote, or a column per annotator; or an export.")],
    item: Annotated[str | None, Option(help="Column of items.")] = None,
    annotator: Annotated[str | None, Option(help="Column of annotators.")] = None,
    label: Annotated[str | None, Option(help="Column of labels; empty where somebody abstained.")] = None,
    probs: Annotated[Path | None, Option(help="Probabilities: a table with the items, or .npy in their order.")] = None,
    items: Annotated[Path | None, Option(help="Table with --text and --features. Default: VOTES.")] = None,
    text: Annotated[str | None, Option(help="Column of texts: probabilities are learned from them.")] = None,
    features: Annotated[str | None, Option(help="Columns of numbers, categories of each item: 'x_*', 'a,b'.")] = None,
    verified: Annotated[Path | None, Option(help="Items drawn at random: item (or index) and true.")] = None,
    settled: Annotated[Path | None, Option(help="The same for items you chose, as --next does.")] = None,
    output: Annotated[Path | None, output_option(help="Write the consensus, a row per item: consensus.csv.")] = None,
    annotators: Annotated[Path | None, Option(help="Write a row per annotator: people.csv.")] = None,
    next_items: Annotated[int, Option("--next", min=1, help="How many items to check next.")] = 100,
    report: Annotated[Path | None, Option(help="Write a page to check these items on: page.html.")] = None,
    n_jobs: Jobs = 1,
    as_json: Json = False,
) -> None:
    """Combine the labels of several people, rules or models: the consensus, everybody's quality, what to check next.

    VOTES is a table, or an export of Label Studio, Argilla or Prodigy (.json, .jsonl).
    With --text or --features a model learns the consensus out of fold and counts as one more voice, as --probs do.

    Example: `dualt votes votes.csv --item id --annotator who --label label -o consensus.csv --annotators people.csv`

    Example: `dualt votes export.json --text text -o consensus.csv --report page.html`
    """
    dualt.files.check_ending(output, dualt.io.tables.TABLES)
    dualt.files.check_ending(annotators, dualt.io.tables.TABLES)
    table, columns, about, learned = _read(
        data, {"item": item, "annotator": annotator, "label": label}, items, text, features
    )
    item, voices = columns["item"], None
    if probs is not None:
        voices = _probabilities(probs, item, table.get(item, table.index))
    elif about is not None:
        voices = _learn(table, columns, about[learned], text, n_jobs)
    combine = partial(dualt.combine_votes, table, voices, **columns)
    files = {"verified": verified, "settled": settled}
    known: dict[str, Any] = {what: _true_classes(path, item, combine, what) for what, path in files.items() if path}
    found = combine(**known)
    names = {"item": item or "item", "label": label or "label"}
    if output is not None:
        frame = found.to_frame().round({"probability": 4, "agreement": 4}).rename(columns=names)
        if about is not None:
            taken = [*frame.columns, *columns.values(), *found.ballots.annotators, "annotator", "label"]
            frame = frame.join(about.drop(columns=taken, errors="ignore"), on=names["item"])
        dualt.io.write_table(output, frame)
    if annotators is not None:
        dualt.io.write_table(annotators, found.annotators.round(4))
    chosen = found.next_items(next_items)
    words = [str(output or "consensus.csv"), *words_of(label=names["label"], id=names["item"])]
    if report is not None:
        command = shlex.join(["dualt", "apply-review", *words, "suspects-review.csv", "-o", "corrected.csv"])
        _write_page(report, found, chosen, None if about is None or not text else about[text], command)
    if as_json:
        print_json(_content(found, chosen))
        return
    _show(found, chosen.tolist())
    steps = {}
    if output is None:
        page = [] if report is not None else ["--report", "page.html"]
        steps[again(None, "-o", "consensus.csv", *page)] = f"the consensus as a table{', and a page' * bool(page)}"
    elif verified is None:
        size = min(100, len(found.items))
        drawn = ["dualt", "audit", *words, *words_of(text=text, size=size), "-o", "audit.csv"]
        steps[shlex.join(drawn)] = f"check {size} items drawn at random"
        steps[again(None, "--verified", "audit.csv")] = "once its column 'true' is filled in"
    show_next(console(), steps, output, annotators, report)


def _read(
    data: Path, columns: dict[str, Any], items: Path | None, text: str | None, features: str | None
) -> tuple[DataFrame, dict[str, Any], DataFrame | None, list[str]]:
    """Return the votes, their columns, what is known of each item whoever votes, and what to learn of it."""
    from dualt.io.table_columns import Table, choose_columns
    from dualt.votes.tables import COLUMNS

    votes, about, learned = dualt.votes.read_votes(data, columns["label"]), None, [] if text is None else [text]
    item = columns["item"] or next((name for name in COLUMNS["item"] if name in votes.columns), None)
    if items is not None and not (text or features):
        raise InputError(f"Expected --text or --features, which to learn from in {items}, got neither.")
    if text or features:
        if item is None:
            raise InputError("Expected --item, the column that says which texts belong to a vote, got none.")
        source = votes if items is None else dualt.io.read_table(items)
        table = Table(items or data, source, tuple(map(str, source.columns)))
        for name in (item, *learned):
            table.position(name)
        if (features or "").endswith(".npy"):
            step = f"dualt probs consensus.csv --label {columns['label'] or 'label'} --features {features} -o probs.npy"
            raise InputError(f"Expected columns in --features, got {features}. Run {step}, and pass --probs probs.npy.")
        if features is not None:
            learned += [source.columns[place] for place in choose_columns(table, [item, *learned], features)[0]]
        several = source.astype(str).groupby(item)[[name for name in source if name != item]].nunique() > 1
        if (differ := several[learned].any()).any():
            name = differ.idxmax()
            raise InputError(
                f"Expected one value of {name!r} for each item, got several for {several[name].idxmax()!r}. Leave out"
                " what differs from vote to vote: it describes no item."
            )
        about = source.drop_duplicates(item).set_index(item).drop(columns=several.columns[several.any()])
    if about is not None and items is None:
        votes = votes.drop(columns=learned)
    elif about is not None:  # one file may have as numbers what the other has as text
        votes, about.index = votes.astype({item: str}), about.index.astype(str)
    return votes, columns | {"item": item}, about, learned


def _true_classes(path: Path, item: str | None, combine: Callable[[], dualt.Votes], what: str) -> tuple[Any, Any]:
    """Return items and their true classes; an index is the row of the consensus, which `combine` makes."""
    import pandas as pd

    table = dualt.io.read_table(path, guarded=True)
    truth = next((name for name in ("true", "new", "label") if name in table.columns), None)
    name = next((name for name in (item, "id", "item", "index") if name in table.columns), None)
    if truth is None or name is None:
        raise InputError(f"Expected columns {item or 'item'} (or index) and true in {path}, got {', '.join(table)}.")
    if what == "verified" and truth == "new":  # a review
        hint = "Draw them with `dualt audit`, or pass these with --settled."
        raise InputError(f"Expected items drawn with equal chances in {path}, got chosen ones. {hint}")
    table[truth] = table[truth].astype(str).str.strip()
    rows = table[table[truth] != ""]
    if rows.empty:
        raise InputError(f"Expected classes in the column {truth!r} of {path} for what was checked, got none.")
    items = rows[name]
    if name == "index":
        places, known = pd.to_numeric(items, errors="coerce"), combine().items
        wrong = items[~places.isin(range(len(known)))]
        if len(wrong):
            raise InputError(f"Expected rows from 0 to {len(known) - 1:,} as index in {path}, got {wrong.iloc[0]!r}.")
        items = pd.Series(known[places.astype(int)])
    return items.tolist(), rows[truth].tolist()


def _probabilities(path: Path, item: str | None, items: Iterable[Any]) -> Any:
    """Return probabilities as they are stored: an array, or a data frame with the items as its index."""
    import pandas as pd

    if path.suffix.lower() not in dualt.io.tables.TABLES:
        return dualt.io.load.load_array(path)
    if item is None:
        raise InputError(f"Expected --item, the column of items in {path}, got none.")
    table, known = dualt.io.open_table(path, item), {str(name): name for name in items}
    index = [known.get(name, name) for name in table.read_texts(item)]
    places, names = dualt.io.table_columns.choose_columns(table, [item])
    return pd.DataFrame(table.read_numbers(places), index, names)


def _learn(table: DataFrame, columns: Mapping[str, Any], about: DataFrame, text: str | None, n_jobs: int) -> DataFrame:
    """Return out-of-fold probabilities of models trained on the consensus of the votes."""
    import pandas as pd

    ballots = dualt.votes.tables.as_ballots(table, **columns)
    labels = pd.Series(ballots.classes[ballots.vote], ballots.items[ballots.item])
    if labels.index.has_duplicates:  # else one vote on each item is all there is to learn
        first = dualt.combine_votes(table, **columns)
        labels = pd.Series(first.labels, first.items)
    missing = labels.index.difference(about.index)
    if len(missing):
        raise InputError(f"Expected a row for each item that has votes, got none for {missing.tolist()[0]!r}.")
    with progress() as advance:
        fit = dualt.cross_fit(about.loc[labels.index], labels.to_numpy(), text=text, n_jobs=n_jobs, on_progress=advance)
    probs = pd.DataFrame(fit.pred_probs, labels.index, list(fit.class_names))
    return probs.reindex(columns=[*map(str, ballots.classes)], fill_value=0.0)  # some class may win no item


def _write_page(path: Path, found: dualt.Votes, chosen: Any, texts: Any, command: str) -> None:
    """Write the items to check as issues of the consensus, with each vote and its giver's quality beside them."""
    import numpy as np

    given, listed = found.codes, np.isin(found.items, chosen)
    others = np.where(np.eye(len(found.class_names), dtype=bool)[given], -1, found.posterior)
    second = {int(row): (int(others[row].argmax()), float(others[row].max())) for row in np.flatnonzero(listed)}
    notes: dict[int, list[str]] = {row: [] for row in second}
    quality = found.annotators.quality.to_numpy()
    if found.probs is not None:  # the voice that no annotator gave
        for row, said in notes.items():
            best = int(found.probs[row].argmax())
            said.append(f"Classifier: {found.class_names[best]} ({found.probs[row, best]:.0%})")
    for row, who, vote in zip(*found.ballots[:3], strict=True):
        if listed[row]:
            giver = f"{found.ballots.annotators[who]} (right {quality[who]:.0%} of the time)"
            notes[int(row)].append(f"{giver}: {found.class_names[vote]}")
    right = found.probability.astype(np.float32)
    by_pair = np.eye(len(found.class_names))[given].T @ found.posterior
    matrix, ids = np.asarray(found.consensus.transition), [str(name) for name in found.items]
    if texts is not None:
        texts = texts.reindex(found.items, fill_value="").astype(str).tolist()
    issues = dualt.LabelIssues(
        given, right, given, right, by_pair, listed, found.class_names, matrix, found.consensus, ids=ids, texts=texts
    )
    title = "Consensus of several annotators"
    issues.to_report(path, title=title, notes=notes, second=second, votes=found, command=command)


def _content(found: dualt.Votes, chosen: Any) -> dict[str, Any]:
    return {
        "n_items": len(found.items), "n_votes": len(found.ballots.item), "class_names": list(found.class_names),
        "summary": found.consensus.summary,
        "noise_rate": found.noise_rate, "noise_rate_interval": list(found.noise_rate_interval),
        "annotators": found.annotators.astype({"name": str}).to_dict("records"),
        "next_items": [str(name) for name in chosen], "consensus_transition": found.consensus.transition.tolist(),
        "warnings": [vars(notice) for notice in found.warnings],
    }  # fmt: skip


def _show(found: dualt.Votes, chosen: list[Any]) -> None:
    out, ballots, n_checked = console(), found.ballots, len(found.audited[0])
    checked = f", {n_checked:,} of them verified" if n_checked else ""
    out.print(
        f"\n[bold]{dualt.results.claims.headline(found.consensus)}[/]   [dim]{len(ballots.item):,} votes of"
        f" {len(ballots.annotators):,} annotators on {len(found.items):,} items{checked}[/]\n"
    )
    people = found.annotators.sort_values(["votes", "name"], ascending=[False, True])
    table = plain_table("", "annotator", "votes>", "quality>", "worst confusion")
    for one in people.head(_LISTED).itertuples():
        interval = "" if one.low != one.low else f" ({one.low:.0%} to {one.high:.0%})"
        said = f"{one.votes:,}", f"{one.quality:.0%}{interval}", escape(one.worst_confusion)
        table.add_row(escape(str(one.name)), *said)
    out.print(table)
    if len(people) > _LISTED:
        out.print(f" [dim]and {len(people) - _LISTED:,} more (--annotators people.csv)[/]")
    if chosen:
        out.print(f"\nCheck next: {escape(dualt.labels.shorten(chosen, _LISTED))}")
    show_notices(out, found.warnings)

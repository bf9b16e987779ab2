"""Two worlds: every estimator on labels that people gave, on noise that depends on the example, and on the class alone.

    python bench/real.py [--quick] [--seeds 300 301] [--cache FOLDER] [--only PREFIX] [--out real.json]

All takes some ten minutes of one core, `--quick` one or two: digits and a small table, no `joint` and no `hoc`.
Probabilities are out-of-fold; with --cache, or $DUALT_BENCH_CACHE, they are kept in a folder and computed once: empty
it when `worlds.py` changes. Results are written to --out as they come, and a run that finds some in its file goes on
from there. The problems, and where real labels are read from: `worlds.py`. Seeds are none that anything was tuned on.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from time import process_time
from typing import Any, TypeAlias

import numpy as np
from floor import Problem
from measure import machine
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import track
from sklearn.metrics import average_precision_score
from worlds import Case, cases, made

from dualt.errors import FileError
from dualt.estimators import DEFAULT_ESTIMATOR, ESTIMATORS, estimate_posterior
from dualt.files import atomic_write
from dualt.issues.scores import find_posterior_issues
from dualt.rows import as_posterior
from dualt.transition import l1_error

Record: TypeAlias = dict[str, Any]
Cell: TypeAlias = Callable[[list[Record]], str]

PEOPLE = ("CIFAR-10N", "LabelMe vote", "LabelMe majority")
MADE = ("annotators", "parts")
PLAIN = ("self-confidence", "normalised margin")
SLOW = ("joint", "hoc")
MANY_CLASSES = 100
N_PARTS = 15


def measure(case: Case, problem: Problem, *, quick: bool) -> Iterator[Record]:
    """Yield what every estimator, cleanlab and the plain rankings say of one problem."""
    probs, given, clean, truth = problem
    posterior = as_posterior(probs, given)
    wrong = given != clean
    base = {"group": case.group, "problem": case.name, "seed": case.seed, "true rate": float(wrong.mean())}
    for name, entry in ESTIMATORS.items():
        if name in SLOW and (quick or len(truth) >= MANY_CLASSES):
            continue
        began = process_time()
        options = {"clean_labels": clean} if entry.needs_clean_labels else {}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            estimate = estimate_posterior(posterior, name, **options)
            low, high = estimate.confidence_interval(0.95)
            issues = find_posterior_issues(posterior, estimate)
        yield {
            **base,
            "estimator": name,
            "error": l1_error(estimate.transition, truth, normalize=True),
            "rate": estimate.noise_rate,
            "range": [float(bound) for bound in estimate.noise_rate_interval()],
            "undecided": estimate.doubt,
            "coverage": float(np.mean((low <= truth + 1e-9) & (truth <= high + 1e-9))),
            "ap": precision_of(issues.ranking, wrong),
            "calibration": calibration_error(issues.probability_right, ~wrong),
            "seconds": process_time() - began,
        }
    yield from peers(base, problem)


def peers(base: Record, problem: Problem) -> Iterator[Record]:
    """Yield cleanlab's matrix and rate, and the rankings that need no matrix."""
    probs, given, clean, truth = problem
    if find_spec("cleanlab"):
        from cleanlab.count import compute_confident_joint, estimate_joint, estimate_latent

        joint = compute_confident_joint(given, probs)
        matrix = estimate_latent(joint, given)[1].T
        rate = 1 - float(np.trace(estimate_joint(given, probs, confident_joint=joint)))
        yield {
            **base,
            "estimator": "cleanlab",
            "error": float(np.abs(matrix - truth).sum() / len(truth)),
            "rate": rate,
        }
    rows = np.arange(len(given))
    own, others = probs[rows, given], probs.copy()
    others[rows, given] = -1
    for name, score in zip(PLAIN, (own, own - others.max(axis=1)), strict=True):
        # A margin is no probability.
        gap = calibration_error(score, given == clean) if score is own else None
        precision = precision_of(np.argsort(score, kind="stable"), given != clean)
        yield {**base, "estimator": name, "ap": precision, "calibration": gap}


def precision_of(ranking: NDArray[np.intp], wrong: NDArray[np.bool_]) -> float | None:
    """Return the average precision of finding wrong labels, the most suspect row first; None if there are none."""
    return float(average_precision_score(wrong[ranking], -np.arange(len(wrong)))) if wrong.any() else None


def calibration_error(probability: NDArray[Any], right: NDArray[np.bool_]) -> float:
    """Return the mean distance of a probability to the share that is right, over parts of equally many rows."""
    parts = np.array_split(np.argsort(probability, kind="stable"), N_PARTS)
    gaps = [len(rows) * abs(float(probability[rows].mean()) - float(right[rows].mean())) for rows in parts]
    return sum(gaps) / len(right)


def mean_of(records: list[Record], key: str) -> float | None:
    """Return the mean of what was measured; None if nothing was."""
    found = [record[key] for record in records if record.get(key) is not None]
    return float(np.mean(found)) if found else None


def shown(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def of(key: str) -> Cell:
    return lambda records: shown(mean_of(records, key))


def misjudged(records: list[Record]) -> str:
    gaps = [abs(record["rate"] - record["true rate"]) for record in records if "rate" in record]
    return shown(float(np.mean(gaps)) if gaps else None)


def held(records: list[Record]) -> str:
    """Return how often the range holds the true rate, and its mean width."""
    ranged = [record for record in records if record.get("range")]
    if not ranged:
        return "–"
    inside = sum(record["range"][0] <= record["true rate"] <= record["range"][1] for record in ranged)
    width = np.mean([record["range"][1] - record["range"][0] for record in ranged])
    return f"{inside} of {len(ranged)} ({width:.2f})"


def by_group(records: list[Record], cell: Cell, *, people: bool = False) -> Iterator[str]:
    """Yield a Markdown table: a row per estimator that has the figure, a column per group of problems."""
    groups = list(dict.fromkeys(record["group"] for record in records))
    means = [*groups, *(["people", "made"] if people else [])]
    yield f"| estimator | {' | '.join(means)} |"
    yield f"| --- |{' --- |' * len(means)}"
    for name in dict.fromkeys(record["estimator"] for record in records):
        own = {group: [r for r in records if (r["estimator"], r["group"]) == (name, group)] for group in groups}
        cells = [cell(own[group]) for group in groups]
        if people:
            cells += [over(own, PEOPLE), over(own, MADE)]
        if set(cells) != {"–"}:
            label = f"{name} (default)" if name == DEFAULT_ESTIMATOR else name
            yield f"| {label} | {' | '.join(cells)} |"


def over(own: dict[str, list[Record]], groups: tuple[str, ...]) -> str:
    """Return the error averaged over groups, each counting the same, if all of them were measured."""
    means = [mean_of(own.get(group, []), "error") for group in groups]
    known = [mean for mean in means if mean is not None]
    return shown(float(np.mean(known))) if len(known) == len(groups) else "–"


def of_default(records: list[Record]) -> Iterator[str]:
    """Yield the default's figures problem by problem, beside the confident joint's and the better plain ranking's."""
    yield (
        "| problem | runs | true rate | claimed | range | error | confident joint | AP | better plain AP"
        " | where we lose |"
    )
    yield f"|{' --- |' * 10}"
    for group, problem in dict.fromkeys((record["group"], record["problem"]) for record in records):
        here = [r for r in records if (r["group"], r["problem"]) == (group, problem)]
        own, joint, *plain = (
            [r for r in here if r["estimator"] == name] for name in (DEFAULT_ESTIMATOR, "confident-joint", *PLAIN)
        )
        error, rival = mean_of(own, "error"), mean_of(joint, "error")
        ap = mean_of(own, "ap")
        better = max((value for value in (mean_of(runs, "ap") for runs in plain) if value is not None), default=None)
        ranges = [record["range"] for record in own if record["range"]]
        spans = "–".join(f"{bound:.2f}" for bound in np.mean(ranges, axis=0)) if ranges else "none"
        spans += "*" * any(record.get("undecided") for record in own)
        rates = [shown(mean_of(own, key)) for key in ("true rate", "rate")]
        loses = ", ".join(lost(own, error, rival, ap, better))
        cells = [*rates, spans, *map(shown, (error, rival, ap, better)), loses]
        yield f"| {problem} | {len(own)} | {' | '.join(cells)} |"


def lost(
    own: list[Record], error: float | None, rival: float | None, ap: float | None, better: float | None
) -> Iterator[str]:
    """Yield what is worse than it should be: error by a tenth, AP by a hundredth, a range that misses the rate."""
    if error is not None and rival is not None and error > 1.1 * rival:
        yield "error"
    if ap is not None and better is not None and ap < better - 0.01:
        yield "AP"
    ranged = [record for record in own if record["range"]]
    if any(not record["range"][0] <= record["true rate"] <= record["range"][1] for record in ranged):
        yield "range"


def summary(records: list[Record]) -> Iterator[str]:
    """Yield how the default fares against what was aimed at, where everything for it was measured."""
    own = [record for record in records if record["estimator"] == DEFAULT_ESTIMATOR]
    by = {group: [r for r in own if r["group"] == group] for group in dict.fromkeys(r["group"] for r in own)}
    yield f"- people (CIFAR-10N and both LabelMe): error {over(by, PEOPLE)}, aimed at .105"
    yield f"- class alone: error {shown(mean_of(by.get('class alone', []), 'error'))}, aimed at .09"
    ranged = [record for record in own if record["group"] in (*PEOPLE, *MADE)]
    yield f"- ranges that hold the true rate, people and made: {held(ranged)}, aimed at a mean width of .15"
    weak = by.get("CIFAR-100 weak", [])
    yield f"- CIFAR-100 weak: error {shown(mean_of(weak, 'error'))}, aimed at .45; AP {of('ap')(weak)}, aimed at .84"


def page(records: list[Record]) -> Iterator[str]:
    """Yield everything that is printed, in Markdown."""
    yield "Σ|T − T̂| / C; people is the mean of CIFAR-10N and both LabelMe, made that of annotators and parts:\n"
    yield from by_group(records, of("error"), people=True)
    yield "\nThe default, against what was aimed at:\n"
    yield from summary(records)
    for title, cell in (
        ("Claimed noise rate, mean distance to the true one", misjudged),
        ("Range of the noise rate: how often it holds the true one (mean width)", held),
        ("Share of entries that the 95 % interval holds", of("coverage")),
        ("Average precision of ranking wrong labels", of("ap")),
        ("Calibration error of `probability_right`", of("calibration")),
    ):
        lines = list(by_group(records, cell))
        yield f"\n{title}:\n"
        yield from lines if len(lines) > 2 else ["No estimator says it."]
    yield "\nThe default, problem by problem; a * where it claims no rate and asks for an audit:\n"
    yield from of_default(records)


def run(options: argparse.Namespace, console: Console) -> list[Record]:
    """Measure all problems whose data are here and whose results the file lacks; say which data are not here."""
    records: list[Record] = json.loads(options.out.read_text()) if options.out and options.out.exists() else []
    done = {(record["problem"], record["seed"]) for record in records}
    missing: dict[str, str] = {}
    chosen = [case for case in cases(options.seeds, options.draws, quick=options.quick) if options.only in case.name]
    for case in track(
        [case for case in chosen if (case.name, case.seed) not in done], "problems", console=Console(stderr=True)
    ):
        try:
            problem = made(case, options.cache, quick=options.quick)
        except FileError as cause:
            missing.setdefault(
                case.name if case.group not in (*MADE, "class alone") else case.name.split()[0], str(cause)
            )
            continue
        records += measure(case, problem, quick=options.quick)
        if options.out:
            with atomic_write(options.out) as stream:
                json.dump(records, stream, indent=1)
    for name, reason in missing.items():
        console.print(f"{name} is left out: {reason}\n", soft_wrap=True)
    return records


def main() -> None:
    """Measure, write and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="digits and a small table, one seed, no joint, no hoc")
    parser.add_argument(
        "--seeds", nargs="+", type=int, default=[300, 301], help="of made noise; the class's: the first"
    )
    parser.add_argument("--draws", nargs="+", type=int, default=[0, 1, 2], help="of LabelMe")
    parser.add_argument("--only", default="", help="problems whose name contains this")
    cache = os.environ.get("DUALT_BENCH_CACHE")
    parser.add_argument("--cache", type=Path, default=Path(cache) if cache else None, help="folder of problems")
    parser.add_argument("--out", type=Path, help="JSON file of the results")
    options = parser.parse_args()
    if options.quick:
        options.seeds = options.seeds[:1]
    console = Console(highlight=False, markup=False)
    console.print(f"{machine()}; made noise: seeds {' '.join(map(str, options.seeds))}\n", soft_wrap=True)
    began = process_time()
    records = run(options, console)
    if not records:
        sys.exit("No problem could be measured.")
    for line in page(records):
        console.print(line, soft_wrap=True)
    Console(stderr=True).print(f"{(process_time() - began) / 60:.1f} minutes of one core")


if __name__ == "__main__":
    main()

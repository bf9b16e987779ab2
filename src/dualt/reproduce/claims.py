"""What the paper claims of its figures and tables, and whether the records agree."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from dualt.reproduce.results import Result

AGREES, IN_PART, DISAGREES, NOT_RUN = "agrees", "in part", "does not agree", "not run"
# What we take "very small" and "approximately doubled" to mean.
_SMALL, _DOUBLED = 0.05, (1.5, 2.5)
_SMALL_DATA = ("mnist", "fashion-mnist", "cifar10")


@dataclass(frozen=True)
class Verdict:
    """A sentence of the paper, whether the records agree with it, and what they say."""

    claim: str
    verdict: str
    evidence: str


# From results to (holds or not, per comparison) and a remark.
Check: TypeAlias = Callable[[Sequence[Result]], tuple[list[bool], str]]


def verdicts_of(name: str, results: Sequence[Result]) -> list[Verdict]:
    """Return the verdict on every claim that the paper makes of an experiment; none for experiments of our own."""
    known = [result for result in results if result.mean is not None]
    return [_verdict(claim, check, known) for claim, check in _CLAIMS.get(name, ())]


def _verdict(claim: str, check: Check, results: Sequence[Result]) -> Verdict:
    holds, remark = check(results)
    if not holds:
        return Verdict(claim, NOT_RUN, "–")
    word = AGREES if all(holds) else IN_PART if 2 * sum(holds) >= len(holds) else DISAGREES
    return Verdict(claim, word, f"{sum(holds)} of {len(holds)}" + (f"; {remark}" if remark else ""))


Points: TypeAlias = dict[tuple[str, str, float], dict[str, float]]


def _points(results: Iterable[Result]) -> Points:
    """Return means by data set, noise and size, and in these by estimator or else by quantity."""
    points: Points = {}
    for result in results:
        own = points.setdefault((result.dataset, result.noise, result.size), {})
        own[result.estimator or result.quantity] = result.mean or 0.0
    return points


def _compare(smaller: str, larger: str, datasets: Sequence[str] = ()) -> Check:
    """Return a check that one error is smaller than another at every point."""

    def check(results: Sequence[Result]) -> tuple[list[bool], str]:
        points = {
            key: own
            for key, own in _points(results).items()
            if {smaller, larger} <= own.keys() and (not datasets or key[0] in datasets)
        }
        missed = [f"{_where(key)} ({own[smaller]:.3f}, {own[larger]:.3f})" for key, own in points.items()
                  if own[smaller] >= own[larger]]  # fmt: skip
        return [own[smaller] < own[larger] for own in points.values()], "not " + ", ".join(missed) if missed else ""

    return check


def _where(key: tuple[str, str, float]) -> str:
    dataset, noise, size = key
    words = (dataset if dataset != "synthetic" else "", noise, f"{size:,.0f}" if size > 1 else f"{size:.0%}")
    return " ".join(filter(None, words))


def _noisy_is_harder(results: Sequence[Result]) -> tuple[list[bool], str]:
    errors = {(key[1], key[2]): own["posterior error"] for key, own in _points(results).items()}
    pairs = [(noise, size) for noise, size in errors if noise != "clean" and ("clean", size) in errors]
    missed = [f"{noise} {size:,.0f} ({errors[noise, size]:.3f}, clean {errors['clean', size]:.3f})"
              for noise, size in pairs if errors[noise, size] <= errors["clean", size]]  # fmt: skip
    return [errors[pair] > errors["clean", pair[1]] for pair in pairs], "not " + ", ".join(missed) if missed else ""


def _at_ends(results: Sequence[Result]) -> list[tuple[str, str, str, float, float]]:
    """Return data set, noise, estimator of the paper, and the errors at the smallest and the largest size."""
    points = _points(results)
    ends: list[tuple[str, str, str, float, float]] = []
    for dataset, noise in dict.fromkeys(key[:2] for key in points):
        sizes = sorted(size for d, n, size in points if (d, n) == (dataset, noise))
        first, last = (points[dataset, noise, size] for size in (sizes[0], sizes[-1]))
        names = [name for name in ("t", "dual-t") if name in first and name in last]
        ends += [(dataset, noise, name, first[name], last[name]) for name in names if len(sizes) > 1]
    return ends


def _falls(results: Sequence[Result]) -> tuple[list[bool], str]:
    ends = _at_ends(results)
    words = [f"{name} {noise} {first:.3f} → {last:.3f}" for _, noise, name, first, last in ends]
    return [last < first for *_, first, last in ends], ", ".join(words)


def _t_doubles(results: Sequence[Result]) -> tuple[list[bool], str]:
    last = {noise: error for _, noise, name, _, error in _at_ends(results) if name == "t"}
    if not {"sym-20", "pair-45"} <= last.keys():
        return [], ""
    ratio = last["pair-45"] / last["sym-20"]
    return [_DOUBLED[0] <= ratio <= _DOUBLED[1]], f"{last['pair-45']:.3f} / {last['sym-20']:.3f} = {ratio:.2f}"


def _dual_t_below(limit: float) -> Check:
    def check(results: Sequence[Result]) -> tuple[list[bool], str]:
        last = {noise: error for _, noise, name, _, error in _at_ends(results) if name == "dual-t"}
        return [error < limit for error in last.values()], ", ".join(f"{n} {e:.3f}" for n, e in last.items())

    return check


def _delta2_small(results: Sequence[Result]) -> tuple[list[bool], str]:
    values = [own["delta2"] for own in _points(results).values()]
    return [value < _SMALL for value in values], f"largest {max(values):.3f}" if values else ""


def _assumption(results: Sequence[Result]) -> tuple[list[bool], str]:
    points = _points(results)
    broken = [_where(key) for key, own in points.items() if own["delta1"] < own["delta2"] + own["delta3"]]
    holds = [own["delta1"] >= own["delta2"] + own["delta3"] for own in points.values()]
    return holds, "not " + ", ".join(broken) if broken else ""


def _delta3_of_pair(larger: bool) -> Check:
    def check(results: Sequence[Result]) -> tuple[list[bool], str]:
        own = {(key[1], key[2]): values["delta3"] for key, values in _points(results).items()}
        pairs = [
            (own["pair-45", n], own["sym-20", n]) for noise, n in own if noise == "sym-20" and ("pair-45", n) in own
        ]
        return [(pair > sym) == larger for pair, sym in pairs], ""

    return check


def _orders(results: Sequence[Result]) -> list[tuple[Result, Result]]:
    """Return every method's results with T and with dual-T."""
    with_dual_t = {(r.dataset, r.noise, r.size, r.method): r for r in results if r.estimator == "dual-t"}
    with_t = {(r.dataset, r.noise, r.size, r.method): r for r in results if r.estimator == "t"}
    return [(result, with_dual_t[key]) for key, result in with_t.items() if key in with_dual_t]


def _difference(pair: tuple[Result, Result]) -> float:
    return (pair[1].mean or 0.0) - (pair[0].mean or 0.0)


def _cell(result: Result) -> str:
    return " ".join(filter(None, (result.dataset, result.noise, result.estimator, result.method)))


def _dual_t_better(results: Sequence[Result]) -> tuple[list[bool], str]:
    return [_difference(pair) > 0 for pair in _orders(results)], ""


def _orders_as_published(results: Sequence[Result]) -> tuple[list[bool], str]:
    pairs = [pair for pair in _orders(results) if pair[0].published and pair[1].published]
    holds = [(_difference(pair) > 0) == (_published(pair) > 0) for pair in pairs]
    missed = [
        f"{_cell(pair[0]).replace(' t ', ' ')} ({_difference(pair):+.2f}, published {_published(pair):+.2f})"
        for pair, agrees in zip(pairs, holds, strict=True)
        if not agrees
    ]
    return holds, "not " + ", ".join(missed) if missed else ""


def _published(pair: tuple[Result, Result]) -> float:
    first, second = (result.published.mean if result.published else 0.0 for result in pair)
    return second - first


def _levels(results: Sequence[Result]) -> tuple[list[bool], str]:
    compared = [result for result in results if result.published is not None]
    missed = [f"{_cell(result)} ({result.difference:+.2f})" for result in compared if not is_near(result)]
    return [is_near(result) for result in compared], "not " + ", ".join(missed) if missed else ""


def is_near(result: Result) -> bool:
    """Tell whether an accuracy is within one point, or one published or measured deviation, of the published."""
    sd = max(1.0, result.sd or 0.0, (result.published.sd if result.published else None) or 0.0)
    return result.difference is not None and abs(result.difference) <= sd


def _best_is_co_teaching(results: Sequence[Result]) -> tuple[list[bool], str]:
    columns: dict[str, list[Result]] = {}
    for result in results:
        if result.noise == "sym-20":
            columns.setdefault(result.dataset, []).append(result)
    best = [max(own, key=lambda r: r.mean or 0.0) for own in columns.values() if _has_all_methods(own)]
    holds = [(result.estimator, result.method) == ("dual-t", "co-teaching") for result in best]
    return holds, ", ".join(f"{r.dataset}: {' '.join(filter(None, (r.estimator, r.method)))}" for r in best)


def _has_all_methods(results: Sequence[Result]) -> bool:
    return {"co-teaching", "mentornet", "forward", "revision"} <= {result.method for result in results}


_T_AND_DT = "The error of dual-T is continuously smaller than that of T"
_ASSUMPTION = (
    ("Δ2 is very small and can be ignored (here: below 0.05)", _delta2_small),
    ("Δ3 is smaller than Δ1", _compare("delta3", "delta1")),
    ("Assumption 1 holds: Δ1 ≥ Δ2 + Δ3", _assumption),
)
_CLAIMS: dict[str, Sequence[tuple[str, Check]]] = {
    "figure1": (("The noisy posterior has a larger error than the clean one", _noisy_is_harder),),
    "figure2": (
        (_T_AND_DT, _compare("dual-t", "t")),
        ("Both errors fall as the sample grows", _falls),
        ("With all samples T's error on Pair-45 is about double that on Sym-20 (here: 1.5 to 2.5 times)", _t_doubles),
        ("With all samples dual-T's error is below 0.1 for every noise", _dual_t_below(0.1)),
    ),
    "figure3": (
        (f"{_T_AND_DT} on MNIST, F-MNIST and CIFAR10", _compare("dual-t", "t", _SMALL_DATA)),
        ("On CIFAR100 dual-T is better with large samples", _compare("dual-t", "t", ("cifar100",))),
    ),
    "figure4": (
        *_ASSUMPTION,
        ("With logistic loss Δ3 is larger on Pair-45 than on Sym-20", _delta3_of_pair(larger=True)),
    ),
    "figure5": (
        *_ASSUMPTION,
        ("With cross entropy Δ3 is smaller on Pair-45 than on Sym-20", _delta3_of_pair(larger=False)),
    ),
    "table1": (
        ("Methods are better with dual-T than with T for most of the experiments", _dual_t_better),
        ("T against dual-T: the order is the published one", _orders_as_published),
        ("Accuracies are within one point or one deviation of the published", _levels),
        ("DT Coteaching is the best under Sym-20", _best_is_co_teaching),
    ),
    "table2": (
        ("T against dual-T: the order is the published one", _orders_as_published),
        ("Accuracies are within one point or one deviation of the published", _levels),
    ),
}  # fmt: skip

"""The claims of the paper about its figures and tables, and whether the records agree."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np

from dualt.reproduce.experiments import Experiment
from dualt.reproduce.results import Result

# Two epochs on a hundred samples prove nothing.
_NOT_JUDGED_PROFILES = ("smoke",)
# What we take "very small" and "approximately doubled" to mean, and the paper's limit for dual-T.
_SMALL, _DOUBLED, _LOW = 0.05, (1.5, 2.5), 0.1
_SMALL_DATA = ("mnist", "fashion-mnist", "cifar10")
# Without these there is no best of all methods.
_RIVALS = {"co-teaching", "mentornet", "forward", "revision"}


class Verdict(NamedTuple):
    """A claim of the paper, whether the records agree with it, and the evidence."""

    claim: str
    verdict: str
    evidence: str


# From results to comparisons: whether each holds, and a description.
Comparisons: TypeAlias = Iterable[tuple[bool, str]]
Check: TypeAlias = Callable[[Sequence[Result]], Comparisons]


def verdicts_of(experiment: Experiment, results: Sequence[Result]) -> list[Verdict]:
    """Return the verdict on every claim of the paper about an experiment."""
    known, verdicts = [result for result in results if result.mean is not None], []
    for claim, check in _CLAIMS[experiment.name]:
        if experiment.profile in _NOT_JUDGED_PROFILES:
            verdicts.append(Verdict(claim, "not judged at this profile", "–"))
            continue
        compared = [*check(known)]
        if not compared:
            verdicts.append(Verdict(claim, "not run", "–"))
            continue
        n_right, every = sum(holds for holds, _ in compared), check in _LIST_ALL
        enough = 2 * n_right > len(compared) if check in _OF_MOST else n_right == len(compared)
        word = "agrees" if enough else "in part" if 2 * n_right >= len(compared) else "does not agree"
        listed = ", ".join(words for holds, words in compared if words and (every or not holds))
        remark = f"; {listed if every else f'not {listed}'}" if listed else ""
        verdicts.append(Verdict(claim, word, f"{n_right} of {len(compared)}{remark}"))
    return verdicts


Points: TypeAlias = dict[tuple[str, str, float], dict[str, float]]


def _points(results: Iterable[Result]) -> Points:
    """Return means by (data set, noise, size), then by estimator or quantity."""
    points: Points = {}
    for result in results:
        own = points.setdefault((result.dataset, result.noise, result.size), {})
        own[result.estimator or result.quantity] = result.mean or 0.0
    return points


def _compare(smaller: str, larger: str, datasets: Sequence[str] = ()) -> Check:
    """Return a check that one error is smaller than another at every point."""
    return lambda results: (
        (own[smaller] < own[larger], f"{_where(key)} ({own[smaller]:.3f}, {own[larger]:.3f})")
        for key, own in _points(results).items()
        if {smaller, larger} <= own.keys() and (not datasets or key[0] in datasets)
    )


def _large_samples_of_cifar100(results: Sequence[Result]) -> Comparisons:
    own = [result for result in results if result.dataset == "cifar100"]
    most = max((result.n_samples or 0 for result in own), default=0)
    return _compare("dual-t", "t")([result for result in own if result.n_samples == most])


def _where(key: tuple[str, str, float]) -> str:
    dataset, noise, size = key
    words = (dataset if dataset != "synthetic" else "", noise, f"{size:,.0f}" if size > 1 else f"{size:.0%}")
    return " ".join(filter(None, words))


def _noisy_is_harder(results: Sequence[Result]) -> Comparisons:
    errors = {(noise, size): own["posterior error"] for (_, noise, size), own in _points(results).items()}
    for (noise, size), error in errors.items():
        clean = errors.get(("clean", size))
        if noise != "clean" and clean is not None:
            yield error > clean, f"{noise} {size:,.0f} ({error:.3f}, clean {clean:.3f})"


def _at_ends(results: Sequence[Result]) -> Iterator[tuple[str, str, float, float]]:
    """Yield noise, estimator of the paper, and the errors at the smallest and the largest size, per data set."""
    points = _points(results)
    for dataset, noise in dict.fromkeys(key[:2] for key in points):
        sizes = sorted(size for d, n, size in points if (d, n) == (dataset, noise))
        first, last = (points[dataset, noise, size] for size in (sizes[0], sizes[-1]))
        for name in ("t", "dual-t"):
            if len(sizes) > 1 and name in first and name in last:
                yield noise, name, first[name], last[name]


def _falls(results: Sequence[Result]) -> Comparisons:
    for noise, name, first, last in _at_ends(results):
        yield last < first, f"{name} {noise} {first:.3f} → {last:.3f}"


def _t_doubles(results: Sequence[Result]) -> Comparisons:
    errors = {noise: last for noise, name, _, last in _at_ends(results) if name == "t"}
    if {"sym-20", "pair-45"} <= errors.keys():
        sym, pair = errors["sym-20"], errors["pair-45"]
        yield _DOUBLED[0] <= pair / sym <= _DOUBLED[1], f"{pair:.3f} / {sym:.3f} = {pair / sym:.2f}"


def _dual_t_low(results: Sequence[Result]) -> Comparisons:
    return ((last < _LOW, f"{noise} {last:.3f}") for noise, name, _, last in _at_ends(results) if name == "dual-t")


def _delta2_small(results: Sequence[Result]) -> Comparisons:
    values = sorted((own["delta2"] for own in _points(results).values()), reverse=True)
    return ((value < _SMALL, "" if number else f"largest {value:.3f}") for number, value in enumerate(values))


def _assumption(results: Sequence[Result]) -> Comparisons:
    points = _points(results).items()
    return ((own["delta1"] >= own["delta2"] + own["delta3"], _where(key)) for key, own in points)


def _delta3_of_pair(larger: bool) -> Check:
    def check(results: Sequence[Result]) -> Comparisons:
        own = {key[1:]: values["delta3"] for key, values in _points(results).items()}
        pairs = ((own.get(("pair-45", size)), sym) for (noise, size), sym in own.items() if noise == "sym-20")
        return (((pair > sym) == larger, "") for pair, sym in pairs if pair is not None)

    return check


def _orders(results: Sequence[Result]) -> Iterator[tuple[Result, Result, float]]:
    """Yield every method's results with T and with dual-T, and how much better the second is."""
    with_dual_t = {(r.dataset, r.noise, r.size, r.method): r for r in results if r.estimator == "dual-t"}
    for first in (r for r in results if r.estimator == "t"):
        second = with_dual_t.get((first.dataset, first.noise, first.size, first.method))
        if second is not None:
            yield first, second, (second.mean or 0.0) - (first.mean or 0.0)


def _cell(result: Result) -> str:
    return " ".join(filter(None, (result.dataset, result.noise, result.estimator, result.method)))


def _dual_t_better(results: Sequence[Result]) -> Comparisons:
    return ((gain > 0, "") for *_, gain in _orders(results))


def _orders_as_published(results: Sequence[Result]) -> Comparisons:
    for first, second, gain in _orders(results):
        if first.published and second.published:
            printed = second.published.mean - first.published.mean
            name = _cell(first).replace(" t ", " ")
            same = bool(np.sign(round(gain, 9)) == np.sign(round(printed, 9)))  # without rounding errors
            yield same, f"{name} ({gain:+.2f}, published {printed:+.2f})"


def _levels(results: Sequence[Result]) -> Comparisons:
    for result in results:
        if result.published and result.difference is not None:
            # Within one point, or one published or measured deviation.
            margin = max(1.0, result.sd or 0.0, result.published.sd or 0.0)
            yield abs(result.difference) <= margin, f"{_cell(result)} ({result.difference:+.2f})"


def _best_is_co_teaching(results: Sequence[Result]) -> Comparisons:
    for dataset in dict.fromkeys(result.dataset for result in results):
        own = [result for result in results if (result.dataset, result.noise) == (dataset, "sym-20")]
        if {result.method for result in own} >= _RIVALS:
            best = max(own, key=lambda r: r.mean or 0.0)
            name = " ".join(filter(None, (best.estimator, best.method)))
            yield name == "dual-t co-teaching", f"{dataset}: {name}"


_T_AND_DT = "The error of dual-T is continuously smaller than that of T"
# Checks that list every comparison; the others list those that do not hold.
_LIST_ALL = (_falls, _t_doubles, _dual_t_low, _delta2_small, _best_is_co_teaching)
# Claims about most comparisons: they agree if more than half hold.
_OF_MOST = (_dual_t_better,)
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
        ("With all samples dual-T's error is below 0.1 for every noise", _dual_t_low),
    ),
    "figure3": (
        (f"{_T_AND_DT} on MNIST, F-MNIST and CIFAR10", _compare("dual-t", "t", _SMALL_DATA)),
        ("On CIFAR100 dual-T is better with large samples", _large_samples_of_cifar100),
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

"""The claims of the paper about its figures and tables, and whether the records agree."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeAlias

import numpy as np
import pandas as pd

from dualt.reproduce.experiments import Experiment

# What we take "very small" and "approximately doubled" to mean, and the paper's limit for dual-T.
_SMALL, _DOUBLED, _LOW = 0.05, (1.5, 2.5), 0.1
_SMALL_DATA = ("mnist", "fashion-mnist", "cifar10")
# Without these there is no best of all methods.
_RIVALS = {"co-teaching", "mentornet", "forward", "revision"}

# From results with a mean to comparisons: whether each holds, and a description.
Comparisons: TypeAlias = Iterable[tuple[bool, str]]
Check: TypeAlias = Callable[[pd.DataFrame], Comparisons]


def verdicts_of(experiment: Experiment, results: pd.DataFrame) -> pd.DataFrame:
    """Return the paper's claims about an experiment, whether the records agree with each, and the evidence here."""
    known, verdicts = results[results["mean"].notna()], []
    for claim, check in _CLAIMS[experiment.name]:
        judged = experiment.profile != "smoke"  # two epochs on a hundred samples prove nothing
        compared = [*check(known)] if judged and len(known) else []
        if not compared:
            verdicts.append((claim, "not run" if judged else "not judged at this profile", "–"))
            continue
        n_right, every = sum(holds for holds, _ in compared), check in _LIST_ALL
        enough = 2 * n_right > len(compared) if check in _OF_MOST else n_right == len(compared)
        word = "agrees" if enough else "in part" if 2 * n_right >= len(compared) else "does not agree"
        listed = ", ".join(words for holds, words in compared if words and (every or not holds))
        remark = f"; {listed if every else f'not {listed}'}" if listed else ""
        verdicts.append((claim, word, f"{n_right} of {len(compared)}{remark}"))
    return pd.DataFrame(verdicts, columns=["claim", "verdict", "here"])


def _points(results: pd.DataFrame) -> pd.DataFrame:
    """Return means by (data set, noise, size), with a column per estimator or quantity."""
    named = results.assign(name=results.estimator.where(results.estimator != "", results.quantity))
    return named.pivot_table("mean", ["dataset", "noise", "size"], "name", sort=False)


def _where(dataset: str, noise: str, size: float) -> str:
    words = (dataset if dataset != "synthetic" else "", noise, f"{size:,.0f}" if size > 1 else f"{size:.0%}")
    return " ".join(filter(None, words))


def _compare(smaller: str, larger: str, datasets: Sequence[str] = ()) -> Check:
    """Return a check that one error is smaller than another at every point."""

    def check(results: pd.DataFrame) -> Comparisons:
        points = _points(results).reindex(columns=[smaller, larger]).dropna()
        for key, (low, high) in points.iterrows():
            if not datasets or key[0] in datasets:
                yield low < high, f"{_where(*key)} ({low:.3f}, {high:.3f})"

    return check


def _large_samples_of_cifar100(results: pd.DataFrame) -> Comparisons:
    own = results[results.dataset == "cifar100"]
    return _compare("dual-t", "t")(own[own.n_samples == own.n_samples.max()]) if len(own) else ()


def _noisy_is_harder(results: pd.DataFrame) -> Comparisons:
    errors = _points(results)["posterior error"].droplevel("dataset")
    for (noise, size), error in errors.items():
        clean = errors.get(("clean", size))
        if noise != "clean" and clean is not None:
            yield error > clean, f"{noise} {size:,.0f} ({error:.3f}, clean {clean:.3f})"


def _at_ends(results: pd.DataFrame) -> Iterator[tuple[str, str, float, float]]:
    """Yield noise, estimator of the paper, and the errors at the smallest and the largest size, per data set."""
    points = _points(results).reindex(columns=["t", "dual-t"])
    for (_, noise), own in points.groupby(level=["dataset", "noise"], sort=False):
        first, last = own.sort_index().iloc[0], own.sort_index().iloc[-1]
        for name in ("t", "dual-t"):
            if len(own) > 1 and not np.isnan(first[name] + last[name]):
                yield noise, name, first[name], last[name]


def _falls(results: pd.DataFrame) -> Comparisons:
    for noise, name, first, last in _at_ends(results):
        yield last < first, f"{name} {noise} {first:.3f} → {last:.3f}"


def _t_doubles(results: pd.DataFrame) -> Comparisons:
    errors = {noise: last for noise, name, _, last in _at_ends(results) if name == "t"}
    if {"sym-20", "pair-45"} <= errors.keys():
        sym, pair = errors["sym-20"], errors["pair-45"]
        yield _DOUBLED[0] <= pair / sym <= _DOUBLED[1], f"{pair:.3f} / {sym:.3f} = {pair / sym:.2f}"


def _dual_t_low(results: pd.DataFrame) -> Comparisons:
    return ((last < _LOW, f"{noise} {last:.3f}") for noise, name, _, last in _at_ends(results) if name == "dual-t")


def _delta2_small(results: pd.DataFrame) -> Comparisons:
    values = sorted(_points(results).delta2, reverse=True)
    return ((value < _SMALL, "" if number else f"largest {value:.3f}") for number, value in enumerate(values))


def _assumption(results: pd.DataFrame) -> Comparisons:
    return ((own.delta1 >= own.delta2 + own.delta3, _where(*key)) for key, own in _points(results).iterrows())


def _delta3_of_pair(larger: bool) -> Check:
    def check(results: pd.DataFrame) -> Comparisons:
        by_noise = _points(results).delta3.unstack("noise").reindex(columns=["sym-20", "pair-45"]).dropna()
        return (((pair > sym) == larger, "") for sym, pair in by_noise.to_numpy())

    return check


def _orders(results: pd.DataFrame) -> pd.DataFrame:
    """Return every method's results with T beside those with dual-T, and the `gain` of the second."""
    with_t, with_dual_t = (results[results.estimator == name] for name in ("t", "dual-t"))
    both = with_t.merge(with_dual_t, on=["dataset", "noise", "size", "method"], suffixes=("", "_dual"))
    return both.assign(gain=both.mean_dual - both["mean"], printed=both.paper_mean_dual - both.paper_mean)


def _dual_t_better(results: pd.DataFrame) -> Comparisons:
    return ((gain > 0, "") for gain in _orders(results).gain)


def _orders_as_published(results: pd.DataFrame) -> Comparisons:
    for own in _orders(results).dropna(subset="printed").itertuples():
        same = np.sign(round(own.gain, 9)) == np.sign(round(own.printed, 9))  # without rounding errors
        yield bool(same), f"{own.dataset} {own.noise} {own.method} ({own.gain:+.2f}, published {own.printed:+.2f})"


def _levels(results: pd.DataFrame) -> Comparisons:
    for own in results.dropna(subset="difference").itertuples():
        # Within one point, or one published or measured deviation.
        margin = np.nanmax([1.0, own.sd, own.paper_sd])
        name = " ".join(filter(None, (own.dataset, own.noise, own.estimator, own.method)))
        yield abs(own.difference) <= margin, f"{name} ({own.difference:+.2f})"


def _best_is_co_teaching(results: pd.DataFrame) -> Comparisons:
    for dataset, own in results[results.noise == "sym-20"].groupby("dataset", sort=False):
        if {*own.method} >= _RIVALS:
            best = own.loc[own["mean"].idxmax()]
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

"""The claims of the paper about its figures and tables, and whether the records agree."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from dualt.reproduce.experiments import Experiment

# By how much each comparison of a claim holds: it does above 0, and is unknown if NaN. The index says what is compared.
Margins: TypeAlias = "pd.Series[float]"
# From the points of a figure, or the cells of a table.
Check: TypeAlias = Callable[[pd.DataFrame], Margins]


def verdicts_of(experiment: Experiment, results: pd.DataFrame) -> pd.DataFrame:
    """Return the paper's claims about an experiment, whether the records agree with each, and where they do not."""
    judged = experiment.profile != "smoke"  # two epochs on a hundred samples prove nothing
    known = judged and results["mean"].notna().any()
    measured = results.set_index(["dataset", "noise", "method", "estimator", "size"])
    if known and experiment.shows != "accuracies":
        measured = _points(results)
    verdicts, nothing = [], pd.Series(dtype=float)
    for claim, check in _CLAIMS[experiment.name]:
        margins = check(measured).dropna() if known else nothing
        if not len(margins):
            verdicts.append((claim, "not run" if judged else "not judged at this profile", "–"))
            continue
        holds = margins > 0
        enough = holds.mean() > 0.5 if check is _dual_t_better else holds.all()  # that claim is about most of them
        word = "agrees" if enough else "in part" if holds.mean() >= 0.5 else "does not agree"
        failing = ", ".join(f"{_words(key)} (by {abs(margin):.3f})" for key, margin in margins[~holds].items())
        verdicts.append((claim, word, f"{holds.sum()} of {len(holds)}" + (f"; not {failing}" if failing else "")))
    return pd.DataFrame(verdicts, columns=["claim", "verdict", "here"])


def _points(results: pd.DataFrame) -> pd.DataFrame:
    """Return means by (data set, noise, size) in order of size, with a column per estimator or quantity."""
    named = results.assign(name=results.estimator.where(results.estimator != "", results.quantity))
    points = named.pivot_table("mean", ["dataset", "noise", "size"], "name", sort=False)
    names = ["t", "dual-t", "posterior error", "delta1", "delta2", "delta3"]
    return points.reindex(columns=names).sort_index(level="size", sort_remaining=False)


def _words(key: Any) -> str:
    """Return what was compared: names, and a sample size unless it is the whole data set."""
    parts = [key] if isinstance(key, str) else key
    sizes = [f"{part:,.0f}" if part > 1 else f"{part:.0%}" for part in parts if isinstance(part, float) and part != 1]
    return " ".join([*(part for part in parts if isinstance(part, str) and part), *sizes])


def _dual_t_smaller(points: pd.DataFrame) -> Margins:
    return points.t - points["dual-t"]


def _on_cifar100(points: pd.DataFrame) -> Margins:
    own = points[points.index.get_level_values("dataset") == "cifar100"]
    sizes = own.index.get_level_values("size")
    return _dual_t_smaller(own[sizes == sizes.max()])


def _noisy_is_harder(points: pd.DataFrame) -> Margins:
    error = points["posterior error"]
    is_clean = error.index.get_level_values("noise") == "clean"
    return (error - error.where(is_clean).groupby(level=["dataset", "size"]).transform("max"))[~is_clean]


def _falls(points: pd.DataFrame) -> Margins:
    curves = points[["t", "dual-t"]].groupby(level=["dataset", "noise"])
    margins = (curves.first() - curves.last()).where(curves.count() > 1)
    return pd.concat({name: margins[name] for name in margins})


def _with_all_samples(errors: Margins) -> Any:
    """Return the errors with the largest sample, a row per data set and a column per noise of Figure 2."""
    return errors.groupby(level=["dataset", "noise"]).last().unstack("noise").reindex(columns=["sym-20", "pair-45"])


def _t_doubles(points: pd.DataFrame) -> Margins:
    errors = _with_all_samples(points.t)
    return 0.5 - (errors["pair-45"] / errors["sym-20"] - 2).abs()


def _pair_minus_sym(delta3: Margins) -> Margins:
    by_noise = delta3.unstack("noise").reindex(columns=["sym-20", "pair-45"])
    return by_noise["pair-45"] - by_noise["sym-20"]


def _gains(values: Margins) -> Margins:
    """Return how much better every method is with dual-T than with T."""
    with_each = values.unstack("estimator").reindex(columns=["t", "dual-t"])
    return (with_each["dual-t"] - with_each["t"]).round(9)  # without rounding errors


def _dual_t_better(cells: pd.DataFrame) -> Margins:
    return _gains(cells["mean"])


def _co_teaching_is_best(cells: pd.DataFrame) -> Margins:
    own = cells["mean"].unstack(["method", "estimator"])
    own = own[own.index.get_level_values("noise") == "sym-20"]
    ours = ("co-teaching", "dual-t")
    others = own.drop(columns=[ours], errors="ignore").max(axis=1, skipna=False)  # unknown until all are known
    return own.reindex(columns=[ours])[ours] - others


_T_AND_DT = "The error of dual-T is continuously smaller than that of T"
_ASSUMPTION: Sequence[tuple[str, Check]] = (
    ("Δ2 is very small and can be ignored (here: below 0.05)", lambda points: 0.05 - points.delta2),
    ("Δ3 is smaller than Δ1", lambda points: points.delta1 - points.delta3),
    ("Assumption 1 holds: Δ1 ≥ Δ2 + Δ3", lambda points: points.delta1 - points.delta2 - points.delta3),
)
_PUBLISHED: Sequence[tuple[str, Check]] = (
    ("T against dual-T: the order is the published one",
     lambda cells: _gains(cells["mean"]) * np.sign(_gains(cells.paper_mean))),
    ("Accuracies are within one point or one deviation of the published",
     lambda cells: cells[["sd", "paper_sd"]].max(axis=1).fillna(1).clip(lower=1) - cells.difference.abs()),
)  # fmt: skip
_CLAIMS: dict[str, Sequence[tuple[str, Check]]] = {
    "figure1": (("The noisy posterior has a larger error than the clean one", _noisy_is_harder),),
    "figure2": (
        (_T_AND_DT, _dual_t_smaller),
        ("Both errors fall as the sample grows", _falls),
        ("With all samples T's error on Pair-45 is about double that on Sym-20 (here: 1.5 to 2.5 times)", _t_doubles),
        ("With all samples dual-T's error is below 0.1 for every noise",
         lambda points: (0.1 - _with_all_samples(points["dual-t"])).unstack()),
    ),
    "figure3": (
        (f"{_T_AND_DT} on MNIST, F-MNIST and CIFAR10",
         lambda points: _dual_t_smaller(points[points.index.get_level_values("dataset") != "cifar100"])),
        ("On CIFAR100 dual-T is better with large samples", _on_cifar100),
    ),
    "figure4": (
        *_ASSUMPTION,
        ("With logistic loss Δ3 is larger on Pair-45 than on Sym-20", lambda points: _pair_minus_sym(points.delta3)),
    ),
    "figure5": (
        *_ASSUMPTION,
        ("With cross entropy Δ3 is smaller on Pair-45 than on Sym-20", lambda points: -_pair_minus_sym(points.delta3)),
    ),
    "table1": (
        ("Methods are better with dual-T than with T for most of the experiments", _dual_t_better),
        *_PUBLISHED,
        ("DT Coteaching is the best under Sym-20", _co_teaching_is_best),
    ),
    "table2": _PUBLISHED,
}  # fmt: skip

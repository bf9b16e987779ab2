"""What several annotators' votes say: the consensus, everybody's matrix, and what to check next."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.stats import beta, poisson

from dualt.errors import InputError, LabelsError
from dualt.results import Notice
from dualt.results.estimate import TransitionEstimate
from dualt.results.fit import Fit
from dualt.rows.entry import as_posterior
from dualt.validation import as_probability_table, check_count
from dualt.votes.model import POOLING, VotesFit, fit_votes, pooled_matrices
from dualt.votes.tables import Ballots, as_ballots

if TYPE_CHECKING:
    from pandas import DataFrame

Floats = NDArray[np.float64]

# Fewer votes in common, or of one annotator, are not judged.
_LEAST_VOTES = 20
# Pairs of annotators that are looked at for copies, each with a fit of its own.
_PAIRS = 10


def combine_votes(
    votes: Any,
    probs: Any = None,
    *,
    verified: Any = None,
    settled: Any = None,
    classes: Sequence[Any] | None = None,
    item: str | None = None,
    annotator: str | None = None,
    label: str | None = None,
) -> Votes:
    """Return the consensus of several annotators, a transition matrix for each, and what to check next.

    Annotators may be people, rules that vote on some items only, or models.

    Parameters
    ----------
    votes
        A long table with a row per vote (columns `item`, `annotator`, `label`), a wide table or array of items ×
        annotators, a list of tuples (item, annotator, label), or a file: CSV, TSV, JSON lines, Parquet, or an export of
        Label Studio, Argilla or Prodigy. None, NaN, "" and numbers below zero are no vote.
    probs : (n_items, n_classes), optional
        Out-of-fold probabilities of a classifier. A data frame is matched by its index and columns; an array has the
        rows of a wide table, of items 0, 1, 2, …, or of the items in the order in which they first occur.
    verified
        True classes of items that were drawn *at random*: a mapping, a series, or (items, classes). They settle these
        items, correct the noise rate, and give it and the annotators' quality an interval.
    settled
        True classes of items that were chosen, as by `next_items`: they settle these items only.
    classes
        In the order of the columns of `probs`; by default those that occur, sorted.
    item, annotator, label
        Columns of a long table, where they have other names.

    Examples
    --------
    >>> import dualt
    >>> votes = dualt.combine_votes([["cat", "cat", "dog"], ["dog", "dog", "dog"], ["cat", None, "cat"]])
    >>> votes.labels.tolist()
    ['cat', 'dog', 'cat']
    """
    items, table = None, None
    if probs is not None:
        table, columns = as_probability_table(probs)
        classes = columns if classes is None else classes
        items = np.asarray(probs.index) if hasattr(probs, "index") and hasattr(probs, "columns") else None
    ballots = as_ballots(votes, item, annotator, label, classes=classes, items=items)
    if table is not None:
        ballots = _matched(ballots, table, named=items is not None, classes=classes)
        table = np.asarray(table, np.float64)
    audited, chosen = _known(verified, ballots, "verified"), _known(settled, ballots, "settled")
    known = {**chosen, **audited}
    if table is None and not known and np.bincount(ballots.item).max() < 2:
        raise InputError(
            "Expected items with two votes or more, got one vote on each, which cannot show who is right. Pass probs="
            " (a classifier's out-of-fold probabilities) or verified= (some true classes), or collect second votes."
        )
    codes = (*ballots[:3], len(ballots.items), len(ballots.annotators), len(ballots.classes))
    # The audit judges a consensus that has not seen it; then all that is known is used.
    first = fit = fit_votes(*codes, probs=table, audited=_pairs(audited))
    if known:
        fit = fit_votes(*codes, probs=table, verified=_pairs(known), overlap=first.overlap)
    return Votes(ballots, fit, first.posterior, audited, frozenset(known))


def _pairs(known: dict[int, int]) -> tuple[NDArray[np.intp], NDArray[np.intp]] | None:
    return (np.array([*known], np.intp), np.array([*known.values()], np.intp)) if known else None


def _matched(ballots: Ballots, table: NDArray[Any], *, named: bool, classes: Sequence[Any] | None) -> Ballots:
    """Return the ballots with a row of probabilities for each item and a column for each class."""
    n_rows, n_classes = table.shape
    if len(ballots.classes) != n_classes:
        numbers = [int(one) for one in ballots.classes if str(one).isdigit()]
        if classes is not None or len(numbers) < len(ballots.classes) or max(numbers) >= n_classes:
            raise LabelsError(
                f"Expected votes for {n_classes} classes, one per column of probs, got {len(ballots.classes)}"
                f" ({', '.join(map(str, ballots.classes[:10]))}). Pass classes= in the order of the columns."
            )
        ballots = ballots._replace(classes=np.arange(n_classes), vote=np.array(numbers, np.intp)[ballots.vote])
    if named or len(ballots.items) == n_rows:
        positions = np.array_equal(np.sort(ballots.items), np.arange(n_rows)) if _whole(ballots.items) else False
        if named or not positions:
            return ballots
    elif not (_whole(ballots.items) and ballots.items.min() >= 0 and ballots.items.max() < n_rows):
        raise InputError(
            f"Expected a row of probs for each of the {len(ballots.items):,} items, got {n_rows:,}. Pass a data frame"
            " whose index has the items."
        )
    return ballots._replace(item=ballots.items.astype(np.intp)[ballots.item], items=np.arange(n_rows))


def _whole(values: NDArray[Any]) -> bool:
    return values.dtype.kind in "iu" or all(isinstance(one, int) for one in values.tolist())


def _known(truth: Any, ballots: Ballots, what: str) -> dict[int, int]:
    """Return the class codes of verified items by item code."""
    if truth is None:
        return {}
    if hasattr(truth, "to_dict"):
        truth = truth.to_dict()
    pairs = truth.items() if isinstance(truth, Mapping) else zip(*truth, strict=True)
    places = {str(name): place for place, name in enumerate(ballots.items)}
    codes = {str(name): code for code, name in enumerate(ballots.classes)}
    found = {}
    for name, value in pairs:
        if str(name) not in places:
            raise InputError(f"Expected items that have votes in {what}, got {name!r}.")
        if str(value) not in codes:
            raise LabelsError(f"Expected one of the classes {', '.join(codes)} in {what}, got {value!r} for {name!r}.")
        found[places[str(name)]] = codes[str(value)]
    return found


@dataclass(frozen=True, eq=False, repr=False)
class Votes:
    """The consensus of several annotators; `combine_votes` returns it.

    Attributes
    ----------
    items : (n_items,)
    class_names : tuple of str
        In the order of the columns of `posterior`.
    labels : (n_items,)
        The consensus: the likeliest class of each item.
    probability : (n_items,)
        That it is right.
    posterior : (n_items, n_classes)
        P(true class) of each item.
    unverified : (n_items, n_classes)
        The same before verified items were used.
    """

    ballots: Ballots
    fit: VotesFit
    unverified: Floats
    audited: dict[int, int]
    verified: frozenset[int]

    @property
    def items(self) -> NDArray[Any]:
        """Names of the items."""
        return self.ballots.items

    @property
    def class_names(self) -> tuple[str, ...]:
        """Names of the classes."""
        return tuple(map(str, self.ballots.classes))

    @property
    def posterior(self) -> Floats:
        """P(true class) of each item, (n_items, n_classes)."""
        return self.fit.posterior

    @property
    def labels(self) -> NDArray[Any]:
        """The consensus."""
        labels: NDArray[Any] = self.ballots.classes[self.posterior.argmax(axis=1)]
        return labels

    @property
    def probability(self) -> Floats:
        """P(the consensus is right) of each item."""
        return np.asarray(self.posterior.max(axis=1))

    @property
    def n_votes(self) -> NDArray[np.int64]:
        """Number of votes on each item."""
        return np.bincount(self.ballots.item, minlength=len(self.items)).astype(np.int64)

    @property
    def noise_rate(self) -> float:
        """Share of the consensus that is wrong, inside the interval that an audit leaves."""
        low, high = self.noise_rate_interval
        return float(np.clip(1 - self.probability.mean(), low, high))

    @cached_property
    def noise_rate_interval(self) -> tuple[float, float]:
        """(low, high) of `noise_rate`: the audit's, of the consensus before; without one, high is 1.

        The low end is at most the rate that independent votes would imply.
        """
        if not self.audited:
            return min(self.fit.least_rate, float(1 - self.probability.mean())), 1.0
        rows = np.array([*self.audited])
        share = (self.unverified[rows].argmax(axis=1) != [*self.audited.values()]).mean()
        # Wilson's interval for the other items: they too are a sample, of N - n.
        left = 1 - len(self.verified) / len(self.items)
        n, z = max(len(rows) * left, 1.0), 1.96
        middle, width = share + z**2 / (2 * n), z * np.sqrt(share * (1 - share) / n + (z / (2 * n)) ** 2)
        low, high = (float(end / (1 + z**2 / n)) * left for end in (middle - width, middle + width))
        # What was verified may have mended more than itself: the audit bounds the rate from above.
        return max(min(low, self.fit.least_rate), 0.0), high

    def next_items(self, size: int = 100) -> NDArray[Any]:
        """Return the items to check next: the least sure first, those that are verified left out."""
        order = np.argsort(self.probability, kind="stable")
        unsettled = order[~np.isin(order, [*self.verified])]
        return np.asarray(self.items[unsettled[: check_count(size, "size", 1)]])

    @cached_property
    def _quality(self) -> tuple[Floats, Floats, Floats]:
        """P(a vote is right) of each annotator, and (low, high), NaN without an audit.

        An audit shows by how much votes are right more or less often than the posterior says, on average (`bias`) and
        from annotator to annotator (`spread`, by moments). The variance of an annotator's quality is that of as many
        draws, of the doubt about each item, of the bias and of the spread.
        """
        item, who, vote = self.ballots[:3]
        n_annotators = len(self.ballots.annotators)

        def total(values: NDArray[Any], rows: Any = slice(None)) -> Floats:
            return np.bincount(who[rows], values[rows], minlength=n_annotators).astype(np.float64)

        n_votes = np.bincount(who, minlength=n_annotators)
        right = self.posterior[item, vote]
        bias = variance = 0.0
        if self.audited:
            truth = np.full(len(self.items), -1)
            truth[[*self.audited]] = [*self.audited.values()]
            seen = truth[item] >= 0
            before = self.unverified[item, vote]
            error = np.where(seen, (truth[item] == vote) - before, 0.0)
            n_seen, seen_of = max(int(seen.sum()), 1), total(seen)
            bias = float(error.sum() / n_seen)
            by_item = np.bincount(item, np.where(seen, error - bias, 0))
            apart = ((total(error) - bias * seen_of) ** 2).sum() - total(before * (1 - before), seen).sum()
            spread = max(0.0, apart / max((seen_of**2).sum(), 1.0))
            variance = float((by_item**2).sum() / n_seen**2 + spread)
            right = np.where(np.isin(item, [*self.verified]), right, np.clip(right + bias, 0, 1))
        pooled = POOLING * right.mean()
        quality = (total(right) + pooled) / (n_votes + POOLING)
        if not self.audited:
            nothing = np.full(n_annotators, np.nan)
            return quality, nothing, nothing
        most = quality * (1 - quality)
        variance = most / (n_votes + POOLING + 1) + total(right * (1 - right)) / np.maximum(n_votes, 1) ** 2 + variance
        size = most / np.minimum(variance, 0.99 * most) - 1
        low, high = beta.ppf([[0.02], [0.98]], quality * size, (1 - quality) * size)
        step = 1 / np.maximum(n_votes, 1)  # what one vote more or less would change
        return quality, np.maximum(low - step, 0), np.minimum(high + step, 1)

    @cached_property
    def annotators(self) -> DataFrame:
        """A row per annotator: votes, quality (P(a vote is right)), its interval, and the most frequent confusion."""
        import pandas as pd

        counts = self.fit.counts * (1 - np.eye(len(self.class_names)))
        flat = counts.reshape(len(counts), -1)
        worst, names = flat.argmax(axis=1), self.class_names
        rates = self.fit.matrices.reshape(flat.shape)[np.arange(len(flat)), worst]
        confusions = [
            f"{names[cell // len(names)]} → {names[cell % len(names)]} ({rate:.0%})" if count >= 0.5 else ""
            for cell, rate, count in zip(worst, rates, flat.max(axis=1), strict=True)
        ]
        quality, low, high = self._quality
        n_votes = np.bincount(self.ballots.annotator, minlength=len(counts))
        columns = {"name": self.ballots.annotators, "votes": n_votes, "quality": quality, "low": low, "high": high}
        return pd.DataFrame(columns | {"worst_confusion": confusions})

    @property
    def transition(self) -> Mapping[Any, TransitionEstimate]:
        """`transition[name]`: the matrix of that annotator, P(vote | true class)."""
        return _Matrices(self)

    @cached_property
    def common(self) -> TransitionEstimate:
        """The matrix of all votes together."""
        item, _, vote = self.ballots[:3]
        counts = self.fit.counts.sum(axis=0)
        return self._estimate(self.fit.common, counts, self.posterior[item], vote)

    @cached_property
    def consensus(self) -> TransitionEstimate:
        """P(consensus | true class): the matrix for the consensus labels, which losses and `find_label_issues` take."""
        labels = self.posterior.argmax(axis=1)
        n_classes = len(self.class_names)
        joint = self.posterior.T @ np.eye(n_classes)[labels]
        off = joint * (1 - np.eye(n_classes))
        if off.sum() > 0:  # as many wrong as the audit says
            scaled = off * self.noise_rate * joint.sum() / off.sum()
            joint = scaled + np.diag(np.maximum(joint.sum(axis=0) - scaled.sum(axis=0), 0))
        joint += 1e-9 * np.eye(n_classes)
        transition = joint / joint.sum(axis=1, keepdims=True)
        return self._estimate(transition, joint, self.posterior, labels, self.noise_rate_interval)

    def _estimate(
        self,
        transition: Floats,
        counts: Floats,
        posterior: Floats,
        labels: NDArray[np.intp],
        interval: tuple[float, float] | None = None,
    ) -> TransitionEstimate:
        rows = as_posterior(posterior, labels, self.class_names, coder=None)
        fit = Fit(
            transition,
            np.rint(counts.sum(axis=1)).astype(np.int64),
            partial(_resample, counts, self.fit.common),
            rate_interval=interval,
        )
        return TransitionEstimate("votes", self.class_names, fit, rows.summary, True)

    def to_frame(self) -> DataFrame:
        """Return a row per item: item, label, probability, votes, agreement (share of the votes for the label)."""
        import pandas as pd

        n_votes, best = self.n_votes, self.posterior.argmax(axis=1)
        agreed = np.bincount(
            self.ballots.item, self.ballots.vote == best[self.ballots.item], minlength=len(self.items)
        ) / np.maximum(n_votes, 1)
        columns = {"item": self.items, "label": self.labels, "probability": self.probability}
        return pd.DataFrame(columns | {"votes": n_votes, "agreement": agreed})

    @cached_property
    def warnings(self) -> tuple[Notice, ...]:
        """What a user of this consensus should know."""
        return tuple(_notices(self))

    def __repr__(self) -> str:
        low, high = self.noise_rate_interval
        return (
            f"Votes({len(self.ballots.item):,} votes of {len(self.ballots.annotators):,} annotators on"
            f" {len(self.items):,} items, {len(self.class_names)} classes, noise_rate={self.noise_rate:.3f}"
            f" ({low:.3f} to {high:.3f}))"
        )


class _Matrices(Mapping[Any, TransitionEstimate]):
    """Estimates by annotator, made when they are asked for."""

    def __init__(self, votes: Votes) -> None:
        self._votes = votes
        self._places = {name: place for place, name in enumerate(votes.ballots.annotators.tolist())}

    def __getitem__(self, name: Any) -> TransitionEstimate:
        votes, place = self._votes, self._places[name]
        own = votes.ballots.annotator == place
        rows, fit = votes.ballots.item[own], votes.fit
        return votes._estimate(fit.matrices[place], fit.counts[place], votes.posterior[rows], votes.ballots.vote[own])

    def __iter__(self) -> Iterator[Any]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)


def _resample(counts: Floats, common: Floats, rng: np.random.Generator) -> Floats:
    """Draw a matrix from its posterior, rows ~ Dirichlet(counts + POOLING · common)."""
    drawn = rng.gamma(np.maximum(counts + POOLING * common, 1e-6))
    return np.asarray(drawn / np.maximum(drawn.sum(axis=1, keepdims=True), 1e-300))


def _notices(votes: Votes) -> Iterator[Notice]:
    ballots, names = votes.ballots, votes.ballots.annotators
    if votes.fit.calibration is not None and votes.fit.calibration[1]:
        yield Notice(
            "temperature",
            "The classifier agrees with the votes more than its probabilities say: it may repeat their errors.",
            "Check 100 random items and pass them as verified=.",
        )
    if ballots.n_repeated:
        yield Notice(
            "repeated", f"{ballots.n_repeated:,} votes are second ones of the same annotator on the same item.",
            "The last one counts.",
        )  # fmt: skip
    pairs = list(_copies(votes))
    if pairs:
        shown = ", ".join(f"{names[a]} and {names[b]} ({n:,} items)" for a, b, n in pairs[:5])
        yield Notice(
            "copies", f"{len(pairs):,} pairs of annotators agree more than their quality explains: {shown}.",
            "Do they copy, or are they the same model? Leave one of them out.",
        )  # fmt: skip
    by_class = np.zeros((len(names), len(votes.class_names)))
    np.add.at(by_class, (ballots.annotator, ballots.vote), 1)
    n_votes = by_class.sum(axis=1)
    one = (by_class.max(axis=1) == n_votes) & (n_votes >= _LEAST_VOTES)
    rules = by_class[one].sum() > by_class.sum() / 2  # labelling functions have one class each
    if one.any() and not rules:
        yield Notice("one-class", f"Always the same class: {_listed(names[one])}.", "Their votes say little.")
    chance = by_class / np.maximum(n_votes, 1)[:, None] @ votes.posterior.mean(axis=0)
    error = np.sqrt(chance * (1 - chance) / np.maximum(n_votes, 1))
    low = (votes._quality[0] < chance + 2 * error) & (n_votes >= _LEAST_VOTES) & ~one
    if low.any():
        yield Notice(
            "at-chance", f"Not clearly better than guessing: {_listed(names[low])}.", "Leave them out, or ask them why."
        )


def _copies(votes: Votes) -> Iterator[tuple[int, int, int]]:
    """Yield pairs of annotators, and their common items, who disagree less than half as often as their matrices say.

    Expected agreement on an item is Σ_y π_y Σ_v T_a[y, v] T_b[y, v]. A copy makes both look right, so the matrices are
    fitted without b's votes. Pairs that hardly disagree are looked at, annotators with one class left out.
    """
    item, who, vote = votes.ballots[:3]
    n_annotators, n_classes, n_items = len(votes.ballots.annotators), len(votes.class_names), len(votes.items)
    used = np.bincount(who * n_classes + vote, minlength=n_annotators * n_classes).reshape(-1, n_classes)
    judged = ((used > 0).sum(axis=1) > 1) & (used.sum(axis=1) >= _LEAST_VOTES)
    own = np.flatnonzero(judged[who])
    by_class = [own[vote[own] == code] for code in range(n_classes)]
    shape = (n_annotators, n_items)
    common, agreed = (
        sum(sparse.triu(said @ said.T, 1) for said in (
            sparse.csr_array((np.ones(len(rows)), (who[rows], item[rows])), shape=shape) for rows in parts
        )).tocoo()
        for parts in ([own], by_class)
    )  # fmt: skip
    enough = common.data >= _LEAST_VOTES
    first, second, n_common = common.row[enough], common.col[enough], common.data[enough]
    disagreed = n_common - np.asarray(agreed.tocsr()[first, second]).ravel() if len(first) else n_common
    candidates = np.flatnonzero(disagreed < n_common * min(0.1, votes.common.noise_rate))
    for place in candidates[np.argsort(disagreed[candidates] / n_common[candidates], kind="stable")][:_PAIRS]:
        a, b = int(first[place]), int(second[place])
        rest = who != b
        if len(np.unique(who[rest])) < 2:
            continue
        fit = fit_votes(item[rest], who[rest], vote[rest], n_items, n_annotators, n_classes)
        counts = np.zeros((n_classes, n_classes))
        np.add.at(counts.T, vote[~rest], fit.posterior[item[~rest]])
        expected = fit.shares @ (fit.matrices[a] * pooled_matrices(counts[None], fit.common)[0]).sum(axis=1)
        if poisson.cdf(disagreed[place], n_common[place] * (1 - expected) / 2) * len(first) < 1e-3:
            yield a, b, int(n_common[place])


def _listed(names: NDArray[Any]) -> str:
    more = f" and {len(names) - 5:,} more" if len(names) > 5 else ""
    return ", ".join(map(str, names[:5])) + more

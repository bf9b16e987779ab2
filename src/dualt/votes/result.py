"""What several annotators' votes say: the consensus, everybody's matrix, and what to check next."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.stats import hypergeom, poisson

from dualt.errors import InputError, LabelsError
from dualt.labels import Codes, look_alike, shorten
from dualt.results import Notice
from dualt.results.claims import wilson
from dualt.results.estimate import TransitionEstimate
from dualt.results.fit import Fit
from dualt.rows.entry import as_posterior, split_members
from dualt.validation import as_probability_table, check_count, check_probability_chunk, index_of
from dualt.votes.model import MAX_TEMPERATURE, POOLING, VotesFit, fit_votes, pooled_matrices, rules_among
from dualt.votes.tables import Ballots, as_ballots, factorized

if TYPE_CHECKING:
    from pandas import DataFrame

Floats = NDArray[np.float64]

# What `Votes.to_frame` says about each label: its probability, the number of votes, and the share that agrees.
CONSENSUS_COLUMNS = ("probability", "votes", "agreement")
# Annotators with fewer votes, and pairs with fewer in common, get no warning.
_LEAST_VOTES = 20
# Annotators with fewer checked votes get no interval; the others a 95 % one.
_LEAST_CHECKED, _Z = 10, 1.96
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
        Out-of-fold probabilities of a classifier, or what `cross_fit` returns; of several models, whose mean counts, a
        list. A data frame is matched by its index and columns; an array has the rows of a wide table, of items 0, 1,
        2, …, or of the items as they first occur.
    verified
        True classes of items that were drawn *at random*: a mapping, a series, or (items, classes). They settle these
        items, correct the noise rate, and give it and the annotators' quality an interval.
    settled
        True classes of items that were chosen, as by `next_items`: they settle these items only.
    classes
        In the order of the columns of `probs`; by default those that occur, sorted.
    item, annotator, label
        Columns of a long table, where they have other names; of a wide one, `item` alone.

    Examples
    --------
    >>> import dualt
    >>> votes = dualt.combine_votes([["cat", "cat", "dog"], ["dog", "dog", "dog"], ["cat", None, "cat"]])
    >>> votes.labels.tolist()
    ['cat', 'dog', 'cat']
    """
    table = items = shape = None
    if probs is not None:
        _, first, mean = split_members(probs)
        table, columns = as_probability_table(first)
        table, shape = np.asarray(table if mean is None else mean, np.float64), (table.shape[0], table.shape[1])
        classes, items = columns if classes is None else classes, index_of(first)
    ballots = as_ballots(votes, item, annotator, label, classes=classes, items=items, shape=shape)
    if table is not None:
        check_probability_chunk(table, 0)
    audited, chosen = _known(verified, ballots, "verified"), _known(settled, ballots, "settled")
    known = np.concatenate([chosen[0], audited[0]]), np.concatenate([chosen[1], audited[1]])
    if table is None and not len(known[0]) and np.bincount(ballots.item).max() < 2:
        raise InputError(
            "Expected items with votes of two annotators or more, got one annotator on each, which cannot show who is"
            " right. Pass probs (a classifier's out-of-fold probabilities) or verified (some true classes), or collect"
            " second votes."
        )
    fit = partial(fit_votes, *ballots[:3], *map(len, ballots[3:6]), probs=table)
    # The audit judges a consensus that has not seen it; then all that is known is used.
    found = fit(audited=audited if len(audited[0]) else None)
    unverified, overlap = found.posterior, found.overlap
    if len(known[0]):
        del found  # two sets of matrices would be too many
        found = fit(verified=known, overlap=overlap)
    return Votes(ballots, found, unverified, audited, known[0], table)


def _known(truth: Any, ballots: Ballots, what: str) -> tuple[Codes, Codes]:
    """Return the codes of verified items and of their classes."""
    import pandas as pd

    if isinstance(truth, tuple) and len(truth[0]) != len(truth[1]):
        raise InputError(f"Expected a class per item in {what}, got {len(truth[0])} items, {len(truth[1])} classes.")
    series = pd.Series(truth[1], truth[0], object) if isinstance(truth, tuple) else pd.Series(truth, dtype=object)
    items = pd.Index(map(str, ballots.items)).get_indexer([str(name) for name in series.index])
    codes, said = factorized([*ballots.classes, *series], whole=True)  # in numbers and texts as votes are
    named = pd.Index(map(str, ballots.classes)).get_indexer([*map(str, said)])
    classes = np.append(named, -1)[codes[len(ballots.classes) :]]
    if (items < 0).any():
        unknown, usual = series.index[items < 0].tolist()[0], ballots.items[:1].tolist()[0]
        raise InputError(f"Expected items that have votes, such as {usual!r}, in {what}, got {unknown!r}.")
    if (classes < 0).any():
        wrong, names = series[classes < 0], ", ".join(map(str, ballots.classes))
        got = f"{wrong.iloc[0]!r} for {wrong.index.tolist()[0]!r}"
        raise LabelsError(f"Expected one of the classes {names} in {what}, got {got}.")
    _, firsts, place = np.unique(items, return_index=True, return_inverse=True)
    if (differs := classes[firsts][place] != classes).any():
        twice = ballots.items[items[differs.argmax()]]
        raise InputError(f"Expected one class per item in {what}, got two for {twice!s}. Decide which is right.")
    firsts.sort()
    return items[firsts], classes[firsts]


class Votes:
    """The consensus of several annotators; `combine_votes` returns it.

    Attributes
    ----------
    items : (n_items,)
    class_names : tuple of str
        In the order of the columns of `posterior`.
    posterior : (n_items, n_classes)
        P(true class) of each item.
    labels : (n_items,)
        The consensus: the likeliest class of each item.
    probability : (n_items,)
        That it is right.
    n_votes : (n_items,)
    noise_rate : float
        Share of the consensus that is wrong, inside the interval. With rules and a classifier that learned from them it
        can be far too low: `consensus.doubt` then says so.
    noise_rate_interval : (float, float)
        The audit's, its lower end less the share of other labels that the verified items changed. Without an audit,
        low is at most what independent votes would imply, less a sampling error, where items with a single vote count
        as right, and high is 1.
    """

    def __init__(
        self, ballots: Ballots, fit: VotesFit, unverified: Floats, audited: tuple[Codes, Codes], known: Codes,
        probs: Floats | None,
    ) -> None:  # fmt: skip
        self.ballots, self.fit = ballots, fit
        self.unverified, self.audited, self.known = unverified, audited, known  # unverified: the posterior before
        self.probs = probs
        self.items: NDArray[Any] = ballots.items
        self.class_names = tuple(map(str, ballots.classes))
        self.posterior = fit.posterior
        self.codes = self.posterior.argmax(axis=1)
        self.labels: NDArray[Any] = ballots.classes[self.codes]
        self.probability: Floats = self.posterior.max(axis=1)
        self.n_votes = np.bincount(ballots.item, minlength=len(self.items))
        rate = float(1 - self.probability.mean())
        self.noise_rate_interval = min(fit.least_rate, rate), 1.0
        rows, _ = audited
        if len(rows):
            changed, drawn = unverified.argmax(axis=1) != self.codes, np.unique(rows)
            wrong, n_settled = int(changed[drawn].sum()), len(np.unique(known)) - len(drawn)
            low, high = _wrong_in_all(wrong, len(drawn), len(self.items) - n_settled)
            # Those found are corrected. Other labels that the known items changed may have been wrong too.
            low, high = max(0, low - int(changed.sum())), high - wrong
            self.noise_rate_interval = low / len(self.items), high / len(self.items)
        self.noise_rate = float(np.clip(rate, *self.noise_rate_interval))

    def next_items(self, size: int = 100) -> NDArray[Any]:
        """Return the items to check next: the least sure first, those that are verified left out."""
        order = np.argsort(self.probability, kind="stable")
        unsettled = order[~np.isin(order, self.known)]
        return np.asarray(self.items[unsettled[: check_count(size, "size", 1)]])

    @cached_property
    def _used(self) -> NDArray[np.int64]:
        """How often each annotator gave each class."""
        _, who, vote, _, names, classes, _ = self.ballots
        used = np.bincount(who * len(classes) + vote, minlength=len(names) * len(classes))
        return used.reshape(len(names), len(classes))

    @cached_property
    def _echoes(self) -> bool:
        """Whether a classifier may repeat the errors of rules, and nothing was audited."""
        return self.probs is not None and not len(self.audited[0]) and bool(rules_among(self._used).any())

    @cached_property
    def _quality(self) -> tuple[Floats, Floats, Floats, Floats]:
        """P(a vote is right) of each annotator; (low, high), NaN with fewer than ten checked; effective votes.

        Checked votes are a random sample. Their mean difference from the posterior corrects its mean over all votes of
        this annotator. The more of the variance the posterior explains, the more checked votes this is worth.
        """
        item, who, vote = self.ballots[:3]
        total = partial(np.bincount, who, minlength=len(self.ballots.annotators))
        n_votes, right = total().astype(np.float64), self.posterior[item, vote]
        quality = (total(right) + POOLING * right.mean()) / (n_votes + POOLING)
        rows, classes = self.audited
        if not len(rows):
            return quality, *np.full((2, len(quality)), np.nan), n_votes
        truth = np.full(len(self.items), -1)
        truth[rows] = classes
        seen, correct, before = truth[item] >= 0, truth[item] == vote, self.unverified[item, vote]
        error = np.where(seen, correct - before, 0.0)
        n_seen = np.maximum(total(seen), 1)
        mean = np.clip(total(before) / n_votes + total(error) / n_seen, 0, 1)
        variance = np.maximum(mean * (1 - mean), 1e-9)
        unexplained = (error**2).sum() / (n_seen * variance).sum() * variance
        # Two more errors than were met; Wilson's rule for no error in n does about the same.
        worth = n_seen * variance / np.minimum(unexplained + 2 / n_seen, variance)
        low, high = wilson(mean, _Z**2 * np.maximum(1 - n_seen / n_votes, 1e-9) / worth)
        # If all checked votes are right, all others may be; the same if all are wrong.
        low, high = np.where(total(correct) == 0, 0, low), np.where(total(correct) == n_seen, 1, high)
        enough = n_seen >= _LEAST_CHECKED
        low, high = np.where(enough, low, np.nan), np.where(enough, high, np.nan)
        worth = np.where(enough, np.minimum(worth, n_votes), n_votes)
        return np.fmin(np.fmax(quality, low), high), low, high, worth

    @cached_property
    def annotators(self) -> DataFrame:
        """A row per annotator: votes, quality (P(a vote is right)), its interval, and the most frequent confusion."""
        import pandas as pd

        confusions, wrong, names = [], ~np.eye(len(self.class_names), dtype=bool), self.class_names
        rules = rules_among(self._used)  # they have the matrix of all votes, whose percentage is not theirs
        for counts, matrix, rule in zip(self.fit.counts, self.fit.matrices, rules, strict=True):
            true, said = np.unravel_index((counts * wrong).argmax(), counts.shape)
            confusion = f"{names[true]} → {names[said]}" + f" ({matrix[true, said]:.0%})" * (not rule)
            confusions.append(confusion if counts[true, said] >= 0.5 and true != said else "")
        quality, low, high, _ = self._quality
        about = {"name": self.ballots.annotators, "votes": self._used.sum(axis=1), "quality": quality}
        return pd.DataFrame(about | {"low": low, "high": high, "worst_confusion": confusions})

    @cached_property
    def transition(self) -> dict[Any, TransitionEstimate]:
        """`transition[name]`: the matrix of that annotator, P(vote | true class).

        Without verified items, or with few of this annotator, its intervals take the consensus to be right.
        """
        item, who, vote = self.ballots[:3]
        order, n_votes = np.argsort(who, kind="stable"), np.bincount(who)
        rows, shares = np.split(order, np.cumsum(n_votes)[:-1]), self._quality[3] / n_votes
        all_counts, rules = self.fit.counts.sum(axis=0), rules_among(self._used)  # rules have the matrix of all
        each = zip(self.fit.matrices, self.fit.counts, rules, shares, rows, strict=True)
        estimates = [
            self._estimate(matrix, share * (all_counts if rule else counts), self.posterior[item[own]], vote[own])
            for matrix, counts, rule, share, own in each
        ]
        return dict(zip(self.ballots.annotators.tolist(), estimates, strict=True))

    @cached_property
    def common(self) -> TransitionEstimate:
        """The matrix of all votes together."""
        item, _, vote = self.ballots[:3]
        counts = self.fit.counts.sum(axis=0)
        return self._estimate(self.fit.common, counts, self.posterior.astype(np.float32)[item], vote)

    @cached_property
    def consensus(self) -> TransitionEstimate:
        """P(consensus | true class): the matrix for the consensus labels, which losses and `find_label_issues` take."""
        n_classes = len(self.class_names)
        joint = self.posterior.T @ np.eye(n_classes)[self.codes]
        off = joint * (1 - np.eye(n_classes))
        if off.sum() > 0:  # as many wrong as the audit says
            scaled = off * self.noise_rate * joint.sum() / off.sum()
            joint = scaled + np.diag(np.maximum(joint.sum(axis=0) - scaled.sum(axis=0), 0))
        joint += 1e-9 * np.eye(n_classes)
        transition = joint / joint.sum(axis=1, keepdims=True)
        doubt = "most votes are by rules, whose errors a classifier may repeat" if self._echoes else None
        rate = self.noise_rate_interval
        return self._estimate(transition, joint, self.posterior, self.codes, rate_interval=rate, doubt=doubt)

    def _estimate(
        self, transition: Floats, counts: Floats, posterior: NDArray[Any], labels: Codes, **claims: Any
    ) -> TransitionEstimate:
        rows = as_posterior(posterior, labels)  # the labels are column numbers
        resample = partial(_resample, counts, self.fit.common)
        true = counts.sum(axis=1)
        prior, support = true / true.sum(), np.rint(true).astype(np.int64)
        fit = Fit(transition, support, resample, clean_prior=prior, **claims)
        return TransitionEstimate("votes", self.class_names, fit, rows.summary, True)

    def to_frame(self) -> DataFrame:
        """Return a row per item: item, label, probability, votes, agreement (share of the votes for the label)."""
        import pandas as pd

        item, _, vote = self.ballots[:3]
        agreed = np.bincount(item, vote == self.codes[item], minlength=len(self.items)) / np.maximum(self.n_votes, 1)
        about = zip(CONSENSUS_COLUMNS, (self.probability, self.n_votes, agreed), strict=True)
        return pd.DataFrame({"item": self.items, "label": self.labels, **dict(about)})

    @cached_property
    def warnings(self) -> tuple[Notice, ...]:
        """What a user of this consensus should know."""
        return tuple(_notices(self))

    def __repr__(self) -> str:
        low, high = self.noise_rate_interval
        said = f"{len(self.ballots.item):,} votes of {len(self.ballots.annotators):,} annotators"
        rate = f"noise_rate={self.noise_rate:.3f} ({low:.3f} to {high:.3f})"
        return f"Votes({said} on {len(self.items):,} items, {len(self.class_names)} classes, {rate})"


def _wrong_in_all(wrong: int, n_drawn: int, n_items: int) -> tuple[int, int]:
    """Return the smallest and largest number of wrong items, given how many of a random sample are wrong (95 %).

    Exact (hypergeometric): where few are wrong, the lower end of Wilson's interval fails in up to a fifth of samples.
    """
    possible, least = range(wrong, n_items - n_drawn + wrong + 1), 0.025
    low = bisect_left(possible, least, key=lambda total: hypergeom.sf(wrong - 1, n_items, total, n_drawn))
    high = bisect_right(possible, -least, key=lambda total: -hypergeom.cdf(wrong, n_items, total, n_drawn))
    return possible[low], possible[high - 1]


def _resample(counts: Floats, common: Floats, rng: np.random.Generator) -> Floats:
    """Draw a matrix from its posterior, rows ~ Dirichlet(counts + POOLING · common)."""
    drawn = rng.gamma(np.maximum(counts + POOLING * common, 1e-6))
    return np.asarray(drawn / np.maximum(drawn.sum(axis=1, keepdims=True), 1e-300))


def _notices(votes: Votes) -> Iterator[Notice]:
    names, n_repeated, used = votes.ballots.annotators, votes.ballots.n_repeated, votes._used
    if n_repeated:
        message = f"Votes that repeat one of the same annotator on the same item: {n_repeated:,}."
        yield Notice("repeated", message, "The last one counts.")
    (alike, missing), items = look_alike(votes.class_names), {*map(str, votes.items)}
    blanks = sorted(one for one in items if one != one.strip() and one.strip() in items)
    for what, groups in (
        ("Classes that differ only by case, accents or blanks, or look like missing votes", [*alike, missing]),
        ("Annotators that differ only by case, accents or blanks", look_alike(map(str, names))[0]),
        ("Items that differ only by blanks", [blanks[:5]]),
    ):
        if found := "; ".join(", ".join(map(repr, group)) for group in groups if group):
            yield Notice("look-alike", f"{what}: {found}.", "Correct the votes: these are taken as different ones.")
    n_votes = used.sum(axis=1)
    advice = "Check 100 items drawn at random, and pass them as verified."
    if votes._echoes:
        yield Notice("echo", "A classifier learns the errors of rules too, and then agrees with them.", advice)
    elif votes.fit.temperature == MAX_TEMPERATURE and not len(votes.audited[0]):
        message = "The classifier agrees with the votes more than it claims: it is cautious, or repeats their errors."
        yield Notice("temperature", message, advice)
    judged = n_votes >= _LEAST_VOTES
    one = judged & (used.max(axis=1) == n_votes)
    pairs = list(_copies(votes, judged & ~one)) if len(names) > 2 else []
    if pairs:
        shown = ", ".join(f"{names[a]} and {names[b]} ({n:,} items)" for a, b, n in pairs[:5]) + " …" * (len(pairs) > 5)
        message = f"Annotators who agree more than their quality explains: {shown}."
        yield Notice("copies", message, "Do they copy, or are they the same model? Leave one of them out.")
    if one.any() and not rules_among(used).any():
        advice = "If they were shown others too, their votes say little."
        yield Notice("one-class", f"Always the same class: {shorten(names[one].tolist(), 5)}.", advice)
    # Agreement by chance and its variance, as of Cohen's kappa: with a rare class it hardly varies.
    said, shares = used / np.maximum(n_votes, 1)[:, None], votes.posterior.mean(axis=0)
    chance = said @ shares
    variance = chance + chance**2 - (said * shares * (said + shares)).sum(axis=1)
    low = judged & ~one & (votes._quality[0] < chance + 2 * np.sqrt(np.maximum(variance, 0) / np.maximum(n_votes, 1)))
    if low.any():
        message = f"Not clearly better than guessing: {shorten(names[low].tolist(), 5)}."
        yield Notice("at-chance", message, "Leave them out, or ask them why.")


def _copies(votes: Votes, judged: NDArray[np.bool_]) -> Iterator[tuple[int, int, int]]:
    """Yield pairs of annotators, and their common items, who disagree less than half as often as their matrices say.

    Expected agreement on an item is Σ_y π_y Σ_v T_a[y, v] T_b[y, v]. A copy makes both look right, so the matrices are
    fitted without b's votes. Only pairs that hardly disagree are looked at.
    """
    item, who, vote = votes.ballots[:3]
    _, n_annotators, n_classes = sizes = tuple(map(len, votes.ballots[3:6]))
    own = judged[who]

    def in_common(said: NDArray[np.intp]) -> Any:
        """Count by pair of annotators what both said."""
        table = sparse.csr_array((np.ones(own.sum()), (who[own], said[own])), shape=(n_annotators, said.max() + 1))
        return sparse.triu(table @ table.T, 1)

    pairs = in_common(item).tocoo()
    enough = pairs.data >= _LEAST_VOTES
    first, second, n_common = pairs.row[enough], pairs.col[enough], pairs.data[enough]
    disagreed = n_common - np.asarray(in_common(item * n_classes + vote).tocsr()[first, second]).ravel()
    order = np.argsort(disagreed / n_common, kind="stable")[:_PAIRS]
    for place in order[disagreed[order] < n_common[order] * min(0.1, 1 - votes.posterior[item, vote].mean())]:
        a, b = int(first[place]), int(second[place])
        rest = who != b
        fit = fit_votes(item[rest], who[rest], vote[rest], *sizes, overlap=votes.fit.overlap)
        counts = np.zeros((1, n_classes, n_classes))
        np.add.at(counts[0], vote[~rest], fit.posterior[item[~rest]])
        expected = fit.shares @ (fit.matrices[a] * pooled_matrices(counts, fit.common)[0].T).sum(axis=1)
        if poisson.cdf(disagreed[place], n_common[place] * (1 - expected) / 2) * len(first) < 1e-3:
            yield a, b, int(n_common[place])

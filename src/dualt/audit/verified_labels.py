"""Verified labels: rows whose true class a person has found, how they were drawn, and what they must be to be used."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dualt.audit.design import Floats, Ints, Weights
from dualt.errors import InputError, LabelsError
from dualt.label_arrays import as_label_array
from dualt.labels import Codes, LabelCoder, codes_digest
from dualt.rows.posterior import NoisyPosterior

# Four numbers cannot be calibrated on fewer rows.
LEAST = 10
# Standard deviations by which a random sample may look more suspect than all examples.
_SUSPECT = 4.0
# Inclusion probabilities that differ by more than this factor.
_UNEQUAL = 10.0


@dataclass(frozen=True, eq=False)
class Audit:
    """Verified rows, and how they were drawn: at random unless strata or inclusion probabilities say otherwise.

    Attributes
    ----------
    rows : (n_verified,)
        Row numbers, counted from 0.
    true : (n_verified,)
        Their true labels, in the kind of the given ones or as class names.
    probability : (n_verified,), optional
        Chance that each row had of being drawn.
    strata, stratum_sizes : (n_verified,), optional
        Stratum that each row was drawn from at random, and how many rows of the data are in it.
    given : (n_verified,), optional
        Given labels when the rows were drawn, to be compared with those of the data.
    labels_digest : str, optional
        `dualt.labels.labels_digest` of the data that the rows were drawn from.

    Examples
    --------
    >>> Audit([7, 3], ["cat", "dog"])
    Audit(n_verified=2, drawn at random)
    """

    rows: Ints
    true: NDArray[Any]
    probability: Floats | None
    strata: Ints | None
    stratum_sizes: Ints | None
    given: NDArray[Any] | None
    labels_digest: str | None

    def __init__(
        self,
        rows: ArrayLike,
        true: Any,
        probability: ArrayLike | None = None,
        strata: Ints | None = None,
        stratum_sizes: Ints | None = None,
        given: NDArray[Any] | None = None,
        labels_digest: str | None = None,
    ) -> None:
        rows, true = np.asarray(rows), as_label_array(true)
        if rows.ndim != 1 or rows.dtype.kind not in "iu":
            raise InputError(f"Expected row numbers as a list of integers, got dtype {rows.dtype}, shape {rows.shape}.")
        if (strata is None) != (stratum_sizes is None):
            raise InputError("Expected strata and their sizes together, got one of them.")
        chance = None if probability is None else np.asarray(probability, np.float64)
        for column in (true, chance, strata, stratum_sizes, given):
            if column is not None and len(column) != len(rows):
                raise InputError(f"Expected one value per verified row, got {len(rows)} rows and {len(column)} values.")
        if chance is not None:
            check_probability(chance)
        columns = {"probability": chance, "strata": strata, "stratum_sizes": stratum_sizes, "given": given}
        vars(self).update(rows=rows.astype(np.intp), true=true, **columns, labels_digest=labels_digest)  # it is frozen

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        by_chance = "at random" if self.probability is None else "by known probabilities"
        drawn = by_chance if self.strata is None else "by strata"
        return f"Audit(n_verified={len(self)}, drawn {drawn})"

    def weights(self, n_samples: int) -> Weights:
        """Return how much each verified row stands for, among `n_samples` rows of the data."""
        if self.strata is not None and self.stratum_sizes is not None:
            found, places = np.unique(self.strata, return_inverse=True)
            sizes = np.zeros(len(found), np.intp)
            sizes[places] = self.stratum_sizes
            return Weights.stratified(places, sizes)
        if self.probability is not None:
            return Weights.unequal(self.probability)
        return Weights.uniform(len(self), n_samples)

    def take(self, keep: NDArray[Any]) -> Audit:
        """Return some of the rows."""
        columns = {name: column for name, column in vars(self).items() if name != "labels_digest"}
        return replace(self, **{name: column[keep] for name, column in columns.items() if column is not None})


def as_audit(verified: Any) -> Audit:
    """Return an audit from itself or from (row numbers, true labels) of a random sample."""
    if isinstance(verified, Audit):
        return verified
    try:
        rows, true = verified
    except (TypeError, ValueError):
        raise InputError(
            "Expected verified labels as (row numbers, true labels) of a random sample or as an `Audit`,"
            f" got {type(verified).__name__}. `dualt.audit.read_audit` reads the file of `dualt audit`."
        ) from None
    return Audit(rows, true)


def check_audit(audit: Audit, posterior: NoisyPosterior) -> tuple[Audit, Codes]:
    """Do as `check_rows` does, and refuse rows that were not drawn at random."""
    digest, given_of = partial(posterior_digest, posterior), lambda rows: posterior.take(rows)[1]
    audit, true = check_rows(audit, posterior.n_samples, posterior.coder, digest, given_of)
    check_drawn_at_random(posterior, audit)
    return audit, true


def check_rows(
    audit: Audit, n_samples: int, coder: LabelCoder, digest: Callable[[], str], given_of: Callable[[Ints], Codes]
) -> tuple[Audit, Codes]:
    """Return the audit with every row once, and its true classes as codes; refuse one that is not of these data.

    What the audit tells of its labels is compared with the data's `digest` and the given classes of its rows.
    """
    outside = np.flatnonzero((audit.rows < 0) | (audit.rows >= n_samples))
    if len(outside):
        raise InputError(
            f"Expected verified rows from 0 to {n_samples - 1:,}, got {audit.rows[outside[0]]} at position {outside[0]}"
            f"{and_more(len(outside))}. Rows are counted from 0; pass the data that were audited."
        )
    audit = audit.take(_first_of_each(audit.rows, audit.true))
    true = _encode_true(coder, audit)
    if audit.labels_digest is not None:
        check_digest(audit.labels_digest, digest(), n_samples)
    if audit.given is not None:
        _check_given(coder, audit.given, given_of(audit.rows), audit.rows)
    if len(audit) < LEAST:
        raise InputError(
            f"Expected at least {LEAST} verified rows, got {len(audit)}. Verify {LEAST - len(audit)} more; about 100"
            " tell the noise rate to ±10 percentage points or better, 400 to ±5."
        )
    _check_strata(audit, n_samples)
    return audit, true


def _check_strata(audit: Audit, n_samples: int) -> None:
    """Refuse an audit that leaves strata out: the others cannot stand for them."""
    if audit.strata is None or audit.stratum_sizes is None:
        return
    found, first = np.unique(audit.strata, return_index=True)
    n_missing = n_samples - int(audit.stratum_sizes[first].sum())
    if n_missing > 0:
        raise InputError(
            f"Expected verified rows of every stratum, got some of {', '.join(map(str, found.tolist()))} only:"
            f" {n_missing:,} rows of the data are in others. Check at least one row of each stratum that is missing."
        )


def check_drawn_at_random(posterior: NoisyPosterior, audit: Audit) -> None:
    """Refuse verified rows that look chosen for being suspect: their given labels are less probable than most.

    Under a random choice, the rank of p[given label] among all rows is uniform; its mean over the audit, in which every
    row weighs as much as it stands for, is compared with one half. Rows of very different chances cannot tell: those
    that stand for most are seldom drawn.
    """
    if audit.probability is not None and audit.probability.max() > _UNEQUAL * audit.probability.min():
        return
    summary = posterior.summary
    everyone = np.sort(summary.sample_rows[np.arange(len(summary.sample_rows)), summary.sample_labels])
    rows, given = posterior.take(audit.rows)
    audited = rows[np.arange(len(rows)), given]
    ranks = np.searchsorted(everyone, audited, "left") + np.searchsorted(everyone, audited, "right")
    weight = audit.weights(posterior.n_samples).weight
    share = float(weight @ ranks / (2 * len(everyone)))
    spread = np.sqrt((weight @ weight + 1 / len(everyone)) / 12)
    if share < 0.5 - _SUSPECT * spread:
        raise InputError(
            f"Expected a random sample of the rows to be verified, got {len(audited):,} rows whose given labels are"
            f" less probable than those of {1 - share:.0%} of all rows: they look chosen for being suspect, and"
            " would overstate the noise. Draw the rows to verify at random."
        )


def check_probability(probability: Floats) -> None:
    """Refuse inclusion probabilities that are not above 0 and at most 1."""
    bad = np.flatnonzero(~((probability > 0) & (probability <= 1)))
    if len(bad):
        raise InputError(
            f"Expected inclusion probabilities above 0 and at most 1, got {probability[bad[0]]:g} at position {bad[0]}"
            f"{and_more(len(bad))}. A row that could not be drawn cannot stand for others: use the"
            " probabilities of the draw."
        )


def posterior_digest(posterior: NoisyPosterior, labelled: Ints | None = None, n_rows: int = 0) -> str:
    """Return the `labels_digest` of the given labels of a posterior, whose rows are those `labelled` of `n_rows`."""
    texts, chunks = posterior.coder.label_texts, posterior.map(_only_codes)
    if labelled is None:
        return codes_digest(texts, chunks)
    codes = np.full(n_rows, -1)
    codes[labelled] = np.concatenate(list(chunks))
    return codes_digest(texts, [codes])


def check_digest(expected: str, found: str, n_samples: int) -> None:
    """Refuse an audit of other labels."""
    if expected != found:
        raise LabelsError(
            f"Expected an audit of these {n_samples:,} labels (digest {found}), got one of other labels"
            f" (digest {expected}). Pass the labels that the audit was drawn from, or draw again."
        )


def and_more(n_bad: int) -> str:
    """Return how many others are wrong in the same way, in brackets."""
    return f" (and {n_bad - 1:,} more)" if n_bad > 1 else ""


def _only_codes(probs: NDArray[Any], codes: Codes) -> Codes:
    return codes


def _first_of_each(rows: Ints, true: NDArray[Any]) -> Ints:
    """Return the places of the first of each row, by row number; a row with two truths is refused.

    The order of a sheet, which may have been sorted, must not matter.
    """
    first, at = np.unique(rows, return_index=True)
    before = at[np.searchsorted(first, rows)]
    differs = np.flatnonzero(true[before] != true)
    if len(differs):
        place = int(differs[0])
        raise InputError(
            f"Expected one true class for every verified row, got {true[before[place]]!s} and {true[place]!s} for row"
            f" {rows[place]}{and_more(len(differs))}. Decide which is right, and delete the other."
        )
    return at


def _encode_true(coder: LabelCoder, audit: Audit) -> Codes:
    """Return the true classes as codes; a class that the probabilities have no column for is named with its row."""
    unknown = [value for value in np.unique(audit.true) if not _is_known(coder, value)]
    if unknown:
        known = ", ".join(coder.names[:10]) + (", …" if coder.n_classes > 10 else "")
        row = audit.rows[np.flatnonzero(audit.true == unknown[0])[0]]
        raise LabelsError(
            f"Expected one of the classes {known} as true class of row {row}, got {str(unknown[0])!r}"
            f"{and_more(len(unknown))}. Correct the spelling, or leave it out where no class fits."
        )
    return coder.encode(audit.true)


def _is_known(coder: LabelCoder, value: Any) -> bool:
    try:
        coder.encode(np.array([value]))
    except LabelsError:
        return False
    return True


def _check_given(coder: LabelCoder, given: NDArray[Any], now: Codes, rows: Ints) -> None:
    """Refuse an audit whose given labels are not those of the data."""
    try:
        bad = np.flatnonzero(coder.encode(given) != now)
    except LabelsError as error:
        raise LabelsError(f"Expected the given labels of the data in the audit. {error}") from None
    if len(bad):
        row = rows[bad[0]]
        raise LabelsError(
            f"Expected the given label {coder.names[now[bad[0]]]} in row {row}, got {given[bad[0]]!s} in the audit"
            f"{and_more(len(bad))}: it is of other labels. Pass the labels that it was drawn from."
        )

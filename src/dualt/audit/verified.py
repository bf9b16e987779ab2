"""A few verified labels: they choose among estimates, and correct the chosen one as far as it is wrong."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from dualt.errors import InputError
from dualt.labels import Codes
from dualt.results.fit import Fit, Matrix
from dualt.rows.posterior import NoisyPosterior
from dualt.validation import check_same_length

# Worth of an estimate's row in verified labels: from hardly any to far more than anyone verifies.
_KAPPAS = np.geomspace(1, 1e5, 101)
# An estimate's zero means "not seen", not "impossible": this share of each row is spread over all classes.
_UNSEEN = 1e-3
# A few hundred labels tell good estimates apart by luck: another candidate, and distrust of it, must be e^this
# times as probable as what one believes without them.
_TO_SWITCH, _TO_DISTRUST = 6.0, 3.0
# Standard deviations by which a random sample may look more suspect than all examples.
_SUSPECT = 4.0


def blend_verified(
    posterior: NoisyPosterior, candidates: Mapping[str, Fit], clean_codes: Codes, given_codes: Codes
) -> tuple[str, float, Fit]:
    """Return (name, κ, fit) of the blend: row ∝ κ · T_candidate + verified counts.

    Each row of the truth is taken to scatter around the candidate's as a Dirichlet distribution of
    weight κ: κ is how many verified labels a row of the candidate is worth. The first candidate is used
    unless the verified labels are e⁶ times as probable under another and its best κ; then κ is the largest
    that makes them at least e⁻³ times as probable as the best. Labels that fit the candidate leave
    it as it is; where they contradict it, the counts prevail.

    Only a *random* sample may be used: labels that were verified because they looked suspect overstate the
    noise, whatever the candidate; see `check_random_audit`.

    Parameters
    ----------
    posterior
    candidates
        Estimates by name; first the one to use if the verified labels do not decide.
    clean_codes, given_codes : (n_verified,)
        Verified and given class of each verified example.

    Notes
    -----
    The interval is that of a Dirichlet posterior: a row weighs as much as its verified labels and those that the
    candidate rests on, or κ if that is less. It narrows with every verified label, and widens where they
    have shown a bias of the candidate.
    """
    counts = count_verified(clean_codes, given_codes, posterior.n_classes)
    if not candidates:
        raise InputError("Expected at least one estimate to blend with the verified labels, got none.")
    name, kappa = _choose({name: evidence(fit.transition, counts) for name, fit in candidates.items()})
    chosen = candidates[name]
    transition = _to_rows(kappa * chosen.transition + counts)
    # A row of the candidate is worth no more labels than it rests on, however well it fits.
    support = np.rint(np.minimum(kappa, chosen.support) + counts.sum(axis=1)).astype(np.int64)
    blended = replace(chosen, transition=transition, support=support, resample=partial(_draw, transition, support))
    return name, kappa, blended


def _choose(scores: Mapping[str, NDArray[np.float64]]) -> tuple[str, float]:
    """Return the candidate and κ from the log-evidence of each candidate for each κ."""
    name = next(iter(scores))
    rival = max(scores, key=lambda candidate: float(scores[candidate].max()))
    if scores[rival].max() > scores[name].max() + _TO_SWITCH:
        name = rival
    believable = np.flatnonzero(scores[name] >= scores[name].max() - _TO_DISTRUST)
    return name, float(_KAPPAS[believable[-1]])


def count_verified(clean_codes: Codes, given_codes: Codes, n_classes: int) -> NDArray[np.int64]:
    """Return counts[clean, given] of the verified labels."""
    check_same_length(len(clean_codes), len(given_codes))
    if not len(clean_codes):
        raise InputError("Expected at least one verified label, got none.")
    cells = np.ravel_multi_index((clean_codes, given_codes), (n_classes, n_classes))
    return np.bincount(cells, minlength=n_classes**2).reshape(n_classes, n_classes)


def evidence(transition: Matrix, counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return log P(counts | transition, κ) for each κ: Dirichlet-multinomial rows around the transition's."""
    from scipy.special import gammaln

    cells = np.nonzero(counts)
    prior = _KAPPAS[:, None] * _seen(transition)[cells]
    totals = counts.sum(axis=1)
    rows = gammaln(_KAPPAS)[:, None] - gammaln(_KAPPAS[:, None] + totals)
    occupied = gammaln(prior + counts[cells]) - gammaln(prior)
    return np.asarray(occupied.sum(axis=1) + rows.sum(axis=1))


def _seen(transition: Matrix) -> Matrix:
    return (1 - _UNSEEN) * transition + _UNSEEN / len(transition)


def _to_rows(weights: Matrix) -> Matrix:
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def _draw(transition: Matrix, support: NDArray[np.int64], rng: np.random.Generator) -> Matrix:
    """Draw each row from a Dirichlet distribution around it, of the weight of its support."""
    # The tiny weight keeps a row defined if every draw of it underflows.
    return _to_rows(rng.standard_gamma(support[:, None] * _seen(transition)) + np.finfo(np.float64).tiny)


def check_random_audit(posterior: NoisyPosterior, indices: NDArray[np.intp]) -> None:
    """Refuse verified rows that look chosen for being suspect: their given labels are less probable than most.

    Under a random choice, the rank of p[given label] among all rows is uniform; its mean over the audit
    is compared with one half.
    """
    summary = posterior.summary
    everyone = np.sort(summary.sample_rows[np.arange(len(summary.sample_rows)), summary.sample_labels])
    rows, given = posterior.take(indices)
    audited = rows[np.arange(len(rows)), given]
    ranks = np.searchsorted(everyone, audited, "left") + np.searchsorted(everyone, audited, "right")
    share = float(ranks.mean() / (2 * len(everyone)))
    spread = np.sqrt((1 / len(audited) + 1 / len(everyone)) / 12)
    if share < 0.5 - _SUSPECT * spread:
        raise InputError(
            f"Expected a random sample of the rows to be verified, got {len(audited):,} rows whose given labels are"
            f" less probable than those of {1 - share:.0%} of all rows: they look chosen for being suspect, and"
            " would overstate the noise. Draw the rows to verify at random."
        )

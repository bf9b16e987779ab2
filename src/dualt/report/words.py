"""The page's sentences and numbers, as a person would say them.

Sentences that carry a class name are `Markup`: the name is escaped and isolated (``<bdi>``), so that
neither its markup nor its writing direction touches the words around it.
"""

from __future__ import annotations

import numpy as np
from markupsafe import Markup, escape

from dualt.report.shown import Estimate, GivenMatrix
from dualt.results.notebook import coverage
from dualt.results.readings import finding, rates_range, told_as_range

_VERDICTS = (
    (0.005, "The labels look clean"),
    (0.03, "A few labels look wrong"),
    (0.10, "Some labels look wrong"),
    (0.30, "Many labels look wrong"),
    (0.50, "A large part of the labels looks wrong"),
)


_CONDITIONING = (
    (10, "well conditioned: corrections through it are safe"),
    (100, "workable: corrections through it magnify errors somewhat"),
    (np.inf, "badly conditioned: corrections through it magnify errors a lot"),
)


def percent(share: float) -> str:
    """Return a share as a percentage with as many decimals as a reader needs.

    Examples
    --------
    >>> percent(0.2137), percent(0.00432), percent(1.0)
    ('21.4%', '0.43%', '100%')
    """
    value = 100 * share
    if value in (0, 100):
        return f"{value:.0f}%"
    return f"{value:.1f}%" if value >= 1 else f"{value:.2f}%"


def count(number: float) -> str:
    """Return a number of examples, rounded to a whole one.

    Examples
    --------
    >>> count(12345.6)
    '12,346'
    """
    return f"{round(number):,}"


def frequency(share: float) -> str:
    """Return a share as a count of examples.

    Examples
    --------
    >>> frequency(0.21), frequency(0.05), frequency(0.0)
    ('about 21 in 100', 'about 1 in 20', 'fewer than 1 in 10,000')
    """
    if share < 1e-4:
        return "fewer than 1 in 10,000"
    return f"about {100 * share:.0f} in 100" if share >= 0.15 else f"about 1 in {1 / share:,.0f}"


def class_name(name: str) -> Markup:
    """Return a class name for the page: escaped, and isolated from the direction of the text around it."""
    return Markup("<bdi>{}</bdi>").format(name.strip() or "(blank)")


def verdict(estimate: Estimate, level: float = 0.95) -> str:
    """Return the finding in one sentence: a range where these data fit more than one noise rate."""
    if not isinstance(estimate, GivenMatrix) and told_as_range(estimate):
        return f"{finding(estimate, level)}."
    rate = estimate.noise_rate
    words = next((words for limit, words in _VERDICTS if rate < limit), "Most labels look wrong")
    return f"{words}: {frequency(rate)}."


def hardest_hit(estimate: Estimate, level: float = 0.95) -> Markup:
    """Return which class suffers most, or nothing if the labels look clean or its range meets another class's."""
    rates = estimate.noise_rates
    if isinstance(estimate, GivenMatrix):
        low, high = rates, rates
    else:
        low, high = rates_range(estimate, level)
    worst = int(np.argmax(rates))
    if estimate.noise_rate < _VERDICTS[0][0] or low[worst] <= np.delete(high, worst).max(initial=0):
        return Markup("")
    wrong = estimate.transition[worst].copy()
    wrong[worst] = 0
    return Markup("Class {} is hit hardest: {} of its examples carry another label, most often {}.").format(
        class_name(estimate.class_names[worst]),
        percent(float(estimate.noise_rates[worst])),
        class_name(estimate.class_names[int(np.argmax(wrong))]),
    )


def facts(estimate: Estimate) -> list[Markup]:
    """Return what was measured besides the matrix, one sentence per fact."""
    figures, found = estimate.diagnostics, []
    if not isinstance(estimate, GivenMatrix):
        found.append(escape(coverage(estimate)))
    if figures.agreement is not None:
        agreeing = Markup("The classifier's own choice is the given label for {} of the examples.")
        found.append(agreeing.format(percent(figures.agreement)))
    if figures.condition_number is not None:
        found.append(_conditioning(figures.condition_number))
    rarest = int(np.argmin(figures.label_counts))
    found.append(
        Markup("The rarest label is {}, with {} of {} examples.").format(
            class_name(estimate.class_names[rarest]), count(figures.label_counts[rarest]), count(estimate.n_samples)
        )
    )
    return found


def _conditioning(number: float) -> Markup:
    if not np.isfinite(number) or number > 1e6:
        return Markup("The matrix cannot be inverted: some classes leave the same labels.")
    words = next(words for limit, words in _CONDITIONING if number < limit)
    return Markup("The matrix is {} (condition number {}).").format(words, f"{number:,.1f}")

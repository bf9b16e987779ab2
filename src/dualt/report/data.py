"""What a report shows: plain arrays and texts, no estimator and no file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dualt.report.previews import Previews

Floats: TypeAlias = NDArray[np.floating[Any]]
Codes: TypeAlias = NDArray[np.integer[Any]]


@dataclass(frozen=True)
class Remark:
    """Something seen in the data that deserves a second look, and what to do about it."""

    message: str
    advice: str = ""


@dataclass(frozen=True)
class Method:
    """One estimator's answer, for the side-by-side comparison."""

    name: str
    transition: Floats
    noise_rate: float
    noise_rates: Floats


@dataclass(frozen=True)
class ReviewList:
    """Examples for a person to look at, in the order in which to look at them.

    Attributes
    ----------
    key
        Names the list in the page and in the downloaded file: letters, digits and hyphens.
    title, purpose
        Heading and the sentence under it.
    index
        Row numbers in the data set.
    given, suggested
        Class indices.
    probability_right, suggested_probability
        How probable the given label and the suggestion are.
    previews
        What a person looks at; None shows row numbers only.
    is_audit
        A random sample to verify. Its download is an audit, for `dualt estimate --verified`, not a review.
    """

    key: str
    title: str
    purpose: str
    index: Codes
    given: Codes
    suggested: Codes
    probability_right: Floats
    suggested_probability: Floats
    previews: Previews | None = None
    is_audit: bool = False


@dataclass(frozen=True)
class ReportData:
    """Everything on the page.

    Attributes
    ----------
    transition
        (C, C), ``transition[i, j]`` = P(given label j | true class i).
    noise_rate, noise_rates
        Share of wrong labels, overall and per true class.
    transition_interval, noise_rate_interval, noise_rates_interval
        Low and high ends at `level`; None where the method has none.
    expected_wrong
        Expected number of wrong labels.
    pair_counts
        (C, C), ``pair_counts[given, true]`` = expected number of examples with that given label and that
        true class; None if unknown.
    label_counts
        (C,), number of examples given each label.
    agreement
        Share of examples whose given label is the class predicted for them.
    condition_number
        Of the transition matrix: how much inverting it magnifies errors.
    """

    title: str
    method: str
    n_samples: int
    class_names: tuple[str, ...]
    transition: Floats
    noise_rate: float
    noise_rates: Floats
    expected_wrong: float
    level: float = 0.95
    transition_interval: tuple[Floats, Floats] | None = None
    noise_rate_interval: tuple[float, float] | None = None
    noise_rates_interval: tuple[Floats, Floats] | None = None
    pair_counts: Floats | None = None
    label_counts: Codes | None = None
    agreement: float | None = None
    condition_number: float | None = None
    remarks: tuple[Remark, ...] = ()
    methods: tuple[Method, ...] = ()
    lists: tuple[ReviewList, ...] = ()

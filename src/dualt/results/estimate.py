"""The result of every estimator: a matrix that knows how far it can be trusted."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dualt.errors import naming_extra
from dualt.results.diagnostics import Diagnostics
from dualt.results.fit import Fit, Matrix
from dualt.results.intervals import default_replicates, percentile_interval
from dualt.results.notebook import estimate_html, estimate_text
from dualt.results.notices import Notice, notices
from dualt.results.readings import finding, rate_range, rates_range, undecided
from dualt.results.saved import estimate_content, write_estimate
from dualt.rng import RandomState, as_generator
from dualt.rows.counts import normalize_counts
from dualt.rows.summary import PosteriorSummary
from dualt.transition import clean_prior
from dualt.validation import check_count, check_fraction

if TYPE_CHECKING:
    from dualt.audit import AuditResult
    from dualt.issues import LabelIssues

Interval = tuple[NDArray[np.float64], NDArray[np.float64]]


@dataclass(frozen=True, eq=False, repr=False)
class TransitionEstimate:
    """An estimated transition matrix, `transition[i, j] = P(given j | true i)`; `np.asarray` gives the matrix.

    Attributes
    ----------
    transition : (n_classes, n_classes)
        Rows sum to one.
    estimator : str
        Name of the estimator.
    n_samples : int
    class_names : tuple of str
        In the order of rows and columns.
    t_club, t_spade : (n_classes, n_classes) or None
        The factors P(Y' | Y) and P(noisy | Y') where the estimator has them.
    anchors : (n_classes,) or None
        Row number of each class's anchor.
    out_of_fold : bool or None
        Whether the classifier had not seen the rows of these probabilities; None if that is not known.
    """

    estimator: str
    class_names: tuple[str, ...]
    fit: Fit
    summary: PosteriorSummary
    out_of_fold: bool | None = None

    @property
    def transition(self) -> Matrix:
        """The matrix, read-only."""
        matrix: Matrix = self.fit.transition.view()
        matrix.setflags(write=False)
        return matrix

    @property
    def n_samples(self) -> int:
        """Number of rows it was estimated from."""
        return int(self.diagnostics.label_counts.sum())

    @property
    def t_club(self) -> Matrix | None:
        """P(Y' | Y), read at anchors."""
        return None if self.fit.t_club is None else self.fit.t_club.astype(np.float64)

    @property
    def t_spade(self) -> Matrix | None:
        """P(noisy | Y'), counted."""
        return None if self.fit.spade_counts is None else normalize_counts(self.fit.spade_counts)

    @property
    def anchors(self) -> NDArray[np.int64] | None:
        """Row number of each class's anchor."""
        return self.fit.anchors

    @property
    def audit(self) -> AuditResult | None:
        """What verified labels have shown, where the estimate was corrected by them."""
        return self.fit.audit

    @property
    def noise_rates(self) -> NDArray[np.float64]:
        """P(given ≠ true | true = i) for every class."""
        return 1 - np.diagonal(self.transition)

    @cached_property
    def clean_prior(self) -> NDArray[np.float64]:
        """Share of each true class: as verified labels have shown it, else as label shares and matrix imply."""
        prior = None if self.audit is None else self.audit.clean_prior
        return clean_prior(self.transition, self.diagnostics.label_counts) if prior is None else prior

    @property
    def noise_rate(self) -> float:
        """Share of wrong labels in the data."""
        return float(self.clean_prior @ self.noise_rates)

    @cached_property
    def diagnostics(self) -> Diagnostics:
        """Figures that tell how far the estimate can be trusted."""
        return Diagnostics(self.fit, self.summary)

    @cached_property
    def warnings(self) -> tuple[Notice, ...]:
        """What a user of this estimate should know, in plain words."""
        return tuple(notices(self.estimator, self.fit, self.diagnostics, self.class_names, self.out_of_fold))

    def replicates(self, n_replicates: int | None = None, random_state: RandomState = 0) -> NDArray[np.float32]:
        """Return the matrices of bootstrap resamples, (n_replicates, n_classes, n_classes)."""
        n_classes = len(self.class_names)
        if n_replicates is None:
            n_replicates = default_replicates(n_classes)
        generator = as_generator(random_state)
        drawn = np.empty((check_count(n_replicates, "n_replicates", 1), n_classes, n_classes), np.float32)
        for replicate in drawn:
            replicate[:] = self.fit.resample(generator)
        return drawn

    @cached_property
    def _replicates(self) -> NDArray[np.float32]:
        return self.replicates()

    @cached_property
    def _diagonals(self) -> NDArray[np.float32]:
        """Diagonals of the same replicates: of many classes, whole matrices take gigabytes."""
        if "_replicates" in vars(self):
            return np.diagonal(self._replicates, axis1=1, axis2=2)
        generator, n_replicates = as_generator(0), default_replicates(len(self.class_names))
        return np.array([np.diagonal(self.fit.resample(generator)) for _ in range(n_replicates)], np.float32)

    def confidence_interval(self, level: float = 0.95) -> Interval:
        """Return (low, high), each (n_classes, n_classes): where resamples of the data would put the matrix.

        The interval covers sampling, not bias: with poor probabilities the truth can lie outside. Of an estimate with
        verified labels it holds whatever the bias: it is measured on them.
        """
        level = check_fraction(level, "level")
        if self.audit is not None:
            low, high = self.audit.transition_interval(level)
            return np.minimum(low, self.transition), np.maximum(high, self.transition)
        low, high = percentile_interval(self._replicates, self.fit.support[:, None], level)
        return np.minimum(low, self.transition), np.maximum(high, self.transition)

    def noise_rates_interval(self, level: float = 0.95) -> Interval:
        """Return (low, high), each (n_classes,), for `noise_rates`."""
        if self.audit is not None:
            low, high = map(np.diagonal, self.confidence_interval(level))
        else:
            right = np.diagonal(self.transition)
            low, high = percentile_interval(self._diagonals, self.fit.support, check_fraction(level, "level"))
            low, high = np.minimum(low, right), np.maximum(high, right)
        return 1 - high, 1 - low

    def noise_rate_interval(self, level: float = 0.95) -> tuple[float, float]:
        """Return (low, high) for `noise_rate`, the class shares held fixed."""
        level = check_fraction(level, "level")
        if self.audit is not None:
            low, high = self.audit.noise_rate_interval(level)
            return min(low, self.noise_rate), max(high, self.noise_rate)
        rates = (1 - self._diagonals) @ self.clean_prior
        # Of few labels for each class, resamples are drawn together more than the labels themselves.
        rates += self.noise_rate - rates.mean()
        counted = np.array(min(self.n_samples, int(self.fit.support.sum())))
        lows, highs = percentile_interval(rates, counted, level)
        return min(float(lows), self.noise_rate), max(float(highs), self.noise_rate)

    @property
    def noise_rate_range(self) -> tuple[float, float]:
        """(low, high): what the share of wrong labels may be by every reading that fits, with its sampling error.

        With verified labels, the interval that they leave; for estimators that tell no readings, that of `noise_rate`.
        """
        return rate_range(self, 0.95)

    @property
    def noise_rates_range(self) -> Interval:
        """(low, high), each (n_classes,): the same for `noise_rates`."""
        return rates_range(self, 0.95)

    @property
    def undecided(self) -> str | None:
        """Why no noise rate should be claimed from these data alone; None if one, or a range, may be."""
        return undecided(self)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self.transition, dtype) if copy else np.asarray(self.transition, dtype)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what can be computed anew, such as replicates."""
        return {f.name: getattr(self, f.name) for f in fields(self)}

    def __repr__(self) -> str:
        told = ""
        if self.fit.readings is not None:  # without readings the range is an interval, which takes a bootstrap
            low, high = self.noise_rate_range
            told = f", noise_rate_range={low:.3f} to {high:.3f}"
        return (
            f"TransitionEstimate(estimator={self.estimator!r}, n_samples={self.n_samples},"
            f" n_classes={len(self.class_names)}, noise_rate={self.noise_rate:.3f}{told})"
        )

    def __str__(self) -> str:
        return estimate_text(self)

    def _repr_html_(self) -> str:
        return estimate_html(self)

    def plot(self, ax: Any = None, *, cmap: str = "Blues") -> Any:
        """Draw the matrix as a heat map with matplotlib (the extra `[plot]`), and return its Axes."""
        from dualt.results.plotting import plot_transition

        title = finding(self)
        return plot_transition(self.transition, self.class_names, ax=ax, title=title, cmap=cmap)

    def to_frame(self) -> Any:
        """Return the matrix as a pandas data frame: a row per true class, a column per given label."""
        with naming_extra("A data frame"):
            import pandas as pd

        names = list(self.class_names)
        frame = pd.DataFrame(self.transition, index=names, columns=names)
        return frame.rename_axis(index="true", columns="given")

    def to_report(
        self,
        path: str | Path,
        issues: LabelIssues | None = None,
        *,
        title: str = "Label report",
        level: float = 0.95,
    ) -> None:
        """Write one HTML page of the estimate, and of label issues if they are given, to look at and review."""
        from dualt.report import write_report

        write_report(path, self, issues, title=title, level=check_fraction(level, "level"))

    def to_dict(self, level: float = 0.95) -> dict[str, Any]:
        """Return everything as plain numbers, strings and lists."""
        return estimate_content(self, check_fraction(level, "level"))

    def save(self, path: str | Path, *, level: float = 0.95) -> None:
        """Write the estimate to `path`: everything as `.json`, the matrix alone as `.npy` or `.csv`."""
        write_estimate(path, self, level)

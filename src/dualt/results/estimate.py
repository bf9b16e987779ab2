"""The result of every estimator: a matrix with its uncertainty, its figures and what may be claimed of it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dualt.files import atomic_write, check_ending, check_writable_target, json_text, write_text
from dualt.results import claims, display
from dualt.results.claims import Notice
from dualt.results.diagnostics import Diagnostics
from dualt.results.fit import Fit, Matrix
from dualt.rows.chunks import normalize_counts
from dualt.rows.summary import PosteriorSummary
from dualt.transition import clean_prior
from dualt.validation import check_fraction

if TYPE_CHECKING:
    from dualt.audit import AuditResult

# Replicates of the bootstrap: 200, fewer where they would have more entries than this.
_REPLICATES, _REPLICATE_ENTRIES = 200, 1 << 25
ENDINGS = (".json", ".npy", ".csv")


@dataclass(frozen=True, eq=False, repr=False)
class TransitionEstimate:
    """An estimated transition matrix, `transition[i, j] = P(given j | true i)`; `np.asarray` gives the matrix.

    Attributes
    ----------
    estimator : str
        Name of the estimator.
    class_names : tuple of str
        In the order of rows and columns.
    fit : Fit
        What the estimator returned.
    rows_summary : PosteriorSummary
        What one pass over the rows kept.
    out_of_fold : bool or None
        Whether the classifier had not seen the rows of these probabilities; None if that is not known.
    """

    estimator: str
    class_names: tuple[str, ...]
    fit: Fit
    rows_summary: PosteriorSummary
    out_of_fold: bool | None = None

    @property
    def transition(self) -> Matrix:
        """The matrix (n_classes, n_classes), read-only; rows sum to one."""
        matrix: Matrix = self.fit.transition.view()
        matrix.setflags(write=False)
        return matrix

    @property
    def n_samples(self) -> int:
        """Number of rows it was estimated from."""
        return self.rows_summary.n_samples

    @property
    def t_club(self) -> Matrix | None:
        """The factor P(Y' | Y), read at anchors, where the estimator has it."""
        return None if self.fit.t_club is None else self.fit.t_club.astype(np.float64)

    @property
    def t_spade(self) -> Matrix | None:
        """The factor P(noisy | Y'), counted, where the estimator has it."""
        return None if self.fit.spade_counts is None else normalize_counts(self.fit.spade_counts)

    @property
    def anchors(self) -> NDArray[np.int64] | None:
        """Row number of each class's anchor, where the estimator has them."""
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
        """Share of each true class: by verified labels, by the estimator, or as label shares and matrix imply."""
        prior = self.fit.clean_prior if self.audit is None else self.audit.clean_prior
        return clean_prior(self.transition, self.rows_summary.label_counts) if prior is None else prior

    @property
    def noise_rate(self) -> float:
        """Share of wrong labels in the data."""
        return float(self.clean_prior @ self.noise_rates)

    def noise_rate_interval(self, level: float = 0.95) -> tuple[float, float]:
        """Return (low, high): what may be claimed of `noise_rate`.

        At least `low` of the labels are wrong. `high` is 1 unless verified labels give an upper end: errors that the
        classifier repeats do not show in its probabilities. (0, 1) for estimators that claim nothing. The level matters
        only with verified labels.
        """
        check_fraction(level, "level")
        low, high = self.fit.rate_interval or (0.0, 1.0)
        if self.audit is not None:
            low, high = self.audit.noise_rate_interval(level)
        return min(low, self.noise_rate), max(high, self.noise_rate)

    @cached_property
    def summary(self) -> str:
        """The finding in one sentence."""
        return claims.headline(self)

    @cached_property
    def doubt(self) -> str | None:
        """Why the classifier is not good enough for a matrix or a rate; None if it is."""
        return claims.doubt(self)

    @cached_property
    def diagnostics(self) -> Diagnostics:
        """Figures that show how far the estimate can be trusted."""
        return Diagnostics(self.fit, self.rows_summary)

    @cached_property
    def warnings(self) -> tuple[Notice, ...]:
        """What a user of this estimate should know, in plain words."""
        return claims.notices(self)

    @cached_property
    def replicates(self) -> NDArray[np.float32]:
        """The matrices of bootstrap resamples of the summary, (n_replicates, n_classes, n_classes)."""
        n_replicates = int(np.clip(_REPLICATE_ENTRIES // self.transition.size, 32, _REPLICATES))
        rng = np.random.default_rng(0)
        return np.stack([self.fit.resample(rng).astype(np.float32) for _ in range(n_replicates)])

    def confidence_interval(self, level: float = 0.95) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return (low, high), each (n_classes, n_classes): where resamples of the data would put the matrix.

        It covers sampling, not bias: with poor probabilities the truth can lie outside. With verified labels it holds
        whatever the bias.
        """
        check_fraction(level, "level")
        if self.audit is not None:
            low, high = self.audit.transition_interval(level)
            return np.minimum(low, self.transition), np.maximum(high, self.transition)
        tail = (1 - level) / 2
        low, high = np.quantile(self.replicates, [tail, 1 - tail], axis=0)
        # A count of 0 among n labels resamples to 0 for ever, yet rules out only rates above 1 − (1 − level)^(1/n)
        # ("the rule of three"). Within reach of an end the end itself cannot be ruled out.
        reach = 1 - (1 - level) ** (1 / np.maximum(self.fit.support[:, None], 1))
        low = np.where(low < reach, 0, np.minimum(low, 1 - reach))
        high = np.where(high > 1 - reach, 1, np.maximum(high, reach))
        return np.minimum(low, self.transition), np.maximum(high, self.transition)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self.transition, dtype) if copy else np.asarray(self.transition, dtype)

    def __repr__(self) -> str:
        low, high = self.noise_rate_interval()
        return (
            f"TransitionEstimate(estimator={self.estimator!r}, n_samples={self.n_samples},"
            f" n_classes={len(self.class_names)}, noise_rate={self.noise_rate:.3f},"
            f" noise_rate_interval=({low:.3f}, {high:.3f}))"
        )

    def __str__(self) -> str:
        return display.estimate_text(self)

    def _repr_html_(self) -> str:
        return display.estimate_html(self)

    def plot(self, ax: Any = None) -> Any:
        """Draw the matrix as a heat map with matplotlib, and return its Axes."""
        return display.plot_transition(self.transition, self.class_names, ax=ax, title=self.summary)

    def to_frame(self) -> Any:
        """Return the matrix as a pandas data frame: a row per true class, a column per given label."""
        import pandas as pd

        given, true = (pd.Index(self.class_names, name=name) for name in ("given", "true"))
        return pd.DataFrame(self.transition, index=true, columns=given)

    def to_dict(self, level: float = 0.95) -> dict[str, Any]:
        """Return everything as plain numbers, strings and lists."""
        low, high = self.confidence_interval(level)
        optional = {"t_club": self.t_club, "t_spade": self.t_spade, "anchors": self.anchors}
        return {
            "summary": claims.headline(self, level),
            "estimator": self.estimator,
            "n_samples": self.n_samples,
            "out_of_fold": self.out_of_fold,
            "determined": self.fit.determined,
            "class_names": list(self.class_names),
            "transition": self.transition.tolist(),
            "interval": {"level": level, "low": low.tolist(), "high": high.tolist()},
            "noise_rate": self.noise_rate,
            "noise_rate_interval": list(self.noise_rate_interval(level)),
            "noise_rates": self.noise_rates.tolist(),
            "doubt": self.doubt,
            **({} if self.audit is None else {"audit": self.audit.to_dict()}),
            **{name: value.tolist() for name, value in optional.items() if value is not None},
            "diagnostics": self.diagnostics.to_dict(),
            "warnings": [vars(notice) for notice in self.warnings],
        }

    def save(self, path: str | Path, *, level: float = 0.95) -> None:
        """Write the estimate to `path`: everything as `.json`, the matrix alone as `.npy` or `.csv`."""
        path = Path(path)
        check_writable_target(path)
        check_ending(path, ENDINGS)
        suffix = path.suffix.lower()
        if suffix == ".json":
            write_text(path, f"{json_text(self.to_dict(level))}\n")
        elif suffix == ".npy":
            with atomic_write(path, "wb") as stream:
                np.save(stream, self.transition, allow_pickle=False)
        else:
            from dualt.io.tables import write_table

            write_table(path, self.to_frame().map("{:.10g}".format), guarded=True)

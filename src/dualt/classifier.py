"""Any scikit-learn classifier, made noise-aware."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing, get_tags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, has_fit_parameter, indexable

from dualt.crossfit import out_of_fold_probabilities
from dualt.errors import InputError, LabelsError, UnknownNameError
from dualt.estimators import DEFAULT_ESTIMATOR, estimate_posterior, estimate_verified
from dualt.issues import LabelIssues, find_posterior_issues
from dualt.labels import LabelCoder
from dualt.results import TransitionEstimate
from dualt.rows import NoisyPosterior, as_posterior
from dualt.transition import early_posterior
from dualt.validation import as_array

if TYPE_CHECKING:
    from typing_extensions import Self

# A label that seems impossible under T would get a weight without bound; this one already outvotes ten others.
_MAX_WEIGHT = 10.0


class RobustClassifier(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """A scikit-learn classifier that learns from noisy labels and predicts clean ones.

    `fit` gets out-of-fold probabilities by stratified cross-validation, estimates the transition matrix, and
    corrects for it.

    Parameters
    ----------
    estimator
        Any classifier with `predict_proba`; `LogisticRegression()` by default.
    correction
        `"reweight"`: each example weighs P(true class = y | x) / P(given label = y | x), through the
        classifier's `sample_weight`. `"posterior"`: the classifier learns the noisy labels, and its
        probabilities are taken back through T when it predicts. `"clean"`: labels that are probably wrong
        are replaced where the true class is clear, else left out.
    transition
        Name of an estimator, a matrix (classes in sorted order), or a `TransitionEstimate`.
    cv
        Number of folds, or a scikit-learn splitter.
    random_state
        Shuffles the folds.

    Attributes
    ----------
    classes_ : (n_classes,)
    transition_ : (n_classes, n_classes)
    transition_estimate_ : TransitionEstimate or None
        None if a matrix was given.
    label_issues_ : LabelIssues
        What is known of every training label.
    estimator_ : the fitted classifier

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> import dualt
    >>> X, y = load_iris(return_X_y=True)
    >>> noisy = dualt.noise.corrupt(y, dualt.noise.pair(3, 0.3), random_state=1)
    >>> model = dualt.RobustClassifier(LogisticRegression(max_iter=1000)).fit(X, noisy)
    >>> bool(model.score(X, y) > 0.9)
    True
    """

    def __init__(
        self,
        estimator: Any = None,
        correction: Literal["reweight", "posterior", "clean"] = "reweight",
        transition: str | ArrayLike | TransitionEstimate = DEFAULT_ESTIMATOR,
        cv: Any = 5,
        random_state: int | None = 0,
    ) -> None:
        self.estimator = estimator
        self.correction = correction
        self.transition = transition
        self.cv = cv
        self.random_state = random_state

    def fit(self, X: Any, y: Any, verified: tuple[Any, Any] | None = None) -> Self:  # noqa: N803
        """Learn from noisy labels `y`, perhaps with (row numbers, true labels) of a random sample that was checked."""
        corrections = {"reweight": self._fit_reweighted, "posterior": self._fit_noisy, "clean": self._fit_cleaned}
        if self.correction not in corrections:
            raise UnknownNameError("correction", str(self.correction), corrections)
        try:
            X, y = indexable(X, y)  # noqa: N806
        except (TypeError, ValueError) as error:
            raise InputError(f"Expected one label an example: {str(error).rstrip('.')}.") from error
        labels = self._encode(y)
        base = clone(self.estimator) if self.estimator is not None else LogisticRegression()
        if self.correction == "reweight":
            _weight_parameter(base)
        probs = out_of_fold_probabilities(base, X, labels, cv=self.cv, random_state=self.random_state)
        # Labels are class numbers by now, whatever the classes are called.
        coder = LabelCoder(tuple(map(str, self.classes_.tolist())), by_name=False)
        posterior = as_posterior(_safe_rows(probs), labels, coder=coder, out_of_fold=True)
        transition = self.transition
        if verified is not None:
            transition = self._use_verified(posterior, *verified)
        self.label_issues_: LabelIssues = find_posterior_issues(posterior, transition)
        self.transition_estimate_ = self.label_issues_.transition_estimate
        self.transition_: NDArray[np.float64] = self.label_issues_.transition
        self.estimator_ = corrections[self.correction](base, X, labels, posterior)
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self.estimator_, name):
                setattr(self, name, getattr(self.estimator_, name))
        return self

    def _use_verified(self, posterior: NoisyPosterior, indices: Any, clean_labels: Any) -> TransitionEstimate:
        if not isinstance(self.transition, str):
            raise InputError("Expected the name of an estimator as transition beside verified labels, got a matrix.")
        known = {label: code for code, label in enumerate(self.classes_.tolist())}
        for label in clean_labels:
            if label not in known:
                raise LabelsError(f"Expected verified labels among the classes, got {label!r}.")
        codes = np.array([known[label] for label in clean_labels])
        return estimate_verified(posterior, estimate_posterior(posterior, self.transition), indices, codes)

    def _encode(self, y: Any) -> NDArray[np.intp]:
        if y is None:
            raise InputError("RobustClassifier requires y to be passed, but the target y is None.")
        y = as_array(y, "one label an example", LabelsError)
        if y.size == 0:
            raise InputError("Expected at least one example, got none (0 samples).")
        if y.ndim == 2 and y.shape[1] == 1:
            from sklearn.utils.validation import column_or_1d

            y = column_or_1d(y, warn=True)
        if y.ndim != 1:
            raise LabelsError(
                f"Expected labels of shape (n_samples,), got {y.shape}. For one-hot rows pass their argmax."
            )
        try:
            with np.errstate(invalid="ignore"):  # NaN is refused in words, not by a warning before
                check_classification_targets(y)
            self.classes_, labels = np.unique(y, return_inverse=True)
        except (TypeError, ValueError) as error:  # of missing, mixed or continuous labels, in scikit-learn's words
            raise LabelsError(f"Expected labels that are classes: {str(error).rstrip('.')}.") from error
        if len(self.classes_) < 2:
            raise InputError(f"Expected labels of at least two classes, got one class: {self.classes_[0]!r}.")
        return labels.astype(np.intp)

    def _fit_reweighted(self, base: Any, X: Any, labels: NDArray[np.intp], posterior: NoisyPosterior) -> Any:  # noqa: N803
        """Fit with weights q_y / (q @ T)_y: the noisy sample then stands for the clean one (Liu & Tao 2016)."""
        rows = np.arange(len(labels))
        clean = early_posterior(posterior.take(rows)[0], self.transition_)
        noisy = clean @ self.transition_
        weights = clean[rows, labels] / np.maximum(noisy[rows, labels], 1e-12)
        return base.fit(X, labels, **{_weight_parameter(base): np.minimum(weights, _MAX_WEIGHT)})

    def _fit_noisy(self, base: Any, X: Any, labels: NDArray[np.intp], posterior: NoisyPosterior) -> Any:  # noqa: N803
        return base.fit(X, labels)

    def _fit_cleaned(self, base: Any, X: Any, labels: NDArray[np.intp], posterior: NoisyPosterior) -> Any:  # noqa: N803
        """Fit on the labels as they should be, without the issues whose true class is not clear."""
        issues = self.label_issues_
        replaced = issues.is_issue & (issues.suggested_probability >= 0.5)
        cleaned = np.where(replaced, issues.suggested, labels)
        kept = ~issues.is_issue | replaced
        for label in np.setdiff1d(labels, cleaned[kept]):  # no class may vanish
            members = np.flatnonzero(labels == label)
            best = members[issues.probability_right[members].argmax()]
            cleaned[best], kept[best] = label, True
        chosen = np.flatnonzero(kept)
        return base.fit(_safe_indexing(X, chosen), cleaned[chosen])

    def predict_proba(self, X: Any) -> NDArray[np.float64]:  # noqa: N803
        """Return the probability of each clean class."""
        check_is_fitted(self)
        found = np.asarray(self.estimator_.predict_proba(X), dtype=np.float64)
        probs = np.zeros((len(found), len(self.classes_)))
        probs[:, self.estimator_.classes_] = found
        return early_posterior(probs, self.transition_) if self.correction == "posterior" else probs

    def predict(self, X: Any) -> NDArray[Any]:  # noqa: N803
        """Return the most probable clean class."""
        best = self.predict_proba(X).argmax(axis=1)
        return np.asarray(self.classes_[best])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator if self.estimator is not None else LogisticRegression())
        tags.input_tags.sparse = inner.input_tags.sparse
        tags.input_tags.allow_nan = inner.input_tags.allow_nan
        return tags


def _weight_parameter(base: Any) -> str:
    """Return the name under which `fit` of a classifier, or of a pipeline's last step, takes weights."""
    prefix = ""
    while isinstance(base, Pipeline):
        prefix, base = f"{prefix}{base.steps[-1][0]}__", base.steps[-1][1]
    if not has_fit_parameter(base, "sample_weight"):
        raise InputError(
            f"{type(base).__name__}.fit takes no sample_weight, which correction='reweight' needs."
            " Use correction='posterior' or correction='clean'."
        )
    return f"{prefix}sample_weight"


def _safe_rows(probs: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return rows that sum to one even where a fold knew none of a row's classes or rounding crept in."""
    return np.asarray(probs / np.maximum(probs.sum(axis=1, keepdims=True), 1e-300))

"""Any scikit-learn classifier, made noise-aware."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing, get_tags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, has_fit_parameter, indexable

from dualt.audit import Audit, as_audit
from dualt.audit.verified_labels import check_digest
from dualt.crossfit import out_of_fold_probabilities
from dualt.errors import InputError, LabelsError, UnknownNameError
from dualt.estimators import estimate_posterior, estimate_verified
from dualt.issues import LabelIssues, find_posterior_issues
from dualt.labels import LabelCoder, labels_digest
from dualt.results import TransitionEstimate
from dualt.rows import as_posterior
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
    classifier
        Any classifier with `predict_proba`; `LogisticRegression()` by default.
    correction
        `"reweight"`: each example weighs P(true class = y | x) / P(given label = y | x), through the
        classifier's `sample_weight`. `"posterior"`: the classifier learns the noisy labels, and its
        probabilities are taken back through T when it predicts. `"clean"`: labels that are probably wrong
        are replaced where the true class is clear, else left out.
    estimator
        Name of the estimator that finds the transition matrix; see `dualt.estimate_transition`.
    transition
        A known matrix (classes in sorted order) or a `TransitionEstimate`, instead.
    cv
        Number of folds, or a scikit-learn splitter.
    n_jobs
        How many folds are fitted at once.
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
    classifier_ : the fitted classifier

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
        classifier: Any = None,
        *,
        correction: Literal["reweight", "posterior", "clean"] = "reweight",
        estimator: str | None = None,
        transition: ArrayLike | TransitionEstimate | None = None,
        cv: Any = 5,
        n_jobs: int | None = None,
        random_state: int | None = 0,
    ) -> None:
        self.classifier = classifier
        self.correction = correction
        self.estimator = estimator
        self.transition = transition
        self.cv = cv
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: Any, y: Any, verified: Audit | tuple[Any, Any] | None = None) -> Self:  # noqa: N803
        """Learn from noisy labels `y`, perhaps with (row numbers, true labels) of a random sample, or an `Audit`."""
        corrections = {"reweight": self._fit_reweighted, "posterior": self._fit_noisy, "clean": self._fit_cleaned}
        if self.correction not in corrections:
            raise UnknownNameError("correction", str(self.correction), corrections)
        try:
            X, y = indexable(X, y)  # noqa: N806
        except (TypeError, ValueError) as error:
            raise InputError(f"Expected one label per example: {str(error).rstrip('.')}.") from error
        labels = self._encode(y)
        base = clone(self.classifier) if self.classifier is not None else LogisticRegression()
        if self.correction == "reweight":
            _weight_parameter(base)
        self.label_issues_: LabelIssues = self._find_issues(base, X, labels, verified)
        self.transition_estimate_ = self.label_issues_.transition_estimate
        self.transition_: NDArray[np.float64] = self.label_issues_.transition
        self.classifier_ = corrections[self.correction](base, X, labels)
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self.classifier_, name):
                setattr(self, name, getattr(self.classifier_, name))
        return self

    def _find_issues(self, base: Any, X: Any, labels: NDArray[np.intp], verified: Any) -> LabelIssues:  # noqa: N803
        """Estimate the matrix from out-of-fold probabilities, and judge every label by it."""
        probs = out_of_fold_probabilities(
            base, X, labels, cv=self.cv, n_jobs=self.n_jobs, random_state=self.random_state
        )
        # Of some classifiers the probabilities of a row sum to one only nearly.
        probs /= np.maximum(probs.sum(axis=1, keepdims=True), 1e-300)
        # Labels are class numbers by now, whatever the classes are called.
        coder = LabelCoder(tuple(map(str, self.classes_.tolist())), by_name=False)
        posterior = as_posterior(probs, labels, coder=coder, out_of_fold=True)
        if verified is None:
            return find_posterior_issues(posterior, self.transition, estimator=self.estimator)
        if self.transition is not None:
            raise InputError("Expected verified labels or a transition, got both: they correct an estimate.")
        estimate = estimate_posterior(posterior, self.estimator)
        audit = as_audit(verified)
        if audit.labels_digest is not None:
            check_digest(audit.labels_digest, labels_digest(self.classes_[labels]), len(labels))
        # What remains to be compared speaks of class numbers.
        audit = replace(audit, true=self._codes_of(audit.true.tolist()), given=None, labels_digest=None)
        return find_posterior_issues(posterior, estimate_verified(posterior, estimate, audit))

    def _codes_of(self, clean_labels: Any) -> NDArray[np.intp]:
        """Return the class numbers of verified labels."""
        known = {label: code for code, label in enumerate(self.classes_.tolist())}
        for label in clean_labels:
            if label not in known:
                raise LabelsError(f"Expected verified labels among the classes, got {label!r}.")
        return np.array([known[label] for label in clean_labels], np.intp)

    def _encode(self, y: Any) -> NDArray[np.intp]:
        if y is None:
            raise InputError("RobustClassifier requires y to be passed, but the target y is None.")
        y = as_array(y, "one label per example", LabelsError)
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

    def _fit_reweighted(self, base: Any, X: Any, labels: NDArray[np.intp]) -> Any:  # noqa: N803
        """Fit with weights q_y / (q @ T)_y: the noisy sample then stands for the clean one (Liu & Tao 2016).

        A label is right with probability q_y · T_yy / (q @ T)_y, so that the weight is this over T_yy.
        Where the estimate ranks by two opinions (`dualt.issues.opinions`), that probability is theirs, and the weight
        only near Bayes' rule.
        """
        kept = np.diagonal(self.transition_)[labels]
        right = self.label_issues_.probability_right.astype(np.float64)
        weights = np.divide(right, kept, out=np.zeros(len(labels)), where=kept > 0)
        if not weights.any():
            raise InputError(
                "Expected a matrix by which some labels are right, got one by which all are wrong."
                " Use correction='posterior' or correction='clean'."
            )
        return base.fit(X, labels, **{_weight_parameter(base): np.minimum(weights, _MAX_WEIGHT)})

    def _fit_noisy(self, base: Any, X: Any, labels: NDArray[np.intp]) -> Any:  # noqa: N803
        return base.fit(X, labels)

    def _fit_cleaned(self, base: Any, X: Any, labels: NDArray[np.intp]) -> Any:  # noqa: N803
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
        found = np.asarray(self.classifier_.predict_proba(X), dtype=np.float64)
        probs = np.zeros((len(found), len(self.classes_)))
        probs[:, self.classifier_.classes_] = found
        return early_posterior(probs, self.transition_) if self.correction == "posterior" else probs

    def predict(self, X: Any) -> NDArray[Any]:  # noqa: N803
        """Return the most probable clean class."""
        best = self.predict_proba(X).argmax(axis=1)
        return np.asarray(self.classes_[best])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(self.classifier if self.classifier is not None else LogisticRegression())
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

"""`RobustClassifier`: a scikit-learn classifier trained on noisy labels."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn import get_config
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection._search import BaseSearchCV
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing, get_tags
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, has_fit_parameter, indexable

from dualt.audit import Audit, as_audit
from dualt.crossfit.folds import check_classifier, class_numbers, encode_labels, fit_folds, group_numbers, make_folds
from dualt.errors import DualtWarning, InputError, UnknownNameError
from dualt.estimators import estimate_posterior, estimate_verified
from dualt.issues import LabelIssues, find_posterior_issues
from dualt.issues.corrections import CORRECTIONS, training_set
from dualt.results import TransitionEstimate
from dualt.rows import as_posterior
from dualt.rows.scaling import scale_classes, share_factors
from dualt.transition import EarlyPosterior, early_posterior
from dualt.validation import index_of

if TYPE_CHECKING:
    from typing_extensions import Self


class RobustClassifier(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """A scikit-learn classifier that learns from noisy labels and predicts clean ones.

    `fit` gets out-of-fold probabilities by stratified cross-validation, estimates the transition matrix, and corrects
    for it.

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
    determined
        Could an expert always tell the class from the example? See `dualt.estimate_transition`.
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
        The scores of all training labels.
    classifier_ : the fitted classifier

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> import dualt
    >>> X, y = load_iris(return_X_y=True)
    >>> noisy = dualt.noise.corrupt(y, dualt.noise.pair(3, 0.3), random_state=2)
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
        determined: bool | None = None,
        cv: Any = 5,
        n_jobs: int | None = None,
        random_state: int | None = 0,
    ) -> None:
        self.classifier = classifier
        self.correction = correction
        self.estimator = estimator
        self.transition = transition
        self.determined = determined
        self.cv = cv
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(
        self,
        X: Any,  # noqa: N803
        y: Any,
        sample_weight: ArrayLike | None = None,
        *,
        verified: Audit | tuple[Any, Any] | None = None,
        groups: Any = None,
    ) -> Self:
        """Learn from noisy labels.

        Parameters
        ----------
        X, y
            Examples, and their noisy labels. Examples without a label (None, NaN, an empty string) are set aside.
        sample_weight : (n_samples,)
            What each example counts when the classifier is fitted, in every fold and at the end. Labels are counted
            once each where the matrix is estimated.
        verified
            (row numbers, true labels) of a random sample, or an `Audit`.
        groups : (n_samples,)
            Examples of one group, such as those of one user, stay in one fold. One without a group is a group of its
            own.
        """
        if self.correction not in CORRECTIONS:
            raise UnknownNameError("correction", self.correction, CORRECTIONS)
        if verified is not None and self.transition is not None:
            raise InputError("Expected verified labels or a transition, got both: they correct an estimate.")
        X, y = indexable(X, y)  # noqa: N806
        index = index_of(y) if index_of(X) is None else index_of(X)
        self.classes_, codes = encode_labels(y, "RobustClassifier", missing=True)
        kept, n_rows = np.flatnonzero(codes >= 0), len(codes)
        labels = codes[kept]
        groups = None if groups is None else group_numbers(groups, n_rows)[kept]
        base = LogisticRegression() if self.classifier is None else clone(check_classifier(self.classifier))
        weights: dict[str, NDArray[np.float64]] = {}
        if self.correction == "reweight" or sample_weight is not None:
            each = _check_sample_weight(sample_weight, X, ensure_non_negative=True)
            weights = {_weight_parameter(base): each[kept]}
        if len(kept) < n_rows:
            X = _safe_indexing(X, kept)  # noqa: N806
            verified = None if verified is None else as_audit(verified).among(kept)
        folds = make_folds(labels, self.cv, groups, self.random_state)
        in_folds = None if sample_weight is None else weights
        probs = fit_folds(base, X, labels, folds, classes=self.classes_, n_jobs=self.n_jobs, weights=in_folds)
        # Rows of some classifiers sum to one only nearly.
        probs /= np.maximum(probs.sum(axis=1, keepdims=True), 1e-300)
        # Class weights, or weights of examples, shift the probabilities from the labels' shares.
        self._factors = share_factors(probs, labels)
        issues, right = self._judge(scale_classes(probs, self._factors), labels, verified)
        rows, learned, importance = training_set(self.correction, issues, labels, right)
        issues = issues if len(kept) == n_rows else issues.spread(kept, n_rows)
        self.label_issues_ = replace(issues, index=index)
        self.transition_estimate_ = issues.transition_estimate
        self.transition_: NDArray[np.float64] = issues.transition
        self.classifier_ = base.fit(
            X if rows is None else _safe_indexing(X, rows),
            self.classes_[learned],
            **{name: (each if rows is None else each[rows]) * importance for name, each in weights.items()},
        )
        for name in {"n_features_in_", "feature_names_in_"} & vars(self.classifier_).keys():
            setattr(self, name, getattr(self.classifier_, name))
        return self

    def _judge(
        self, probs: NDArray[np.float64], labels: NDArray[np.intp], verified: Any
    ) -> tuple[LabelIssues, NDArray[np.float64]]:
        """Return the issues by out-of-fold probabilities, and P(right) of every label by Bayes' rule or an audit."""
        names = self.classes_.tolist()
        posterior = as_posterior(probs, self.classes_[labels], names, out_of_fold=True, determined=self.determined)
        if verified is None:
            issues = find_posterior_issues(posterior, self.transition, estimator=self.estimator)
        else:
            estimate = estimate_verified(posterior, estimate_posterior(posterior, self.estimator), verified)
            issues = find_posterior_issues(posterior, estimate)
        found = issues.transition_estimate
        if found is not None and found.doubt is not None:
            advice = "Compare with the classifier alone on verified labels."
            warnings.warn(f"The correction may do harm: {found.doubt}. {advice}", DualtWarning, stacklevel=3)
        if self.correction == "reweight" and verified is None:  # by the probabilities as they are
            return issues, EarlyPosterior(issues.transition, probs.dtype).scores(probs, labels)[0].astype(np.float64)
        return issues, issues.probability_right.astype(np.float64)

    def predict_proba(self, X: Any) -> NDArray[np.float64]:  # noqa: N803
        """Return the probability of each clean class."""
        check_is_fitted(self)
        found = np.asarray(self.classifier_.predict_proba(X), dtype=np.float64)
        probs = np.zeros((len(found), len(self.classes_)))
        probs[:, class_numbers(self.classifier_, self.classes_)] = found
        if self.correction != "posterior":
            return probs
        return scale_classes(early_posterior(scale_classes(probs, self._factors), self.transition_), 1 / self._factors)

    def predict(self, X: Any) -> NDArray[Any]:  # noqa: N803
        """Return the most probable clean class."""
        best = self.predict_proba(X).argmax(axis=1)  # first: an unfitted classifier has no classes
        return np.asarray(self.classes_[best])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(self.classifier if self.classifier is not None else LogisticRegression())
        tags.input_tags.sparse = inner.input_tags.sparse
        tags.input_tags.allow_nan = inner.input_tags.allow_nan
        return tags


def _weight_parameter(base: Any) -> str:
    """Return the name under which `fit` takes weights: those of the last step in a pipeline."""
    if isinstance(base, Pipeline):
        name, last = base.steps[-1]
        inner = _weight_parameter(last)
        return inner if get_config()["enable_metadata_routing"] else f"{name}__{inner}"
    if isinstance(base, BaseSearchCV):
        return _weight_parameter(base.estimator)
    if not hasattr(base, "estimators") and not has_fit_parameter(base, "sample_weight"):
        raise InputError(
            f"{type(base).__name__}.fit takes no sample_weight, which correction='reweight' and weights need."
            " Use correction='posterior' or correction='clean', without weights."
        )
    return "sample_weight"

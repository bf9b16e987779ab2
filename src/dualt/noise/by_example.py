"""Noise that depends on the example: weak annotators, and part-dependent noise."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dualt.errors import LabelsError
from dualt.labels import Codes, LabelCoder, as_label_array, is_missing
from dualt.noise.matrices import labels_like, noise_generator
from dualt.rng import RandomState
from dualt.validation import (
    as_probability_table,
    check_features,
    check_fraction,
    check_n_classes,
    check_probability_chunk,
    check_same_length,
)

Floats = NDArray[np.float64]

# Annotators, and the clean examples per class that each learns from.
_N_ANNOTATORS, _N_SEEN = 5, 10
_STRENGTH = 5.0  # inverse ridge penalty of an annotator, for features with a mean square norm of one
_LARGEST_LIFT = 100.0  # in log odds: beyond it a label is never, or always, wrong
# Of part-dependent noise: standard deviation of the rates, as published, and how strongly features choose the class.
_RATE_SPREAD, _SHARPNESS = 0.1, 2.0


class InstanceNoise(NamedTuple):
    """Noisy labels, of the same kind as the clean ones, and P(given label | example) that each was drawn from.

    The columns of `distributions` are class numbers, or class names in sorted order.
    """

    noisy_labels: NDArray[Any]
    distributions: Floats


def weak_annotators(
    features: ArrayLike, clean_labels: Any, rate: float, random_state: RandomState = 0
) -> InstanceNoise:
    """Draw labels from five weak annotators, who err most on hard examples, and towards similar classes.

    Each annotator is a logistic regression trained on ten clean examples per class, and labels a random fifth of the
    rows: j with probability ∝ P(j | x) · exp(λ·1[j = y]) for true class y, with one λ that makes `rate` the mean
    probability of a wrong label.

    Parameters
    ----------
    features : (n_samples, ...)
        Numbers; they are flattened and standardised.
    clean_labels : (n_samples,)
        Class numbers from 0, class names, or one-hot rows.
    rate
        Mean probability of a wrong label, between 0 and 1.
    random_state
        Seed or generator.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.linspace(-1, 1, 400)[:, None]
    >>> y = (x[:, 0] > 0).astype(int)
    >>> noisy, distributions = weak_annotators(x, y, 0.2)
    >>> wrong = 1 - distributions[np.arange(400), y]
    >>> print(f"{wrong.mean():.3f}", wrong[180:220].mean() > 2 * wrong[:40].mean())
    0.200 True
    """
    from scipy.special import expit, softmax
    from sklearn.linear_model import LogisticRegression

    array, coder, codes, scaled = _checked(features, clean_labels, rate)
    rng = noise_generator(random_state, "annotators", codes)
    annotator_of = rng.integers(_N_ANNOTATORS, size=len(codes))
    beliefs = np.full((len(codes), coder.n_classes), -np.inf)  # stays so for a class without examples
    for annotator in range(_N_ANNOTATORS):
        by_class = (rng.permutation(np.flatnonzero(codes == label)) for label in np.unique(codes))
        seen = np.concatenate([rows[:_N_SEEN] for rows in by_class])
        fitted = LogisticRegression(C=_STRENGTH / scaled.shape[1], max_iter=500).fit(scaled[seen], codes[seen])
        mine = np.flatnonzero(annotator_of == annotator)
        if len(mine):
            beliefs[np.ix_(mine, fitted.classes_)] = fitted.predict_log_proba(scaled[mine])
    rows = np.arange(len(codes))
    others = beliefs.copy()
    others[rows, codes] = -np.inf
    log_odds = beliefs[rows, codes] - np.logaddexp.reduce(others, axis=1)
    low, high = -_LARGEST_LIFT, _LARGEST_LIFT
    for _ in range(60):  # bisection for λ
        lift = (low + high) / 2
        low, high = (lift, high) if expit(-log_odds - lift).mean() > rate else (low, lift)
    beliefs[rows, codes] += high
    return _drawn(np.asarray(softmax(beliefs, axis=1)), array, coder, rng)


def part_dependent(features: ArrayLike, clean_labels: Any, rate: float, random_state: RandomState = 0) -> InstanceNoise:
    """Draw labels with part-dependent noise: each example has its own rate, its features choose the wrong class.

    For example x of true class y, with W_1 … W_C of independent standard normal entries,

        q ~ N(rate, 0.1²) truncated;  p_j ∝ exp(2 (x W_y)_j / √d) for j ≠ y;
        P(given = y) = 1 − q,  P(given = j) = q · p_j.

    Two things differ from the published algorithm. The rate is truncated symmetrically, so that its mean stays `rate`.
    Features are standardised and x W is divided by √d, so that the noise is as sharp for any number of features; the
    published one is sharper, nearly a function of x and y. Parameters are those of `weak_annotators`.

    References
    ----------
    Xia, Liu, Han, Wang, Gong, Liu, Niu, Tao, Sugiyama: Part-dependent Label Noise: Towards Instance-dependent
    Label Noise. NeurIPS 2020, Algorithm 2.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.random.default_rng(0).normal(size=(1000, 5))
    >>> y = np.arange(1000) % 3
    >>> noisy, distributions = part_dependent(x, y, 0.3)
    >>> print(f"{np.mean(noisy != y):.2f}")
    0.30
    """
    from scipy.special import ndtr, ndtri, softmax

    array, coder, codes, scaled = _checked(features, clean_labels, rate)
    rng = noise_generator(random_state, "parts", codes)
    # Truncated symmetrically to [0, 1]; clipped because of rounding errors.
    reach = ndtr(min(rate, 1 - rate) / _RATE_SPREAD)
    rates = np.clip(rate + _RATE_SPREAD * ndtri(rng.uniform(1 - reach, reach, len(codes))), 0, 1)
    weights = rng.normal(size=(coder.n_classes, scaled.shape[1], coder.n_classes))
    distributions = np.empty((len(codes), coder.n_classes))
    for label, own in enumerate(weights):
        members = np.flatnonzero(codes == label)
        logits = scaled[members] @ own * (_SHARPNESS / np.sqrt(scaled.shape[1]))
        logits[:, label] = -np.inf
        distributions[members] = rates[members, None] * softmax(logits, axis=1)
        distributions[members, label] = 1 - rates[members]
    return _drawn(distributions, array, coder, rng)


def expected_transition(distributions: ArrayLike, clean_labels: Any) -> Floats:
    """Return the matrix to compare an estimate with: the mean of `distributions` over each true class.

    A class without examples gets the row of the identity.

    Examples
    --------
    >>> expected_transition([[0.9, 0.1], [0.7, 0.3], [0, 1]], [0, 0, 1])
    array([[0.8, 0.2],
           [0. , 1. ]])
    """
    table = as_probability_table(distributions)[0].astype(np.float64)
    array = as_label_array(clean_labels)
    check_same_length(len(table), len(array))
    check_probability_chunk(table, 0)
    codes = LabelCoder.for_labels(array, table.shape[1]).encode(array)
    transition = np.eye(table.shape[1])
    for label in np.unique(codes):
        transition[label] = table[codes == label].mean(axis=0)
    return np.asarray(transition / transition.sum(axis=1, keepdims=True))


def _checked(features: ArrayLike, clean_labels: Any, rate: float) -> tuple[NDArray[Any], LabelCoder, Codes, Floats]:
    """Return the labels with their coder and codes, and the features as standardised rows (a constant one is 0)."""
    check_fraction(rate, "rate", inclusive=True)
    array = as_label_array(clean_labels)
    if array.ndim == 1 and array.dtype.kind in "iuf":
        n_classes = int(np.nanmax(np.where(np.isfinite(array), array, 1))) + 1
    else:
        n_classes = array.shape[1] if array.ndim == 2 else len(np.unique(array[~is_missing(array)]))
    coder = LabelCoder.for_labels(array, check_n_classes(max(n_classes, 2)))
    codes = coder.encode(array)
    if codes.min() == codes.max():
        raise LabelsError(f"Expected clean labels of at least two classes, got only {coder.names[codes[0]]!r}.")
    rows = check_features(features, len(codes)).astype(np.float64)
    spread = rows.std(axis=0)
    return array, coder, codes, (rows - rows.mean(axis=0)) / np.where(spread > 0, spread, 1)


def _drawn(distributions: Floats, array: NDArray[Any], coder: LabelCoder, rng: np.random.Generator) -> InstanceNoise:
    """Draw a label from each row, by inverting its cumulative distribution, and return it in the kind of `array`."""
    edges = distributions.cumsum(axis=1)[:, :-1]  # the last edge is one, whatever rounding says
    noisy = (edges <= rng.random((len(distributions), 1))).sum(axis=1)
    return InstanceNoise(labels_like(array, noisy, coder), distributions)

"""HOC: how often neighbours agree in their given labels determines the matrix, without confident examples."""

from dataclasses import replace
from itertools import permutations
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from dualt.errors import InputError
from dualt.estimators._counts import canonical_order, count_fit
from dualt.estimators.confident_joint import calibrated_joint, count_confident
from dualt.labels import Codes
from dualt.results.fit import Fit, Matrix
from dualt.rows.posterior import NoisyPosterior
from dualt.validation import check_features

# A sample of this many rows stands for more.
_MOST_ROWS = 50_000
# Third-order consensus has n_classes³ numbers.
_MOST_CLASSES = 128
_START_FLOOR = 1e-2
_STEPS = 1_000
# The squares are tiny; scaled, the optimiser's tolerances mean what they say.
_SCALE = 1e4


def hoc(posterior: NoisyPosterior, *, features: Any = None) -> Fit:
    """T̂ whose consensus Σ_i π_i T_ij, Σ_i π_i T_ij T_ik, Σ_i π_i T_ij T_ik T_il fits that of neighbours' labels.

    If an example and its two nearest neighbours have the same clean class ("clusterability"), their given labels
    are three independent draws from one row of T. How often each label, pair and triple of labels occurs
    then determines T and the class shares π, by least squares.

    Parameters
    ----------
    features : (n_samples, n_features), optional
        Of all rows, with or without a label: where neighbours are sought, best from a network trained without labels.
        By default √p, in which the Euclidean distance of two posteriors is Hellinger's.

    Notes
    -----
    Neighbours of different classes blur the consensus and overstate the noise; a copy of an example is its own
    neighbour, and understates it: remove duplicate rows first. The interval is a band: that of
    counting n·π_i labels of known class in each row. It leaves out that the classes are not known.

    References
    ----------
    Zhu, Song, Liu. Clusterability as an Alternative to Anchor Points When Learning with Noisy Labels. ICML 2021.
    """
    n_classes = posterior.n_classes
    if n_classes > _MOST_CLASSES:
        raise InputError(f"Expected at most {_MOST_CLASSES} classes for hoc, got {n_classes}. Use clean-count.")
    n_samples = posterior.summary.n_samples
    if n_samples < 3:
        raise InputError(f"Expected at least three rows for hoc, got {n_samples}. Use clean-count.")
    # All in an order that does not depend on the names of the classes, down to the last bit.
    order = canonical_order(posterior.summary)
    place = np.argsort(order)
    counts = count_confident(posterior)[np.ix_(order, order)]
    first = calibrated_joint(counts, posterior.summary.label_counts[order])
    chosen = np.arange(n_samples)
    if n_samples > _MOST_ROWS:
        chosen = np.sort(np.random.default_rng(0).choice(n_samples, _MOST_ROWS, replace=False))
    probs, labels = posterior.take(chosen)
    space = np.sqrt(probs[:, order])
    if features is not None:
        rows = chosen if posterior.labelled is None else posterior.labelled[chosen]
        space = check_features(features, posterior.n_given)[rows]
    triples = count_triples(space, place[labels], n_classes)
    prior, transition = match_consensus(triples / triples.sum(), first)
    prior, transition = prior[place], transition[np.ix_(place, place)]
    counts = np.rint(n_samples * prior[:, None] * transition).astype(np.int64)
    return replace(count_fit(counts), transition=transition)


def count_triples(space: NDArray[Any], labels: Codes, n_classes: int) -> NDArray[np.float64]:
    """Count the labels of (example, neighbour, neighbour), averaged over their order: they are exchangeable."""
    from sklearn.neighbors import NearestNeighbors

    first, second = labels[NearestNeighbors(n_neighbors=2).fit(space).kneighbors(return_distance=False)].T
    keys = (labels * n_classes + first) * n_classes + second
    cube = np.bincount(keys, minlength=n_classes**3).reshape(n_classes, n_classes, n_classes)
    return np.asarray(sum(cube.transpose(axes) for axes in permutations(range(3))) / 6)


def match_consensus(cube: NDArray[np.float64], start: Matrix) -> tuple[NDArray[np.float64], Matrix]:
    """Return (prior, transition) whose consensus of orders one to three is nearest to that of `cube`."""
    from scipy.optimize import minimize  # takes half as long to import as all estimators together

    n_classes = len(start)
    logits = np.log(np.maximum(np.vstack([np.full(n_classes, 1 / n_classes), start]), _START_FLOOR))
    found = minimize(misfit, logits.ravel(), (cube,), "L-BFGS-B", jac=True, options={"maxiter": _STEPS}).x
    shares = softmax(found.reshape(n_classes + 1, n_classes), axis=1)
    return shares[0], shares[1:]


def misfit(vector: NDArray[np.float64], cube: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
    """Return the squared distance of the consensus of logits (of the prior, then of each row) and its gradient."""
    n_classes = len(cube)
    shares = softmax(vector.reshape(n_classes + 1, n_classes), axis=1)
    prior, transition = shares[0], shares[1:]
    weighted = prior[:, None] * transition
    pairs = (transition[:, :, None] * transition[:, None, :]).reshape(n_classes, -1)
    one = prior @ transition - cube.sum(axis=(1, 2))
    two = weighted.T @ transition - cube.sum(axis=2)
    three = (weighted.T @ pairs).reshape(cube.shape) - cube
    # Each order is symmetric in its labels, so the derivative by one of them counts for all.
    by_pair = pairs @ three.reshape(n_classes, -1).T
    by_single = transition @ two
    by_prior = 2 * ((by_pair + by_single + one) * transition).sum(axis=1)
    by_row = prior[:, None] * (6 * by_pair + 4 * by_single + 2 * one)
    slopes = np.vstack([by_prior, by_row])
    slopes = shares * (slopes - (shares * slopes).sum(axis=1, keepdims=True))
    value = (one**2).sum() + (two**2).sum() + (three**2).sum()
    return _SCALE * float(value), _SCALE * slopes.ravel()

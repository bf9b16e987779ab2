"""A small head and the matrix trained together."""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from dualt.estimators.confident_joint import confident_joint
from dualt.estimators.counting import normalize_counts
from dualt.estimators.fit import Fit, Matrix
from dualt.estimators.joint_model import BATCH, JointModel, Rows
from dualt.estimators.joint_starts import match_rows, starting_points
from dualt.estimators.posterior import NoisyPosterior
from dualt.estimators.shrinkage import shrink_off_diagonals
from dualt.labels import Codes
from dualt.rng import RngLike, as_generator

_MOST_ROWS, _JUDGED_ROWS = 200_000, 10_000
_FIRST_STEPS = 300
_FINALISTS, _FINALISTS_OF_MANY, _MANY_CLASSES = 3, 2, 20

def joint(posterior, *, shrink=True, rng=0, verbose=None):
    generator = as_generator(rng)
    probs, labels = _sample(posterior, generator)
    first = confident_joint(posterior).transition
    return fit_(probs, labels, first, shrink, generator, verbose)

def fit_(probs, labels, first, shrink, generator, verbose=None):
    rows = Rows.of(probs, labels)
    n, n_classes = probs.shape
    seed = int(generator.integers(2**31))
    judged = rows.take(generator.permutation(n)[:_JUDGED_ROWS])
    def start(m):
        g = np.random.default_rng(seed)
        model = JointModel(m, n, g)
        model.train(rows, _FIRST_STEPS, g, decay=False)
        return model
    models = [start(m) for m in starting_points(probs, labels, first)]
    objs = [m.objective(judged) for m in models]
    n_fin = 3 if n_classes <= 20 else 2
    keep = sorted({0, *np.argsort(objs)[:n_fin].tolist()})
    n_steps = int(np.clip(40 * n / BATCH, 300, 1500))
    for k in keep:
        models[k].train(rows, n_steps, np.random.default_rng(seed+1), decay=True)
    fin = {k: models[k].objective(judged) for k in keep}
    best = min(fin, key=fin.get)
    if fin[0] - fin[best] <= .5 * n_classes * (n_classes - 1) / (2 * n):
        best = 0
    if verbose is not None: verbose.update(objs=objs, fin=fin, best=best, models=models)
    T, order = match_rows(models[best].transition.astype(np.float64))
    T /= T.sum(1, keepdims=True)
    support = models[best].posterior(rows).sum(axis=0, dtype=np.float64)[order]
    support = np.maximum(np.rint(support), 1).astype(np.int64)
    return Fit(shrink_off_diagonals(T, support) if shrink else T, support, None)

def _sample(posterior, rng):
    parts = list(posterior.chunks())
    return np.concatenate([p for p, _ in parts]).astype(np.float32), np.concatenate([l for _, l in parts])

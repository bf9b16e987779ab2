"""Describe colour photographs without labels: a layer of learnt filters, for a small network on top."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.decomposition import PCA
from sklearn.preprocessing import StandardScaler

Floats: TypeAlias = NDArray[np.float32]

_SIZE, _LEARNT_FROM, _ROUNDS, _THRESHOLD = 6, 100_000, 10, np.float32(1)


def patch_features(pixels: Floats, n_filters: int = 400, n_components: int = 300) -> Floats:
    """Return how images (n, channels, side, side) answer to filters learnt from their patches.

    Coates, Ng and Lee 2011: whitened patches, filters by spherical k-means, thresholded answers of both signs,
    averaged in each quadrant; then their square roots and principal components. No label is looked at, so noise
    cannot spoil them.
    """
    windows = np.lib.stride_tricks.sliding_window_view(pixels, (_SIZE, _SIZE), axis=(2, 3)).transpose(0, 2, 3, 1, 4, 5)
    side = windows.shape[1]
    weights, bias = _filters(windows, n_filters)
    halves = (slice(None, side // 2), slice(side // 2, None))
    features = np.empty((len(pixels), 4, 2 * n_filters), np.float32)
    for own, patches in zip(features, windows, strict=True):
        answers = (_normalized(patches.reshape(side * side, -1)) @ weights - bias).reshape(side, side, -1)
        for sign, part in ((1, slice(None, n_filters)), (-1, slice(n_filters, None))):
            strong = np.maximum(sign * answers - _THRESHOLD, 0)
            own[:, part] = [strong[a, b].mean(axis=(0, 1)) for a in halves for b in halves]
    return _principal(np.sqrt(features.reshape(len(pixels), -1)), n_components)


def _filters(windows: Floats, n_filters: int) -> tuple[Floats, Floats]:
    """Learn filters by spherical k-means on whitened patches; return them with the whitening folded in."""
    n_images, side = windows.shape[:2]
    image, row, column = np.random.default_rng(7).integers((n_images, side, side), size=(_LEARNT_FROM, 3)).T
    patches = _normalized(windows[image, row, column].reshape(_LEARNT_FROM, -1))
    mean = patches.mean(axis=0)
    values, vectors = np.linalg.eigh(np.cov(patches.T))
    whiten = ((vectors / np.sqrt(values + 0.1)) @ vectors.T).astype(np.float32)
    white = (patches - mean) @ whiten
    filters = _unit(white[:n_filters])
    for _ in range(_ROUNDS):
        answers = white @ filters.T
        nearest = np.abs(answers).argmax(axis=1)
        np.add.at(filters, nearest, answers[np.arange(len(white)), nearest, None] * white)
        filters = _unit(filters)
    weights = whiten @ filters.T
    return weights, mean @ weights


def _normalized(patches: Floats) -> Floats:
    centred = patches - patches.mean(axis=1, keepdims=True)
    return np.asarray(centred / np.sqrt(centred.var(axis=1, keepdims=True) + np.float32(1.5e-4)))


def _unit(rows: Floats) -> Floats:
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True))


def _principal(features: Floats, n_components: int) -> Floats:
    """Return the leading principal components of the standardised features, all in one scale."""
    leading = PCA(n_components, random_state=0).fit_transform(StandardScaler(copy=False).fit_transform(features))
    return np.asarray(leading / leading.std(), np.float32)

"""Images described without labels, by their responses to filters learnt from their own patches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler, normalize
from sklearn.utils.validation import check_is_fitted

from dualt.errors import InputError

if TYPE_CHECKING:
    from typing_extensions import Self

    from dualt.crossfit.folds import OnProgress

Floats: TypeAlias = NDArray[np.float32]

# Filters and components are learnt from at most this many images; this many are described at once.
_LEARNT_FROM, _AT_ONCE = 25_000, 256
_PATCHES, _PATCH_SIDE, _ROUNDS, _THRESHOLD = 100_000, 6, 10, np.float32(1)


class ImageFeatures(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Responses of images to filters learnt from their patches: one layer, learnt without labels.

    Whitened patches, filters by spherical k-means, thresholded responses of both signs, averaged in each quadrant; then
    their square roots and principal components (Coates, Ng and Lee 2011). No label is used, so noise cannot spoil the
    features, and learning them from all images leaks no labels.

    Parameters
    ----------
    n_components
        Number of features that come out.

    Examples
    --------
    >>> images = np.random.default_rng(0).integers(0, 256, (30, 12, 12), dtype=np.uint8)
    >>> ImageFeatures(n_filters=10, n_components=5).fit_transform(images).shape
    (30, 5)
    """

    def __init__(self, n_filters: int = 200, n_components: int = 256) -> None:
        self.n_filters = n_filters
        self.n_components = n_components

    def fit(self, X: Any, y: Any = None) -> Self:  # noqa: N803
        """Learn from images of bytes, or of floats up to 1: (n, height, width), or with channels first or last."""
        self.fit_transform(X)
        return self

    def fit_transform(self, X: Any, y: Any = None, on_progress: OnProgress | None = None) -> Floats:  # noqa: N803
        """Learn from images and describe them."""
        rng = np.random.default_rng(7)
        chosen = np.arange(len(X))
        if len(X) > _LEARNT_FROM:
            chosen = np.sort(rng.choice(len(X), _LEARNT_FROM, replace=False))
        self._learn_filters(X, chosen, rng)
        responses = self._responses(X, chosen, on_progress)
        components = PCA(min(self.n_components, *responses.shape), random_state=0)
        self.components_ = make_pipeline(StandardScaler(), components)
        with np.errstate(invalid="ignore"):  # images that are all alike
            described = self.components_.fit_transform(responses)
        self.spread_ = described.std() or 1.0
        if len(chosen) < len(X):
            return self.transform(X, on_progress)
        return np.asarray(described / self.spread_, np.float32)

    def transform(self, X: Any, on_progress: OnProgress | None = None) -> Floats:  # noqa: N803
        """Describe images: (n, n_components)."""
        check_is_fitted(self)
        described = self.components_.transform(self._responses(X, np.arange(len(X)), on_progress))
        return np.asarray(described / self.spread_, np.float32)

    def _learn_filters(self, images: Any, chosen: NDArray[np.intp], rng: np.random.Generator) -> None:
        """Learn filters by spherical k-means on whitened patches, and keep them with the whitening folded in."""
        shape = _pixels(images[chosen[:1]]).shape
        side = min(_PATCH_SIDE, *(length // 2 for length in shape[2:]))
        if side < 2:
            raise InputError(f"Expected images of at least 4×4 pixels, got {shape[2]}×{shape[3]}.")
        found = []
        for rows in np.split(chosen, range(_AT_ONCE, len(chosen), _AT_ONCE)):
            windows = _windows(_pixels(images[rows]), side)
            size = -(-_PATCHES * len(rows) // len(chosen))
            image, row, column = rng.integers(windows.shape[:3], size=(size, 3)).T
            found.append(windows[image, row, column].reshape(size, -1))
        patches = _normalized(np.concatenate(found))
        rng.shuffle(patches)
        mean = patches.mean(axis=0)
        values, vectors = np.linalg.eigh(np.cov(patches.T))
        whiten = ((vectors / np.sqrt(values + 0.1)) @ vectors.T).astype(np.float32)
        white = (patches - mean) @ whiten
        filters = normalize(white[: self.n_filters])
        for _ in range(_ROUNDS):
            responses = white @ filters.T
            nearest = np.abs(responses).argmax(axis=1)
            np.add.at(filters, nearest, responses[np.arange(len(white)), nearest, None] * white)
            filters = normalize(filters)
        self.filters_: Floats = whiten @ filters.T
        self.bias_: Floats = mean @ self.filters_
        self.patch_side_ = side

    def _responses(self, images: Any, rows: NDArray[np.intp], on_progress: OnProgress | None) -> Floats:
        """Return the mean thresholded responses of both signs in each quadrant: (n, 4 · 2 · n_filters)."""
        found = np.empty((len(rows), 2, 2, 2, self.n_filters), np.float32)
        for start in range(0, len(rows), _AT_ONCE):
            windows = _windows(_pixels(images[rows[start : start + _AT_ONCE]]), self.patch_side_)
            height, width = windows.shape[1:3]
            for own, patches in zip(found[start:], windows, strict=False):
                responses = _normalized(patches.reshape(height * width, -1)) @ self.filters_ - self.bias_
                strong = np.maximum(np.stack([responses, -responses], axis=1) - _THRESHOLD, 0)
                for top, half in enumerate(np.split(strong.reshape(height, width, 2, -1), [height // 2])):
                    for left, quadrant in enumerate(np.split(half, [width // 2], axis=1)):
                        own[top, left] = quadrant.mean(axis=(0, 1))
            if on_progress is not None:
                on_progress("describing images", min(start + _AT_ONCE, len(rows)), len(rows))
        return np.sqrt(found.reshape(len(rows), -1))


def _pixels(images: Any) -> Floats:
    """Return images as floats (n, channels, height, width) between 0 and 1."""
    array = np.asarray(images)
    if array.dtype.kind not in "biuf" or array.ndim not in (3, 4):
        raise InputError(
            "Expected images of shape (n, height, width), (n, channels, height, width) or (n, height, width, channels),"
            f" got dtype {array.dtype} and shape {array.shape}."
        )
    if array.ndim == 3:
        array = array[:, None]
    elif array.shape[3] in (1, 3, 4) and array.shape[1] not in (1, 3, 4):
        array = np.moveaxis(array, 3, 1)
    return np.asarray(array.astype(np.float32) * np.float32(1 / 255 if array.dtype == np.uint8 else 1))


def _windows(pixels: Floats, side: int) -> Floats:
    """Return all patches: (n, rows, columns, channels, side, side), a view."""
    windows = np.lib.stride_tricks.sliding_window_view(pixels, (side, side), axis=(2, 3))
    return np.asarray(windows.transpose(0, 2, 3, 1, 4, 5))


def _normalized(patches: Floats) -> Floats:
    centred = patches - patches.mean(axis=1, keepdims=True)
    return np.asarray(centred / np.sqrt(centred.var(axis=1, keepdims=True) + np.float32(1.5e-4)))

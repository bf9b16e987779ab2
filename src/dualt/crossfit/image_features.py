"""Images described without labels: how they answer to filters that were learnt from their own patches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.decomposition import PCA
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_is_fitted

from dualt.errors import InputError

if TYPE_CHECKING:
    from typing_extensions import Self

    from dualt.crossfit.folds import OnProgress

Floats: TypeAlias = NDArray[np.float32]

# Filters and components are learnt from so many images at most; described are so many at once.
_LEARNT_FROM, _AT_ONCE = 25_000, 256
_PATCHES, _PATCH_SIDE, _ROUNDS, _THRESHOLD = 100_000, 6, 10, np.float32(1)


class ImageFeatures(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Answers of images to filters learnt from their patches (Coates, Ng and Lee 2011): a layer without labels.

    Whitened patches, filters by spherical k-means, thresholded answers of both signs, averaged in each quadrant; then
    their square roots and principal components. No label is looked at, so noise cannot spoil them, and what is learnt
    from all images tells nothing of their labels.

    Parameters
    ----------
    n_filters
    n_components
        Number of features that come out.
    random_state
        Draws the images and patches that are learnt from.

    Examples
    --------
    >>> images = np.random.default_rng(0).integers(0, 256, (30, 12, 12), dtype=np.uint8)
    >>> ImageFeatures(n_filters=10, n_components=5).fit_transform(images).shape
    (30, 5)
    """

    def __init__(self, n_filters: int = 200, n_components: int = 256, random_state: int = 7) -> None:
        self.n_filters = n_filters
        self.n_components = n_components
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:  # noqa: N803
        """Learn filters and components from images (n, height, width), (n, channels, height, width) or channels last.

        Bytes, or floats of which 1 is full.
        """
        self._learn(X)
        return self

    def fit_transform(self, X: Any, y: Any = None, on_progress: OnProgress | None = None) -> Floats:  # noqa: N803
        """Learn from images and describe them."""
        answers = self._learn(X, on_progress)
        if len(answers) == len(X):
            return self._project(answers)
        del answers
        return self.transform(X, on_progress)

    def transform(self, X: Any, on_progress: OnProgress | None = None) -> Floats:  # noqa: N803
        """Describe images: (n, n_components)."""
        check_is_fitted(self)
        features = np.empty((len(X), len(self.components_.components_)), np.float32)
        for rows in _chunks(len(X), on_progress):
            features[rows] = self._project(self._answers(_pixels(X[rows])))
        return features

    def _learn(self, images: Any, on_progress: OnProgress | None = None) -> Floats:
        """Learn filters and components, and return the answers of the images that they were learnt from."""
        rng = np.random.default_rng(self.random_state)
        chosen = np.arange(len(images))
        if len(images) > _LEARNT_FROM:
            chosen = np.sort(rng.choice(len(images), _LEARNT_FROM, replace=False))
        self.filters_, self.bias_, self.patch_side_ = self._learn_filters(images, chosen, rng)
        answers = np.empty((len(chosen), 8 * self.n_filters), np.float32)
        for rows in _chunks(len(chosen), on_progress):
            answers[rows] = self._answers(_pixels(images[chosen[rows]]))
        self.scaler_ = StandardScaler().fit(answers)
        n_components = min(self.n_components, *answers.shape)
        self.components_ = PCA(n_components, random_state=0)
        with np.errstate(invalid="ignore"):  # of images that are all alike
            self.spread_ = self.components_.fit_transform(self.scaler_.transform(answers)).std() or 1.0
        return answers

    def _learn_filters(
        self, images: Any, chosen: NDArray[np.intp], rng: np.random.Generator
    ) -> tuple[Floats, Floats, int]:
        """Learn filters by spherical k-means on whitened patches; return them with the whitening folded in."""
        shape = _pixels(images[chosen[:1]]).shape
        side = min(_PATCH_SIDE, *(length // 2 for length in shape[2:]))
        if side < 2:
            raise InputError(f"Expected images of at least 4×4 pixels, got {shape[2]}×{shape[3]}.")
        places = (len(chosen), shape[2] - side + 1, shape[3] - side + 1)
        image, row, column = rng.integers(places, size=(_PATCHES, 3)).T
        patches = np.empty((_PATCHES, shape[1] * side * side), np.float32)
        order = np.argsort(image, kind="stable")
        for part in np.array_split(order, max(1, len(chosen) // _AT_ONCE)):
            own, where = np.unique(image[part], return_inverse=True)
            windows = _windows(_pixels(images[chosen[own]]), side)
            patches[part] = windows[where, row[part], column[part]].reshape(len(part), -1)
        patches = _normalized(patches)
        mean = patches.mean(axis=0)
        values, vectors = np.linalg.eigh(np.cov(patches.T))
        whiten = ((vectors / np.sqrt(values + 0.1)) @ vectors.T).astype(np.float32)
        white = (patches - mean) @ whiten
        filters = _unit(white[: self.n_filters])
        for _ in range(_ROUNDS):
            answers = white @ filters.T
            nearest = np.abs(answers).argmax(axis=1)
            np.add.at(filters, nearest, answers[np.arange(len(white)), nearest, None] * white)
            filters = _unit(filters)
        weights = whiten @ filters.T
        return weights, mean @ weights, side

    def _answers(self, pixels: Floats) -> Floats:
        """Return the mean thresholded answers of both signs in each quadrant: (n, 4 · 2 · n_filters)."""
        windows = _windows(pixels, self.patch_side_)
        height, width = windows.shape[1:3]
        quadrants = [
            (slice(*rows), slice(*columns))
            for rows in ((0, height // 2), (height // 2, height))
            for columns in ((0, width // 2), (width // 2, width))
        ]
        found = np.empty((len(pixels), 4, 2, self.n_filters), np.float32)
        for own, patches in zip(found, windows, strict=True):
            answers = _normalized(patches.reshape(height * width, -1)) @ self.filters_ - self.bias_
            answers = answers.reshape(height, width, -1)
            for place, sign in enumerate((1, -1)):
                strong = np.maximum(sign * answers - _THRESHOLD, 0)
                own[:, place] = [strong[quadrant].mean(axis=(0, 1)) for quadrant in quadrants]
        return np.sqrt(found.reshape(len(pixels), -1))

    def _project(self, answers: Floats) -> Floats:
        return np.asarray(self.components_.transform(self.scaler_.transform(answers)) / self.spread_, np.float32)


def _chunks(n_images: int, on_progress: OnProgress | None) -> Any:
    for start in range(0, n_images, _AT_ONCE):
        stop = min(start + _AT_ONCE, n_images)
        yield slice(start, stop)
        if on_progress is not None:
            on_progress("describing images", stop, n_images)


def _pixels(images: Any) -> Floats:
    """Return images as floats (n, channels, height, width), of which 1 is full."""
    array = np.asarray(images)
    if array.dtype.kind not in "biuf" or array.ndim not in (3, 4):
        raise InputError(
            "Expected images of shape (n, height, width), (n, channels, height, width) or (n, height, width, channels),"
            f" got dtype {array.dtype} and shape {array.shape}."
        )
    scale = np.float32(1 / 255) if array.dtype == np.uint8 else np.float32(1)
    if array.ndim == 3:
        array = array[:, None]
    elif array.shape[3] in (1, 3, 4) and array.shape[1] not in (1, 3, 4):
        array = np.moveaxis(array, 3, 1)
    pixels: Floats = np.asarray(array, np.float32) * scale
    return pixels


def _windows(pixels: Floats, side: int) -> Floats:
    """Return all patches: (n, rows, columns, channels, side, side), a view."""
    windows = np.lib.stride_tricks.sliding_window_view(pixels, (side, side), axis=(2, 3))
    return np.asarray(windows.transpose(0, 2, 3, 1, 4, 5))


def _normalized(patches: Floats) -> Floats:
    centred = patches - patches.mean(axis=1, keepdims=True)
    return np.asarray(centred / np.sqrt(centred.var(axis=1, keepdims=True) + np.float32(1.5e-4)))


def _unit(rows: Floats) -> Floats:
    return np.asarray(rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), np.float32(1e-12)))

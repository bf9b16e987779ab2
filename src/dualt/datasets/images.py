"""Image files as arrays, decoded at once or when indexed."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dualt.errors import FileError, InputError
from dualt.files import open_input

Mode: TypeAlias = Literal["L", "RGB"]

# No others, whatever a file holds: for an EPS file Pillow would run Ghostscript.
_FORMATS = {"PNG", "JPEG", "MPO", "BMP", "GIF", "WEBP", "TIFF", "PPM"}
# Decode images up to this size at once and keep them in memory.
_IN_MEMORY_BYTES = 1 << 30
# Images of one size up to this are used as they are; others are resized to this many pixels a side.
_LARGEST_SIDE, _USUAL_SIDE = 48, 32


class LazyImages:
    """Image files as uint8 of shape (n, height, width), grey, or (n, 3, height, width), decoded when indexed.

    What comes out has the height and width `size`, cropped from the centre after the shorter side was resized to
    `shorter_side`, if given. `mode` is `"L"` for grey and `"RGB"` for colour; files of the other kind are converted.
    """

    dtype: np.dtype[np.uint8] = np.dtype(np.uint8)

    def __init__(
        self, paths: Sequence[Path], size: tuple[int, int], *, mode: Mode = "RGB", shorter_side: int | None = None
    ) -> None:
        self._paths = np.array(paths, dtype=object)
        self._size, self._mode, self._shorter_side = size, mode, shorter_side

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the array that this stands for."""
        return (len(self._paths), *((3,) if self._mode == "RGB" else ()), *self._size)

    def __len__(self) -> int:
        return len(self._paths)

    def __getitem__(self, rows: Any) -> NDArray[np.uint8]:
        """Decode the images of `rows` (a slice, an array of indices or a mask)."""
        chosen = self._paths[rows]
        images = np.empty((len(chosen), *self.shape[1:]), np.uint8)
        for image, path in zip(images, chosen, strict=True):
            image[...] = self._decode(path)
        return images

    def subset(self, rows: Any) -> LazyImages:
        """Return the images of `rows` without decoding any."""
        return LazyImages(list(self._paths[rows]), self._size, mode=self._mode, shorter_side=self._shorter_side)

    def _decode(self, path: Path) -> NDArray[np.uint8]:
        from PIL import Image

        with opened_image(path) as opened:
            image = opened.convert(self._mode)
            if self._shorter_side is not None:
                scale = self._shorter_side / min(image.size)
                image = image.resize([max(1, round(side * scale)) for side in image.size], Image.Resampling.BILINEAR)
            height, width = self._size
            left, top = (image.width - width) // 2, (image.height - height) // 2
            pixels = np.asarray(image.crop((left, top, left + width, top + height)))
        return pixels if self._mode == "L" else pixels.transpose(2, 0, 1)


def take_rows(samples: Any, rows: Any) -> Any:
    """Return `rows` of an array, or of `LazyImages` without decoding any."""
    return samples.subset(rows) if isinstance(samples, LazyImages) else samples[rows]


def load_images(paths: Sequence[Path], size: int | None) -> NDArray[np.uint8] | LazyImages:
    """Return images of one size, or resized to squares of `size`, grey if all are; decoded if they fit in memory."""
    if size is not None and size < 1:
        raise InputError(f"Expected a size of at least one pixel, got {size}.")
    shape, mode = image_size_and_mode(paths[0])
    for path in paths[1:]:
        other, other_mode = image_size_and_mode(path)
        if size is None and other != shape:
            raise InputError(
                f"Expected images of one size, got {shape[1]}×{shape[0]} in {paths[0]} and {other[1]}×{other[0]} in"
                f" {path}. Pass a size to resize them to."
            )
        mode = "RGB" if other_mode == "RGB" else mode
    lazy = LazyImages(paths, shape if size is None else (size, size), mode=mode, shorter_side=size)
    return lazy[:] if math.prod(lazy.shape) <= _IN_MEMORY_BYTES else lazy


def load_readable(paths: Sequence[Path]) -> tuple[Sequence[Path], NDArray[np.uint8] | LazyImages]:
    """Return the files that can be read, and their images as one array: as they are if small and of one size."""
    try:
        sizes = {image_size_and_mode(path)[0] for path in paths}
        as_they_are = len(sizes) == 1 and max(*sizes.pop()) <= _LARGEST_SIDE
        return paths, load_images(paths, None if as_they_are else _USUAL_SIDE)
    except FileError:
        readable = [path for path in paths if _is_readable(path)]
        if not readable or len(readable) == len(paths):
            raise
        return load_readable(readable)


def _is_readable(path: Path) -> bool:
    with suppress(FileError), opened_image(path) as image:
        image.load()
        return True
    return False


def image_size_and_mode(path: Path) -> tuple[tuple[int, int], Mode]:
    """Return ((height, width), mode) from the header of an image file."""
    with opened_image(path) as image:
        return (image.height, image.width), "L" if image.mode in ("1", "L", "I;16", "I") else "RGB"


@contextmanager
def opened_image(path: Path) -> Iterator[Any]:
    """Open an image file with Pillow; raise `FileError` with its path if that, or decoding in the block, fails."""
    from PIL import Image, UnidentifiedImageError

    Image.init()
    try:
        with open_input(path) as stream:
            with warnings.catch_warnings():
                warnings.simplefilter("error", Image.DecompressionBombWarning)
                image = Image.open(stream, formats=sorted(_FORMATS & Image.OPEN.keys()))
            yield image
    except Exception as error:  # Pillow's plugins raise OSError, SyntaxError, ValueError, struct.error...
        unknown = isinstance(error, UnidentifiedImageError)
        reason = "it is empty, damaged or of no known image format" if unknown else error
        raise FileError(f"Cannot read the image {path}: {reason}. Replace or remove it.") from error

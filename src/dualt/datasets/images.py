"""Image files that look like an array and are decoded when indexed."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dualt.errors import FileError, naming_extra
from dualt.files import open_input

Mode: TypeAlias = Literal["L", "RGB"]

# A header that promises more than the first, and more than the file's bytes could hold, is a lie.
_ANY_PIXELS, _PIXELS_A_BYTE = 1 << 24, 10_000
# What the endings of `dualt.io.image_folder` promise, and newer kinds that hide behind them. No others, whatever a file
# holds: of an EPS file Pillow would run Ghostscript.
_FORMATS = {"PNG", "JPEG", "MPO", "BMP", "DIB", "GIF", "WEBP", "TIFF", "PPM", "AVIF", "JPEG2000"}


class LazyImages:
    """Image files as uint8 of shape (n, height, width), grey, or (n, 3, height, width).

    Parameters
    ----------
    paths
        One file per image.
    size
        Height and width of what comes out, cropped from the centre.
    mode
        `"L"` for grey, `"RGB"` for colour; files of the other kind are converted.
    shorter_side
        Resize to this length of the shorter side before the crop; `None` keeps the file's size.
    """

    dtype: np.dtype[np.uint8] = np.dtype(np.uint8)

    def __init__(
        self,
        paths: Sequence[Path],
        size: tuple[int, int],
        *,
        mode: Mode = "RGB",
        shorter_side: int | None = None,
    ) -> None:
        pillow()
        self._paths = np.array(paths, dtype=object)
        self._size = size
        self._mode: Mode = mode
        self._shorter_side = shorter_side

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the array that this stands for."""
        return (len(self._paths), *((3,) if self._mode == "RGB" else ()), *self._size)

    @property
    def ndim(self) -> int:
        """Number of dimensions of the array that this stands for."""
        return len(self.shape)

    @property
    def nbytes(self) -> int:
        """Memory that all images would take."""
        return int(np.prod(self.shape, dtype=np.int64))

    def __len__(self) -> int:
        return len(self._paths)

    def __getitem__(self, rows: Any) -> NDArray[np.uint8]:
        """Decode the images of `rows` (an index, a slice, an array of indices or a mask)."""
        chosen = self._paths[rows]
        if isinstance(chosen, Path):
            return self._decode(chosen)
        images = np.empty((len(chosen), *self.shape[1:]), np.uint8)
        for image, path in zip(images, chosen, strict=True):
            image[...] = self._decode(path)
        return images

    def subset(self, rows: Any) -> LazyImages:
        """Return the images of `rows` without decoding any."""
        return LazyImages(list(self._paths[rows]), self._size, mode=self._mode, shorter_side=self._shorter_side)

    def _decode(self, path: Path) -> NDArray[np.uint8]:
        with opened_image(path) as opened:
            image = opened.convert(self._mode)
            if self._shorter_side is not None:
                scale = self._shorter_side / min(image.size)
                image = image.resize([max(1, round(side * scale)) for side in image.size], pillow().BILINEAR)
            height, width = self._size
            left, top = (image.width - width) // 2, (image.height - height) // 2
            pixels = np.asarray(image.crop((left, top, left + width, top + height)))
        return pixels if self._mode == "L" else pixels.transpose(2, 0, 1)


def image_size_and_mode(path: Path) -> tuple[tuple[int, int], Mode]:
    """Return ((height, width), mode) from the header of an image file."""
    with opened_image(path) as image:
        size, grey = (image.height, image.width), image.mode in ("1", "L", "I;16", "I")
    return size, "L" if grey else "RGB"


def pillow() -> Any:
    """Return the module `PIL.Image`, or say which extra brings it."""
    with naming_extra("Reading image files"):
        from PIL import Image
    return Image


class _BoundedFile:
    """A file that is never asked for more than it has: Python makes room for all that is asked, and headers lie."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream, self.size = stream, os.fstat(stream.fileno()).st_size

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def read(self, size: int = -1) -> bytes:
        left = max(self.size - self._stream.tell(), 0)
        return self._stream.read(left if size < 0 else min(size, left))


@contextmanager
def opened_image(path: Path) -> Iterator[Any]:
    """Open an image; whatever Pillow raises until it is closed becomes a `FileError` that names the file."""
    images = pillow()
    images.init()
    try:
        with open_input(path) as file:
            stream = _BoundedFile(file)
            with warnings.catch_warnings():
                warnings.simplefilter("error", images.DecompressionBombWarning)
                image = images.open(stream, formats=sorted(_FORMATS & images.OPEN.keys()))
            if image.width * image.height > max(_ANY_PIXELS, stream.size * _PIXELS_A_BYTE):
                raise ValueError(f"its header promises {image.width:,}×{image.height:,} pixels, more than it can hold")
            yield image
    except Exception as error:  # Its plugins raise OSError, SyntaxError, ValueError, struct.error...
        # Pillow would name the object that it was given, not the file.
        unknown = isinstance(error, images.UnidentifiedImageError)
        reason = "it is empty, damaged or of no known image format" if unknown else error
        raise FileError(f"Cannot read the image {path}: {reason}. Replace or remove it.") from error

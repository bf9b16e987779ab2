"""Image files as pictures of a page: as they are, or made smaller where they are large or no browser shows them."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dualt.errors import InputError, MissingExtraError
from dualt.files import open_input

FILE_LIMIT = 2 * 2**20
_SIGNATURES = {b"\x89PNG\r\n\x1a\n": "png", b"\xff\xd8\xff": "jpeg", b"GIF87a": "gif", b"GIF89a": "gif"}
# The longest side of a smaller picture: the first at which it takes no more bytes than it may.
_SIDES = (800, 400, 200, 100)
# Up to this side pictures keep every pixel; JPEG would blur digits and icons.
_EXACT_SIDE = 128


def bytes_allowed(files: Sequence[Path], total: int) -> int:
    """Return how many bytes the picture of a file may have, so that all of them have no more than `total`."""
    sizes = [min(file.stat().st_size, FILE_LIMIT) for file in files]
    return FILE_LIMIT if sum(sizes) <= total else min(FILE_LIMIT, total // len(sizes))


def read_picture(file: Path, allowed: int = FILE_LIMIT) -> tuple[str, bytes]:
    """Return the kind and the bytes of a picture that browsers show, of about `allowed` bytes at most.

    A PNG, JPEG, GIF or WebP file of that size is embedded as it is; others are made smaller by Pillow.

    Raises
    ------
    InputError
        If Pillow, which is not installed, would be needed.
    FileError
        If the file cannot be read, is no image, is cut off, or promises more pixels than Pillow deems safe.
    """
    size = file.stat().st_size
    with open_input(file) as stream:
        content = stream.read(allowed + 1)
    kind = _kind(content)
    if kind is not None and len(content) <= allowed:
        return kind, content
    try:
        return _smaller(file, allowed)
    except MissingExtraError:
        if kind is None:
            raise InputError(
                f"Expected a PNG, JPEG, GIF or WebP image, got something else in {file}. Other kinds of images need"
                " the extra [train]: pip install 'dualt[train]'"
            ) from None
        raise InputError(
            f"Expected images of at most {allowed / 2**20:.2g} MB, got {size / 2**20:.1f} MB in {file}. Pass a folder"
            " of thumbnails, or install the extra [train], which makes them: pip install 'dualt[train]'"
        ) from None


def _kind(content: bytes) -> str | None:
    """Return the kind of image that the first bytes announce; the file's name may lie."""
    if content[:4] == b"RIFF" and content[8:12] == b"WEBP":
        return "webp"
    return next((kind for start, kind in _SIGNATURES.items() if content.startswith(start)), None)


def _smaller(file: Path, allowed: int) -> tuple[str, bytes]:
    from dualt.datasets.images import opened_image

    with opened_image(file) as image:
        picture = _upright(image, _SIDES[0])
    kind = "png" if max(picture.size) <= _EXACT_SIDE else "jpeg"
    for side in _SIDES:
        picture.thumbnail((side, side))
        content = io.BytesIO()
        picture.save(content, kind, quality=85)
        if content.tell() <= allowed:
            break
    return kind, content.getvalue()


def _upright(image: Any, side: int) -> Any:
    """Return an image of Pillow in RGB, at most `side` wide and high, turned as its camera was held, on white."""
    from PIL import Image, ImageOps

    if image.mode.startswith(("I", "F")):  # Pillow would cut numbers above 255, and show white
        values = np.nan_to_num(np.asarray(ImageOps.exif_transpose(image), np.float64), posinf=0, neginf=0)
        span = max(float(np.ptp(values)), 1e-12)
        image = Image.fromarray(((values - values.min()) * (255 / span)).astype(np.uint8))
    elif image.mode not in ("L", "RGB", "CMYK", "YCbCr"):
        image = image.convert("RGBA")
    image.thumbnail((side, side))  # of a JPEG, only as many pixels are decoded as are needed
    image = ImageOps.exif_transpose(image)
    if image.mode == "RGBA":
        image = Image.alpha_composite(Image.new("RGBA", image.size, "white"), image)
    return image.convert("RGB")

"""What a person looks at while reviewing: thumbnails or texts, only for the examples on the list."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dualt.errors import InputError
from dualt.io.image_folder import match_names
from dualt.io.load import load_array

# Bytes of all pictures together, and of one.
TOTAL_LIMIT, PICTURE_LIMIT = 75 * 2**20, 2**20
# Longest sides of a picture: the first at which it takes no more bytes than it may.
_SIDES = (800, 400, 200, 100)
# Up to this side pictures keep every pixel; JPEG would blur digits and icons.
_EXACT_SIDE = 128
_PIXELATED_BELOW = 65


def image_previews(
    source: Any, indices: Iterable[int], *, n_samples: int, ids: Sequence[Any] | None = None
) -> dict[str, Any]:
    """Return a data URI for each row of `indices`, at most 800 pixels wide and high, smaller where there are many.

    `source` is a uint8 array of shape (n, H, W), (n, H, W, 1) or (n, H, W, 3), one image for each of the `n_samples`
    rows; an .npy file of one; or a folder of image files, which belong to the rows by their names: see `match_files`.
    """
    from PIL import Image

    from dualt.datasets.images import opened_image

    rows = [int(index) for index in indices]
    allowed = min(PICTURE_LIMIT, TOTAL_LIMIT // max(len(rows), 1))
    if isinstance(source, (str, Path)) and Path(source).is_dir():
        matched, shown = match_files(Path(source), n_samples, ids), []
        files, largest = [matched[row] for row in rows], 0
        for file in files:
            with opened_image(file) as image:
                largest = max(largest, *image.size)
                shown.append(_data_uri(image, allowed))
        names = [file.relative_to(source).as_posix() for file in files]
        return {"kind": "image", "previews": shown, "pixelated": largest < _PIXELATED_BELOW, "files": names}
    if isinstance(source, (str, Path)):
        if Path(source).suffix.lower() != ".npy":
            raise InputError(f"Expected {source} to be an .npy file of images, or a folder of them.")
        source = load_array(Path(source))
    pixels = np.asanyarray(source)
    shaped = pixels.ndim == 3 or (pixels.ndim == 4 and pixels.shape[3] in (1, 3))
    if not shaped or 0 in pixels.shape[1:]:
        hint = " Move the channels last: np.moveaxis(images, 1, -1)." if pixels.ndim == 4 else ""
        raise InputError(f"Expected images of shape (n, H, W) or (n, H, W, 3), got {pixels.shape}.{hint}")
    if pixels.dtype != np.uint8:
        hint = "For values from 0 to 1 pass (images * 255).astype('uint8')."
        raise InputError(f"Expected images as uint8 from 0 to 255, got {pixels.dtype}. {hint}")
    if len(pixels) != n_samples:
        raise InputError(f"Expected {n_samples:,} images, one per label, got {len(pixels):,}.")
    pixels = pixels[..., 0] if pixels.ndim == 4 and pixels.shape[3] == 1 else pixels
    shown = [_data_uri(Image.fromarray(pixels[row]), allowed) for row in rows]
    return {"kind": "image", "previews": shown, "pixelated": max(pixels.shape[1:3]) < _PIXELATED_BELOW}


def cut(text: str, limit: int) -> str:
    """Return a text with at most `limit` characters."""
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def match_files(folder: Path, n_samples: int, ids: Sequence[Any] | None = None) -> Mapping[int, Path]:
    """Return the file of each row, by name: the order of files says nothing about the order of the labels.

    With `ids`, a row's file is the one whose path inside the folder, whose name or whose stem is its id; other files
    are left alone. Without, the files must be named by the row numbers 0 to n - 1.
    """
    found = (file for file in sorted(folder.rglob("*")) if not file.is_dir())
    files = [file for file in found if not any(part.startswith(".") for part in file.relative_to(folder).parts)]
    if not files:
        raise InputError(f"Expected image files in {folder}, got none.")
    if ids is not None:
        names = [file.relative_to(folder).as_posix() for file in files]
        return {row: files[place] for row, place in enumerate(match_names(folder, names, list(map(str, ids))))}
    by_number = {int(file.stem): file for file in files if file.stem.isascii() and file.stem.isdigit()}
    if len(files) != n_samples or by_number.keys() != set(range(n_samples)):
        raise InputError(
            f"Expected {n_samples:,} image files in {folder}, named by their rows (0.png, 1.png, ...), got"
            f" {len(files):,}, the first {files[0].name!r}. Rename them, name the rows by their files (ids), or pass"
            " the images as one array."
        )
    return by_number


def _data_uri(image: Any, allowed: int) -> str:
    """Return a picture that browsers show, turned as its camera was held, on white, with about `allowed` bytes."""
    from PIL import Image, ImageOps

    if image.mode.startswith(("I", "F")):  # Pillow would cut numbers above 255, and show white
        values = np.nan_to_num(np.asarray(ImageOps.exif_transpose(image), np.float64), posinf=0, neginf=0)
        span = max(float(np.ptp(values)), 1e-12)
        image = Image.fromarray(((values - values.min()) * (255 / span)).astype(np.uint8))
    elif image.mode not in ("L", "RGB", "CMYK", "YCbCr"):
        image = image.convert("RGBA")
    image.thumbnail((_SIDES[0], _SIDES[0]))  # of a JPEG, only as many pixels are decoded as are needed
    image = ImageOps.exif_transpose(image)
    if image.mode == "RGBA":
        image = Image.alpha_composite(Image.new("RGBA", image.size, "white"), image)
    image = image if image.mode == "L" else image.convert("RGB")
    kind = "png" if max(image.size) <= _EXACT_SIDE else "jpeg"
    for side in _SIDES:
        image.thumbnail((side, side))
        stream = io.BytesIO()
        image.save(stream, kind, quality=85)
        if stream.tell() <= allowed:
            break
    return f"data:image/{kind};base64,{base64.b64encode(stream.getvalue()).decode('ascii')}"

"""What a person looks at while reviewing: thumbnails or texts, only for the examples on the list."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from dualt.errors import InputError
from dualt.files import open_input
from dualt.io.load import read_npy
from dualt.report.matching import match_files, reading
from dualt.report.pictures import bytes_allowed, read_picture
from dualt.report.png import encode_png, thumbnail

TEXT_LIMIT = 2_000
TOTAL_LIMIT = 100 * 2**20
_PIXELATED_BELOW = 65


@dataclass(frozen=True)
class Previews:
    """A data URI or a text for each example, and the name of its file if it has one, by row number."""

    kind: Literal["image", "text"]
    content: Mapping[int, str]
    pixelated: bool = False
    names: Mapping[int, str] = field(default_factory=dict)


def image_previews(
    source: Any,
    indices: Iterable[int],
    *,
    n_samples: int,
    ids: Sequence[Any] | None = None,
    labels: Sequence[str] | None = None,
) -> Previews:
    """Return a thumbnail for each of `indices`.

    Parameters
    ----------
    source
        A uint8 array of shape (n, H, W), (n, H, W, 1) or (n, H, W, 3), one image per row in the order of the rows;
        an .npy file of one; or a folder of image files, which may be in folders inside it. PNG, JPEG, GIF and WebP
        files are embedded as they are; those above 2 MB, too many for one page, or of other kinds are made smaller,
        which needs Pillow. They belong to the rows by their names, never by their order (`match_files`).
    indices
        Row numbers of the examples to show.
    n_samples
        Rows in the data set; an array must have as many.
    ids
        Names of the rows, of which each is the name of its file: path inside the folder, file name or stem.
    labels
        Given labels as class names: a folder per class needs no `ids` if its files, in sorted order, have these labels.

    Raises
    ------
    InputError
        If the images do not fit the data set, or are too large to embed.
    FileError
        If a file cannot be read, or is no image.
    """
    wanted = [int(index) for index in indices]
    if isinstance(source, (str, Path)):
        path = Path(source)
        if path.is_dir():
            files = match_files(path, n_samples, ids, labels)
            with reading(path):
                # Base64 takes four characters for three bytes.
                allowed = bytes_allowed([files[row] for row in wanted], TOTAL_LIMIT * 3 // 4)
                content = _of_one_page((row, _uri(*read_picture(files[row], allowed))) for row in wanted)
            return Previews("image", content, names={row: files[row].relative_to(path).as_posix() for row in wanted})
        if path.suffix.lower() != ".npy":
            raise InputError(f"Expected {source} to be an .npy file of images, or a folder of them.")
        source = read_npy(path)
    pixels = np.asanyarray(source)
    _check_pixels(pixels, n_samples)
    if pixels.ndim == 4 and pixels.shape[3] == 1:
        pixels = pixels[..., 0]
    content = _of_one_page((row, _uri("png", encode_png(thumbnail(pixels[row])))) for row in wanted)
    return Previews("image", content, pixelated=max(pixels.shape[1:3]) < _PIXELATED_BELOW)


def text_previews(source: str | Path | Sequence[str], indices: Iterable[int], *, n_samples: int) -> Previews:
    """Return the text of each of `indices`, cut to 2,000 characters.

    `source` is a sequence of texts, or the path of a UTF-8 file with one per line; it must have `n_samples`.
    """
    wanted = {int(index) for index in indices}
    if not isinstance(source, (str, Path)):
        found = {index: str(source[index]) for index in wanted if index < len(source)}
        n_texts, where = len(source), "texts"
    else:
        found, n_texts = _read_lines(Path(source), wanted)
        where = f"lines in {source}"
    if n_texts != n_samples:
        raise InputError(f"Expected {n_samples:,} {where}, one per label, got {n_texts:,}.")
    shortened = {i: text if len(text) <= TEXT_LIMIT else f"{text[: TEXT_LIMIT - 1]}…" for i, text in found.items()}
    return Previews("text", shortened)


def _read_lines(path: Path, wanted: set[int]) -> tuple[dict[int, str], int]:
    found, count = {}, 0
    try:
        with reading(path), open_input(path, "r") as stream:
            for line in stream:
                if count in wanted:
                    found[count] = line.rstrip("\r\n")
                count += 1
    except UnicodeDecodeError:
        raise InputError(f"Expected {path} to be UTF-8 text, near line {count + 1} it is not.") from None
    return found, count


def _check_pixels(pixels: NDArray[Any], n_samples: int) -> None:
    shaped = pixels.ndim == 3 or (pixels.ndim == 4 and pixels.shape[3] in (1, 3))
    if not shaped or 0 in pixels.shape[1:]:
        hint = " Move the channels last: np.moveaxis(images, 1, -1)." if pixels.ndim == 4 else ""
        raise InputError(f"Expected images of shape (n, H, W) or (n, H, W, 3), got {pixels.shape}.{hint}")
    if pixels.dtype != np.uint8:
        raise InputError(
            f"Expected images as uint8 from 0 to 255, got {pixels.dtype}."
            " For values from 0 to 1 pass (images * 255).astype('uint8')."
        )
    if len(pixels) != n_samples:
        raise InputError(f"Expected {n_samples:,} images, one per label, got {len(pixels):,}.")


def _of_one_page(images: Iterable[tuple[int, str]]) -> dict[int, str]:
    """Return the images by row number; refuse more than one page should hold."""
    content, total = {}, 0
    for row, image in images:
        content[row], total = image, total + len(image)
        if total > TOTAL_LIMIT:
            raise InputError(
                f"Expected at most {TOTAL_LIMIT // 2**20} MB of images in one page, got more."
                " List fewer examples, or pass smaller images."
            )
    return content


def _uri(kind: str, content: bytes) -> str:
    return f"data:image/{kind};base64,{base64.b64encode(content).decode('ascii')}"

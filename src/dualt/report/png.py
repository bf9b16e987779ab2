"""Small arrays of pixels as PNG files, with nothing but zlib."""

from __future__ import annotations

import struct
import zlib

import numpy as np
from numpy.typing import NDArray

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_COLOUR_TYPE = {1: 0, 3: 2}  # channels -> PNG's code: grey, RGB


def thumbnail(pixels: NDArray[np.uint8], limit: int = 96) -> NDArray[np.uint8]:
    """Return the mean of square blocks, as large as needed for no side to exceed `limit`."""
    step = -(-max(pixels.shape[:2]) // limit)
    if step == 1:
        return pixels
    height, width = max(1, pixels.shape[0] // step), max(1, pixels.shape[1] // step)
    whole = pixels[: height * step, : width * step]
    rows, columns = min(step, whole.shape[0]), min(step, whole.shape[1])
    blocks = whole.reshape(height, rows, width, columns, *pixels.shape[2:])
    small: NDArray[np.uint8] = blocks.mean(axis=(1, 3)).round().astype(np.uint8)
    return small


def encode_png(pixels: NDArray[np.uint8]) -> bytes:
    """Return an (H, W) grey or (H, W, 3) RGB array as the bytes of a PNG file."""
    height, width = pixels.shape[:2]
    channels = pixels.shape[2] if pixels.ndim == 3 else 1
    header = struct.pack(">IIBBBBB", width, height, 8, _COLOUR_TYPE[channels], 0, 0, 0)
    # Every scanline starts with the number of its filter: 0, the bytes as they are.
    lines = np.zeros((height, 1 + width * channels), np.uint8)
    lines[:, 1:] = pixels.reshape(height, width * channels)
    data = zlib.compress(lines.tobytes(), 9)
    return _SIGNATURE + _chunk(b"IHDR", header) + _chunk(b"IDAT", data) + _chunk(b"IEND", b"")


def _chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

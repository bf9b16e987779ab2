"""Tensors in safetensors files with a JSON header: read without unpickling, written whole or not at all."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from dualt.errors import FileError
from dualt.files import atomic_write, check_readable, json_text


def write_tensors(path: Path, tensors: Mapping[str, Tensor], header: Mapping[str, Any]) -> None:
    """Write tensors and a JSON header to a temporary file, then rename it to `path`."""
    from safetensors.torch import save

    # Copies: tied weights must not share memory in the file.
    copies = {
        name: value.detach().cpu().clone(memory_format=torch.contiguous_format) for name, value in tensors.items()
    }
    content = save(copies, metadata={"dualt": json_text(header, indent=None)})
    with atomic_write(path, "wb") as stream:
        stream.write(content)


def read_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Return the tensors of a safetensors file and the header that `write_tensors` gave it, empty for other files."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(check_readable(path), framework="pt") as stream:
            header = json.loads((stream.metadata() or {}).get("dualt", "{}"))
            tensors = {name: stream.get_tensor(name) for name in stream.keys()}  # noqa: SIM118
    except (SafetensorError, OSError, ValueError, RecursionError) as error:
        if isinstance(error, FileError):
            raise
        raise FileError(f"Cannot read {path}: {error}. It is truncated, damaged or no .safetensors file.") from error
    return tensors, header if isinstance(header, dict) else {}


def below(tensors: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    """Return the tensors whose names start with `prefix`, without it."""
    return {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}


def mismatch(expected: Mapping[str, Tensor], found: Mapping[str, Tensor]) -> str | None:
    """Return how the first tensor that is missing or of another shape or type differs; `None` if all fit."""
    for name, value in expected.items():
        own = found.get(name)
        if own is None or (own.shape, own.dtype) != (value.shape, value.dtype):
            got = "none" if own is None else f"{own.dtype} of shape {tuple(own.shape)}"
            return f"expected {name!r}, {value.dtype} of shape {tuple(value.shape)}, got {got}"
    return None

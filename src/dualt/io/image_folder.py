"""Folders of image files: a folder per class is a table of files and their labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dualt.errors import FileError, InputError
from dualt.files import free_name
from dualt.labels import as_text_array

# What `dualt predict` and `dualt probs` call the column of image files.
FILE_COLUMN = "file"
IMAGE_ENDINGS = frozenset({".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".tif", ".tiff", ".ppm", ".pgm"})


@dataclass(frozen=True)
class ClassFolder:
    """Image files in a folder per class, sorted by class and in each by name, as torchvision's `ImageFolder` does.

    `names` are the folders, also those without files, and `files` the paths inside `folder`, with slashes.
    """

    folder: Path
    names: tuple[str, ...]
    files: tuple[str, ...]

    @cached_property
    def labels(self) -> NDArray[np.str_]:
        """The class of each file, the name of its folder."""
        return as_text_array([file.partition("/")[0] for file in self.files])


def is_class_folder(path: str | Path) -> bool:
    """Return whether `path` is a folder that holds at least two folders, with an image in one of them."""
    try:
        inside = [child for child in Path(path).iterdir() if child.is_dir() and child.name[0] != "."]
    except OSError:
        return False
    return len(inside) > 1 and any(map(is_image, (file for child in inside for file in child.rglob("*"))))


def read_class_folder(folder: str | Path, known: Sequence[str] | None = None) -> ClassFolder:
    """List the images of a folder per class, which must be some of the `known` ones if these are given."""
    folder = Path(folder)
    try:
        names = tuple(sorted(child.name for child in folder.iterdir() if child.is_dir() and child.name[0] != "."))
        files = [file for name in names for file in images_below(folder / name)]
    except OSError as error:
        raise FileError(f"Cannot read {folder}: {error.strerror or error}.") from error
    strange = [] if known is None else [name for name in names if name not in known]
    if strange:
        raise FileError(f"Expected the classes of the training part in {folder}, got {strange[0]!r} as well.")
    if len(names) < 2 and known is None:
        hint = "Put the images of each class in a folder of its own."
        raise FileError(f"Expected a folder per class, at least two, in {folder}, got {len(names)}. {hint}")
    if not files:
        raise FileError(f"Expected images ({', '.join(sorted(IMAGE_ENDINGS))}) in the folders of {folder}, got none.")
    return ClassFolder(folder, names, tuple(file.relative_to(folder).as_posix() for file in files))


def list_images(folder: Path) -> list[Path]:
    """Return the images in a folder and in folders of it, those of class folders in the order of `ClassFolder`."""
    found = images_below(folder)
    if not found:
        raise FileError(f"Expected images ({', '.join(sorted(IMAGE_ENDINGS))}) in {folder}, got none.")
    return found


def is_image(path: Path) -> bool:
    """Return whether a file is an image by its ending; hidden ones are not."""
    return path.suffix.lower() in IMAGE_ENDINGS and not path.name.startswith(".") and path.is_file()


def images_below(folder: Path) -> list[Path]:
    """Return the images in a folder, by name, and then those in folders of it."""
    return sorted(filter(is_image, folder.rglob("*")), key=lambda file: (file.parent, file.name))


def match_names(folder: Path, files: Sequence[str], names: Sequence[str]) -> list[int]:
    """Return which of `files`, paths inside `folder`, each name means: by its path, else its file name, else its stem.

    A name that means no file, or several, is refused.
    """
    known: list[dict[str, list[int]]] = [{}, {}, {}]
    for place, file in enumerate(map(Path, files)):
        for called, form in zip(known, (file.as_posix(), file.name, file.stem), strict=True):
            called.setdefault(form, []).append(place)
    matched = []
    for row, name in enumerate(names):
        found: list[int] = next((called[name] for called in known if name in called), [])
        if len(found) != 1:
            got = f"{files[found[0]]} and {files[found[1]]}" if found else "no file of that name"
            raise InputError(f"Expected one image in {folder} for row {row}, {name[:80]!r}, got {got}.")
        matched.append(found[0])
    return matched


def plan_moves(images: ClassFolder, labels: Sequence[str]) -> list[tuple[str, str]]:
    """Return (from, to), paths inside the folder, for each file whose label is another; a taken name gets a number."""
    taken: set[str] = set()
    moves = []
    for file, old, new in zip(images.files, images.labels.tolist(), labels, strict=True):
        if old != new:
            if not new or new.startswith(".") or set(new) & {"/", "\\", "\0"}:
                raise InputError(f"Expected a class that can name a folder, got {new!r}.")
            target = free_name(images.folder / new / file.partition("/")[2], taken)
            taken.add(str(target).lower())
            moves.append((file, target.relative_to(images.folder).as_posix()))
    return moves

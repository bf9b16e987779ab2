"""Get data sets from their publishers: over HTTPS, checked, unpacked safely, in place whole or not at all."""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.progress import Progress

from dualt.datasets.archive import ARCHIVE_SUFFIXES, extract
from dualt.datasets.root import data_root
from dualt.errors import FileError, UnknownNameError, naming_extra

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class RemoteFile:
    """A file on a publisher's server, with the publisher's own checksum, like `md5:0123…`.

    It goes to `target` below the root: the file itself, or the folder that an archive unpacks to.
    """

    url: str
    checksum: str
    target: str


def _idx_files(base: str, folder: str, *checksums: str) -> tuple[RemoteFile, ...]:
    names = [f"{part}-{kind}-ubyte.gz" for part in ("train", "t10k") for kind in ("images-idx3", "labels-idx1")]
    return tuple(
        RemoteFile(f"{base}/{name}", f"md5:{md5}", f"{folder}/{name}")
        for name, md5 in zip(names, checksums, strict=True)
    )


_TORONTO = "https://www.cs.toronto.edu/~kriz"

SOURCES: Mapping[str, tuple[RemoteFile, ...]] = {
    "mnist": _idx_files(
        "https://ossci-datasets.s3.amazonaws.com/mnist", "MNIST/raw",
        "f68b3c2dcbeaaa9fbdd348bbdeb94873", "d53e105ee54ea40749a09fcbcd1e9432",
        "9fb629c4189551a2d022fa330f9573f3", "ec29112dd5afa0611ce80d1b7f02629c",
    ),
    "fashion-mnist": _idx_files(
        "https://github.com/zalandoresearch/fashion-mnist/raw/master/data/fashion", "FashionMNIST/raw",
        "8d4fb7e6c68d591d4c3dfef9ec88bf0d", "25c81989df183df01b3e8a0aad5dffbe",
        "bef4ecab320f06d8554ea6380940ec79", "bb300cfdad3c16e7a12a480ee83cd310",
    ),
    "cifar10": (
        RemoteFile(
            f"{_TORONTO}/cifar-10-binary.tar.gz", "md5:c32a1d4ab5d03f1284b67883e8d87530", "cifar-10-batches-bin"
        ),
    ),
    "cifar100": (
        RemoteFile(f"{_TORONTO}/cifar-100-binary.tar.gz", "md5:03b5dce01913d631647c71ecec9e9cb8", "cifar-100-binary"),
    ),
    # Come with their libraries.
    "synthetic": (),
    "digits": (),
}  # fmt: skip


def download(
    name: str,
    root: str | Path | None = None,
    *,
    force: bool = False,
    sources: Mapping[str, tuple[RemoteFile, ...]] | None = None,
) -> list[Path]:
    """Put the data set `name` below `root`, and return the files and folders that were fetched.

    What is already there is left alone unless `force`. Everything is fetched and checked beside its place
    first: a failure leaves nothing behind. A progress bar shows on stderr if that is a terminal.
    """
    sources = SOURCES if sources is None else sources
    root = data_root(root)
    if name == "clothing1m":
        raise FileError(
            "Clothing1M is given out by its authors on request: ask for it at https://github.com/Cysu/noisy_label,"
            f" then unpack it so that {root / 'clothing1M' / 'noisy_train_key_list.txt'} exists."
        )
    if name not in sources:
        raise UnknownNameError("data set", name, [*sources, "clothing1m"])
    wanted = [file for file in sources[name] if force or not (root / file.target).exists()]
    if wanted:
        _fetch_all(wanted, root)
    return [root / file.target for file in wanted]


def _fetch_all(files: list[RemoteFile], root: Path) -> None:
    console = Console(stderr=True)
    try:
        root.mkdir(parents=True, exist_ok=True)
        with (
            tempfile.TemporaryDirectory(dir=root, prefix=".download-") as staging,
            Progress(console=console, transient=True, disable=not console.is_terminal) as progress,
        ):
            fetched = [_fetch(file, Path(staging) / str(number), progress) for number, file in enumerate(files)]
            for file, path in zip(files, fetched, strict=True):
                _move(path, root / file.target, Path(staging) / "replaced" / file.target)
    except OSError as error:
        if isinstance(error, FileError):
            raise
        raise FileError(f"Cannot put data below {root}: {error}.") from error


def _fetch(file: RemoteFile, staging: Path, progress: Progress) -> Path:
    """Download and check one file, unpack it if it is an archive, and return what is to be moved in place."""
    name = file.url.rpartition("/")[2]
    path = _retrieve(file, staging, name, _Bar(progress, name))
    if not name.endswith(ARCHIVE_SUFFIXES):
        return path
    unpacked = staging / "unpacked"
    extract(path, unpacked)
    if not (unpacked / file.target).is_dir():
        raise FileError(f"Expected the folder {file.target!r} in {file.url}, got an archive without it.")
    return unpacked / file.target


def _retrieve(file: RemoteFile, staging: Path, name: str, bar: _Bar) -> Path:
    with naming_extra("Downloading data sets"):
        import pooch
    pooch.get_logger().setLevel(logging.WARNING)  # Its notes would break into the progress bar.
    downloader = pooch.HTTPDownloader(progressbar=bar, timeout=60, chunk_size=1 << 16)
    _log.info("downloading %s", file.url)
    try:
        return Path(pooch.retrieve(file.url, file.checksum, fname=name, path=staging, downloader=downloader))
    except ValueError as error:
        raise FileError(
            f"Refused {file.url}: expected the checksum {file.checksum}, got a file with another."
            " The download was damaged or the file replaced; nothing was kept. Try again later."
        ) from error
    except OSError as error:
        raise FileError(f"Cannot download {file.url}: {error}. Check the network, or fetch it elsewhere.") from error


def _move(source: Path, target: Path, replaced: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    if target.exists():
        # A folder cannot be replaced in one step; the old one goes down with the staging folder.
        replaced.parent.mkdir(parents=True, exist_ok=True)
        target.replace(replaced)
    source.replace(target)


class _Bar:
    """The progress bar that pooch expects, drawn by rich."""

    def __init__(self, progress: Progress, name: str) -> None:
        self.total = 0
        self._progress = progress
        self._task = progress.add_task(name, total=None)

    def update(self, n_bytes: int) -> None:
        """Advance by `n_bytes`, of the `total` that pooch has set if the server told it."""
        self._progress.update(self._task, total=self.total or None, advance=n_bytes)

    def reset(self) -> None:
        """Go back to zero: pooch does so before it fills the bar."""
        self._progress.update(self._task, completed=0)

    def close(self) -> None:
        """Stop counting."""
        self._progress.stop_task(self._task)

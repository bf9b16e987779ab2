"""Files: all are opened and checked here, and written whole or not at all."""

import io
import json
import os
import stat
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import IO, Any, Literal

from dualt.errors import FileError

# Characters of a line in a text file of any size: one that has no end must not fill the memory.
LONGEST_LINE = 1 << 26


def _file_error(verb: str, path: str | Path, error: OSError) -> FileError:
    return error if isinstance(error, FileError) else FileError(f"Cannot {verb} {path}: {error.strerror or error}.")


def check_readable(path: str | Path, *, limit: int | None = None) -> Path:
    """Return `path` if it names a regular file, of at most `limit` bytes; a device or a pipe may have no end."""
    path = Path(path)
    try:
        found = path.stat()
    except (FileNotFoundError, NotADirectoryError, ValueError):  # a ValueError: no name can have a null byte
        raise FileError(f"No such file: {path}.") from None
    except OSError as error:
        raise _file_error("read", path, error) from error
    if not stat.S_ISREG(found.st_mode):
        what = f"the folder {path}" if stat.S_ISDIR(found.st_mode) else f"a device or a pipe: {path}"
        raise FileError(f"Expected a file, got {what}.")
    if limit is not None and found.st_size > limit:
        raise FileError(f"Expected a file of at most {limit:,} bytes, got {found.st_size:,} in {path}.")
    return path


class _Text(io.TextIOWrapper):
    """Text that refuses null characters, and lines that do not end, as soon as they are read."""

    limit: int
    _length = 0  # of the line so far

    def read(self, size: int | None = -1, /) -> str:
        return self._check(super().read(size))

    def readline(self, size: int = -1, /) -> str:  # type: ignore[override]
        return self._check(super().readline(self.limit if size < 0 else size))

    def _check(self, text: str) -> str:
        end = max(text.rfind("\n"), text.rfind("\r")) + 1
        self._length = len(text) - end + (0 if end else self._length)
        if "\0" in text:
            raise FileError(f"Cannot read {self.name} as text: it has null characters. It may be damaged, or binary.")
        if self._length >= self.limit:
            raise FileError(f"Expected a line break within {self.limit:,} characters of {self.name}, got none.")
        return text


def open_input(path: str | Path, mode: Literal["rb", "r"] = "rb", *, limit: int | None = None) -> IO[Any]:
    """Open a regular file to read: its bytes, or its UTF-8 text without byte-order mark, line ends as they are."""
    path = check_readable(path, limit=limit)
    try:
        stream = path.open("rb")
    except OSError as error:
        raise _file_error("read", path, error) from error
    if mode == "rb":
        return stream
    text = _Text(stream, encoding="utf-8-sig", newline="")
    text.limit = LONGEST_LINE if limit is None else limit + 1
    return text


def read_text(path: str | Path, *, limit: int | None = None) -> str:
    """Return the text of a UTF-8 file, without byte-order mark."""
    try:
        with open_input(path, "r", limit=limit) as stream:
            return "".join(iter(lambda: stream.read(1 << 20), ""))
    except UnicodeDecodeError:
        raise not_utf8(path) from None
    except OSError as error:
        raise _file_error("read", path, error) from None


def not_utf8(path: str | Path) -> FileError:
    """Return the error for a file that is not UTF-8."""
    return FileError(f"Cannot read {path} as text: it is not in UTF-8. Save it as UTF-8, a spreadsheet as .csv.")


def read_json(path: str | Path, *, limit: int = 64 << 20) -> Any:
    """Return the content of a JSON file; none that dualt reads comes near the limit."""
    text = read_text(path, limit=limit)
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise FileError(f"Cannot read {path} as JSON: {error}.") from None


def json_text(content: Any, *, indent: int | None = 1) -> str:
    """Return `content` as JSON, which has no infinity and no NaN: they are null."""
    try:
        return json.dumps(content, indent=indent, allow_nan=False)
    except ValueError:
        return json.dumps(json.loads(json.dumps(content), parse_constant=lambda _: None), indent=indent)


@contextmanager
def atomic_write(path: str | Path, mode: Literal["w", "wb"] = "w") -> Iterator[IO[Any]]:
    """Open a temporary file beside `path`; rename it to `path` if the block ends well, else remove it.

    The temporary name is drawn fresh and opened exclusively, so two writers never share one and no link prepared
    under it is followed. A file that is replaced keeps its mode, and a link stays a link to the file that is then
    replaced. Errors of the file system become `FileError`.
    """
    check_writable_target(path)
    path = Path(path).resolve()
    text = {} if mode == "wb" else {"encoding": "utf-8", "newline": ""}
    temporary: str | None = None
    try:
        # A part of the name is enough: the whole may leave no room for more.
        prefix = f".{path.name[:32]}."
        with NamedTemporaryFile(mode, dir=path.parent, prefix=prefix, suffix=".tmp", delete=False, **text) as stream:  # type: ignore[call-overload]
            temporary = stream.name
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        os.umask(umask := os.umask(0))
        Path(temporary).chmod(stat.S_IMODE(path.stat().st_mode) if path.exists() else 0o666 & ~umask)
        Path(temporary).replace(path)
        temporary = None
    except OSError as error:
        raise _file_error("write", path, error) from error
    finally:
        if temporary is not None:
            Path(temporary).unlink(missing_ok=True)


def write_text(path: str | Path, text: str) -> None:
    """Write a text file, whole or not at all."""
    with atomic_write(path) as stream:
        stream.write(text)


def check_writable_target(path: str | Path) -> None:
    """Refuse an output path whose folder does not exist, or that is a folder or a device itself."""
    path = Path(path)
    wrong = None
    try:
        path.resolve()
        if path.is_dir():
            wrong = "it is a folder. Name a file"
        elif not path.parent.is_dir():
            wrong = f"the folder {path.parent} does not exist. Create it first"
        elif path.exists() and not path.is_file():
            wrong = "it is a device or a pipe. Name a file"
    except RuntimeError:
        wrong = "it is a link that leads to itself. Name a file"
    except OSError as error:
        raise _file_error("write", path, error) from error
    if wrong:
        raise FileError(f"Cannot write {path}: {wrong}.")


def check_outputs(outputs: Iterable[Path], inputs: Iterable[Path] = ()) -> None:
    """Refuse an output that is one of the inputs, under whatever name, or another output."""
    known = [(path, "an input") for path in inputs]
    for output in outputs:
        for other, what in known:
            if _is_same(output, other):
                named = "" if output == other else f", which is {other}"
                raise FileError(f"Cannot write {output}{named}: it is also {what}. Name another file.")
        known.append((output, "another output"))


def _is_same(one: Path, other: Path) -> bool:
    try:
        return one.resolve() == other.resolve() or (one.exists() and other.exists() and one.samefile(other))
    except (OSError, ValueError, RuntimeError):  # no such name can be, or a link leads to itself: opening it says so
        return False


def check_ending(path: str | Path | None, endings: Collection[str]) -> None:
    """Refuse the name of an output, if there is one, that has none of these endings."""
    if path is not None and Path(path).suffix.lower() not in endings:
        raise FileError(f"Expected a name that ends in {', '.join(endings)}, got {Path(path).name!r}.")


def free_name(path: Path, taken: Collection[str] = ()) -> Path:
    """Return `path`, or the first with a number after its stem, that does not exist and is not `taken`.

    `taken` has paths in lower case: some file systems do not distinguish A from a.
    """
    numbered = (path if number == 1 else path.with_stem(f"{path.stem}-{number}") for number in count(1))
    return next(each for each in numbered if not os.path.lexists(each) and str(each).lower() not in taken)


def make_folder(folder: str | Path) -> Path:
    """Create a folder and its parents, unless they exist, and return it."""
    folder = Path(folder)
    if folder.is_file():
        raise FileError(f"Expected the name of a folder, got the file {folder}. Name another.")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(f"Cannot make the folder {folder}: {error.strerror}.") from error
    return folder

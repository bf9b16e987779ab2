"""One JSON file per run, written whole or not at all."""

from __future__ import annotations

import platform
import subprocess
import traceback
from collections.abc import Mapping
from datetime import datetime, timezone
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any, TypeAlias

from dualt.errors import FileError
from dualt.files import atomic_write, json_text, read_json
from dualt.nn.training.model import make_folder
from dualt.reproduce.spec import FORMAT, RunSpec

Record: TypeAlias = dict[str, Any]

_MEASURED = ("l1_error", "l1_error_per_class", "test_accuracy", "posterior_error", "delta1", "delta2", "delta3")
_LARGEST = 2**53


def new_record(run: RunSpec, content: Mapping[str, Any]) -> Record:
    """Return the record of a run that was done."""
    return {**_header(run), "status": "done", **content}


def failed_record(run: RunSpec, error: BaseException) -> Record:
    """Return the record of a run that could not be done, with the traceback for whoever looks into it."""
    trace = "".join(traceback.format_exception(error))
    return {**_header(run), "status": "failed", "error": f"{type(error).__name__}: {error}", "traceback": trace}


def _header(run: RunSpec) -> Record:
    return {
        "format": FORMAT,
        "id": run.identity,
        "spec": run.to_dict(),
        "seed": run.posterior.seed,
        "versions": dict(_versions()),
        "git_revision": _git_revision(),
        "finished": datetime.now(timezone.utc).isoformat(timespec="seconds"),
    }


@cache
def _versions() -> Mapping[str, str]:
    return {
        "python": platform.python_version(),
        **{name: metadata.version(name) for name in ("dualt", "numpy", "torch")},
    }


@cache
def _git_revision() -> str | None:
    """Return the revision of the source tree, if it is one."""
    command = ["git", "-C", str(Path(__file__).parent), "rev-parse", "HEAD"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True)  # noqa: S603
    except (OSError, subprocess.SubprocessError):
        return None
    return answer.stdout.strip() or None


class Store:
    """The records below a folder, by identity, and where checkpoints are kept beside them."""

    def __init__(self, out: str | Path) -> None:
        self.folder, self.checkpoints = Path(out) / "records", Path(out) / "checkpoints"

    def open(self) -> None:
        """Make the folder."""
        make_folder(self.folder)

    def path(self, identity: str) -> Path:
        """Return where the record of a run is."""
        return self.folder / f"{identity}.json"

    def read_all(self) -> dict[str, Record]:
        """Return every record; refuse a folder with records of another format."""
        return {record["id"]: record for record in map(read_record, sorted(self.folder.glob("*.json")))}

    def is_done(self, run: RunSpec) -> bool:
        """Tell whether a run has a record of success by now."""
        path = self.path(run.identity)
        return path.exists() and read_record(path)["status"] == "done"

    def write(self, record: Record) -> None:
        """Write a record; a failure never replaces a success, which another sweep may have had meanwhile."""
        path = self.path(record["id"])
        if record["status"] == "failed" and path.exists() and read_record(path)["status"] == "done":
            return
        with atomic_write(path) as stream:
            stream.write(json_text(record, indent=None) + "\n")


def read_record(path: Path) -> Record:
    """Return the record in a file."""
    try:
        record = read_json(path)
    except FileError as error:
        raise FileError(f"{error} Move that record away; its run will be done again.") from None
    found = record.get("format") if isinstance(record, dict) else None
    if found != FORMAT:
        raise FileError(
            f"Expected records of format {FORMAT} in {path.parent}, got format {found} in {path.name}: another"
            " version of dualt wrote them. Nothing was changed; name another folder with --out."
        )
    if not _is_whole(record):
        raise FileError(
            f"Expected a whole record in {path}, got one without its id, status, spec or numbers. Move it away; its run"
            " will be done again."
        )
    return dict(record)


def _is_whole(record: Record) -> bool:
    """Tell whether a record has what its readers rely on, with numbers where numbers belong."""
    measured = [record.get(name) for name in _MEASURED]
    return (
        isinstance(record.get("id"), str)
        and isinstance(record.get("spec"), dict)
        and (
            record.get("status") == "failed" or (record.get("status") == "done" and _is_number(record.get("n_samples")))
        )
        and all(value is None or _is_number(value) for value in measured)
        and (record.get("l1_error") is None) == (record.get("l1_error_per_class") is None)
    )


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and abs(value) < _LARGEST

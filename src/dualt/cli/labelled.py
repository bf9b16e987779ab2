"""Which rows have a label, and which of these were verified: said on stderr, and counted."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from dualt.errors import LabelsError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from dualt.audit import Audit
    from dualt.audit.sheet import Sheet

_log = logging.getLogger(__name__)
# How many rows a notice lists.
_SHOWN = 12


def tell_missing(labelled: NDArray[np.intp], n_rows: int) -> None:
    """Say on stderr which rows, if any, have no label and are left out."""
    import numpy as np

    missing = np.setdiff1d(np.arange(n_rows), labelled).tolist()
    if missing:
        shown = ", ".join(map(str, missing[:_SHOWN])) + (", …" if len(missing) > _SHOWN else "")
        _log.warning("%s of %s rows have no label and are left out: %s", f"{len(missing):,}", f"{n_rows:,}", shown)


def tell_verified(n_verified: int, sheet: Sheet, path: Path | None) -> None:
    """Say on stderr how many rows of an audit's file are filled in."""
    _log.warning("%s of %s rows of %s are verified.", f"{n_verified:,}", f"{len(sheet.rows):,}", path)


def among_labelled(
    audit: Audit, labelled: NDArray[np.intp], n_rows: int, digest: Callable[[], str], named: str = ""
) -> Audit:
    """Return an audit whose rows are counted among those that have a label; refuse one of other labels."""
    import numpy as np

    from dualt.audit.verified_labels import check_digest

    if audit.labels_digest is not None:
        check_digest(audit.labels_digest, digest(), n_rows)
    if not np.isin(audit.rows, labelled).all():
        raise LabelsError(f"Expected rows with a label in the audit{named}, got one that has none.")
    return replace(audit, rows=np.searchsorted(labelled, audit.rows), labels_digest=None)

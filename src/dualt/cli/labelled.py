"""Which rows have a label, and which of these were verified: said on stderr, and counted."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

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

"""Verified rows of a table, found among the rows that were kept of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from dualt.audit.verified_labels import Audit, check_digest
from dualt.labels import labels_digest
from dualt.rows.row_names import positions, row_numbers
from dualt.validation import index_of


def among_kept(verified: Any, labels: Any) -> Any:
    """Return an audit of a table with its rows counted among `labels`, whose index has kept the table's row numbers.

    So `dropna` may leave out rows without a label, which were never drawn. Anything else comes back as it is: an audit
    that is of no table, and one of these very labels.
    """
    numbers = row_numbers(index_of(labels))
    if not isinstance(verified, Audit) or verified.labels_digest is None or numbers is None:
        return verified
    if verified.labels_digest == labels_digest(labels):
        return verified
    check_digest(verified.labels_digest, labels_digest(labels, numbers), len(numbers))
    # Only rows that have a label were drawn, and the digest is that of all of them.
    return replace(verified, rows=positions(numbers, verified.rows), labels_digest=None)

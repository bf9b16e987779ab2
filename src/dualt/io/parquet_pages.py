"""To what the pages of a Parquet file unpack, by their own headers: Arrow believes them, and fills what they claim."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dualt.errors import FileError
from dualt.files import check_expansion, open_input

# A page has at most 2 GB, which a file of this size may unpack to; reading all pages of larger ones would take long.
_LARGEST = 24 << 20
_DELTA_BYTE_ARRAY = 7
# Rows of texts that are decoded at once where each may repeat most of the one before.
ROWS_OF_DELTAS = 32


def check_pages(path: Path) -> None:
    """Refuse a file with a column that would unpack to far more than the file's size can account for."""
    if path.stat().st_size > _LARGEST:
        return
    with open_input(path) as stream:
        data = stream.read()
    try:
        for column in _columns(data):
            pages = [*_pages(data, column)]
            check_expansion(sum(size for size, _ in pages), path)
            longest = max((size for size, encoding in pages if encoding == _DELTA_BYTE_ARRAY), default=0)
            check_expansion(ROWS_OF_DELTAS * longest, path)
    except (AttributeError, IndexError, KeyError, RecursionError, TypeError, ValueError):
        raise FileError(f"Cannot read {path} as Parquet: its description of itself is damaged.") from None


def _columns(data: bytes) -> list[dict[int, Any]]:
    """Return the description of every column of every row group."""
    length = int.from_bytes(data[-8:-4], "little")
    footer = _Compact(data[-8 - length : -8]).structure()
    columns = [column[3] for group in footer[4] for column in group[1]]
    if min((column[7] for column in columns), default=0) < 0 or sum(column[7] for column in columns) > len(data):
        raise ValueError("columns overlap")
    return columns


def _pages(data: bytes, column: dict[int, Any]) -> Iterator[tuple[int, int | None]]:
    """Yield size and encoding of each page; field 7 is the size of all, 9 and 11 are the places of the first ones."""
    reader = _Compact(data, min(column[9], column.get(11) or column[9]))
    end = min(reader.place + column[7], len(data))
    while reader.place < end:
        header = reader.structure()
        yield max(header[2], 0), header.get(5, {}).get(2, header.get(8, {}).get(4))
        reader.place += max(header[3], 0)


class _Compact:
    """Reads Thrift's compact encoding, in which Parquet describes itself; a structure is its fields, by number."""

    def __init__(self, data: bytes, place: int = 0) -> None:
        self.data, self.place = data, place

    def structure(self) -> dict[int, Any]:
        fields: dict[int, Any] = {}
        number = 0
        while head := self._byte():
            number = number + (head >> 4) if head >> 4 else self._integer()
            kind = head & 15
            fields[number] = kind == 1 if kind in (1, 2) else self._value(kind)
        return fields

    def _value(self, kind: int) -> Any:
        match kind:
            case 1 | 2 | 3:
                return self._byte()
            case 4 | 5 | 6:
                return self._integer()
            case 7 | 8:
                return self._bytes(8 if kind == 7 else self._natural())
            case 9 | 10:
                head = self._byte()
                length = head >> 4 if head >> 4 < 15 else self._natural()
                return [self._value(head & 15) for _ in range(length)]
            case 12:
                return self.structure()
        raise ValueError(f"no kind of value: {kind}")

    def _byte(self) -> int:
        self.place += 1
        return self.data[self.place - 1]

    def _bytes(self, length: int) -> bytes:
        self.place += length
        return self.data[self.place - length : self.place]

    def _natural(self) -> int:
        value = shift = 0
        while (byte := self._byte()) & 128:
            value |= (byte & 127) << shift
            shift += 7
        return value | byte << shift

    def _integer(self) -> int:
        value = self._natural()
        return value >> 1 ^ -(value & 1)

"""Seeded mutations of valid files: bits, bytes, numbers that lie, blocks moved about, nesting without end."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from random import Random

# Sizes that a header may claim: nothing, too much, more than any machine has, and the edges of the integers.
LIES = (0, 1, 2, 127, 128, 255, 65535, 2**31 - 1, 2**31, 2**32 - 1, 10**12, 2**53 + 1, 2**63 - 1, 2**63, 2**64 - 1)
NUMBERS = (
    *map(str, LIES), "-1", "-0.0", "1e999", "1e-400", "nan", "-inf", "9" * 30, "9" * 5000,
    "1_0", "٣", "0x10", "1,5", "1e", "²",
)  # fmt: skip
TOKENS = (
    "", " ", "\n", "\r", "\r\n", "\t", "\0", '"', "'", '""', ",", ";", "\\", "\ufeff", "\u2028", "\x1a", "null",
    "true", "None",
    "[", "]", "{", "}", "()", "[[]]", "{}", "O", "|O", "<f8", ">f2", "<U0", "|V0", "<M8[s]", "f8,i4", "=1+1", "../",
    "/etc/passwd",
)  # fmt: skip
_NUMBER = re.compile(rb"-?\d+(?:\.\d+)?")


def _flip_bit(data: bytearray, rng: Random, _: Sequence[bytes]) -> None:
    data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)


def _set_byte(data: bytearray, rng: Random, _: Sequence[bytes]) -> None:
    data[rng.randrange(len(data))] = rng.choice((0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)))


def _truncate(data: bytearray, rng: Random, _: Sequence[bytes]) -> None:
    del data[rng.randrange(len(data)) :]


def _delete_block(data: bytearray, rng: Random, _: Sequence[bytes]) -> None:
    start = rng.randrange(len(data))
    del data[start : start + rng.choice((1, 2, 4, 8, 64, 512))]


def _duplicate_block(data: bytearray, rng: Random, _: Sequence[bytes]) -> None:
    start, place = rng.randrange(len(data)), rng.randrange(len(data) + 1)
    data[place:place] = data[start : start + rng.choice((1, 4, 16, 64, 512))] * rng.choice((1, 1, 2, 50))


def _insert_noise(data: bytearray, rng: Random, _: Sequence[bytes]) -> None:
    place = rng.randrange(len(data) + 1)
    data[place:place] = rng.randbytes(rng.choice((1, 4, 16, 256)))


def _insert_token(data: bytearray, rng: Random, _: Sequence[bytes]) -> None:
    place = rng.randrange(len(data) + 1)
    data[place : place + rng.choice((0, 0, 1, 4))] = rng.choice(TOKENS + NUMBERS).encode()


def _lie_in_binary(data: bytearray, rng: Random, _: Sequence[bytes]) -> None:
    size, order = rng.choice((1, 2, 4, 8)), rng.choice(("little", "big"))
    start = rng.randrange(min(len(data), rng.choice((16, 128, len(data)))))
    data[start : start + size] = (rng.choice(LIES) % 256**size).to_bytes(size, order)


def _lie_in_text(data: bytearray, rng: Random, _: Sequence[bytes]) -> None:
    numbers = list(_NUMBER.finditer(bytes(data[:4096])))
    if numbers:
        start, stop = rng.choice(numbers).span()
        data[start:stop] = rng.choice(NUMBERS).encode()


def _splice(data: bytearray, rng: Random, others: Sequence[bytes]) -> None:
    other = rng.choice(others)
    data[rng.randrange(len(data)) :] = other[rng.randrange(len(other)) :]


def _nest(data: bytearray, rng: Random, _: Sequence[bytes]) -> None:
    place, depth = rng.randrange(len(data) + 1), rng.choice((50, 5_000, 100_000))
    data[place:place] = rng.choice((b"[", b"{", b"(", b'{"a":', b"-", b'"', b"\x85", b"]")) * depth


_KINDS: tuple[Callable[[bytearray, Random, Sequence[bytes]], None], ...] = (
    _flip_bit, _set_byte, _truncate, _delete_block, _duplicate_block, _insert_noise, _insert_token, _lie_in_binary,
    _lie_in_text, _splice,
)  # fmt: skip


def mutate(data: bytes, rng: Random, others: Sequence[bytes]) -> bytes:
    """Return `data` after one to four mutations; `others` are valid files of the same format."""
    mutated = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 4))):
        if mutated:
            rng.choice(_KINDS)(mutated, rng, others)
    if mutated and rng.random() < 0.01:
        _nest(mutated, rng, others)
    return bytes(mutated)

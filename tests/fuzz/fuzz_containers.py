"""Mutations inside a container: what is packed is changed and packed again, so that checksums and lengths hold."""

from __future__ import annotations

import gzip
import io
import tarfile
import warnings
import zipfile
import zlib
from collections.abc import Callable
from random import Random

Mutate = Callable[[bytes], bytes]
Inside = Callable[[bytes, Mutate, Random], bytes]


def inside_gzip(data: bytes, mutate: Mutate, _: Random) -> bytes:
    return gzip.compress(mutate(gzip.decompress(data)), 1, mtime=0)


def inside_zip(data: bytes, mutate: Mutate, rng: Random) -> bytes:
    """Change the content or the name of one member."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = [(name, archive.read(name)) for name in archive.namelist()]
    chosen, packed = rng.randrange(len(members)), io.BytesIO()
    kind = rng.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))
    with warnings.catch_warnings(), zipfile.ZipFile(packed, "w", kind) as archive:
        warnings.simplefilter("ignore")  # of a name that comes twice: that is the point
        for number, (name, content) in enumerate(members):
            if number == chosen and rng.random() < 0.15:
                name = mutate(name.encode()).decode("utf-8", "replace") or "x"  # noqa: PLW2901
            # A fixed date, so that a seed always gives the same bytes.
            archive.writestr(zipfile.ZipInfo(name[:200]), mutate(content) if number == chosen else content)
    return packed.getvalue()


def inside_tar_header(data: bytes, mutate: Mutate, _: Random) -> bytes:
    """Change a header block and put its checksum right."""
    block = bytearray(mutate(data[: tarfile.BLOCKSIZE])[: tarfile.BLOCKSIZE].ljust(tarfile.BLOCKSIZE, b"\0"))
    block[148:156] = b" " * 8
    block[148:156] = b"%06o\0 " % sum(block)
    return bytes(block) + data[tarfile.BLOCKSIZE :]


def inside_safetensors(data: bytes, mutate: Mutate, _: Random) -> bytes:
    """Change the JSON header and tell its new length."""
    length = int.from_bytes(data[:8], "little")
    header = mutate(data[8 : 8 + length])
    return len(header).to_bytes(8, "little") + header + data[8 + length :]


def inside_npy_header(data: bytes, mutate: Mutate, _: Random) -> bytes:
    """Change the literal in the header of a `.npy` file and tell its new length."""
    length = int.from_bytes(data[8:10], "little")
    header = mutate(data[10 : 10 + length])[:65535]
    return data[:8] + len(header).to_bytes(2, "little") + header + data[10 + length :]


def inside_png(data: bytes, mutate: Mutate, _: Random) -> bytes:
    """Change the first chunk, which says the size, and put its checksum right."""
    body = mutate(data[16:29])[:13].ljust(13, b"\0")
    return data[:16] + body + zlib.crc32(data[12:16] + body).to_bytes(4, "big") + data[33:]

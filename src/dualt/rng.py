"""One seed, many independent streams: data, noise, initialisation and batches do not disturb each other."""

import zlib
from typing import Any, TypeAlias

import numpy as np

from dualt.errors import InputError

RandomState: TypeAlias = "np.random.Generator | int | None"


def as_generator(random_state: RandomState) -> np.random.Generator:
    """Return `random_state` itself if it is a generator, else one seeded with it (`None`: from the system)."""
    if isinstance(random_state, np.random.Generator):
        return random_state
    return np.random.default_rng(None if random_state is None else check_seed(random_state))


def check_seed(seed: Any) -> int:
    """Return `seed`, the user's random_state, if NumPy, scikit-learn and torch take it."""
    if not isinstance(seed, (int, np.integer)) or not 0 <= seed < 2**32:
        raise InputError(f"Expected a seed from 0 to {2**32 - 1} as random_state, got {seed!r}.")
    return int(seed)


def stream(seed: int, name: str) -> np.random.Generator:
    """Return the stream `name` of `seed`.

    Streams of different names are independent, so that drawing more noise does not change the
    batches. The name enters through a checksum, not `hash`, which differs from process to process.

    Examples
    --------
    >>> bool(stream(0, "noise").random() == stream(0, "noise").random())
    True
    >>> bool(stream(0, "noise").random() == stream(0, "batches").random())
    False
    """
    return np.random.default_rng([check_seed(seed), zlib.crc32(name.encode())])


def stream_seed(seed: int, name: str) -> int:
    """Return one integer drawn from the stream `name` of `seed`, to seed a generator of another library."""
    return int(stream(seed, name).integers(2**31))

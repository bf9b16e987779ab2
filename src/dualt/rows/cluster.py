"""A connection to a Dask cluster, or a reason why there is none."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from dualt import __version__
from dualt.errors import InputError, naming_extra

LOCAL = "local"
_LOCAL_WORKERS = 2
_TIMEOUT, _TIMEOUT_OF_WORKERS = "5s", "30s"


@contextmanager
def connected(address: str) -> Iterator[Any]:
    """Open a client of the scheduler at `address`, or of two worker processes started here if that is `local`.

    Within the block, Dask computes there. Workers must have this version of dualt.
    """
    with naming_extra("Running on a Dask cluster"):
        from distributed import Client, LocalCluster

    if address == LOCAL:
        options = {"threads_per_worker": 1, "dashboard_address": "127.0.0.1:0", "silence_logs": logging.ERROR}
        with LocalCluster(n_workers=_LOCAL_WORKERS, **options) as cluster, Client(cluster) as client:
            yield client
        return
    try:
        client = Client(address, timeout=_TIMEOUT)
    except (OSError, ValueError, TimeoutError) as error:
        raise InputError(
            f"Expected a Dask scheduler at {address}, but none answers ({error or type(error).__name__}). Start one"
            " with 'dask scheduler', or leave --dask away. Nothing was changed."
        ) from error
    with client:
        _check_workers(client, address)
        yield client


def _check_workers(client: Any, address: str) -> None:
    """Refuse a cluster without workers, where work would wait for ever, or with other versions of dualt."""
    try:
        client.wait_for_workers(1, timeout=_TIMEOUT_OF_WORKERS)
    except TimeoutError:
        raise InputError(
            f"Expected workers at {address}, got none in {_TIMEOUT_OF_WORKERS}. Start some with"
            f" 'dask worker {address}'."
        ) from None

    def version() -> str:
        try:
            from dualt import __version__ as found
        except ImportError:
            return "none"
        return found

    for worker, found in client.run(version).items():
        if found != __version__:
            raise InputError(
                f"Expected dualt {__version__} on every worker, got {found} on {worker}. Install the same version"
                " there."
            )

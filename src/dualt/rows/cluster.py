"""A connection to a Dask cluster, or a reason why there is none."""

from __future__ import annotations

import logging
import signal
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import ExitStack, contextmanager
from multiprocessing import resource_tracker
from threading import current_thread, main_thread
from typing import Any

from dualt import __version__
from dualt.errors import InputError, TrainingError, naming_extra

LOCAL = "local"
_LOCAL_WORKERS = 2
_TIMEOUT, _TIMEOUT_OF_WORKERS = "5s", "30s"
# Seconds between two looks at a cluster that is at work, and how long it may have nobody who works.
_LOOK, _PATIENCE = 1.0, 30.0
_log = logging.getLogger(__name__)


@contextmanager
def connected(address: str) -> Iterator[Any]:
    """Open a client of the scheduler at `address`, or of two worker processes started here if that is `local`.

    Within the block, Dask computes there. Workers must have this version of dualt.
    """
    with naming_extra("Running on a Dask cluster"):
        from distributed import Client

    if address == LOCAL:
        with _local_client() as client:
            yield client
        return
    try:
        client = Client(address, timeout=_TIMEOUT)
    except Exception as error:  # an address decides which library speaks, and fails in its own way
        raise InputError(
            f"Expected a Dask scheduler at {address}, but none answers ({error or type(error).__name__}). Start one"
            " with 'dask scheduler', or leave --dask away. Nothing was changed."
        ) from error
    with client:
        _check_workers(client, address)
        yield client


@contextmanager
def _local_client() -> Iterator[Any]:
    """Open a client of processes started here, which only this one ends: Ctrl-C reaches it alone."""
    from distributed import Client, LocalCluster

    # Errors of tasks come to us; those that workers show themselves are of connections that end with an interrupt.
    options = {"threads_per_worker": 1, "dashboard_address": "127.0.0.1:0", "silence_logs": logging.CRITICAL}
    with ExitStack() as stack:
        with _interrupts_held():
            cluster = stack.enter_context(LocalCluster(n_workers=_LOCAL_WORKERS, **options))
            client = stack.enter_context(Client(cluster))
        yield client


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """Deliver Ctrl-C at the end of the block; processes that are started in it never get one.

    A terminal sends it to all of them, and each would show where it was. Where signals cannot be held, nothing is.
    """
    ours = signal.getsignal(signal.SIGINT)
    if not hasattr(signal, "pthread_sigmask") or ours is None or current_thread() is not main_thread():
        yield
        return
    # It starts with the first process otherwise, and then lets all signals through again.
    resource_tracker.ensure_running()
    held: list[int] = []
    # New processes inherit what this thread blocks; other threads of this one do not block it, so it is caught as well.
    signal.signal(signal.SIGINT, lambda number, _: held.append(number))
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
        signal.signal(signal.SIGINT, ours)
    if held:
        signal.raise_signal(signal.SIGINT)


def open_client() -> Any:
    """Return the client that Dask computes with, or None if that is no cluster."""
    import sys

    if "distributed" not in sys.modules:
        return None
    from distributed.client import _get_global_client

    return _get_global_client()


def compute_watched(client: Any, values: Sequence[Any]) -> tuple[Any, ...]:
    """Return what delayed values come to on a cluster; see `completed`."""
    futures = client.compute(list(values))
    for _ in completed(client, futures):
        pass
    return tuple(map(result_of, futures))


def completed(client: Any, futures: Iterable[Any]) -> Iterator[Any]:
    """Yield futures as they are done; say so, and in the end fail, if nobody works on them any more."""
    from distributed import wait

    left, missed = set(futures), 0.0
    while left:
        try:
            done, left = wait(left, timeout=_LOOK, return_when="FIRST_COMPLETED")
        except TimeoutError:
            problem = _problem(client)
        except (OSError, RuntimeError, CancelledError) as error:
            raise _failed(str(error) or type(error).__name__) from None
        else:
            missed, problem = 0.0, None
            yield from done
        if problem and missed == 0:
            _log.warning("The Dask cluster has %s. Waiting up to %g seconds for it.", problem, _PATIENCE)
        missed = missed + _LOOK if problem else 0.0
        if missed > _PATIENCE:
            raise _failed(f"it has {problem}")


def result_of(future: Any) -> Any:
    """Return what a future came to; that its workers died or left is an error of ours."""
    from distributed import KilledWorker

    try:
        return future.result()
    except (KilledWorker, CancelledError) as error:
        raise _failed(str(error) or type(error).__name__) from None


def _problem(client: Any) -> str | None:
    if client.status != "running":
        return "no scheduler that answers"
    return None if client.scheduler_info(n_workers=-1)["workers"] else "no workers"


def _failed(reason: str) -> TrainingError:
    return TrainingError(
        f"The Dask cluster failed: {reason.rstrip('.')}. What was finished is kept. Start the cluster again and run the"
        " same command."
    )


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

    # A worker that dies while it is asked is none: if all do, `completed` says so.
    for worker, found in client.run(version, on_error="ignore").items():
        if found != __version__:
            raise InputError(
                f"Expected dualt {__version__} on every worker, got {found} on {worker}. Install the same version"
                " there."
            )

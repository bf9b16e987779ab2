"""Work in threads, with results in the order of the work and little of it waiting."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


def ordered_map(function: Callable[[Item], Result], items: Iterable[Item], n_jobs: int) -> Iterator[Result]:
    """Return `function(item)` of every item, in order, computing `n_jobs` of them at a time.

    Items are drawn only as they are needed, one more than there are threads, so that memory stays bounded. An error
    comes out in its item's place, and nothing runs on after it.
    """
    return map(function, items) if n_jobs == 1 else _in_threads(function, items, n_jobs)


def _in_threads(function: Callable[[Item], Result], items: Iterable[Item], n_jobs: int) -> Iterator[Result]:
    waiting: deque[Future[Result]] = deque()
    with ThreadPoolExecutor(n_jobs) as pool:
        try:
            for item in items:
                waiting.append(pool.submit(function, item))
                if len(waiting) > n_jobs:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()

"""Calls that do not depend on each other, a few at the same time: an API server answers eight sooner than one by one.

It knows nothing of what is called. In memory, where nothing is waited for, calls go one after the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")


def each(do: Callable[[T], R], items: Iterable[T], *, at_once: int = 1) -> list[R]:
    """What `do` answers for each item, in the order of the items.

    `at_once` is how many may be under way, in threads of their own; 1 stays in the caller's. An error is raised when
    everything that had begun by then has ended; nothing begins after it, so that the caller knows it is alone again.
    """
    todo = list(items)
    if at_once == 1 or len(todo) < 2:
        return [do(item) for item in todo]
    with ThreadPoolExecutor(max_workers=min(at_once, len(todo))) as threads:
        # Left by an error, the iterator cancels what has not begun, and the pool waits for the rest.
        return list(threads.map(do, todo))

"""Runs independent calls in parallel, a few at a time: an API server answers eight sooner than one by one.

It does not depend on what is called. For objects in memory, where calls do not wait, they run one after the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")


def each(do: Callable[[T], R], items: Iterable[T], *, at_once: int = 1) -> list[R]:
    """The result of `do` for each item, in the order of the items.

    `at_once` is the most calls that run at the same time, in threads of their own; with 1 they run in the caller's
    thread. An error is raised after all calls that had begun have ended; no call begins after it, so that none runs
    when the caller continues.
    """
    todo = list(items)
    if at_once == 1 or len(todo) < 2:
        return [do(item) for item in todo]
    with ThreadPoolExecutor(max_workers=min(at_once, len(todo))) as threads:
        # If an error leaves the iterator, it cancels the calls that have not begun, and the pool waits for the rest.
        return list(threads.map(do, todo))

"""Calls that do not depend on each other, a few at a time."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from providers.at_once import each


@pytest.mark.parametrize("at_once", [pytest.param(1, id="one-by-one"), pytest.param(3, id="three-at-once")])
def test_answers_come_in_the_order_of_the_items(at_once: int) -> None:
    assert each(lambda number: number * 10, range(7), at_once=at_once) == [0, 10, 20, 30, 40, 50, 60]


def test_so_many_are_under_way_and_no_more() -> None:
    together = threading.Barrier(3, timeout=30)  # broken unless three calls wait in it at the same time

    def meet(_: int) -> str:
        together.wait()
        return threading.current_thread().name

    assert len(set(each(meet, range(6), at_once=3))) == 3


def test_one_at_a_time_stays_in_the_thread_of_the_caller() -> None:
    assert set(each(lambda _: threading.get_ident(), range(3))) == {threading.get_ident()}


def failing_at(item: int, done: list[int]) -> Callable[[int], None]:
    def do(number: int) -> None:
        if number == item:
            raise ConnectionError(f"item {number}")
        done.append(number)

    return do


def test_one_by_one_nothing_is_begun_after_an_error() -> None:
    done: list[int] = []
    with pytest.raises(ConnectionError, match="item 2"):
        each(failing_at(2, done), range(5))
    assert done == [0, 1]


def test_an_error_is_raised_when_nothing_is_under_way_any_more() -> None:
    begun, ended = threading.Event(), threading.Event()

    def do(number: int) -> None:
        if number == 0:
            assert begun.wait(timeout=30)
            raise ConnectionError("the first")
        begun.set()
        ended.set()

    with pytest.raises(ConnectionError, match="the first"):
        each(do, range(2), at_once=2)
    assert ended.is_set()

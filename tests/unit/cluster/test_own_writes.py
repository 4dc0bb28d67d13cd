"""What was just written outlives a watch that lags, however often the watch shows the same."""

from __future__ import annotations

from typing import NamedTuple

from autoscaler.cluster.api import Object
from autoscaler.cluster.own_writes import OwnWrites
from autoscaler.cluster.resources import PROVISIONED_NODES


class Item(NamedTuple):
    name: str
    resource_version: str


def _parse(raw: Object) -> Item:
    return Item(raw["metadata"]["name"], raw["metadata"]["resourceVersion"])


A, B = Item("a", "1"), Item("b", "2")


def known(*seen: Item, seen_up_to: int = 2) -> OwnWrites[Item]:
    writes = OwnWrites(PROVISIONED_NODES, _parse)
    writes.merge(seen, seen_up_to)
    return writes


def test_the_values_are_the_same_tuple_until_one_changes() -> None:
    writes = known(B, A)
    before = writes.values()
    assert before == (A, B)
    assert writes.values() is before
    changed = Item("a", "3")
    writes.put(changed)
    assert writes.values() == (changed, B)
    writes.drop("b")
    assert writes.values() == (changed,)


def test_what_is_read_again_unchanged_replaces_nothing() -> None:
    seen = (A, B)
    writes = known(*seen)
    writes.merge(seen, 2)
    before = writes.values()
    writes.merge(seen, 9)
    assert writes.values() is before


def test_a_new_object_stays_until_the_watch_must_have_shown_it() -> None:
    seen = (A,)
    writes = known()
    writes.merge(seen, 1)
    new = writes.put(Item("new", "5"))
    writes.merge(seen, 4)
    assert writes.values() == (A, new)
    writes.merge(seen, 5)
    assert writes.values() == (A,)


def test_a_written_object_stays_while_the_watch_shows_what_was_before() -> None:
    seen = (A,)
    writes = known()
    writes.merge(seen, 1)
    changed = writes.put(Item("a", "5"))
    for _ in range(2):
        writes.merge(seen, 4)
        assert writes.values() == (changed,)


def test_a_removed_object_stays_away_until_the_watch_must_have_shown_that() -> None:
    seen = (A, B)
    writes = known()
    writes.merge(seen, 2)
    writes.drop("b")
    writes.merge(seen, 2)
    assert writes.values() == (A,)
    writes.merge(seen, 3)
    assert writes.values() == (A, B)
    assert writes.get("b") is B

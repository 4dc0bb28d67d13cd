"""What is remembered between reconciles is what would be computed again."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from autoscaler.model.capacity import CapacityPool
from autoscaler.model.snapshot import Backoff, Snapshot
from autoscaler.planning.policy import Policy
from autoscaler.planning.supply.candidates import candidates_of, every_candidate, refusals
from autoscaler.planning.supply.hypothetical import shapes_of
from autoscaler.planning.supply.remembered import LastAnswers, Same
from instance_catalog.dataclass import replace
from instance_catalog.files.loader import load_catalog
from instance_catalog.kubernetes.node_selector import Requirement
from instance_catalog.kubernetes.profile import REFERENCE

NOW = datetime(2026, 11, 2, tzinfo=UTC)
TYPE = "node.kubernetes.io/instance-type"


def pool(*types: str) -> CapacityPool:
    """A pool of these types."""
    return CapacityPool("gpu", requirements=(Requirement(TYPE, "In", types),), drivers=("nvidia",))


def test_equal_arguments_are_answered_once_and_the_oldest_answers_are_dropped() -> None:
    answers, computed = LastAnswers[int](), list[int]()

    def ask(number: int) -> int:
        def compute() -> int:
            computed.append(number)
            return number * 2

        return answers.of((number,), compute)

    assert [ask(1), ask(1), ask(2), ask(1)] == [2, 2, 4, 2]
    assert computed == [1, 2]
    assert [ask(number) for number in range(3, 7)] == [6, 8, 10, 12]
    assert ask(1) == 2
    assert computed.count(1) == 2


def test_some_values_equal_only_themselves() -> None:
    first, second = [1], [1]
    assert Same(first) == Same(first)
    assert Same(first) != Same(second)


@pytest.mark.slow
def test_what_pools_admit_follows_every_change() -> None:
    whole = load_catalog()
    small = replace(whole, types=whole.types)
    long = Backoff(until=NOW + timedelta(hours=1), instance_type="g6.xlarge", reason="InsufficientCapacity")
    snapshots = [
        Snapshot(profile=REFERENCE, pools=(pool("g6.xlarge"),)),
        Snapshot(profile=REFERENCE, pools=(pool("g6.xlarge", "g6.12xlarge"),)),
        Snapshot(profile=REFERENCE, pools=(pool("g6.xlarge"),), backoffs=(long,)),
        Snapshot(profile=REFERENCE, pools=(pool("g6.xlarge"),)),
    ]
    counts = []
    for catalog in (whole, small):
        for snapshot in snapshots:
            for moment in (NOW, NOW + timedelta(hours=2)):
                found = candidates_of(snapshot, catalog, Policy(), now=moment)
                direct = (c for c in every_candidate(snapshot, catalog, Policy(), now=moment) if not refusals(c))
                assert found == tuple(direct)
                counts.append((len(found), sum(c.barred is not None for c in found)))
    assert len(set(counts)) > 2


def test_shapes_are_the_same_objects_while_nothing_changes() -> None:
    catalog, snapshot = load_catalog(), Snapshot(profile=REFERENCE, pools=(pool("g6.xlarge"),))
    first = candidates_of(snapshot, catalog, Policy(), now=NOW)
    again = candidates_of(replace(snapshot), catalog, Policy(), now=NOW + timedelta(hours=1))
    assert again is first
    assert shapes_of(first, snapshot, frozenset()) is shapes_of(again, snapshot, frozenset())
    zoned = shapes_of(first, snapshot, frozenset({"topology.kubernetes.io/zone"}))
    assert zoned is not shapes_of(first, snapshot, frozenset())


class _Keys(frozenset[str]):
    """Label keys that pods name, which may be very many: they are looked up and never gone through."""

    def __iter__(self) -> Iterator[str]:
        raise AssertionError("all keys are gone through for a candidate")


def test_no_candidate_goes_through_all_label_keys_that_pods_name() -> None:
    snapshot = Snapshot(profile=REFERENCE, pools=(pool("g6.xlarge", "g6.12xlarge"),))
    found = candidates_of(snapshot, load_catalog(), Policy(), now=NOW)
    keys = [TYPE, *(f"k{number}" for number in range(1000))]
    shapes, _ = shapes_of(found, snapshot, _Keys(keys))
    assert {frozenset(shape.node.labels) for shape in shapes} == {frozenset({TYPE})}

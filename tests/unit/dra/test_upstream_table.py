"""Cases of upstream's allocator table that the recorded cases do not cover: search effort, order, list attributes.

k8s.io/dynamic-resource-allocation structured/internal/allocatortesting/allocator_testing.go, v0.36 and v0.37.
"""

from __future__ import annotations

import pytest

from autoscaler.dra.allocation.allocator import Allocated, NotAllocated, SearchBudget
from autoscaler.model.resource_claim import DistinctAttribute, FirstAvailable, MatchAttribute
from instance_catalog.dataclass import replace
from instance_catalog.kubernetes.profile import profile_for
from instance_catalog.kubernetes.resource_slice import AttributeValue, ListValue, Unset, Version
from instance_catalog.kubernetes.taint import Taint
from tests.unit.dra.build import DRIVER, ask, claim, cluster, counter_slice, device, devices, drawing, request, slice_of

PLAIN = SearchBudget(prune=False)
KINDS = [device("device-1", {"type": "X"}), device("device-2", {"type": "Y"}), device("device-3", {"type": "Y"})]


@pytest.mark.parametrize(("version", "steps"), [("1.36", 16), ("1.35", 65)], ids=["combinations", "permutations"])
def test_five_of_four_devices(version: str, steps: int) -> None:
    where = cluster(slice_of(devices(4)), profile=profile_for(version))
    outcome = ask([claim(request(count=5))], where, budget=PLAIN)
    assert isinstance(outcome, NotAllocated)
    assert outcome.steps == steps


def test_backtracking_over_two_requests() -> None:
    outcome = ask([claim(request("r1", 2), request("r2", 1, "type=X"))], cluster(slice_of(KINDS)), budget=PLAIN)
    assert isinstance(outcome, Allocated)
    assert [result.device for result in outcome.allocations[0].devices] == ["device-2", "device-3", "device-1"]
    assert outcome.steps == 12


def test_backtracking_over_prioritized_lists() -> None:
    first = FirstAvailable("r1", (request("a", 3, "type=Y"), request("b", 2)))
    second = FirstAvailable("r2", (request("a", 2), request("b", 1, "type=X")))
    outcome = ask([claim(first, second)], cluster(slice_of(KINDS)), budget=PLAIN)
    assert isinstance(outcome, Allocated)
    assert [(result.request, result.device) for result in outcome.allocations[0].devices] == [
        ("r1/b", "device-2"),
        ("r1/b", "device-3"),
        ("r2/b", "device-1"),
    ]
    assert outcome.steps == 26


def test_two_lists_that_exceed_the_limit_only_together() -> None:
    lists = [FirstAvailable(name, (request("a", 32), request("b", 16))) for name in ("r0", "r1")]
    outcome = ask([claim(*lists)], cluster(slice_of(devices(64))), budget=PLAIN)
    assert isinstance(outcome, Allocated)
    assert outcome.choices == (1, 1)
    assert outcome.steps == 75


def test_pools_with_binding_conditions_come_last() -> None:
    slow = slice_of([device("a", binding_conditions=())], name="s1", pool="pool-1")
    where = cluster(
        slow, slice_of([device("b")], name="s3", pool="pool-3"), slice_of([device("c")], name="s2", pool="pool-2")
    )
    outcome = ask([claim(request(count=3))], where)
    assert isinstance(outcome, Allocated)
    assert [result.pool for result in outcome.allocations[0].devices] == ["pool-2", "pool-3", "pool-1"]


@pytest.mark.parametrize(("version", "first"), [("1.36", "b"), ("1.35", "a")], ids=["by name", "as listed"])
def test_the_order_of_slices_in_a_pool(version: str, first: str) -> None:
    where = cluster(
        slice_of([device("a")], name="slice-2", count=2),
        slice_of([device("b")], name="slice-1", count=2),
        profile=profile_for(version),
    )
    outcome = ask([claim()], where)
    assert isinstance(outcome, Allocated)
    assert outcome.allocations[0].devices[0].device == first


def strings(*items: str) -> ListValue:
    return ListValue("string", items)


LISTS = profile_for("1.37").with_gates(list_type_attributes=True)


@pytest.mark.parametrize(
    ("values", "matches"),
    [
        (["a", "a"], True),
        ([strings("a", "b"), strings("b", "c")], True),
        ([strings("a", "b"), strings("b", "c"), strings("a", "c")], False),
        ([strings("a"), strings("b")], False),
        (["a", strings("a", "b")], True),
        (["a", strings("a", "b"), strings("b", "c")], False),
        (["a", strings("b", "c")], False),
        ([ListValue("int", (1, 2)), ListValue("int", (2, 3))], True),
        ([ListValue("bool", (True,)), ListValue("bool", (True, False))], True),
        ([ListValue("version", (Version("1.0.0"),)), ListValue("version", (Version("1.0.0"),))], True),
        ([ListValue("int", (1,)), ListValue("bool", (True,))], False),
        ([strings(), strings()], False),
        ([Unset(), Unset()], False),
    ],
)
def test_match_attribute_over_lists_needs_a_common_element(values: list[AttributeValue], matches: bool) -> None:
    content = [device(f"d{index}", {"x": value}) for index, value in enumerate(values)]
    asked = claim(request(count=len(values)), constraints=[MatchAttribute(f"{DRIVER}/x")])
    assert isinstance(ask([asked], cluster(slice_of(content), profile=LISTS)), Allocated) is matches


@pytest.mark.parametrize(
    ("values", "chosen"),
    [
        (["a", "b"], ["d0", "d1"]),
        (["a", "a"], None),
        ([strings("1", "2"), strings("2", "3"), strings("3", "4")], ["d0", "d2"]),
        ([strings("1", "2"), strings("2")], None),
        (["1", strings("1", "2"), strings("2", "3")], ["d0", "d2"]),
        ([ListValue("bool", (True,)), ListValue("bool", (True, False)), ListValue("bool", (False,))], ["d0", "d2"]),
    ],
)
def test_distinct_attribute_over_lists_needs_disjoint_ones(
    values: list[AttributeValue], chosen: list[str] | None
) -> None:
    content = [device(f"d{index}", {"x": value}) for index, value in enumerate(values)]
    asked = claim(request("r0"), request("r1"), constraints=[DistinctAttribute(f"{DRIVER}/x")])
    outcome = ask([asked], cluster(slice_of(content), profile=LISTS))
    if chosen is None:
        assert isinstance(outcome, NotAllocated)
    else:
        assert isinstance(outcome, Allocated)
        assert [result.device for result in outcome.allocations[0].devices] == chosen


def test_without_the_gate_lists_never_match() -> None:
    content = [device(f"d{index}", {"x": strings("a")}) for index in range(2)]
    asked = claim(request(count=2), constraints=[MatchAttribute(f"{DRIVER}/x")])
    assert isinstance(ask([asked], cluster(slice_of(content), profile=profile_for("1.37"))), NotAllocated)


def test_counters_leaked_by_rejected_devices_until_v1_36_2() -> None:
    tainted = replace(drawing("a-tainted", "set", memory="8Gi"), taints=(Taint("k"),))
    where = (counter_slice(("set", {"memory": "8Gi"})), slice_of([tainted, drawing("b", "set", memory="8Gi")], count=2))
    assert isinstance(ask([claim()], cluster(*where)), Allocated)
    assert isinstance(ask([claim()], cluster(*where, profile=profile_for("1.36.2"))), NotAllocated)

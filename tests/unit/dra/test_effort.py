"""What allocate does not try: equal devices once, vain searches never, and no answer that upstream would not reach."""

from __future__ import annotations

import pytest

from autoscaler.dra.allocation.allocator import (
    NotAllocated,
    SearchBudget,
    UnknownAllocation,
)
from autoscaler.model.reason import Code
from autoscaler.model.resource_claim import (
    DistinctAttribute,
    ResourceClaim,
)
from instance_catalog.dataclass import replace
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.profile import REFERENCE
from instance_catalog.kubernetes.resource_slice import Device, ResourceSlice
from tests.unit.dra.build import (
    DRIVER,
    ask,
    claim,
    cluster,
    codes,
    counter_slice,
    device,
    devices,
    drawing,
    names,
    request,
    slice_of,
)

NUMA = f"{DRIVER}/numa"


def equal_gpus(count: int) -> ResourceSlice:
    return slice_of(devices(count, {"x": 1}))


@pytest.mark.parametrize(
    ("claims", "count"),
    [
        ([claim(request(count=5))], 4),
        ([claim(request(count=8), name="a"), claim(request("r", 1, "x=2"), name="b")], 16),
        ([claim(request(count=16), name="a"), claim(request("r", 1, "x=2"), name="b")], 64),
        ([claim(request(count=17), name="a"), claim(request(count=16), name="b")], 32),
        ([claim(*(request(f"r{index}", 4) for index in range(8)), name="a"), claim(name="b")], 32),
    ],
    ids=["5 of 4", "8 of 16, then none", "16 of 64, then none", "33 over two claims of 32", "8 x 4 of 32, then 1"],
)
def test_equal_devices_are_not_tried_one_after_the_other(claims: list[ResourceClaim], count: int) -> None:
    outcome = ask(claims, cluster(equal_gpus(count)))
    assert isinstance(outcome, NotAllocated)
    assert outcome.steps < 200


def test_a_solution_that_upstream_would_not_find_in_time_is_not_promised() -> None:
    # Upstream gives the one special device away first, and then tries all 8 of 31 others before it thinks better of it.
    where = cluster(slice_of([device("first", {"x": 2}), *devices(31, {"x": 1})]))
    pair = [claim(request(count=8), name="a"), claim(request("r", 1, "x=2"), name="b")]
    outcome = ask(pair, where)
    assert isinstance(outcome, NotAllocated)
    assert codes(outcome) == {Code.SEARCH_TIMEOUT}
    assert outcome.reasons[0].detail["aborts_attempt"] is True
    patient = SearchBudget(upstream_steps=10**9)
    assert names(ask(pair, where, budget=patient)) == [[f"gpu-{index:02}" for index in range(8)], ["first"]]


@pytest.mark.parametrize(
    "claims",
    [
        [claim(request("a", 9), constraints=[DistinctAttribute(f"{DRIVER}/id")]), claim(request("r", 1, "x=2"))],
        [claim(request("a", 20), name="a"), claim(request("b", 13), name="b")],
    ],
    ids=["one request has no device", "33 of 32 together"],
)
def test_what_counting_proves_vain_is_not_searched(claims: list[ResourceClaim]) -> None:
    content = [device(f"gpu-{index:02}", {"x": 1, "id": index}) for index in range(32)]
    outcome = ask(claims, cluster(slice_of(content)))
    assert isinstance(outcome, NotAllocated)
    assert outcome.steps < 50


def test_counters_that_all_requests_together_overdraw_are_not_searched() -> None:
    sets = [(f"gpu-{gpu}", {"memory": "80Gi"}) for gpu in range(8)]
    halves = [drawing(f"gpu-{gpu}-half-{part}", f"gpu-{gpu}", memory="40Gi") for gpu in range(8) for part in range(2)]
    where = cluster(counter_slice(*sets), slice_of([*halves, drawing("small", "gpu-0", memory="1Gi")], count=2))
    outcome = ask([claim(request("r", 17))], where)
    assert isinstance(outcome, NotAllocated)
    assert codes(outcome) == {Code.NO_COMBINATION}
    assert outcome.steps < 50


def partitions(gpu: int) -> list[Device]:
    """Of one GPU: seven parts of one memory slice (x=1) and two of four slices (x=2)."""
    places = [(1, range(place, place + 1)) for place in range(7)] + [(2, range(4)), (2, range(4, 8))]
    return [
        replace(
            drawing(f"gpu-{gpu}-{number}", f"gpu-{gpu}", **{f"slice-{part}": "1" for part in parts}),
            attributes=FrozenMap({"x": size}),
        )
        for number, (size, parts) in enumerate(places)
    ]


@pytest.mark.parametrize(
    ("gpus", "claims", "outcome"),
    [
        (8, [claim(request("r", 32, "x=1"), name="a"), claim(request("r", 8, "x=2"), name="b")], Code.SEARCH_TIMEOUT),
        (2, [claim(request("r", 9, "x=1"), name="a"), claim(request("r", 2, "x=2"), name="b")], Code.NO_COMBINATION),
    ],
    ids=["a solution that upstream gets to too late", "no solution"],
)
def test_gpus_with_counter_sets_of_their_own_are_alike(gpus: int, claims: list[ResourceClaim], outcome: Code) -> None:
    sets = [(f"gpu-{gpu}", {f"slice-{part}": "1" for part in range(8)}) for gpu in range(gpus)]
    content = [device for gpu in range(gpus) for device in partitions(gpu)]
    found = ask(claims, cluster(counter_slice(*sets), slice_of(content, count=2)))
    assert isinstance(found, NotAllocated)
    assert codes(found) == {outcome}


def test_partitions_without_the_gate_are_in_nobodys_way() -> None:
    where = cluster(
        slice_of([*partitions(0), *devices(2, {"x": 1})]), profile=REFERENCE.with_gates(partitionable_devices=False)
    )
    outcome = ask([claim(request("r", 2, "x=1"), name="a"), claim(request("r", 1, "x=1"), name="b")], where)
    assert isinstance(outcome, NotAllocated)


def test_a_search_that_runs_out_of_its_own_budget_says_so() -> None:
    outcome = ask([claim(request(count=5))], cluster(equal_gpus(8)), budget=SearchBudget(steps=3))
    assert isinstance(outcome, UnknownAllocation)
    assert codes(outcome) == {Code.PLAN_BUDGET}

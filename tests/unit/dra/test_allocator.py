"""What allocate decides, on small hand-made clusters. The recorded cases of the Go library are in test_golden."""

from __future__ import annotations

import pytest

from autoscaler.dra.allocation.allocator import (
    Allocated,
    FatalAllocation,
    NotAllocated,
    UnknownAllocation,
)
from autoscaler.dra.inventory.allocated import AllocatedState, PoolUse
from autoscaler.model.device_class import DeviceClass, DeviceTaintRule, Selector
from autoscaler.model.reason import Code
from autoscaler.model.resource_claim import (
    AllocatedDevice,
    Allocation,
    DistinctAttribute,
    FirstAvailable,
    MatchAttribute,
    ResourceClaim,
    UnknownConstraint,
)
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.node_selector import NodeSelector
from instance_catalog.kubernetes.profile import REFERENCE, profile_for
from instance_catalog.kubernetes.quantity import Quantity
from instance_catalog.kubernetes.resource_slice import Capacity, Device, RuntimeOnly
from instance_catalog.kubernetes.taint import Taint, Toleration
from tests.unit.dra.build import (
    DRIVER,
    NODE,
    PythonSelectors,
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
    shareable,
    slice_of,
)

NUMA = f"{DRIVER}/numa"


def taken(*device_names: str) -> AllocatedState:
    return AllocatedState({(DRIVER, "pool"): PoolUse(frozenset(device_names))})


def test_the_first_devices_in_order_are_taken_and_pin_the_node() -> None:
    outcome = ask([claim(request(count=2))], cluster(slice_of(devices(3))))
    assert names(outcome) == [["gpu-00", "gpu-01"]]
    assert isinstance(outcome, Allocated)
    assert outcome.allocations[0].node_selector == NodeSelector.for_node("node-1")
    assert outcome.preference == 0


def test_pools_come_in_order_of_driver_and_name_whatever_the_input_order() -> None:
    where = cluster(slice_of([device("z")], name="b", pool="pool-2"), slice_of([device("y")], name="a", pool="pool-1"))
    assert names(ask([claim(request(count=2))], where)) == [["y", "z"]]


def test_an_earlier_claim_gives_way_so_that_a_later_one_fits() -> None:
    where = cluster(slice_of([device("big", {"size": 2}), device("small", {"size": 1})]))
    pair = [claim(request("any"), name="a"), claim(request("big", 1, "size=2"), name="b")]
    assert names(ask(pair, where)) == [["small"], ["big"]]


def test_devices_in_use_are_left_alone() -> None:
    where = cluster(slice_of(devices(2)))
    first = ask([claim()], where)
    assert isinstance(first, Allocated)
    state = AllocatedState().plus(first.allocations)
    assert names(ask([claim()], where, allocated=state)) == [["gpu-01"]]


def test_administrative_access_sees_devices_in_use_and_leaves_no_trace() -> None:
    where = cluster(slice_of(devices(1)))
    outcome = ask([claim(request(admin_access=True))], where, allocated=taken("gpu-00"))
    assert names(outcome) == [["gpu-00"]]
    assert isinstance(outcome, Allocated)
    assert AllocatedState().plus(outcome.allocations) == AllocatedState()


def test_match_attribute_backtracks_to_the_group_that_is_large_enough() -> None:
    content = [device("a", {"numa": 0}), device("b", {"numa": 1}), device("c", {"numa": 1})]
    outcome = ask([claim(request(count=2), constraints=[MatchAttribute(NUMA)])], cluster(slice_of(content)))
    assert names(outcome) == [["b", "c"]]


@pytest.mark.parametrize(
    ("values", "fits"),
    [
        ([RuntimeOnly("string", "gpu-0"), RuntimeOnly("string", "gpu-0")], True),
        ([RuntimeOnly("string", "gpu-0"), RuntimeOnly("string", "gpu-1")], False),
        ([RuntimeOnly("string", "gpu-0"), RuntimeOnly("int", "gpu-0")], False),
        ([RuntimeOnly("string", "gpu-0"), "gpu-0"], False),
        ([1, True], False),
        (["1", 1], False),
    ],
    ids=["one group", "two groups", "two kinds", "token and value", "int and bool", "string and int"],
)
def test_match_attribute_compares_kind_and_value(values: list[object], fits: bool) -> None:
    content = [device(f"d{index}", {"x": value}) for index, value in enumerate(values)]  # type: ignore[dict-item]
    asked = claim(request(count=2), constraints=[MatchAttribute(f"{DRIVER}/x")])
    assert isinstance(ask([asked], cluster(slice_of(content))), Allocated) is fits


def test_devices_that_python_takes_for_equal_are_not_alike() -> None:
    content = [device(f"d{index}", {"x": value}) for index, value in enumerate([1, True, True, 0, False])]
    asked = claim(request(count=2), constraints=[MatchAttribute(f"{DRIVER}/x")])
    assert names(ask([asked], cluster(slice_of(content)))) == [["d1", "d2"]]


def test_distinct_attribute_forgets_all_but_the_last_device_of_a_request_until_v1_37() -> None:
    content = [device(f"d{index}", {"x": value}) for index, value in enumerate([1, 2, 1])]
    asked = claim(request(count=3), constraints=[DistinctAttribute(f"{DRIVER}/x")])
    assert isinstance(ask([asked], cluster(slice_of(content))), Allocated)
    later = cluster(slice_of(content), profile=profile_for("1.37"))
    assert codes(ask([asked], later)) == {Code.CONSTRAINT_UNSATISFIED}


def test_the_first_alternative_that_works_is_chosen_and_counted() -> None:
    where = cluster(slice_of([device("a", {"model": "L4"}), device("b", {"model": "L4"})]))
    wish = FirstAvailable("gpu", (request("h100", 1, "model=H100"), request("l4", 2, "model=L4")))
    outcome = ask([claim(wish)], where)
    assert isinstance(outcome, Allocated)
    assert [result.request for result in outcome.allocations[0].devices] == ["gpu/l4", "gpu/l4"]
    assert outcome.preference == 1


def test_counters_limit_what_one_gpu_is_cut_into() -> None:
    parts = [drawing("half-0", "gpu-0", memory="40Gi"), drawing("half-1", "gpu-0", memory="40Gi")]
    whole = drawing("whole", "gpu-0", memory="80Gi")
    where = cluster(counter_slice(("gpu-0", {"memory": "80Gi"})), slice_of([whole, *parts], count=2))
    assert names(ask([claim(request(count=2))], where)) == [["half-0", "half-1"]]
    assert codes(ask([claim(request(count=3))], where)) == {Code.NO_COMBINATION}
    assert codes(ask([claim()], where, allocated=taken("whole"))) == {Code.COUNTERS_EXHAUSTED}


def test_a_shareable_device_is_given_to_two_claims_until_its_capacity_is_gone() -> None:
    where = cluster(slice_of([shareable("nic", bandwidth="10G")]))
    half = request(capacity=FrozenMap({"bandwidth": Quantity.parse("5G")}))
    outcome = ask([claim(half, name="a"), claim(half, name="b")], where)
    assert names(outcome) == [["nic"], ["nic"]]
    assert isinstance(outcome, Allocated)
    shares = [allocation.devices[0].share_id for allocation in outcome.allocations]
    assert None not in shares
    assert len(set(shares)) == 2
    state = AllocatedState().plus(outcome.allocations)
    assert codes(ask([claim(half, name="c")], where, allocated=state)) == {Code.CAPACITY_INSUFFICIENT}
    one = AllocatedState().plus(outcome.allocations[1:])
    assert names(ask([claim(half, name="c")], where, allocated=one)) == [["nic"]]


def test_taints_need_tolerations_and_rules_add_taints() -> None:
    rule = DeviceTaintRule("drain", Taint("health", "bad", "NoExecute"), device="gpu-00")
    profile = REFERENCE.with_gates(device_taint_rules=True)
    where = cluster(slice_of(devices(2)), rules=[rule], profile=profile)
    assert names(ask([claim()], where)) == [["gpu-01"]]
    assert codes(ask([claim(request(count=2))], where)) == {Code.DEVICE_TAINTED}
    brave = request(count=2, tolerations=(Toleration("health", "Exists"),))
    assert names(ask([claim(brave)], where)) == [["gpu-00", "gpu-01"]]
    assert names(ask([claim()], cluster(slice_of(devices(2)), rules=[rule]))) == [["gpu-00"]]


@pytest.mark.parametrize(("version", "taken"), [("1.37.0", []), ("1.37.1", [["gpu-00"]])])
def test_a_rule_without_selector_taints_all_or_nothing(version: str, taken: list[list[str]]) -> None:
    rule = DeviceTaintRule("drain", Taint("health", "bad", "NoExecute"), has_selector=False)
    outcome = ask([claim()], cluster(slice_of(devices(1)), rules=[rule], profile=profile_for(version)))
    assert (names(outcome) if isinstance(outcome, Allocated) else []) == taken


def test_a_hit_hides_a_later_error_but_all_mode_looks_at_everything() -> None:
    content = [device("good", {"x": 1}), device("bad")]
    where = cluster(slice_of(content))
    assert names(ask([claim(request("r", 1, "x=1"))], where)) == [["good"]]
    assert codes(ask([claim(request("r", 2, "x=1"))], where)) == {Code.SELECTOR_ERROR}
    everything = ask([claim(request("r", 1, "x=1", allocation_mode="All"))], where)
    assert isinstance(everything, FatalAllocation)
    assert everything.reasons[0].code is Code.SELECTOR_ERROR
    assert everything.reasons[0].detail["message"] == "no such key: x"


def test_a_class_that_says_no_hides_a_request_selector_that_fails() -> None:
    picky = DeviceClass("any", (Selector("x=2"),))
    where = cluster(slice_of([device("a", {"x": 1})]), classes=[picky])
    assert codes(ask([claim(request("r", 1, "raises"))], where)) == {Code.NO_DEVICE_OF_CLASS}


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        (claim(request("r", 33)), Code.TOO_MANY_DEVICES),
        (claim(request("r", 1, allocation_mode="Some")), Code.MALFORMED_REQUEST),
        (claim(request("r", 1, "broken")), Code.SELECTOR_INVALID),
        (claim(request(), constraints=[UnknownConstraint("sameRack")]), Code.MALFORMED_REQUEST),
        (ResourceClaim("ns", "c", (FirstAvailable("none", ()),)), Code.MALFORMED_REQUEST),
    ],
    ids=["33 devices", "unknown mode", "does not compile", "unknown constraint", "empty alternatives"],
)
def test_what_upstream_refuses_is_fatal(asked: ResourceClaim, code: Code) -> None:
    outcome = ask([asked], cluster(slice_of(devices(1))))
    assert isinstance(outcome, FatalAllocation)
    assert codes(outcome) == {code}


def test_an_unknown_class_is_fatal_even_if_an_earlier_claim_cannot_fit() -> None:
    stranger = ResourceClaim("ns", "b", (request(),))
    outcome = ask([claim(request(count=9), name="a"), stranger], cluster(slice_of(devices(1)), classes=[]))
    assert isinstance(outcome, FatalAllocation)
    assert codes(outcome) == {Code.CLASS_NOT_FOUND}


@pytest.mark.parametrize(
    ("gate", "asked"),
    [
        ("prioritized_list", claim(FirstAvailable("f", (request("a"),)))),
        ("admin_access", claim(request(admin_access=False))),
        ("consumable_capacity", claim(request(capacity=FrozenMap()))),
    ],
)
def test_fields_behind_a_closed_gate_are_fatal(gate: str, asked: ResourceClaim) -> None:
    where = cluster(slice_of(devices(1)), profile=REFERENCE.with_gates(**{gate: False}))
    assert codes(ask([asked], where)) == {Code.FEATURE_DISABLED}


def test_all_over_an_incomplete_pool_is_fatal_and_exact_count_passes_it_by() -> None:
    where = cluster(
        slice_of(devices(1)), slice_of([device("x")], name="half", pool="other", driver="nic.example.com", count=2)
    )
    assert codes(ask([claim(request(allocation_mode="All"))], where)) == {Code.ALL_OVER_UNFINISHED_POOL}
    assert names(ask([claim()], where)) == [["gpu-00"]]
    assert Code.INCOMPLETE_POOL in codes(ask([claim(request(count=2))], where))


def test_an_invalid_pool_makes_a_failure_the_nodes_fault() -> None:
    where = cluster(slice_of([device("twin"), device("twin")]))
    outcome = ask([claim()], where)
    assert isinstance(outcome, NotAllocated)
    assert outcome.node_error
    assert Code.INVALID_POOL in codes(outcome)


UNKNOWN = RuntimeOnly("string", "gpu-0")
MISSING = RuntimeOnly("string", "catalog:productName")


@pytest.mark.parametrize(
    ("content", "asked", "expected"),
    [
        ([device("a", {"x": UNKNOWN}), device("b", {"x": "1"})], request("r", 1, "x=1"), ["b"]),
        ([device("a", {"x": UNKNOWN})], request("r", 1, "x=1"), Code.RUNTIME_ATTRIBUTE),
        ([device("a", {"x": MISSING})], request("r", 1, "x=1"), Code.CATALOG_UNKNOWN),
        ([device("a", {"x": UNKNOWN})], request("r", 2, "x=1"), Code.TOO_FEW_DEVICES),
        (
            [device("a", {"x": UNKNOWN}), device("b", {"x": "1"})],
            request("r", 1, "x=1", allocation_mode="All"),
            Code.RUNTIME_ATTRIBUTE,
        ),
        ([device("a", {}, unsupported=("newField",))], request(), Code.UNSUPPORTED),
    ],
    ids=["known one suffices", "decides", "catalog gap", "not even then", "all mode", "field of the future"],
)
def test_what_is_unknown_decides_only_if_it_must(content: list[Device], asked: object, expected: object) -> None:
    outcome = ask([claim(asked)], cluster(slice_of(content)))  # type: ignore[arg-type]
    if isinstance(expected, list):
        assert names(outcome) == [expected]
    elif expected is Code.TOO_FEW_DEVICES:
        assert isinstance(outcome, NotAllocated)
    else:
        assert isinstance(outcome, UnknownAllocation)
        assert codes(outcome) == {expected}


GAP = RuntimeOnly("string", "catalog:pcieRoot")


@pytest.mark.parametrize(
    ("values", "constraint", "expected"),
    [
        ([GAP, "pci0"], MatchAttribute, Code.CATALOG_UNKNOWN),
        ([GAP, GAP], MatchAttribute, None),
        ([GAP, "pci0"], DistinctAttribute, Code.CATALOG_UNKNOWN),
        ([GAP, 7], MatchAttribute, Code.CONSTRAINT_UNSATISFIED),
        ([GAP, "pci0", "pci0"], MatchAttribute, None),
    ],
    ids=["gap and value", "one gap", "distinct", "another kind", "known pair"],
)
def test_a_constraint_over_a_catalog_gap_is_decided_only_where_it_can(
    values: list[object], constraint: type[MatchAttribute | DistinctAttribute], expected: Code | None
) -> None:
    content = [device(f"d{index}", {"x": value}) for index, value in enumerate(values)]  # type: ignore[dict-item]
    outcome = ask([claim(request(count=2), constraints=[constraint(f"{DRIVER}/x")])], cluster(slice_of(content)))
    if expected is None:
        assert isinstance(outcome, Allocated)
    else:
        assert codes(outcome) == {expected}


@pytest.mark.parametrize("mode", ["ExactCount", "All"])
def test_a_request_for_a_guessed_capacity_is_unknown(mode: str) -> None:
    guess = Device("nic", capacity=FrozenMap({"bandwidth": Capacity(Quantity.parse("10G"), guess=True)}))
    asked = request(capacity=FrozenMap({"bandwidth": Quantity.parse("1G")}), allocation_mode=mode)
    outcome = ask([claim(asked)], cluster(slice_of([guess])))
    assert isinstance(outcome, UnknownAllocation)
    assert codes(outcome) == {Code.CATALOG_UNKNOWN}
    assert names(ask([claim()], cluster(slice_of([guess])))) == [["nic"]]


def test_fields_of_a_claim_that_are_not_understood_make_the_verdict_unknown() -> None:
    asked = ResourceClaim("ns", "c", (request(),), unsupported=("spec.devices.novelty",))
    outcome = ask([asked], cluster(slice_of(devices(1))))
    assert isinstance(outcome, UnknownAllocation)
    assert outcome.reasons[0].detail["fields"] == ("spec.devices.novelty",)


def test_a_hypothetical_node_is_added_without_touching_the_cluster() -> None:
    before = cluster(slice_of(devices(1), node="elsewhere", name="other"))
    after = before.with_slices([slice_of(devices(2), name="mine", pool="mine")])
    assert names(ask([claim(request(count=2))], after)) == [["gpu-00", "gpu-01"]]
    assert isinstance(ask([claim()], before), NotAllocated)


def test_answers_are_remembered_per_node_and_selector() -> None:
    engine = PythonSelectors()
    where = cluster(slice_of(devices(4, {"x": 1})), engine=engine)
    for _ in range(3):
        assert isinstance(ask([claim(request("r", 2, "x=1"))], where), Allocated)
    assert engine.asked == [("x=1", "gpu-00"), ("x=1", "gpu-01")]


@pytest.mark.parametrize(
    ("content", "asked", "code"),
    [
        ([], claim(), Code.NO_DEVICE_OF_CLASS),
        (devices(1, {"x": 1}), claim(request("r", 1, "x=2")), Code.SELECTOR_FALSE),
        (devices(3, {"x": 1}), claim(request("r", 4, "x=1")), Code.TOO_FEW_DEVICES),
        (
            [device("a", {"numa": 0}), device("b", {"numa": 1})],
            claim(request(count=2), constraints=[MatchAttribute(NUMA)]),
            Code.CONSTRAINT_UNSATISFIED,
        ),
        (devices(2), claim(request(count=2), constraints=[MatchAttribute(NUMA)]), Code.CONSTRAINT_UNSATISFIED),
        (devices(2), claim(request("a", 2), request("b", 1)), Code.NO_COMBINATION),
    ],
    ids=["no device", "selector", "too few", "values differ", "attribute absent", "only together"],
)
def test_the_nearest_miss_is_named(content: list[Device], asked: ResourceClaim, code: Code) -> None:
    assert codes(ask([asked], cluster(slice_of(content)))) == {code}


def test_the_reason_counts_what_was_there() -> None:
    outcome = ask(
        [claim(request("r", 3, "x=1"))], cluster(slice_of(devices(4, {"x": 1}))), allocated=taken("gpu-00", "gpu-03")
    )
    assert isinstance(outcome, NotAllocated)
    (reason,) = outcome.reasons
    assert (reason.code, str(reason.subject)) == (Code.DEVICES_IN_USE, "claim ns/claim, request r")
    assert dict(reason.detail) == {"wanted": 3, "found": 2, "of": 4}


def test_results_carry_tolerations_and_binding_conditions() -> None:
    slow = device("slow", binding_conditions=("attached",), binding_failure_conditions=("broken",))
    tolerations = (Toleration("k", "Exists"),)
    outcome = ask([claim(request(tolerations=tolerations))], cluster(slice_of([slow])))
    assert isinstance(outcome, Allocated)
    assert outcome.allocations[0] == Allocation(
        (
            AllocatedDevice(
                "r",
                DRIVER,
                "pool",
                "slow",
                tolerations=tolerations,
                binding_conditions=("attached",),
                binding_failure_conditions=("broken",),
            ),
        ),
        NodeSelector.for_node(NODE.name),
    )

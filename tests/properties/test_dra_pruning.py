"""Skipping what is vain changes neither the devices chosen nor the kind of outcome: pruned search == plain search."""

from __future__ import annotations

from typing import TypeAlias

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from autoscaler.dra.allocation.allocator import AllocationOutcome, ClusterDevices, SearchBudget, allocate
from autoscaler.dra.inventory.allocated import AllocatedState, PoolUse
from autoscaler.model.reason import Code
from autoscaler.model.resource_claim import (
    Constraint,
    DistinctAttribute,
    FirstAvailable,
    MatchAttribute,
    ResourceClaim,
)
from instance_catalog.dataclass import replace
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.profile import KubernetesProfile, profile_for
from instance_catalog.kubernetes.quantity import Quantity
from instance_catalog.kubernetes.resource_slice import (
    Capacity,
    CounterConsumption,
    Device,
    ListValue,
    RuntimeOnly,
    Version,
)
from instance_catalog.kubernetes.taint import Taint
from tests.unit.dra.build import DRIVER, NODE, claim, cluster, counter_slice, drawing, request, slice_of

# No attribute "x" means that the selector "x=…" raises an error when it gets there.
# Values that Python takes for equal, or that look alike, are among them: 1 and True, "1", a version and a text.
NEAR = [True, "1", Version("1"), ListValue("int", (1,)), ListValue("bool", (True,)), "X", "x"]
VALUES = st.sampled_from([1, 1, 2, 2, None, RuntimeOnly("string", "g"), *NEAR])
GROUPS = st.sampled_from([0, 0, 0, 1, False, True])
AMOUNTS = st.sampled_from(["2", "2", "2000m", "2.0", "0.002k"])
SELECTORS = st.sampled_from([(), (), (), ("x=1",), ("x=2",), ("x=True",)])
PROFILES = st.sampled_from([profile_for("1.36.3"), profile_for("1.37.2"), profile_for("1.36.4")])
Situation: TypeAlias = tuple[list[ResourceClaim], list[Device], AllocatedState, KubernetesProfile]
SLICES = ("first", "second", "third")
GPUS = ("big-0", "big-1", "big-2")
PLAIN = SearchBudget(steps=3_000, upstream_steps=10**12, prune=False)
PRUNED = SearchBudget(steps=3_000, upstream_steps=10**12)


@st.composite
def gpus(draw: st.DrawFn, name: str) -> Device:
    attributes = {"x": draw(VALUES), "group": draw(GROUPS)}
    drawn = draw(st.sampled_from([None, None, "1", "2"]))
    shareable = draw(st.sampled_from([False, False, False, True]))
    return Device(
        name,
        FrozenMap({key: value for key, value in attributes.items() if value is not None}),
        capacity=FrozenMap({"memory": Capacity(Quantity.parse(draw(AMOUNTS)))}) if shareable else FrozenMap(),
        consumes_counters=()
        if drawn is None
        else (CounterConsumption("set", FrozenMap({"memory": Quantity.parse(drawn)})),),
        taints=draw(st.sampled_from([(), (), (), (Taint("k"),)])),
        allow_multiple_allocations=shareable,
    )


@st.composite
def partitions(draw: st.DrawFn) -> list[Device]:
    """The partitions of a few GPUs that are mostly alike; each GPU is a counter set, parts of it are counters."""
    slices = st.sets(st.sampled_from(SLICES), min_size=1, max_size=3)
    template = draw(st.lists(st.tuples(slices, st.sampled_from([1, 2])), min_size=2, max_size=5))
    content = [
        replace(
            drawing(f"{gpu}-{index}", gpu, **dict.fromkeys(sorted(parts), "1")),
            attributes=FrozenMap({"x": kind, "group": 0}),
        )
        for gpu in GPUS[: draw(st.integers(1, 3))]
        for index, (parts, kind) in enumerate(template)
    ]
    return draw(st.permutations(content)) if draw(st.booleans()) else content


@st.composite
def crowds(draw: st.DrawFn) -> Situation:
    """Claims that all but exhaust partitioned GPUs, so that the first choices are often wrong."""
    content = draw(partitions())
    selectors = st.sampled_from([("x=1",), ("x=2",), ()])
    asked = [
        claim(*(request(f"r{index}", draw(st.integers(1, 3)), *draw(selectors)) for index in range(2)), name=name)
        for name in ("a", "b")[: draw(st.integers(1, 2))]
    ]
    busy = draw(st.sets(st.sampled_from([device.name for device in content]), max_size=2))
    return asked, content, AllocatedState({(DRIVER, "pool"): PoolUse(frozenset(busy))}), draw(PROFILES)


@st.composite
def requests(draw: st.DrawFn, name: str, *, sub: bool = False) -> object:
    selectors = draw(SELECTORS)
    mode = draw(st.sampled_from(["ExactCount"] * 6 + ["All"]))
    capacity = draw(st.sampled_from([None, None, FrozenMap({"memory": Quantity.parse("1")})]))
    admin = None if sub else draw(st.sampled_from([None] * 6 + [True]))
    return request(
        name, draw(st.integers(1, 3)), *selectors, allocation_mode=mode, admin_access=admin, capacity=capacity
    )


@st.composite
def claims(draw: st.DrawFn, name: str) -> ResourceClaim:
    asked = []
    for index in range(draw(st.integers(1, 3))):
        if draw(st.sampled_from([False, False, True])):
            alternatives = tuple(draw(requests(f"s{sub}", sub=True)) for sub in range(2))
            asked.append(FirstAvailable(f"r{index}", alternatives))
        else:
            asked.append(draw(requests(f"r{index}")))
    constraint: Constraint | None = draw(
        st.sampled_from(
            [None, None, MatchAttribute(f"{DRIVER}/group"), DistinctAttribute(f"{DRIVER}/group", ("r0", "r1"))]
        )
    )
    second = draw(st.sampled_from([None, None, None, MatchAttribute(f"{DRIVER}/x"), DistinctAttribute(f"{DRIVER}/x")]))
    return claim(*asked, name=name, constraints=[one for one in (constraint, second) if one is not None])


@st.composite
def situations(draw: st.DrawFn) -> Situation:
    content = [draw(gpus(f"gpu-{index}")) for index in range(draw(st.integers(1, 7)))]
    content += draw(partitions()) if draw(st.sampled_from([False, False, True])) else []
    asked = [draw(claims(name)) for name in ("a", "b", "c")[: draw(st.integers(1, 3))]]
    busy = draw(st.sets(st.sampled_from([device.name for device in content]), max_size=2))
    return asked, content, AllocatedState({(DRIVER, "pool"): PoolUse(frozenset(busy))}), draw(PROFILES)


def outcome(situation: Situation, budget: SearchBudget) -> AllocationOutcome:
    asked, content, allocated, profile = situation
    where = cluster_of(content, profile)
    return allocate(asked, node=NODE, devices=where, allocated=allocated, budget=budget)


def cluster_of(content: list[Device], profile: KubernetesProfile) -> ClusterDevices:
    """A node with these devices, and the counters that they may draw from."""
    amounts = [(gpu, dict.fromkeys(SLICES, "2" if gpu == GPUS[-1] else "1")) for gpu in GPUS]
    sets = counter_slice(("set", {"memory": "3"}), *amounts)
    return cluster(sets, slice_of(content, count=2), profile=profile)


@settings(max_examples=400, deadline=None, derandomize=True)
@given(st.one_of(situations(), crowds()))
def test_pruning_changes_nothing_but_the_effort(
    situation: Situation,
) -> None:
    plain, pruned = outcome(situation, PLAIN), outcome(situation, PRUNED)
    # The plain search may be the one that gives up: that is what pruning is for.
    assume(Code.PLAN_BUDGET not in {reason.code for reason in getattr(plain, "reasons", ())})
    assert type(plain) is type(pruned)
    assert getattr(plain, "allocations", None) == getattr(pruned, "allocations", None)
    assert getattr(plain, "choices", None) == getattr(pruned, "choices", None)
    assert getattr(pruned, "steps", 0) <= getattr(plain, "steps", 0)

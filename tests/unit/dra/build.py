"""Short forms for the objects that allocation tests are about, and selectors that need no CEL."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from autoscaler.dra.allocation.allocator import Allocated, AllocationOutcome, ClusterDevices, SearchBudget, allocate
from autoscaler.dra.inventory.allocated import AllocatedState
from autoscaler.dra.inventory.selectors import NO, YES, Answer, Match, Path
from autoscaler.model.device_class import DeviceClass, DeviceTaintRule, Selector
from autoscaler.model.node import Node
from autoscaler.model.reason import Code
from autoscaler.model.resource_claim import Constraint, DeviceRequest, Request, ResourceClaim
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.profile import REFERENCE, KubernetesProfile
from instance_catalog.kubernetes.quantity import Quantity
from instance_catalog.kubernetes.resource_slice import (
    AttributeValue,
    Capacity,
    CounterConsumption,
    CounterSet,
    Device,
    NodeReach,
    Pool,
    ResourceSlice,
    RuntimeOnly,
)

DRIVER = "gpu.example.com"
NODE = Node("node-1", labels=FrozenMap({"region": "region-1"}))
ANY = DeviceClass("any")


@dataclass
class PythonSelectors:
    """Expressions of the form "attribute=value", "broken" (does not compile) and "raises"; counts what it is asked.

    A run-time value makes the answer unknown, an absent attribute is an error, as in CEL.
    """

    asked: list[tuple[str, str]] = field(default_factory=list)

    def evaluate(self, expression: str, *, driver: str, device: Device) -> Match:
        self.asked.append((expression, device.name))
        if expression == "broken":
            return Match(Answer.INVALID, "undeclared reference")
        if expression == "raises":
            return Match(Answer.ERROR, "no such key")
        name, _, wanted = expression.partition("=")
        value = device.attributes.get(name)
        if value is None:
            return Match(Answer.ERROR, f"no such key: {name}")
        if isinstance(value, RuntimeOnly):
            return Match(Answer.UNKNOWN, attributes=(name,))
        return YES if str(value) == wanted else NO

    def reads(self, expressions: Iterable[str]) -> frozenset[Path] | None:
        return None

    def seen(self, reads: frozenset[Path], *, driver: str, device: Device) -> Hashable | None:
        return None


def device(name: str, attributes: Mapping[str, AttributeValue] | None = None, **more: object) -> Device:
    return Device(name, FrozenMap(attributes or {}), **more)  # type: ignore[arg-type]


def devices(count: int, attributes: Mapping[str, AttributeValue] | None = None) -> list[Device]:
    return [device(f"gpu-{index:02}", attributes) for index in range(count)]


def drawing(name: str, counter_set: str, **counters: str) -> Device:
    amounts = FrozenMap({key: Quantity.parse(value) for key, value in counters.items()})
    return Device(name, consumes_counters=(CounterConsumption(counter_set, amounts),))


def counter_slice(*sets: tuple[str, Mapping[str, str]], pool: str = "pool", count: int = 2) -> ResourceSlice:
    return ResourceSlice(
        "counters",
        DRIVER,
        Pool(pool, 1, count),
        reach=NodeReach(node_name=NODE.name),
        shared_counters=tuple(
            CounterSet(name, FrozenMap({key: Quantity.parse(value) for key, value in counters.items()}))
            for name, counters in sets
        ),
    )


def shareable(name: str, **capacity: str) -> Device:
    return Device(
        name,
        capacity=FrozenMap({key: Capacity(Quantity.parse(value)) for key, value in capacity.items()}),
        allow_multiple_allocations=True,
    )


def slice_of(
    content: Iterable[Device],
    *,
    name: str = "slice",
    pool: str = "pool",
    node: str = NODE.name,
    driver: str = DRIVER,
    count: int = 1,
    generation: int = 1,
) -> ResourceSlice:
    return ResourceSlice(name, driver, Pool(pool, generation, count), tuple(content), reach=NodeReach(node_name=node))


def request(name: str = "r", count: int = 1, *selectors: str, **more: object) -> DeviceRequest:
    return DeviceRequest(
        name,
        "any",
        tuple(Selector(expression) for expression in selectors),
        count=count,
        **more,  # type: ignore[arg-type]
    )


def claim(*requests: Request, name: str = "claim", constraints: Sequence[Constraint] = ()) -> ResourceClaim:
    return ResourceClaim("ns", name, requests or (request(),), tuple(constraints))


def cluster(
    *slices: ResourceSlice,
    classes: Iterable[DeviceClass] = (ANY,),
    rules: Iterable[DeviceTaintRule] = (),
    profile: KubernetesProfile = REFERENCE,
    engine: PythonSelectors | None = None,
) -> ClusterDevices:
    return ClusterDevices.of(slices, classes, rules, profile, engine=engine or PythonSelectors())


def ask(
    claims: Sequence[ResourceClaim],
    where: ClusterDevices,
    *,
    allocated: AllocatedState | None = None,
    budget: SearchBudget | None = None,
    node: Node = NODE,
) -> AllocationOutcome:
    return allocate(
        claims,
        node=node,
        devices=where,
        allocated=allocated or AllocatedState(),
        budget=budget or SearchBudget(),
    )


def names(outcome: AllocationOutcome) -> list[list[str]]:
    """The names of the allocated devices of each claim."""
    assert isinstance(outcome, Allocated), outcome
    return [[result.device for result in allocation.devices] for allocation in outcome.allocations]


def codes(outcome: AllocationOutcome) -> set[Code]:
    """The codes of an allocation that failed."""
    assert not isinstance(outcome, Allocated), outcome
    return {reason.code for reason in outcome.reasons}

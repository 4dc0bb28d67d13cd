"""How long one tenant's pods delay another's: a reconcile with hostile pods beside the same reconcile without them.

python -m benchmarks.tenants. One pool of one type, ten usual pods in one namespace, hostile ones in another. The delay
is CPU time of whole plans in one process; a second reconcile shows what kept answers are worth.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from autoscaler.cli.main import collect_rarely
from autoscaler.model.capacity import CapacityPool
from autoscaler.model.device_class import DeviceClass, Selector
from autoscaler.model.node import Node
from autoscaler.model.plan import Plan
from autoscaler.model.pod import Container, Pod, PodClaim
from autoscaler.model.resource_claim import DeviceRequest, FirstAvailable, MatchAttribute, Request, ResourceClaim
from autoscaler.model.snapshot import Snapshot
from autoscaler.planning.planner import plan_for
from autoscaler.planning.policy import Policy
from instance_catalog.dataclass import replace
from instance_catalog.drivers.facts import builtin_device_classes
from instance_catalog.files.loader import load_catalog
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.node_selector import Requirement
from instance_catalog.kubernetes.profile import REFERENCE
from instance_catalog.kubernetes.quantity import Quantity
from instance_catalog.kubernetes.resource_slice import Device, NodeReach, Pool, ResourceSlice
from instance_catalog.types.catalog import Catalog

NOW: Final = datetime(2026, 11, 21, tzinfo=UTC)
_TEN: Final = "[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]"
_GPU: Final = 'device.attributes["gpu.nvidia.com"].productName'


@dataclass(frozen=True, slots=True)
class Demand:
    """A pod and its claim."""

    pod: Pod
    claim: ResourceClaim


@dataclass(frozen=True, slots=True)
class Case:
    """Hostile pods with what surrounds them, and how many seconds they may delay others."""

    name: str
    demands: Callable[[], list[Demand]]
    target: float
    slices: tuple[ResourceSlice, ...] = ()


def demand(namespace: str, name: str, *requests: Request, cpu: str = "1", match: str = "") -> Demand:
    """A pod with one claim of these requests; all of their devices agree in `match` if it is given."""
    rules = (MatchAttribute(match),) if match else ()
    claim = ResourceClaim(namespace, name, requests, rules, uid=f"claim-{namespace}-{name}")
    box = Container("main", FrozenMap({"cpu": Quantity.parse(cpu)}))
    return Demand(Pod(namespace, name, uid=name, containers=(box,), claims=(PodClaim("d", name),)), claim)


def gpu(expression: str = "", *, count: int = 1) -> DeviceRequest:
    """A request for GPUs."""
    return DeviceRequest("gpu", "gpu.nvidia.com", (Selector(expression),) if expression else (), count=count)


def nested(mark: str, *, reads: str) -> str:
    """Four nested all() over ten numbers that hold, and then something about the device that does not."""
    expression = "x0 + x1 + x2 + x3 > 0"
    for index in range(4):
        expression = f"{_TEN}.all(x{index}, {expression})"
    return f'{expression} && {reads} == "{mark}"'


def wide(number: int) -> Demand:
    """32 requests with eight alternatives each, which must agree in an attribute."""
    requests = [
        FirstAvailable(
            f"r{i}",
            tuple(
                DeviceRequest(f"s{j}", "gpu.nvidia.com", (Selector(f'device.driver != "{number}-{i}-{j}"'),))
                for j in range(8)
            ),
        )
        for i in range(32)
    ]
    return demand("hostile", f"wide-{number}", *requests, match="gpu.nvidia.com/productName")


def published(slices: int, devices: int, attributes: int) -> tuple[ResourceSlice, ...]:
    """What an unknown driver publishes on a node: as much as the API admits, every device another."""
    return tuple(
        ResourceSlice(
            f"strange-{s}",
            "strange.example.com",
            Pool("node-0", 1, slices),
            devices=tuple(
                Device(f"d-{s}-{d}", FrozenMap({f"a{a}": s * 10_000 + d * 100 + a for a in range(attributes)}))
                for d in range(devices)
            ),
            reach=NodeReach(node_name="node-0"),
        )
        for s in range(slices)
    )


CASES: Final = (
    Case("20 pods, nested all()", lambda: [_gpus(i, nested(f"a{i}", reads="device.driver")) for i in range(20)], 1),
    Case("20 pods, nested all(), devices read", lambda: [_gpus(i, nested(f"b{i}", reads=_GPU)) for i in range(20)], 1),
    Case("5,000 equal pods that fit nowhere", lambda: [_gpus(i, "", count=30) for i in range(5000)], 2),
    Case("5,000 pods of different CPU", lambda: [_gpus(i, "", cpu=str(500 + i)) for i in range(5000)], 2),
    Case("5,000 pods of different selectors", lambda: [_gpus(i, f'{_GPU} == "{i}"') for i in range(5000)], 2),
    Case("one pod of 32 requests with 8 each", lambda: [wide(0)], 2),
    Case("20 pods of 32 requests with 8 each", lambda: [wide(1 + i) for i in range(20)], 2),
    Case(
        "5,120 strange devices, 32 attributes",
        lambda: [
            demand(
                "hostile",
                f"strange-{i}",
                DeviceRequest("s", "strange", (Selector(f'device.attributes["strange.example.com"].a0 == {-i - 1}'),)),
            )
            for i in range(20)
        ],
        2,
        published(40, 128, 32),
    ),
)


def _gpus(number: int, expression: str, *, count: int = 1, cpu: str = "1") -> Demand:
    return demand("hostile", f"h-{number}", gpu(expression, count=count), cpu=cpu)


def snapshot(demands: Sequence[Demand], slices: tuple[ResourceSlice, ...]) -> Snapshot:
    """Pending pods, a pool of one type, and a node if something is published there."""
    classes = [
        DeviceClass(facts.name, tuple(Selector(text) for text in facts.selectors))
        for facts in builtin_device_classes(REFERENCE)
    ]
    strange = DeviceClass("strange", (Selector('device.driver == "strange.example.com"'),))
    one_type = Requirement("node.kubernetes.io/instance-type", "In", ("p5.48xlarge",))
    return Snapshot(
        pods=tuple(d.pod for d in demands),
        claims=FrozenMap({d.claim.key: d.claim for d in demands}),
        classes=(*classes, strange),
        pools=(CapacityPool("gpus", requirements=(one_type,)),),
        nodes=(Node("node-0", allocatable=FrozenMap({"cpu": Quantity.parse("64"), "pods": Quantity.parse("110")})),)
        if slices
        else (),
        slices=slices,
    )


def planned(state: Snapshot, catalog: Catalog) -> tuple[Plan, float]:
    """The plan and its CPU seconds."""
    started = time.process_time()
    plan = plan_for(state, catalog, Policy(), NOW)
    return plan, time.process_time() - started


def main() -> None:
    """Plan without and with each kind of hostile pods, and print."""
    collect_rarely()  # as the controller does
    catalog = load_catalog()
    usual = [demand("usual", f"pod-{i}", gpu(f'{_GPU}.contains("H100")')) for i in range(10)]
    # What every process does once is nobody's: predictions of the whole catalog, for a pod that fits nowhere.
    planned(snapshot([*usual, _gpus(0, f'{_GPU} == "none"')], ()), catalog)
    print("delay of ten usual pods by another namespace's, CPU seconds: first round, next round, ratio to plain")
    for case in CASES:
        plain, alone = planned(snapshot(usual, ()), catalog)
        state = snapshot([*case.demands(), *usual], case.slices)
        first, beside = planned(state, catalog)
        _, again = planned(replace(state), catalog)
        same = {p.pod: p.node for p in plain.placements}.items() <= {p.pod: p.node for p in first.placements}.items()
        verdicts = Counter(entry.verdict for entry in first.left_out)
        told = ", ".join(f"{count} {verdict}" for verdict, count in sorted(verdicts.items())) or "none left out"
        mark = "" if beside - alone <= case.target else f"  above target {case.target} s"
        mark += "" if same else "  USUAL PODS GO ELSEWHERE"
        print(
            f"  {case.name:<38} {beside - alone:>6.2f} s {again - alone:>6.2f} s {beside / alone:>7.1f}x"
            f" {first.work:>11,} units  {told}{mark}",
            flush=True,
        )


if __name__ == "__main__":
    main()

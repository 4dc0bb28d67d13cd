"""F of FGD, calculated by hand, on nodes with whole devices, parts of devices and shares of them."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from autoscaler.model.device_class import DeviceClass, Selector
from autoscaler.model.plan import Fragmentation
from autoscaler.model.resource_claim import AllocatedDevice, Allocation, DeviceRequest
from autoscaler.model.snapshot import Snapshot
from autoscaler.planning.disruption.fragmentation import fragmentation
from autoscaler.planning.policy import Policy, WorkLimits
from instance_catalog.dataclass import replace
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.quantity import Quantity
from instance_catalog.kubernetes.resource_slice import (
    Capacity,
    CounterConsumption,
    CounterSet,
    Device,
    NodeReach,
    Pool,
    ResourceSlice,
)
from tests.builders import GPU, claim, gpus, pod
from tests.unit.planning.disruption.gpu_nodes import MODEL, Cluster, gpu_node, present


def measured(state: Snapshot, policy: Policy | None = None) -> dict[str, Fragmentation]:
    return {found.accelerator: found for found in fragmentation(present(state), policy or Policy())}


def test_two_nodes_and_three_kinds() -> None:
    """a: 6 of 8 free, b: 2 of 8 free. Kinds: 2 of 4 pods ask for one, 1 for six, 1 for eight."""
    cluster = Cluster()
    cluster.node("a")
    cluster.node("b")
    cluster.runs("one", "a")
    cluster.runs("another", "a")
    cluster.runs("six", "b", 6)
    cluster.waits("eight", 8)
    found = measured(cluster.snapshot())[MODEL]
    # one device: uses all. six: not the 2 of b. eight: none of the 8.
    expected = Fraction(2, 4) * 0 + Fraction(1, 4) * 2 + Fraction(1, 4) * 8
    assert (found.devices, found.free, found.unusable, found.kinds) == (16, 8, expected, 3)
    assert found.share == expected / 8


def test_what_lacks_cpu_is_of_no_use() -> None:
    cluster = Cluster()
    cluster.node("a", 4, cpu="4")
    cluster.runs("hungry", "a", cpu="3")
    # Another pod of three CPUs has none; one of one has.
    cluster.waits("small")
    found = measured(cluster.snapshot())[MODEL]
    assert (found.free, found.unusable) == (3, Fraction(3, 2))


def test_accelerators_are_apart() -> None:
    """Nobody who asks for one model is to blame that another one is idle."""
    cluster = Cluster()
    cluster.node("a", 4)
    cluster.node("s", 4, model="Small S1")
    cluster.runs("large", "a", request=gpus(product=MODEL))
    cluster.waits("small", request=gpus(4, product="Small S1"))
    found = measured(cluster.snapshot())
    assert (found[MODEL].free, found[MODEL].unusable, found[MODEL].kinds) == (3, 0, 1)
    assert (found["Small S1"].free, found["Small S1"].unusable, found["Small S1"].kinds) == (4, 0, 1)


def test_where_nobody_asks_all_that_is_free_is_of_no_use() -> None:
    cluster = Cluster()
    cluster.node("a", 4)
    found = measured(cluster.snapshot([pod("web", node_name="a", phase="Running", owner="ReplicaSet/web")]))[MODEL]
    assert (found.free, found.unusable, found.kinds) == (4, 4, 0)


def test_a_cluster_without_devices_has_no_fragments() -> None:
    assert measured(Cluster(nodes=[gpu_node("a")]).snapshot()) == {}


def test_a_cordoned_node_serves_nobody() -> None:
    cluster = Cluster()
    cluster.node("a", 4, unschedulable=True)
    cluster.waits("one")
    assert measured(cluster.snapshot())[MODEL].unusable == 4


PART = DeviceClass("part", (Selector("device.attributes['gpu.nvidia.com'].type == 'part'"),))


def _divided() -> tuple[ResourceSlice, ResourceSlice]:
    """Two GPUs of 4 units of memory, each whole or in halves."""
    devices: list[Device] = []
    for gpu in ("gpu-0", "gpu-1"):
        for name, kind, size in ((gpu, "gpu", 4), (f"{gpu}-a", "part", 2), (f"{gpu}-b", "part", 2)):
            draws = CounterConsumption(gpu, FrozenMap({"memory": Quantity.of(size)}))
            attributes: FrozenMap[str, Any] = FrozenMap({"type": kind, "productName": MODEL})
            devices.append(Device(name, attributes=attributes, consumes_counters=(draws,)))
    pool = Pool("a", slice_count=2)
    sets = tuple(CounterSet(gpu, FrozenMap({"memory": Quantity.of(4)})) for gpu in ("gpu-0", "gpu-1"))
    return (
        ResourceSlice("a-counters", "gpu.nvidia.com", pool, (), NodeReach("a"), shared_counters=sets),
        ResourceSlice("a-devices", "gpu.nvidia.com", pool, tuple(devices), NodeReach("a")),
    )


def test_half_a_device_is_of_no_use_to_who_needs_a_whole_one() -> None:
    cluster = Cluster(nodes=[gpu_node("a")], slices=list(_divided()))
    half = DeviceRequest("gpu", "part")
    cluster.runs("half", "a", request=half)
    held = Allocation((AllocatedDevice("gpu", "gpu.nvidia.com", "a", "gpu-0-a"),))
    cluster.claims[0] = replace(cluster.claims[0], allocation=held)
    cluster.waits("whole")
    found = measured(cluster.snapshot(classes=(GPU, PART)))[MODEL]
    # Free are a half and a whole one. The pod with a part can use both, the other one only the whole.
    assert (found.devices, found.free, found.unusable) == (2, Fraction(3, 2), Fraction(1, 2) * Fraction(1, 2))


def test_a_share_counts_as_what_is_left_of_it() -> None:
    attributes: FrozenMap[str, Any] = FrozenMap({"type": "gpu", "productName": MODEL})
    memory = FrozenMap({"memory": Capacity(Quantity.of(80))})
    shared = Device("gpu-0", attributes=attributes, capacity=memory, allow_multiple_allocations=True)
    cluster = Cluster(
        nodes=[gpu_node("a")],
        slices=[ResourceSlice("a", "gpu.nvidia.com", Pool("a"), (shared,), NodeReach("a"))],
    )

    def wants(amount: int) -> DeviceRequest:
        return replace(gpus(), capacity=FrozenMap({"memory": Quantity.of(amount)}))

    cluster.runs("quarter", "a", request=wants(20))
    consumed = FrozenMap({"memory": Quantity.of(20)})
    held = AllocatedDevice("gpu", "gpu.nvidia.com", "a", "gpu-0", share_id="s", consumed_capacity=consumed)
    cluster.claims[0] = replace(cluster.claims[0], allocation=Allocation((held,)))
    cluster.waits("nearly-all", request=wants(70))
    found = measured(cluster.snapshot())[MODEL]
    assert (found.free, found.unusable) == (Fraction(3, 4), Fraction(1, 2) * Fraction(3, 4))


def test_pods_that_share_a_claim_are_one_task_of_two_pods() -> None:
    cluster = Cluster()
    cluster.node("a", 2)
    cluster.claims.append(claim("both", gpus(2)))
    cluster.waits("one")
    found = measured(cluster.snapshot([pod("x", "both"), pod("y", "both")]))[MODEL]
    assert (found.free, found.unusable, found.kinds) == (2, 0, 2)


@pytest.mark.parametrize("units", [1, 10_000_000])
def test_a_kind_that_takes_too_much_work_is_left_out_and_said_so(units: int) -> None:
    cluster = Cluster()
    cluster.node("a")
    cluster.runs("one", "a")
    deep = " && ".join(["[1,2,3,4,5,6,7,8,9].all(x, [1,2,3,4,5,6,7,8,9].all(y, x + y > 0))"] * 40)
    cluster.waits("odd", request=DeviceRequest("gpu", "gpu.nvidia.com", (Selector(deep),)))
    limits = replace(WorkLimits(), per_round=units, selectors_per_round=units)
    found = measured(cluster.snapshot(), replace(Policy(), work=limits))[MODEL]
    assert (found.kinds, found.undecided) == ((1, 1) if units == 1 else (2, 0))
    assert found.unusable == 0

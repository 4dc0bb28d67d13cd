"""Devices are counted as people count them."""

from __future__ import annotations

from autoscaler.model.device_class import DeviceClass, Selector
from autoscaler.model.resource_claim import AllocatedDevice, Allocation, DeviceRequest
from autoscaler.planning.supply.units import DeviceUnits, devices_of
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.quantity import Quantity
from instance_catalog.kubernetes.resource_slice import CounterConsumption, Device, DeviceId, Pool, ResourceSlice
from tests.builders import claim, plan, pod, shipped, snapshot

ONE = FrozenMap({"memory": Quantity.of(1)})


def part(name: str, *sets: str) -> Device:
    return Device(name, consumes_counters=tuple(CounterConsumption(s, ONE) for s in sets))


PLAIN = ResourceSlice("a", "gpu", Pool("n"), (Device("g0"), Device("g1")))
PARTS = ResourceSlice("b", "mig", Pool("n"), (part("half-0", "g0"), part("half-1", "g0"), part("whole", "g1")))


def test_devices_of_one_counter_set_are_one_unit() -> None:
    units = DeviceUnits((PLAIN, PARTS))
    assert units.totals == {"gpu": 2, "mig": 2}
    assert units.total(["mig"]) == 2
    assert units.total([]) == 4
    assert len(units.touched([DeviceId("mig", "n", "half-0"), DeviceId("mig", "n", "half-1")])) == 1


def test_devices_elsewhere_have_no_unit_here() -> None:
    assert DeviceUnits((PLAIN,)).touched([DeviceId("gpu", "other", "g0")]) == frozenset()


def test_only_partitions_make_a_node_divisible() -> None:
    assert not DeviceUnits((PLAIN,)).divisible
    assert DeviceUnits((PARTS,)).divisible


def test_admin_access_holds_nothing() -> None:
    held = AllocatedDevice("r", "gpu", "n", "g0")
    watched = AllocatedDevice("r", "gpu", "n", "g1", admin_access=True)
    assert devices_of([Allocation((held, watched))]) == (DeviceId("gpu", "n", "g0"),)


SMALL = "device.capacity['gpu.nvidia.com'].multiprocessors.isGreaterThan(quantity('10'))"
MIG = DeviceClass(
    "mig.nvidia.com",
    (Selector("device.driver == 'gpu.nvidia.com' && device.attributes['gpu.nvidia.com'].type == 'mig'"),),
)
CUT = ResourceSlice("c", "gpu", Pool("n"), tuple(Device(f"m{i}", FrozenMap({"type": "mig"})) for i in range(7)))


def test_partitions_that_are_left_are_room() -> None:
    plain, cut, dynamic = DeviceUnits((PLAIN,)), DeviceUnits((CUT,)), DeviceUnits((PARTS,))
    one = [
        (units, units.touched([DeviceId(driver, "n", name)]))
        for units, driver, name in ((plain, "gpu", "g0"), (cut, "gpu", "m0"), (dynamic, "mig", "half-0"))
    ]
    assert [units.left(used) for units, used in one] == [1, 6, 1]
    assert [units.unwanted(used) for units, used in one] == [1, -6, 1]


def test_the_layout_that_leaves_most_room_is_chosen() -> None:
    """Of a layout with one partition a GPU, six sevenths of the GPU would serve nobody."""
    partition = DeviceRequest("part", "mig.nvidia.com", (Selector(SMALL),))
    state = snapshot([pod("p", "c")], [claim("c", partition)], classes=(MIG,))
    (node,) = plan(state, catalog=shipped("a2-highgpu-1g")).launches
    assert "nvidia:mig=all-1g.5gb" in node.drivers
    assert (len(node.devices_used), node.devices_total) == (1, 7)

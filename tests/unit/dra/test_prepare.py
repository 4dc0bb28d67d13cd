"""Claims that kube-scheduler would allocate and a driver would refuse."""

from __future__ import annotations

import pytest

from autoscaler.model.device_class import DeviceClass, Selector
from autoscaler.model.node import Node
from autoscaler.model.pod import Container, Pod, PodClaim
from autoscaler.model.reason import Code
from autoscaler.model.resource_claim import DeviceRequest, ResourceClaim
from autoscaler.model.snapshot import Snapshot
from autoscaler.model.verdict import DoesNotFit, Fits
from autoscaler.scheduling.fit import fit_one
from autoscaler.scheduling.world import World
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.quantity import Quantity
from instance_catalog.resource_slice import Device, NodeReach, Pool, ResourceSlice

CHIPS = 4


def verdict(driver: str, count: int) -> Fits | DoesNotFit:
    node = Node("n1", allocatable=FrozenMap({"pods": Quantity.parse("10")}))
    devices = tuple(Device(f"accel{index}") for index in range(CHIPS))
    piece = ResourceSlice("s", driver, Pool("n1"), devices, NodeReach("n1"))
    device_class = DeviceClass("chips", (Selector(f'device.driver == "{driver}"'),))
    claim = ResourceClaim("ns", "c", (DeviceRequest("r", "chips", count=count),))
    pod = Pod("ns", "p", containers=(Container("main"),), claims=(PodClaim("c", "c"),))
    snapshot = Snapshot(
        nodes=(node,), slices=(piece,), classes=(device_class,), claims=FrozenMap({claim.key: claim}), pods=(pod,)
    )
    found = fit_one(pod, "n1", World.of(snapshot))
    assert isinstance(found, Fits | DoesNotFit)
    return found


@pytest.mark.parametrize(("count", "fits"), [(CHIPS, True), (CHIPS - 1, False), (1, False)])
def test_a_tpu_claim_takes_the_whole_node(count: int, fits: bool) -> None:
    found = verdict("tpu.google.com", count)
    assert isinstance(found, Fits) is fits
    if isinstance(found, DoesNotFit):
        assert [reason.code for reason in found.reasons] == [Code.PREPARE_REFUSED]
        assert found.reasons[0].detail == {"driver": "tpu.google.com", "taken": count, "published": CHIPS}


def test_other_drivers_share_a_node() -> None:
    assert isinstance(verdict("gpu.nvidia.com", 1), Fits)

"""Network cards without accelerators, and configuration that only a driver reads."""

from __future__ import annotations

import pytest

from autoscaler.lint.devices.network_advice import network_advice
from autoscaler.model.capacity import CapacityPool, Limits, PodScope, Scope
from autoscaler.model.device_class import Selector
from autoscaler.model.plan import HandedOut
from autoscaler.model.pod import Container
from autoscaler.model.resource_claim import ClaimConfig, DeviceRequest
from instance_catalog.dataclass import replace
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.quantity import Quantity
from tests.builders import claim, gpus, plan, pod, shipped, snapshot

NIC = DeviceRequest("nic", "nic", selectors=(Selector('device.driver == "dra.net"'),))
EFA_MACHINES = shipped("g6.8xlarge")


def _told(*requests: DeviceRequest, handed: int = 0) -> list[str]:
    claims = [claim("c", *requests)] if requests else []
    pool = CapacityPool("p", scope=Scope(pods=PodScope.ALL), limits=Limits(nodes=3))
    state = snapshot([pod("p", *("c" for _ in claims))], claims, pools=() if requests else (pool,))
    state = replace(state, classes=(*state.classes, replace(state.classes[0], name="nic", selectors=())))
    found = plan(state, catalog=EFA_MACHINES)
    (node,) = found.launches
    plugged = (HandedOut("nvidia.com/gpu", used=handed, free=1, profile="nvidia"),)
    return [
        one.message
        for one in network_advice(state, replace(found, launches=(replace(node, handed_out=plugged),)), EFA_MACHINES)
    ]


@pytest.mark.parametrize(
    ("requests", "handed", "told"),
    [
        pytest.param((NIC,), 0, True, id="a card alone"),
        pytest.param((NIC, gpus(1)), 0, False, id="with a GPU"),
        pytest.param((NIC,), 1, False, id="with a GPU of a device plugin"),
        pytest.param((), 0, True, id="no device"),
    ],
)
def test_accelerators_that_nobody_uses(requests: tuple[DeviceRequest, ...], handed: int, told: bool) -> None:
    found = _told(*requests, handed=handed)
    assert ["at 2.01 $/h and do not use its 1 × L4" in message for message in found] == [True] * told


@pytest.mark.parametrize(("more", "told"), [({}, 1), ({"nvidia.com/gpu": Quantity.of(1)}, 0)])
def test_a_pod_that_asks_for_a_network_card_and_no_accelerator(more: dict[str, Quantity], told: int) -> None:
    asked = FrozenMap({"vpc.amazonaws.com/efa": Quantity.of(1), **more})
    state = snapshot([replace(pod("p"), containers=(Container("c", asked),))])
    found = list(network_advice(state, plan(state), EFA_MACHINES))
    assert ["asks for vpc.amazonaws.com/efa and for no accelerator" in one.message for one in found] == [True] * told


@pytest.mark.parametrize(("driver", "told"), [("dra.net", 1), ("gpu.nvidia.com", 0)])
def test_a_configuration_is_told_of_once_unless_it_is_read(driver: str, told: int) -> None:
    asked = replace(claim("c"), config=(ClaimConfig((), driver, "{}"), ClaimConfig((), driver, "{}")))
    state = snapshot([pod("p", "c")], [asked])
    found = list(network_advice(state, plan(state), EFA_MACHINES))
    assert [f"is for driver {driver} alone" in one.message for one in found] == [True] * told

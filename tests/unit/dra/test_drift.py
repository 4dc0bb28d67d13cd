"""Which differences matter to whose claims, and what follows for the type."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from autoscaler.dra.allocation.allocator import Allocated, NotAllocated
from autoscaler.dra.drift import DriftPolicy, Impact, matters, quarantines
from autoscaler.model.device_class import DeviceClass, Selector
from autoscaler.model.node import Node
from autoscaler.model.resource_claim import DeviceRequest, FirstAvailable, MatchAttribute, Request, ResourceClaim
from instance_catalog.dataclass import replace
from instance_catalog.drift.compare import Unified, unify
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.profile import REFERENCE, KubernetesProfile, profile_for
from instance_catalog.kubernetes.quantity import Quantity
from instance_catalog.kubernetes.resource_slice import (
    AttributeValue,
    Capacity,
    Device,
    NodeAllocatable,
    NodeOverhead,
    NodeReach,
    Pool,
    ResourceSlice,
    Version,
)

DRIVER = "gpu.nvidia.com"
NODE = Node("node-1")
CLASS = DeviceClass("gpu", (Selector(f"device.driver == '{DRIVER}'"),))


def gpu(index: int) -> Device:
    attributes: dict[str, AttributeValue] = {
        "productName": "NVIDIA H100 80GB HBM3",
        "driverVersion": Version("580.0.0"),
        "resource.kubernetes.io/pcieRoot": "pci0000:44",
    }
    capacity = {"memory": Capacity(Quantity.parse("80Gi"))}
    return Device(f"gpu-{index}", FrozenMap(attributes), FrozenMap(capacity))


GPUS = (gpu(0), gpu(1))


def slice_of(*devices: Device) -> ResourceSlice:
    return ResourceSlice("s", DRIVER, Pool("node-1"), reach=NodeReach(node_name="node-1"), devices=devices)


def attribute(name: str, value: AttributeValue) -> Callable[[Device], Device]:
    return lambda device: replace(device, attributes=FrozenMap({**device.attributes, name: value}))


def smaller(device: Device) -> Device:
    return replace(device, capacity=FrozenMap({"memory": Capacity(Quantity.parse("40Gi"))}))


def drifted(*published: Device) -> Unified:
    return unify([slice_of(*GPUS)], [slice_of(*published)])


def claim(*requests: Request, same: str = "") -> ResourceClaim:
    return ResourceClaim("ns", "c", requests, (MatchAttribute(same),) if same else ())


def want(expression: str = "", count: int = 1) -> DeviceRequest:
    return DeviceRequest("r", "gpu", (Selector(expression),) if expression else (), count=count)


def impact(unified: Unified, *claims: ResourceClaim, profile: KubernetesProfile = REFERENCE) -> Impact:
    return matters(unified, claims, node=NODE, classes=[CLASS], profile=profile)


IS_H100 = want(f"device.attributes['{DRIVER}'].productName == 'NVIDIA H100 80GB HBM3'")
IS_BIG = want(f"device.capacity['{DRIVER}'].memory.isGreaterThan(quantity('60Gi'))")
A100 = attribute("productName", "NVIDIA A100-SXM4-80GB")
NEWER = attribute("driverVersion", Version("590.0.0"))
ELSEWHERE = attribute("resource.kubernetes.io/pcieRoot", "pci0000:55")


@pytest.mark.parametrize(
    ("published", "asked", "fields", "breaks"),
    [
        pytest.param(GPUS, claim(IS_H100), set(), False, id="no drift"),
        pytest.param(map(NEWER, GPUS), claim(IS_H100), set(), False, id="an attribute nobody asks for"),
        pytest.param(map(A100, GPUS), claim(want()), set(), False, id="any GPU will do"),
        pytest.param(map(A100, GPUS), claim(IS_H100), {"productName"}, True, id="a selector answers no"),
        pytest.param([A100(GPUS[0]), GPUS[1]], claim(IS_H100), {"productName"}, False, id="another device still fits"),
        pytest.param(map(smaller, GPUS), claim(IS_BIG), {"memory"}, True, id="a capacity is too small"),
        pytest.param(
            [A100(NEWER(smaller(gpu))) for gpu in GPUS],
            claim(IS_BIG),
            {"memory"},
            True,
            id="one of several differences",
        ),
        pytest.param(
            [GPUS[0], ELSEWHERE(GPUS[1])],
            claim(want(count=2), same="resource.kubernetes.io/pcieRoot"),
            {"resource.kubernetes.io/pcieRoot"},
            True,
            id="a constraint fails",
        ),
        pytest.param(GPUS[:1], claim(want(count=2)), {""}, True, id="a device is missing"),
        pytest.param(
            map(A100, GPUS),
            claim(FirstAvailable("r", (replace(IS_H100, name="h100"), replace(want(), name="any")))),
            {"productName"},
            False,
            id="another alternative is taken",
        ),
    ],
)
def test_what_matters_to_a_claim(published: list[Device], asked: ResourceClaim, fields: set[str], breaks: bool) -> None:
    found = impact(drifted(*published), asked)
    assert {difference.field for difference in found.decisive} == fields
    assert (found.matters, found.breaks) == (bool(fields), breaks)
    assert isinstance(found.predicted, Allocated)
    assert isinstance(found.published, NotAllocated if breaks else Allocated)


@pytest.mark.parametrize("on", [True, False])
def test_what_a_device_takes_of_its_node_matters_where_it_counts(*, on: bool) -> None:
    profile = profile_for("1.37.1").with_gates(node_allocatable_resources=on)
    more = NodeAllocatable(overhead=NodeOverhead(per_pod=Quantity.parse("8Gi")))
    costly = [replace(device, node_allocatable=FrozenMap({"memory": more})) for device in GPUS]
    found = impact(drifted(*costly), claim(want()), profile=profile)
    assert (found.matters, found.breaks) == (on, False)
    assert {difference.field for difference in found.decisive} == ({"nodeAllocatableResources"} if on else set())


def test_differences_that_matter_only_together_are_all_named() -> None:
    either = want(
        f"device.attributes['{DRIVER}'].productName.contains('H100') || "
        f"device.capacity['{DRIVER}'].memory.isGreaterThan(quantity('60Gi'))"
    )
    found = impact(drifted(*(A100(smaller(one)) for one in GPUS)), claim(either))
    assert {difference.field for difference in found.decisive} == {"productName", "memory"}
    assert found.breaks


@pytest.mark.parametrize(
    ("policy", "published", "expected"),
    [
        (DriftPolicy.NEVER, A100, False),
        (DriftPolicy.MATTERS, A100, True),
        (DriftPolicy.MATTERS, NEWER, False),
        (DriftPolicy.ALWAYS, NEWER, True),
    ],
)
def test_a_type_is_avoided_as_the_policy_says(
    policy: DriftPolicy, published: Callable[[Device], Device], expected: bool
) -> None:
    unified = drifted(*map(published, GPUS))
    assert quarantines(policy, unified, [impact(unified, claim(IS_H100))]) is expected


def test_no_drift_is_no_reason_under_any_policy() -> None:
    unified = drifted(*GPUS)
    found = impact(unified, claim(IS_H100))
    assert [quarantines(policy, unified, [found]) for policy in DriftPolicy] == [False, False, False]

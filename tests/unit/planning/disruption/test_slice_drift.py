"""Which new nodes differ from their prediction, and when their type is avoided."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from autoscaler.dra.drift import DriftPolicy
from autoscaler.lifecycle.quarantine import Drift
from autoscaler.model.capacity import CapacityPool
from autoscaler.model.node import Node
from autoscaler.model.provisioned_node import Phase
from autoscaler.model.snapshot import Snapshot
from autoscaler.planning.disruption.slice_drift import slice_drifts
from autoscaler.report.events import drift_event
from instance_catalog.dataclass import replace
from instance_catalog.drivers.profile import parse_driver_set
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.profile import REFERENCE
from instance_catalog.kubernetes.resource_slice import Device, ResourceSlice
from instance_catalog.kubernetes.taint import Taint
from instance_catalog.prediction.predict import predict
from tests.builders import CATALOG, NOW, claim, gpus, ours, pod, snapshot

WANTED = "Small S1"
AS_PREDICTED = predict(CATALOG.types["s1"], parse_driver_set("nvidia"), kubernetes=REFERENCE, node_name="n")


def each(change: Callable[[Device], Device]) -> tuple[ResourceSlice, ...]:
    return tuple(replace(piece, devices=tuple(map(change, piece.devices))) for piece in AS_PREDICTED)


def attribute(name: str, value: str) -> tuple[ResourceSlice, ...]:
    return each(lambda device: replace(device, attributes=device.attributes.with_items({name: value})))


ANOTHER_PRODUCT = attribute("productName", "Small S1-R")
ANOTHER_ARCHITECTURE = attribute("architecture", "Other")
SICK = each(lambda device: replace(device, taints=(Taint("broken", "", "NoSchedule"),)))
MORE_DRIVERS = (*AS_PREDICTED, replace(AS_PREDICTED[0], driver="other.example.com"))


def state(published: tuple[ResourceSlice, ...], *, ready_for: timedelta = timedelta(0), pool: str = "team") -> Snapshot:
    """A node that has become ready, bought for a pod that wants a product."""
    node = ours("n", "s1", phase=Phase.READY, phase_since=NOW - ready_for, pods=("default/p",), provider_id="i-1")
    return snapshot(
        [pod("p", "c")],
        [claim("c", gpus(product=WANTED))],
        pools=(CapacityPool(pool),),
        provisioned=(node,),
        nodes=(Node("n", provider_id="i-1"),),
        slices=published,
    )


def drifts(found: Snapshot, policy: DriftPolicy = DriftPolicy.MATTERS) -> tuple[Drift, ...]:
    return slice_drifts(found, CATALOG, policy, NOW)


@pytest.mark.parametrize(
    "found",
    [
        pytest.param(state(AS_PREDICTED), id="as-predicted"),
        pytest.param(state(SICK), id="a-sick-device"),
        pytest.param(state(MORE_DRIVERS), id="another-driver-publishes-too"),
        pytest.param(state(()), id="nothing-published"),
        pytest.param(state(ANOTHER_PRODUCT, ready_for=timedelta(seconds=1)), id="compared-before"),
        pytest.param(replace(state(ANOTHER_PRODUCT), nodes=()), id="its-node-is-gone"),
    ],
)
def test_what_is_no_drift(found: Snapshot) -> None:
    assert drifts(found, DriftPolicy.ALWAYS) == ()


def test_a_type_that_left_the_catalog_has_no_prediction() -> None:
    empty = replace(CATALOG, types=FrozenMap())
    assert slice_drifts(state(ANOTHER_PRODUCT), empty, DriftPolicy.ALWAYS, NOW) == ()


@pytest.mark.parametrize(
    ("published", "policy", "avoided"),
    [
        pytest.param(ANOTHER_PRODUCT, DriftPolicy.MATTERS, True, id="the-claim-asks-for-it"),
        pytest.param(ANOTHER_ARCHITECTURE, DriftPolicy.MATTERS, False, id="nobody-asks-for-it"),
        pytest.param(ANOTHER_ARCHITECTURE, DriftPolicy.ALWAYS, True, id="always"),
        pytest.param(ANOTHER_PRODUCT, DriftPolicy.NEVER, False, id="never"),
    ],
)
def test_drift_is_avoided_as_the_policy_says(
    published: tuple[ResourceSlice, ...], policy: DriftPolicy, avoided: bool
) -> None:
    (found,) = drifts(state(published), policy)
    assert (found.evidence, found.avoided) == ("i-1", avoided)
    assert {difference.field for difference in found.differences} <= {"productName", "architecture"}


def test_the_event_names_the_differences_and_what_follows() -> None:
    (found,) = drifts(state(ANOTHER_PRODUCT))
    event = drift_event(found)
    assert (event.about.kind, event.about.name, event.type, event.reason) == (
        "ProvisionedNode",
        "n",
        "Warning",
        "Drifted",
    )
    assert "s1 is quarantined in pool team" in event.message
    assert "attribute productName of gpu-0 [gpu.nvidia.com] (Small S1 predicted, Small S1-R published)" in event.message
    told = drift_event(replace(found, avoided=False))
    assert told.type == "Normal"
    assert "quarantined" not in told.message

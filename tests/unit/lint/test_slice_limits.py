"""What the API server refuses in ResourceSlices."""

from __future__ import annotations

from typing import Any

import pytest

from autoscaler.lint.check import lint
from autoscaler.lint.subjects import subject_of
from autoscaler.model.origin import Origin
from autoscaler.model.snapshot import Snapshot
from instance_catalog.kubernetes.profile import profile_for


def found(spec: dict[str, Any], *, version: str = "v1", minor: str = "1.36", uid: str = "") -> list[tuple[str, str]]:
    """(rule, field) of every finding."""
    written = {
        "apiVersion": f"resource.k8s.io/{version}",
        "kind": "ResourceSlice",
        "metadata": {"name": "s", **({"uid": uid} if uid else {})},
        "spec": {"driver": "d.example.com", "nodeName": "node-1", "pool": {"name": "node-1"}, **spec},
    }
    subject = subject_of(written, "ResourceSlice s", Origin())
    assert subject is not None
    return [
        (finding.rule.id, finding.diagnostic.field)
        for finding in lint([subject], Snapshot(profile=profile_for(minor)), ())
    ]


def devices(count: int, **fields: Any) -> dict[str, Any]:
    return {"devices": [{"name": f"d{number}", **fields} for number in range(count)]}


TAINT = {"taints": [{"key": "k", "effect": "NoSchedule"}]}
COUNTERS = {"name": "set", "counters": {"c": {"value": "1"}}}
CASES: dict[str, tuple[dict[str, Any], list[tuple[str, str]]]] = {
    "128 plain devices": (devices(128), []),
    "129 plain devices": (devices(129), [("too-many-entries", "spec.devices")]),
    "64 tainted devices": (devices(64, **TAINT), []),
    "65 tainted devices": (devices(65, **TAINT), [("too-many-entries", "spec.devices")]),
    "counters beside devices": (
        {"sharedCounters": [COUNTERS], **devices(1)},
        [("invalid-object", "spec.sharedCounters")],
    ),
    "counters alone": ({"sharedCounters": [COUNTERS]}, []),
    "nine counter sets": (
        {"sharedCounters": [COUNTERS | {"name": f"s{n}"} for n in range(9)]},
        [("too-many-entries", "spec.sharedCounters")],
    ),
    "33 names": (
        devices(
            1,
            attributes={f"a{n}": {"int": n} for n in range(32)},
            capacity={"memory": {"value": "1Gi"}},
        ),
        [("too-many-entries", "spec.devices[0]")],
    ),
    "long text": (
        devices(1, attributes={"a": {"string": "x" * 65}}),
        [("too-many-entries", "spec.devices[0].attributes.a")],
    ),
    "long name": (
        devices(1, attributes={"a" * 33: {"int": 1}}),
        [("too-many-entries", f"spec.devices[0].attributes.{'a' * 33}")],
    ),
    "no semantic version": (
        devices(1, attributes={"v": {"version": "1.0"}}),
        [("invalid-object", "spec.devices[0].attributes.v")],
    ),
    "policy on a device for one": (
        devices(1, capacity={"c": {"value": "1", "requestPolicy": {"default": "1"}}}),
        [("invalid-object", "spec.devices[0].capacity.c.requestPolicy")],
    ),
    "cpu of a device and of a capacity": (
        devices(
            1,
            capacity={"cores": {"value": "8"}},
            allowMultipleAllocations=True,
            nodeAllocatableResources={
                "cpu": {"mapping": {"capacityKey": "cores", "capacityMultiplier": "2"}},
                "memory": {"mapping": {"deviceMultiplier": "1Gi"}, "overhead": {"perPod": "0"}},
                "hugepages-2Mi": {"overhead": {"perContainer": "2Mi"}},
            },
        ),
        [],
    ),
    "another amount of a node": (
        devices(1, nodeAllocatableResources={"ephemeral-storage": {"overhead": {"perPod": "1Gi"}}}),
        [("invalid-object", "spec.devices[0].nodeAllocatableResources.ephemeral-storage")],
    ),
    "an amount without a rule": (
        devices(1, nodeAllocatableResources={"cpu": {}}),
        [("invalid-object", "spec.devices[0].nodeAllocatableResources.cpu")],
    ),
    "a capacity that the device does not have": (
        devices(
            1,
            allowMultipleAllocations=True,
            nodeAllocatableResources={"cpu": {"mapping": {"capacityKey": "cores", "capacityMultiplier": "1"}}},
        ),
        [("invalid-object", "spec.devices[0].nodeAllocatableResources.cpu.mapping.capacityKey")],
    ),
    "a capacity of a device that is not shared": (
        devices(
            1,
            capacity={"cores": {"value": "8"}},
            nodeAllocatableResources={"cpu": {"mapping": {"capacityKey": "cores", "capacityMultiplier": "1"}}},
        ),
        [("invalid-object", "spec.devices[0].nodeAllocatableResources.cpu.mapping.capacityKey")],
    ),
    "two ways to count": (
        devices(
            1,
            capacity={"cores": {"value": "8"}},
            allowMultipleAllocations=True,
            nodeAllocatableResources={"cpu": {"mapping": {"capacityKey": "cores", "deviceMultiplier": "1"}}},
        ),
        [("invalid-object", "spec.devices[0].nodeAllocatableResources.cpu.mapping")],
    ),
    "a multiplier of nothing": (
        devices(1, nodeAllocatableResources={"cpu": {"mapping": {"deviceMultiplier": "0"}}}),
        [("invalid-object", "spec.devices[0].nodeAllocatableResources.cpu.mapping")],
    ),
    "an overhead below 0": (
        devices(1, nodeAllocatableResources={"cpu": {"overhead": {"perPod": "-1"}}}),
        [("invalid-object", "spec.devices[0].nodeAllocatableResources.cpu.overhead")],
    ),
    "17 taints": (
        devices(1, taints=[{"key": f"k{n}", "effect": "NoSchedule"} for n in range(17)]),
        [("too-many-entries", "spec.devices[0].taints")],
    ),
}


@pytest.mark.parametrize(("spec", "expected"), CASES.values(), ids=CASES)
def test_limits(spec: dict[str, Any], expected: list[tuple[str, str]]) -> None:
    assert found(spec) == expected


def test_what_an_api_server_accepted_is_left_alone() -> None:
    assert found(devices(129), uid="4b1f") == []


def test_older_versions_have_other_limits() -> None:
    assert found(devices(65, **TAINT), minor="1.34") == []
    assert found({"sharedCounters": [COUNTERS], **devices(1)}, minor="1.34") == []


def test_v1beta1_nests_devices() -> None:
    spec = {"devices": [{"name": "d", "basic": {"attributes": {"a": {"string": "x" * 65}}}}]}
    assert found(spec, version="v1beta1") == [("too-many-entries", "spec.devices[0].basic.attributes.a")]

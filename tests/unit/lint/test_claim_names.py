"""What the API server refuses in the names of a claim."""

from __future__ import annotations

from typing import Any

import pytest

from autoscaler.lint.check import lint
from autoscaler.lint.rules import Level
from autoscaler.lint.subjects import subject_of
from autoscaler.model.origin import Origin
from autoscaler.model.snapshot import Snapshot

GPU: dict[str, Any] = {"name": "gpu", "exactly": {"deviceClassName": "gpu.nvidia.com"}}
OPAQUE = {"driver": "gpu.nvidia.com", "parameters": {}}


def first(*names: str) -> dict[str, Any]:
    return {"name": "any", "firstAvailable": [{"name": name, "deviceClassName": "a.example.com"} for name in names]}


def exactly(**fields: Any) -> dict[str, Any]:
    return {"name": "gpu", "exactly": {"deviceClassName": "gpu.nvidia.com", **fields}}


CASES: dict[str, tuple[dict[str, Any], list[str]]] = {
    "good names": ({"requests": [GPU, first("a", "b-1")], "config": [{"requests": ["any/a"], "opaque": OPAQUE}]}, []),
    "a request in capitals": ({"requests": [{**GPU, "name": "Gpu"}]}, ["requests[0].name"]),
    "a long request": ({"requests": [{**GPU, "name": "g" * 64}]}, ["requests[0].name"]),
    "an alternative in capitals": ({"requests": [first("A", "b")]}, ["requests[0].firstAvailable[0].name"]),
    "an alternative twice": ({"requests": [first("a", "b", "a")]}, ["requests[0].firstAvailable[2].name"]),
    "a class with spaces": ({"requests": [exactly(deviceClassName="a b")]}, ["requests[0].exactly.deviceClassName"]),
    "an effect of nodes": (
        {"requests": [exactly(tolerations=[{"operator": "Exists", "effect": "PreferNoSchedule"}])]},
        ["requests[0].exactly.tolerations[0].effect"],
    ),
    "a constraint on one request twice": (
        {"requests": [GPU], "constraints": [{"requests": ["gpu", "gpu"], "matchAttribute": "gpu.nvidia.com/type"}]},
        ["constraints[0].requests[1]"],
    ),
    "configuration of no request": (
        {"requests": [GPU], "config": [{"requests": ["gpus"], "opaque": OPAQUE}]},
        ["config[0].requests[0]"],
    ),
    "configuration of no driver": ({"requests": [GPU], "config": [{}]}, ["config[0].opaque.driver"]),
    "an attribute without a name": (
        {"requests": [GPU], "constraints": [{"matchAttribute": "gpu.nvidia.com/"}]},
        ["constraints[0].matchAttribute"],
    ),
    "an attribute of no domain": (
        {"requests": [GPU], "constraints": [{"distinctAttribute": "/uuid"}]},
        ["constraints[0].distinctAttribute"],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_names_are_as_the_api_server_wants_them(case: str) -> None:
    devices, expected = CASES[case]
    written = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": "c"},
        "spec": {"devices": devices},
    }
    subject = subject_of(written, "ResourceClaim c", Origin())
    assert subject is not None
    errors = [
        finding.diagnostic.field for finding in lint([subject], Snapshot(), ()) if finding.rule.level is Level.ERROR
    ]
    assert errors == [f"spec.devices.{field}" for field in expected]

"""One poisoned object never stops the loop: whatever stands in it, pods of others get their nodes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from autoscaler.clock import VirtualClock
from autoscaler.cluster import resources
from autoscaler.cluster.resources import CAPACITY_POOLS, DEVICE_CLASSES, PODS, RESOURCE_CLAIMS, Resource
from autoscaler.execution.launch import Providers
from autoscaler.loop.loop import Loop, Tick
from autoscaler.simulation.api_server import ApiServer
from instance_catalog.kubernetes.profile import REFERENCE
from instance_catalog.types.catalog import Catalog
from tests.builders import CATALOG

DEEP: dict[str, Any] = {}
for _ in range(200):
    DEEP = {"a": [DEEP]}
HUGE = "9" * 400
# What no API server of ours would take, but another version, another writer or a broken conversion may.
POISONS: Mapping[str, Any] = {
    "text": "poison",
    "list": [1, {"a": None}],
    "number": 1e308,
    "nothing": None,
    "deep": DEEP,
    "lists-of-everything": {
        name: [1, "x", None, {}]
        for name in (
            "containers",
            "resourceClaims",
            "devices",
            "taints",
            "tolerations",
            "template",
            "offerings",
            "nodes",
        )
    },
    "text-for-objects": dict.fromkeys(
        ("devices", "affinity", "template", "selector", "limits", "hard", "pool", "prediction", "scope"), "x"
    ),
    "huge-numbers": {
        "containers": [{"name": "c", "resources": {"requests": {"cpu": HUGE, "memory": "-1"}}}],
        "count": int(HUGE),
        "priority": int(HUGE),
        "replicas": -1,
        "limits": {"nodes": int(HUGE)},
        "hard": {"pods": HUGE},
        "devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu.nvidia.com", "count": int(HUGE)}}]},
    },
}
KINDS = sorted({r for r in vars(resources).values() if isinstance(r, Resource) and r.plural != "events"}, key=str)
SELECTOR = "device.driver == 'gpu.nvidia.com' && device.attributes['gpu.nvidia.com'].type == 'gpu'"


def cluster() -> tuple[ApiServer, Loop]:
    """A healthy pool in which a healthy pod wants a GPU."""
    api, clock = ApiServer(VirtualClock()), VirtualClock()
    api.create(DEVICE_CLASSES, named("gpu.nvidia.com", {"selectors": [{"cel": {"expression": SELECTOR}}]}))
    request = {"name": "gpu", "exactly": {"deviceClassName": "gpu.nvidia.com"}}
    api.create(RESOURCE_CLAIMS, named("healthy", {"devices": {"requests": [request]}}))
    claims = [{"name": "gpu", "resourceClaimName": "healthy"}]
    api.create(PODS, named("healthy", {"containers": [{"name": "main"}], "resourceClaims": claims}))
    api.create(CAPACITY_POOLS, named("healthy", {"limits": {"nodes": 3}, "drivers": {"profiles": ["nvidia"]}}))
    return api, loop(api, clock)


def named(name: str, spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": spec}


def loop(api: ApiServer, clock: VirtualClock, catalog: Catalog = CATALOG) -> Loop:
    return Loop(api=api, providers=Providers({}, cluster="u"), catalog=catalog, profile=REFERENCE, clock=clock)


def served(tick: Tick) -> bool:
    return any("default/healthy" in launch.pods for launch in tick.plan.launches)


@pytest.mark.parametrize("poison", POISONS)
def test_a_poisoned_spec_of_any_kind(poison: str) -> None:
    api, controller = cluster()
    assert served(controller.tick())
    for resource in KINDS:
        api.create(resource, named("poisoned", POISONS[poison]))
    assert served(controller.tick())
    # After a restart the same objects are met by a list instead of a watch.
    assert served(loop(api, VirtualClock()).tick())


@pytest.mark.parametrize("poison", POISONS)
def test_a_poisoned_status_of_any_kind(poison: str) -> None:
    api, controller = cluster()
    for resource in KINDS:
        api.create(resource, {**named("poisoned", {}), "status": POISONS[poison]})
        if resource.status and isinstance(POISONS[poison], dict):
            api.patch(
                resource,
                "poisoned",
                {"status": POISONS[poison]},
                namespace="default" if resource.namespaced else "",
                subresource="status",
            )
    assert served(controller.tick())


@pytest.mark.parametrize(
    "metadata",
    [
        {"labels": {"a": 1}},
        {"annotations": [1]},
        {"ownerReferences": "x"},
        {"finalizers": [{}]},
    ],
    ids=lambda value: next(iter(value)),
)
def test_poisoned_metadata_of_any_kind(metadata: dict[str, Any]) -> None:
    api, controller = cluster()
    for resource in KINDS:
        created = api.create(resource, named("poisoned", {}))
        api.update(resource, {**created, "metadata": {**created["metadata"], **metadata}})
    assert served(controller.tick())

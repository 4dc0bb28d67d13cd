"""A right that is missing: what it decides is unknown where that is possible, and named where it is not."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from autoscaler.clock import VirtualClock
from autoscaler.cluster.api import ForbiddenError, Page, UnavailableError
from autoscaler.cluster.informer import Informer
from autoscaler.cluster.resources import (
    CAPACITY_POOLS,
    DEPLOYMENTS,
    DEVICE_CLASSES,
    EVENTS,
    NODES,
    POD_GROUPS,
    PODS,
    PROVISIONED_NODES,
    RESOURCE_CLAIMS,
    Resource,
)
from autoscaler.cluster.store import Store
from autoscaler.execution.launch import Providers
from autoscaler.loop.loop import Loop
from autoscaler.model.reason import Code
from autoscaler.simulation.api_server import ApiServer
from instance_catalog.kubernetes.profile import REFERENCE
from providers.simulated.cloud import SimulatedCloud
from providers.simulated.provider import SimulatedProvider
from tests.builders import CATALOG

SELECTOR = "device.driver == 'gpu.nvidia.com' && device.attributes['gpu.nvidia.com'].type == 'gpu'"
DISPENSABLE = {
    "Deployment": "deployments",
    "ResourceQuota": "resourcequotas",
    "PodGroup": "podgroups",
    "PersistentVolume": "persistentvolumes",
    "PersistentVolumeClaim": "persistentvolumeclaims",
    "StorageClass": "storageclasses",
    "CSINode": "csinodes",
    "CSIDriver": "csidrivers",
    "CSIStorageCapacity": "csistoragecapacities",
    "VolumeAttachment": "volumeattachments",
    "ComputeClass": "computeclasses",
}
NEEDED = ("pods", "nodes", "resourceclaims", "resourceslices", "deviceclasses", "daemonsets", "capacitypools")


def cluster(*forbidden: str) -> ApiServer:
    """A pool in which two pods want a GPU each; one of them has a volume."""
    api = ApiServer(VirtualClock(), forbidden=frozenset(("list", plural) for plural in forbidden))
    api.create(DEVICE_CLASSES, named("gpu.nvidia.com", {"selectors": [{"cel": {"expression": SELECTOR}}]}))
    api.create(CAPACITY_POOLS, named("team", {"limits": {"nodes": 9}, "drivers": {"profiles": ["nvidia"]}}))
    volume = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}
    for name, fields in (("plain", {}), ("stateful", {"volumes": [volume]})):
        request = {"name": "gpu", "exactly": {"deviceClassName": "gpu.nvidia.com"}}
        api.create(RESOURCE_CLAIMS, named(name, {"devices": {"requests": [request]}}))
        claims = [{"name": "gpu", "resourceClaimName": name}]
        api.create(PODS, named(name, {"containers": [{"name": "main"}], "resourceClaims": claims, **fields}))
    return api


def named(name: str, spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": spec}


def loop(api: ApiServer) -> Loop:
    return Loop(api=api, providers=Providers({}, cluster="u"), catalog=CATALOG, profile=REFERENCE, clock=VirtualClock())


def condition(api: ApiServer, kind: str) -> dict[str, Any]:
    found = api.get(CAPACITY_POOLS, "team")["status"]["conditions"]
    return next(entry for entry in found if entry["type"] == kind)


@pytest.mark.parametrize(("kind", "plural"), DISPENSABLE.items())
def test_the_round_goes_on_without(kind: str, plural: str) -> None:
    tick = loop(cluster(plural)).tick()
    assert list(tick.snapshot.unreadable) == [kind]
    assert tick.snapshot.unreadable[kind].startswith(f"list and watch {plural}")
    assert any("default/plain" in launch.pods for launch in tick.plan.launches)


@pytest.mark.parametrize("plural", NEEDED)
def test_what_nothing_can_be_decided_without_is_named(plural: str) -> None:
    with pytest.raises(ForbiddenError) as raised:
        loop(cluster(plural)).tick()
    assert plural in raised.value.message
    assert "ClusterRole foreslice-observe" in raised.value.next_step


def test_other_autoscalers_are_unknown_and_the_pool_proposes() -> None:
    api = cluster("deployments")
    loop(api).tick()
    found = condition(api, "Coexistence")
    assert (found["status"], found["reason"]) == ("Unknown", "Unreadable")
    assert "grant it, as the ClusterRole foreslice-observe does" in found["message"]
    assert condition(api, "DevicePluginConflict")["status"] == "False"


@pytest.mark.parametrize("plural", ["persistentvolumes", "persistentvolumeclaims", "storageclasses", "csinodes"])
def test_pods_with_volumes_wait(plural: str) -> None:
    (left,) = loop(cluster(plural)).tick().plan.left_out
    assert (left.pod, left.verdict, [reason.code for reason in left.reasons]) == (
        "default/stateful",
        "unknown",
        [Code.UNREADABLE],
    )


def test_a_controller_that_may_only_observe_says_so_and_what_pools_would_launch() -> None:
    api = cluster()
    template = {"nodeTemplateRef": {"kind": "SimulatedNodeTemplate", "name": "default"}}
    api.patch(CAPACITY_POOLS, "team", {"spec": {"mode": "Act", **template}})
    api._forbidden = frozenset({("create", "launchbatches"), ("create", "provisionednodes")})
    clock = VirtualClock()
    cloud = SimulatedProvider(SimulatedCloud(clock))
    providers = Providers({"SimulatedNodeTemplate": cloud}, cluster="u")
    observing = Loop(api=api, providers=providers, catalog=CATALOG, profile=REFERENCE, clock=clock)
    observing.tick()
    ready = condition(api, "Ready")
    assert (ready["status"], ready["reason"]) == ("False", "MayNotAct")
    assert "cannot create launchbatches" in ready["message"]
    assert len(api.get(CAPACITY_POOLS, "team")["status"]["proposedLaunches"]) == 1
    assert "ProposedScaleUp" in {event["reason"] for event in api.list(EVENTS).items}
    api._forbidden = frozenset()
    observing.tick()
    assert condition(api, "Ready")["status"] == "True"
    assert api.list(PROVISIONED_NODES).items


def test_a_controller_that_may_no_longer_act_says_so_of_the_nodes_it_has() -> None:
    api = cluster()
    template = {"nodeTemplateRef": {"kind": "SimulatedNodeTemplate", "name": "default"}}
    api.patch(CAPACITY_POOLS, "team", {"spec": {"mode": "Act", **template}})
    clock = VirtualClock()
    cloud = SimulatedProvider(SimulatedCloud(clock))
    providers = Providers({"SimulatedNodeTemplate": cloud}, cluster="u")
    acting = Loop(api=api, providers=providers, catalog=CATALOG, profile=REFERENCE, clock=clock)
    acting.tick()
    (node,) = acting.tick().snapshot.provisioned
    verbs, plurals = ("create", "update", "patch", "delete"), ("launchbatches", "provisionednodes")
    api._forbidden = frozenset(product(verbs, plurals))
    api.create(NODES, {"metadata": {"name": node.node_name}, "spec": {"providerID": node.provider_id}})
    acting.tick()
    ready = condition(api, "Ready")
    assert (ready["status"], ready["reason"]) == ("False", "MayNotAct")
    assert "cannot update provisionednodes" in ready["message"]


def test_pods_of_gangs_wait() -> None:
    api = cluster("podgroups")
    api.patch(PODS, "plain", {"metadata": {"labels": {"scheduling.x-k8s.io/pod-group": "g"}}}, namespace="default")
    api.create(POD_GROUPS, named("g", {"minMember": 1}))
    left = loop(api).tick().plan.left_out
    assert [(e.pod, e.verdict) for e in left if Code.UNREADABLE in {r.code for r in e.reasons}] == [
        ("default/plain", "unknown")
    ]


def test_a_right_that_is_granted_later_is_noticed() -> None:
    api = cluster("deployments")
    store = Store(api, REFERENCE)
    store.refresh()
    assert "Deployment" in store.snapshot().unreadable
    api._forbidden = frozenset()
    store.refresh()
    assert store.snapshot().unreadable == {}


def test_a_right_that_is_taken_away_is_noticed() -> None:
    api = cluster()
    mirror = Informer(api, DEPLOYMENTS, lambda raw, _: str(raw["metadata"]["name"]), optional=True)
    api.create(DEPLOYMENTS, named("karpenter", {}))
    mirror.refresh()
    assert (mirror.values, mirror.lacks) == (("karpenter",), "")
    api._forbidden = frozenset({("list", "deployments"), ("watch", "deployments")})
    mirror.refresh()
    assert (mirror.values, mirror.lacks) == ((), "list and watch deployments.apps")


class BreaksOff(ApiServer):
    """Loses the connection after the first page of a list, as often as it is told to."""

    breaks = 0

    def list(self, resource: Resource, **how: Any) -> Page:
        if how.get("page") and self.breaks:
            self.breaks -= 1
            raise UnavailableError("connection lost")
        return super().list(resource, **how)


def test_a_list_that_breaks_off_is_begun_anew() -> None:
    api = BreaksOff(VirtualClock())
    for number in range(600):
        api.create(DEVICE_CLASSES, {"metadata": {"name": f"c{number:03}"}})
    mirror = Informer(api, DEVICE_CLASSES, lambda raw, _: str(raw["metadata"]["name"]))
    mirror.refresh()
    api.breaks = 1
    with pytest.raises(UnavailableError):
        mirror.reread()
    mirror.refresh()
    assert len(mirror.values) == 600

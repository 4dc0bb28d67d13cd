"""Launches of the kwok provider in the cluster: whole nodes with their slices, and nobody else's nodes."""

from __future__ import annotations

import pytest

from autoscaler.clock import VirtualClock
from autoscaler.cluster.api import Object
from autoscaler.cluster.provider_objects import ProviderObjects
from autoscaler.cluster.resources import KWOK_NODE_TEMPLATES, NODES, RESOURCE_SLICES
from autoscaler.composition.kwok import KwokMachines
from autoscaler.kube.node import parse_node
from autoscaler.kube.resource_slice import parse_resource_slice
from autoscaler.simulation.api_server import ApiServer
from instance_catalog.files.loader import load_catalog
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes import labels
from instance_catalog.kubernetes.profile import REFERENCE
from instance_catalog.kubernetes.taint import Taint
from instance_catalog.types.instance_type import CapacityType
from providers.contract import TAG_BATCH, TAG_CLUSTER, TAG_POOL, LaunchRequest, OfferingKey, TemplateRef
from providers.errors import (
    AmbiguousError,
    NotOfferedError,
    PermissionDeniedError,
    ProviderError,
    RefusedError,
    TemplateError,
)
from providers.kwok.provider import KwokProvider

P4D = OfferingKey("p4d.24xlarge", "us-east-1a", CapacityType.ON_DEMAND)
REQUEST = LaunchRequest(
    token="f" * 64,
    nodes=("gpu-1",),
    offerings=(P4D,),
    tags=FrozenMap({TAG_CLUSTER: "uid", TAG_POOL: "gpu", TAG_BATCH: "gpu-0"}),
    template=TemplateRef("KwokNodeTemplate", "default"),
    labels=FrozenMap({"team": "research", labels.POOL: "gpu"}),
    taints=(Taint("team", "research"),),
    drivers=("nvidia",),
)


def with_template(**spec: object) -> tuple[ApiServer, KwokProvider]:
    """A cluster with a KwokNodeTemplate, and the provider as the controller composes it."""
    api = ApiServer(VirtualClock())
    api.create(KWOK_NODE_TEMPLATES, {"metadata": {"name": "default"}, "spec": spec})
    return api, provider_of(api)


def provider_of(api: ApiServer) -> KwokProvider:
    objects = ProviderObjects(api)
    return KwokProvider(objects, KwokMachines(objects, load_catalog(), REFERENCE))


def test_a_launch_is_a_node_with_the_slices_of_its_drivers() -> None:
    api, provider = with_template(labels={"type": "kwok", "team": "template"})
    (instance,) = provider.launch(REQUEST).instances
    raw = api.get(NODES, "gpu-1")
    node = parse_node(raw)
    assert (instance.id, instance.provider_id, node.provider_id) == ("gpu-1", "kwok://gpu-1", "kwok://gpu-1")
    assert not node.ready
    assert node.annotations[labels.KWOK_NODE] == "fake"
    assert node.taints == (Taint("team", "research"),)
    assert {key: node.labels[key] for key in ("type", "team", labels.POOL, labels.INSTANCE_TYPE, labels.ZONE)} == {
        "type": "kwok",
        "team": "research",
        labels.POOL: "gpu",
        labels.INSTANCE_TYPE: "p4d.24xlarge",
        labels.ZONE: "us-east-1a",
    }
    assert str(node.allocatable["cpu"]) not in ("", "0")
    pieces = api.list(RESOURCE_SLICES).items
    devices = [device for piece in pieces for device in parse_resource_slice(piece).devices]
    assert len(devices) == 8
    owner = {"apiVersion": "v1", "kind": "Node", "name": "gpu-1", "uid": raw["metadata"]["uid"], "controller": True}
    assert all(piece["metadata"]["ownerReferences"] == [owner] for piece in pieces)


class Dying(ProviderObjects):
    """Ends with its first slice."""

    def create(self, resource: tuple[str, str], manifest: object) -> bool:
        if resource[1] == "resourceslices":
            raise AmbiguousError("killed")
        return super().create(resource, manifest)  # type: ignore[arg-type]


def test_a_launch_that_broke_off_is_completed_by_repeating() -> None:
    api, provider = with_template()
    objects = Dying(api)
    with pytest.raises(AmbiguousError):
        KwokProvider(objects, KwokMachines(objects, load_catalog(), REFERENCE)).launch(REQUEST)
    assert (len(api.list(NODES).items), api.list(RESOURCE_SLICES).items) == (1, ())
    provider.launch(REQUEST)
    first = names(api)
    writes = api.writes
    provider.launch(REQUEST)
    assert (names(api), api.writes) == (first, writes)
    assert len(first) > 1


def names(api: ApiServer) -> list[str]:
    return [item["metadata"]["name"] for kind in (NODES, RESOURCE_SLICES) for item in api.list(kind).items]


def test_termination_takes_the_slices_along_and_leaves_others() -> None:
    api, provider = with_template()
    provider.launch(REQUEST)
    foreign: Object = {"metadata": {"name": "foreign"}, "spec": {"nodeName": "elsewhere"}}
    api.create(RESOURCE_SLICES, foreign)
    assert provider.terminate(("gpu-1",)).terminating == ("gpu-1",)
    assert names(api) == ["foreign"]
    assert list(provider.describe({TAG_CLUSTER: "uid"}).instances) == []


def test_nodes_of_others_are_neither_listed_nor_terminated() -> None:
    api, provider = with_template()
    api.create(NODES, {"metadata": {"name": "worker", "labels": {TAG_CLUSTER: "uid"}}})
    answer = provider.terminate(("worker",))
    assert isinstance(answer.failures["worker"], PermissionDeniedError)
    assert (answer.terminating, answer.gone) == ((), ())
    assert provider.describe({TAG_CLUSTER: "uid"}).instances == ()
    assert names(api) == ["worker"]


def test_a_name_that_is_taken_is_refused_before_anything_is_made() -> None:
    api, provider = with_template()
    api.create(NODES, {"metadata": {"name": "gpu-1"}})
    with pytest.raises(RefusedError, match="a Node gpu-1 exists"):
        provider.launch(REQUEST)
    assert names(api) == ["gpu-1"]


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        pytest.param({"taints": [{"key": "a", "effect": "NoSchedule"}]}, "move spec.taints to the pool", id="taints"),
        pytest.param({"publish": "10s"}, "delays are not supported", id="delay"),
        pytest.param({"publish": "soon"}, "publish", id="invalid"),
    ],
)
def test_a_template_that_cannot_be_honoured_is_refused(spec: Object, message: str) -> None:
    api, provider = with_template(**spec)
    with pytest.raises(TemplateError, match=message):
        provider.launch(REQUEST)
    assert names(api) == []


def test_a_missing_template_is_named() -> None:
    provider = provider_of(ApiServer(VirtualClock()))
    with pytest.raises(TemplateError, match="there is no KwokNodeTemplate default"):
        provider.launch(REQUEST)


@pytest.mark.parametrize(
    "offering",
    [
        pytest.param(OfferingKey("p9.huge", "us-east-1a", CapacityType.ON_DEMAND), id="unknown type"),
        pytest.param(OfferingKey("p5.48xlarge", "us-east-1a", CapacityType.CAPACITY_BLOCK, "cr-1"), id="reservation"),
    ],
)
def test_what_kwok_does_not_have_is_not_offered(offering: OfferingKey) -> None:
    _, provider = with_template()
    answer = provider.launch(
        LaunchRequest(token="t", nodes=("gpu-1",), offerings=(offering,), tags=REQUEST.tags, template=REQUEST.template)
    )
    assert answer.missing == ("gpu-1",)
    assert [type(failure.error) for failure in answer.failures] == [NotOfferedError]


def test_a_missing_permission_is_told_as_such() -> None:
    api = ApiServer(VirtualClock(), forbidden=frozenset({("list", "nodes")}))
    with pytest.raises(PermissionDeniedError) as caught:
        provider_of(api).describe({TAG_CLUSTER: "uid"})
    assert isinstance(caught.value, ProviderError)
    assert "grant list on nodes" in caught.value.next_step

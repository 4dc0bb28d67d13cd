"""GCPNodeTemplates reach the provider as they are written, and what is wrong with one is said."""

from __future__ import annotations

from typing import Any

import pytest

from autoscaler.clock import VirtualClock
from autoscaler.cluster.provider_objects import ProviderObjects
from autoscaler.cluster.resources import (
    CAPACITY_BLOCKS,
    CAPACITY_POOLS,
    GCP_NODE_TEMPLATES,
    LAUNCH_BATCHES,
    PROVISIONED_NODES,
)
from autoscaler.composition.gcp import expected_nodes, group_templates, written_batches
from autoscaler.composition.providers import providers_of
from autoscaler.settings.settings import ClusterSettings, GcpSettings, Settings
from autoscaler.simulation.api_server import ApiServer
from instance_catalog.dataclass import replace
from instance_catalog.files.loader import load_catalog
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.profile import profile_for
from instance_catalog.kubernetes.taint import Taint
from providers.contract import TemplateRef
from providers.errors import TemplateError
from providers.gcp.node_template.template import Batch, GroupRef, GroupTemplate, PoolNodes
from providers.plugins import Surroundings

SPEC: dict[str, Any] = {
    "cluster": {"name": "c1", "location": "us-central1"},
    "nodePools": ["h100"],
    "instanceGroups": [{"zone": "us-central1-a", "name": "own"}],
}
REF = TemplateRef("GCPNodeTemplate", "gpu")


def written(resource: Any, spec: dict[str, Any]) -> ProviderObjects:
    api = ApiServer(VirtualClock())
    api.create(resource, {"metadata": {"name": "gpu"}, "spec": spec})
    return ProviderObjects(api)


def test_a_template_as_it_is_written() -> None:
    templates = group_templates(written(GCP_NODE_TEMPLATES, SPEC))
    groups = (GroupRef("us-central1-a", "own"),)
    assert templates.template(REF) == GroupTemplate("gpu", "c1", "us-central1", ("h100",), groups)
    assert templates.references() == (TemplateRef("GCPNodeTemplate", "gpu", 1),)


def test_a_template_that_does_not_exist_says_what_to_do() -> None:
    with pytest.raises(TemplateError) as raised:
        group_templates(written(GCP_NODE_TEMPLATES, SPEC)).template(TemplateRef("GCPNodeTemplate", "other"))
    assert "create the GCPNodeTemplate" in raised.value.next_step


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"cluster": None}, "nodePools need cluster"),
        ({"nodePools": [], "instanceGroups": []}, "name at least one group"),
        ({"instanceGroups": [{"zone": "us-central1-a", "name": "Own"}]}, "instanceGroups"),
    ],
)
def test_a_template_that_cannot_be_used_says_why(change: dict[str, Any], message: str) -> None:
    spec = {key: value for key, value in {**SPEC, **change}.items() if value is not None}
    with pytest.raises(TemplateError, match=message):
        group_templates(written(GCP_NODE_TEMPLATES, spec)).template(REF)


def test_the_written_launches() -> None:
    spec = {
        "pool": "research",
        "nodes": ["n"],
        "offerings": [{"instanceType": "t", "zone": "z", "capacityType": "spot"}],
    }
    assert tuple(written_batches(written(LAUNCH_BATCHES, spec))) == (Batch("gpu", "research"),)


def test_a_launch_whose_batch_was_deleted_is_known_by_its_nodes() -> None:
    nodes = written(PROVISIONED_NODES, {"pool": "research", "batch": "gpu"})
    assert tuple(written_batches(nodes)) == (Batch("gpu", "research"),)
    assert tuple(written_batches(written(PROVISIONED_NODES, {"pool": "research"}))) == ()


def test_the_settings_select_it() -> None:
    settings = Settings(cluster=ClusterSettings(providers=("gcp",)), gcp=GcpSettings(project="p"))
    surroundings = Surroundings("uid", VirtualClock(), written(GCP_NODE_TEMPLATES, SPEC), load_catalog())
    found = providers_of(surroundings, profile_for("1.36"), settings)
    assert {kind: one.name for kind, one in found.items()} == {"GCPNodeTemplate": "gcp"}
    assert found["GCPNodeTemplate"].place() == "p/"


def test_what_plans_assume_of_nodes() -> None:
    api = ApiServer(VirtualClock())
    taint = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}
    spec = {"limits": {"nodes": 1}, "drivers": {"profiles": ["nvidia"]}, "labels": {"team": "a"}, "taints": [taint]}
    for name, kind in (("gpu", "GCPNodeTemplate"), ("other", "AWSNodeTemplate")):
        template = {"nodeTemplateRef": {"kind": kind, "name": "t"}}
        api.create(CAPACITY_POOLS, {"metadata": {"name": name}, "spec": {**spec, **template}})
    march = {"pool": "gpu", "reservation": "zones/z/reservations/march", "instanceType": "t", "zone": "z", "count": 1}
    times = {"startsAt": "2027-03-01T08:00:00Z", "endsAt": "2027-03-08T08:00:00Z"}
    api.create(CAPACITY_BLOCKS, {"metadata": {"name": "march"}, "spec": {**march, **times}})
    (found,) = expected_nodes(ProviderObjects(api))
    assert replace(found, blocks=()) == PoolNodes(
        "gpu", "t", FrozenMap({"team": "a"}), (Taint("nvidia.com/gpu", "present"),)
    )
    assert [(block.block, block.reservation) for block in found.blocks] == [("march", "zones/z/reservations/march")]

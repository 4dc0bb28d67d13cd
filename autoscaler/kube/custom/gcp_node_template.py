"""GCPNodeTemplate: the GKE node pools and managed instance groups that machines of a pool start in."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, StringConstraints, WithJsonSchema

from autoscaler.kube.custom.node_template import NodeTemplateStatus
from autoscaler.kube.custom.objects import read_spec
from autoscaler.kube.custom.schema import (
    DURATION_PATTERN,
    SHORT,
    ApiModel,
    Items,
    LongText,
    Rule,
    Text,
    duration,
)
from autoscaler.kube.problem import Problems
from autoscaler.model.capacity import GroupNodes
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes import labels

# Names of Google Cloud resources (RFC 1035).
_NAME = "^[a-z]([-a-z0-9]{0,61}[a-z0-9])?$"
Name = Annotated[str, StringConstraints(max_length=63, pattern=_NAME)]
# Source: Compute Engine, documentation of resize requests: requestedRunDuration.
_SHORTEST, _LONGEST = timedelta(minutes=10), timedelta(days=7)


def _run_duration(text: str) -> str:
    if not _SHORTEST <= duration(text) <= _LONGEST:
        raise ValueError(f"{text!r} is not a run duration: Google takes from 10m to 7d")
    return text


RunDurationText = Annotated[
    str,
    AfterValidator(_run_duration),
    WithJsonSchema({"type": "string", "pattern": DURATION_PATTERN, "maxLength": SHORT}),
]


class GcpCluster(ApiModel):
    """A GKE cluster of the project."""

    name: Name
    location: Name
    """The cluster's region or zone."""


class GcpInstanceGroup(ApiModel):
    """A zonal managed instance group."""

    zone: Name
    name: Name


class GcpFlexStart(ApiModel):
    """The requests for flex-start machines."""

    run_duration: RunDurationText
    """The time until Google ends the machines, from 10m to 7d. Nodes are drained before."""


class GCPNodeTemplateSpec(ApiModel):
    """Existing node pools and groups; Foreslice starts and ends their machines one by one, by name.

    On GKE only machines of node pools join the cluster; `instanceGroups` are for self-managed clusters.
    """

    cluster: GcpCluster | None = None
    """The GKE cluster of `nodePools`."""
    node_pools: Annotated[Items[Name], Field(max_length=50)] = ()
    """Names. GKE's autoscaling must be off for them."""
    instance_groups: Annotated[Items[GcpInstanceGroup], Field(max_length=50)] = ()
    gangs: Literal["Instances", "ResizeRequest"] = "Instances"
    """The way to request the machines of a gang. `Instances`: all in one call; if some are not available, the others
    are deleted. `ResizeRequest`: the group starts all of them at once or none, and waits until it can; the request is
    cancelled when no pod needs it any more. Google does not document it for the groups of GKE."""
    flex_start: GcpFlexStart | None = None
    """Launch in groups of flex-start machines in which `foreslice gcp trial --resize-requests` has succeeded."""

    RULES = (
        Rule(
            "size(self.nodePools) + size(self.instanceGroups) > 0",
            "name at least one group in nodePools or instanceGroups",
            lambda self: bool(self.node_pools or self.instance_groups),
        ),
        Rule(
            "size(self.nodePools) == 0 || has(self.cluster)",
            "nodePools need cluster",
            lambda self: not self.node_pools or self.cluster is not None,
            field="cluster",
        ),
    )


class GcpGroupStatus(ApiModel):
    """A group and the machines that it starts."""

    name: LongText
    zone: Text
    instance_type: LongText = ""
    capacity_type: LongText = ""
    reservation: LongText = ""
    """The id of the reservation for its machines, as CapacityBlocks name it."""
    node_pool: LongText = ""
    placement: LongText = ""
    """The placement in its workload policy: one NVLink domain, or the greatest distance between machines."""


class GCPNodeTemplateStatus(NodeTemplateStatus):
    """The results of the names. Condition Ready describes what to correct, with the gcloud command for it."""

    groups: Annotated[Items[GcpGroupStatus], Field(max_length=1000)] = ()


def parse_gcp_node_template(raw: object, problems: Problems | None = None) -> GCPNodeTemplateSpec | None:
    """The spec of a GCPNodeTemplate; None if it cannot be used."""
    return read_spec(GCPNodeTemplateSpec, raw, problems)[1]


def nodes_of(spec: GCPNodeTemplateSpec) -> tuple[GroupNodes, ...]:
    """The labels of the template's nodes, as far as they are known without Google: the name of its only node pool."""
    if len(spec.node_pools) != 1 or spec.instance_groups:
        return ()
    return (GroupNodes(None, FrozenMap({labels.GKE_NODE_POOL: spec.node_pools[0]})),)

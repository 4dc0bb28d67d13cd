"""GCPNodeTemplate: the GKE node pools and managed instance groups that machines of a pool start in."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from autoscaler.kube.custom.node_template import NodeTemplateStatus
from autoscaler.kube.custom.objects import read_spec
from autoscaler.kube.custom.schema import ApiModel, Items, LongText, Rule, Text
from autoscaler.kube.problem import Problems

# Names of Google Cloud resources (RFC 1035).
_NAME = "^[a-z]([-a-z0-9]{0,61}[a-z0-9])?$"
Name = Annotated[str, StringConstraints(max_length=63, pattern=_NAME)]


class GcpCluster(ApiModel):
    """A GKE cluster of the project."""

    name: Name
    location: Name
    """The cluster's region or zone."""


class GcpInstanceGroup(ApiModel):
    """A zonal managed instance group."""

    zone: Name
    name: Name


class GCPNodeTemplateSpec(ApiModel):
    """Node pools and groups that exist already; Foreslice starts and ends their machines one by one, by name.

    On GKE only machines of node pools join the cluster; `instanceGroups` are for clusters of your own.
    """

    cluster: GcpCluster | None = None
    """The GKE cluster of `nodePools`."""
    node_pools: Annotated[Items[Name], Field(max_length=50)] = ()
    """Names. GKE's autoscaling must be off for them."""
    instance_groups: Annotated[Items[GcpInstanceGroup], Field(max_length=50)] = ()
    gangs: Literal["Instances", "ResizeRequest"] = "Instances"
    """How the machines of a gang are asked for. `Instances`: all in one call, and those that came are deleted when
    others cannot be had. `ResizeRequest`: the group starts all of them at once or none, and waits until it can; the
    request is cancelled when no pod needs it any more. Google does not document it for the groups of GKE."""

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
    """A group, and what it starts."""

    name: LongText
    zone: Text
    instance_type: LongText = ""
    capacity_type: LongText = ""
    reservation: LongText = ""
    """The id of the reservation that its machines start in: what a CapacityBlock names."""
    node_pool: LongText = ""


class GCPNodeTemplateStatus(NodeTemplateStatus):
    """What the names stand for. Condition Ready says what to correct, with the gcloud command for it."""

    groups: Annotated[Items[GcpGroupStatus], Field(max_length=1000)] = ()


def parse_gcp_node_template(raw: object, problems: Problems | None = None) -> GCPNodeTemplateSpec | None:
    """The spec of a GCPNodeTemplate; None when it cannot be used."""
    return read_spec(GCPNodeTemplateSpec, raw, problems)[1]

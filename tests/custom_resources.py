"""The CustomResourceDefinitions, one file for each kind, generated from the models: plain, and as a chart."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import yaml

from autoscaler.kube.custom.aws_node_template import (
    AWSGroupNodeTemplateSpec,
    AWSGroupNodeTemplateStatus,
    AWSNodeTemplateSpec,
    AWSNodeTemplateStatus,
)
from autoscaler.kube.custom.capacity_block import CapacityBlockSpec, CapacityBlockStatus
from autoscaler.kube.custom.capacity_pool import CapacityPoolSpec, CapacityPoolStatus
from autoscaler.kube.custom.gcp_node_template import GCPNodeTemplateSpec, GCPNodeTemplateStatus
from autoscaler.kube.custom.instance_type_overlay import InstanceTypeOverlaySpec, InstanceTypeOverlayStatus
from autoscaler.kube.custom.launch_batch import LaunchBatchSpec, LaunchBatchStatus
from autoscaler.kube.custom.node_template import KwokNodeTemplateSpec, NodeTemplateStatus, SimulatedNodeTemplateSpec
from autoscaler.kube.custom.provisioned_node import ProvisionedNodeSpec, ProvisionedNodeStatus
from autoscaler.kube.custom.spending import SpendingSpec, SpendingStatus
from instance_catalog.kubernetes.labels import GROUP
from tests.structural_schema import AGE, READY, STATE, Column, Kind, crd

FOLDER: Final = Path("deploy/crds")
CHART: Final = Path("deploy/charts/foreslice-crds/templates")

KINDS: Final = (
    Kind(
        "CapacityPool",
        "capacitypools",
        ("cpool",),
        CapacityPoolSpec,
        CapacityPoolStatus,
        (
            Column("Mode", ".spec.mode"),
            READY,
            Column("Nodes", ".status.nodes", "integer"),
            Column("Accelerators", ".status.accelerators", "integer"),
            Column("USD/h", ".status.usdPerHour"),
            Column("Weight", ".spec.weight", "integer", wide=True),
            AGE,
        ),
        "A team's permission to launch nodes: which offerings, how many, and when they are removed.",
    ),
    Kind(
        "CapacityBlock",
        "capacityblocks",
        ("cblock",),
        CapacityBlockSpec,
        CapacityBlockStatus,
        (
            Column("Phase", ".status.phase"),
            READY,
            Column("Type", ".spec.instanceType"),
            Column("Zone", ".spec.zone"),
            Column("Count", ".spec.count", "integer"),
            Column("Reclaim", ".status.reclaimAt", description="When the provider takes the machines back."),
            Column("Pool", ".spec.pool", wide=True),
            Column("Starts", ".spec.startsAt", wide=True),
            AGE,
        ),
        "A prepaid reservation, used until the provider takes its machines back.",
    ),
    Kind(
        "ProvisionedNode",
        "provisionednodes",
        ("pnode",),
        ProvisionedNodeSpec,
        ProvisionedNodeStatus,
        (
            Column("Phase", ".status.phase"),
            Column("Type", ".status.obtained.instanceType"),
            Column("Zone", ".status.obtained.zone"),
            Column("Capacity", ".status.obtained.capacityType"),
            Column("Node", ".spec.nodeName"),
            Column("Pool", ".spec.pool"),
            Column("Provider ID", ".status.providerID", wide=True),
            Column("Batch", ".spec.batch", wide=True),
            AGE,
        ),
        "One node asked of a provider. Written by Foreslice; delete it to have the node drained and terminated.",
    ),
    Kind(
        "LaunchBatch",
        "launchbatches",
        ("lbatch",),
        LaunchBatchSpec,
        LaunchBatchStatus,
        (
            Column("Outcome", ".status.outcome"),
            Column("Pool", ".spec.pool"),
            Column("Attempt", ".status.attempt", "integer"),
            Column("Token", ".status.token", wide=True),
            AGE,
        ),
        "The write-ahead record of nodes launched together. Written by Foreslice; do not edit.",
    ),
    Kind(
        "InstanceTypeOverlay",
        "instancetypeoverlays",
        ("itoverlay",),
        InstanceTypeOverlaySpec,
        InstanceTypeOverlayStatus,
        (
            Column("Cloud", ".spec.cloud"),
            Column("Type", ".spec.instanceType"),
            STATE,
            Column("Expires", ".spec.expiresAt"),
            AGE,
        ),
        "What this cluster knows better than the catalog about an instance type.",
    ),
    Kind(
        "Spending",
        "spendings",
        ("spending",),
        SpendingSpec,
        SpendingStatus,
        (
            Column("Since", ".status.since"),
            Column("USD", ".status.usd", description="Spent on the day of Since (UTC) up to then."),
            Column("USD/h", ".status.usdPerHour"),
            Column("Binding", ".status.binding", description="Guards that keep something from being launched."),
            AGE,
        ),
        "What the spending guards know: one object, written by Foreslice.",
    ),
    Kind(
        "SimulatedNodeTemplate",
        "simulatednodetemplates",
        ("simtemplate",),
        SimulatedNodeTemplateSpec,
        NodeTemplateStatus,
        (READY, AGE),
        "How machines of the simulated cloud behave.",
    ),
    Kind(
        "KwokNodeTemplate",
        "kwoknodetemplates",
        ("kwoktemplate",),
        KwokNodeTemplateSpec,
        NodeTemplateStatus,
        (READY, AGE),
        "How nodes that KWOK acts for are created.",
    ),
    Kind(
        "AWSNodeTemplate",
        "awsnodetemplates",
        ("awstemplate",),
        AWSNodeTemplateSpec,
        AWSNodeTemplateStatus,
        (READY, STATE, Column("Image", ".status.image.id", wide=True), AGE),
        "What EC2 machines of a pool look like: network, image, profile, user data, volumes, tags.",
    ),
    Kind(
        "AWSGroupNodeTemplate",
        "awsgroupnodetemplates",
        ("awsgroup",),
        AWSGroupNodeTemplateSpec,
        AWSGroupNodeTemplateStatus,
        (READY, STATE, AGE),
        "Auto-scaling groups and managed node groups whose size Foreslice sets.",
    ),
    Kind(
        "GCPNodeTemplate",
        "gcpnodetemplates",
        ("gcptemplate",),
        GCPNodeTemplateSpec,
        GCPNodeTemplateStatus,
        (READY, STATE, AGE),
        "GKE node pools and managed instance groups whose machines Foreslice starts and ends.",
    ),
)


def generated_files() -> dict[Path, str]:
    """The CRDs' YAML by path in the repository."""
    header = "# generated by `make generate` from autoscaler/kube/custom; do not edit\n"
    return {
        folder / f"{GROUP}_{kind.plural}.yaml": header
        + yaml.dump(crd(kind), sort_keys=False, allow_unicode=True, width=120, Dumper=_PlainDumper)
        for kind in KINDS
        for folder in (FOLDER, CHART)
    }


class _PlainDumper(yaml.SafeDumper):
    """Repeats equal parts instead of using YAML anchors, which people and tools stumble over."""

    def ignore_aliases(self, data: object) -> bool:
        return True

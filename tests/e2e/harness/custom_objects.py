"""Objects of foreslice.dev for the API server: one of each kind with every field in use, and one with the least."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Final

from autoscaler.kube.custom.capacity_block import write_capacity_block
from autoscaler.kube.custom.launch_batch import write_launch_batch
from autoscaler.kube.custom.provisioned_node import write_provisioned_node
from autoscaler.model.capacity import (
    Baseline,
    CapacityBlock,
    CapacityPool,
    ConsolidationPolicy,
    Consumers,
    Disruption,
    DisruptionBudget,
    DriftDisruption,
    Limits,
    Mode,
    NodeTemplateRef,
)
from autoscaler.model.labels import LabelSelector
from autoscaler.model.provisioned_node import (
    BatchMember,
    BatchOutcome,
    LaunchBatch,
    OfferingRef,
    Phase,
    PhaseChange,
    Prediction,
    ProvisionedNode,
)
from autoscaler.model.reason import Code, Reason, Subject
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.node_selector import Requirement
from instance_catalog.kubernetes.quantity import Quantity
from instance_catalog.kubernetes.taint import Taint
from instance_catalog.types.instance_type import CapacityType
from tests.e2e.harness.control_plane import Json
from tests.pool_manifest import write_capacity_pool

NOW: Final = datetime(2027, 1, 31, 8, 0, tzinfo=UTC)
OFFERING = OfferingRef("p5.48xlarge", "us-east-1a", CapacityType.CAPACITY_BLOCK, Decimal("0"), "cr-1", "november")
PREDICTION = Prediction("p5.48xlarge", ("nvidia",), "c", "s")
POOL = CapacityPool(
    "research",
    mode=Mode.ACT,
    requirements=(Requirement("node.kubernetes.io/instance-type", "In", ("p5.48xlarge",)),),
    capacity_types=(CapacityType.SPOT, CapacityType.ON_DEMAND),
    node_template=NodeTemplateRef("SimulatedNodeTemplate", "default"),
    labels=FrozenMap({"team": "research"}),
    taints=(Taint("team", "research", "NoExecute"),),
    startup_taints=(Taint("warming"),),
    kubelet_reserved=FrozenMap({"cpu": Quantity.parse("500m")}),
    drivers=("nvidia", "dranet"),
    limits=Limits(accelerators=64, nodes=8, usd_per_hour=Decimal("99.50")),
    baselines=(Baseline(2, "* 8-18 * * 1-5", "Europe/Berlin"),),
    disruption=Disruption(
        ConsolidationPolicy.NEVER, timedelta(hours=1), DriftDisruption.NEVER, (DisruptionBudget("10%", "0 3 * * *"),)
    ),
    weight=10,
)
BLOCK = CapacityBlock(
    "november",
    instance_type="p5.48xlarge",
    zone="us-east-1a",
    count=4,
    starts_at=NOW,
    ends_at=NOW + timedelta(days=2),
    pool="research",
    reservation="cr-1",
    consumers=Consumers(
        LabelSelector((Requirement("team", "In", ("research",)),)), LabelSelector((Requirement("x", "Exists"),)), 8
    ),
    taint=Taint("mine", "november", "NoExecute"),
)
NODE = ProvisionedNode(
    "research-x1",
    "research",
    "research-x1",
    "b-1",
    (OFFERING, OfferingRef("p5en.48xlarge", "us-east-1b", CapacityType.ON_DEMAND, Decimal("63.29"))),
    PREDICTION,
    phase=Phase.READY,
    phase_since=NOW,
    obtained=OFFERING,
    provider="simulated",
    provider_id="sim:///us-east-1a/i-1",
    token="t-1",
    labels=FrozenMap({"team": "research"}),
    pods=("default/train-0",),
    reasons=(
        Reason.of(
            Code.TOO_FEW_DEVICES, Subject("request", "gpu"), wanted=8, found=4, share=0.5, exact=True, of=("a", "b")
        ),
    ),
    empty_since=NOW + timedelta(microseconds=5),
    history=(PhaseChange(Phase.INTENDED, NOW, "Planned"), PhaseChange(Phase.READY, NOW, "SlicesComplete")),
)
BATCH = LaunchBatch(
    name="b-1",
    pool="research",
    members=(
        BatchMember("research-x1", ("default/train-0",), "i-1", NODE.offerings[1]),
        BatchMember("research-x2"),
    ),
    offerings=NODE.offerings,
    attempt=1,
    token="t-1",
    parameter_hash="h",
    answered=True,
    outcome=BatchOutcome.CALLING,
    minimum=2,
    provider="simulated",
    prediction=PREDICTION,
    labels=FrozenMap({"team": "research"}),
    taints=(Taint("team", "research", "NoExecute"),),
    kubelet_reserved=FrozenMap({"cpu": Quantity.parse("1")}),
    template=NodeTemplateRef("KwokNodeTemplate", "default"),
)
# One object of each kind with every part of its spec in use.
FULL: Final[dict[str, Json]] = {
    "CapacityPool": write_capacity_pool(POOL)["spec"],
    "CapacityBlock": write_capacity_block(BLOCK)["spec"],
    "ProvisionedNode": write_provisioned_node(NODE)["spec"],
    "LaunchBatch": write_launch_batch(BATCH)["spec"],
    "InstanceTypeOverlay": {
        "cloud": "aws",
        "instanceType": "p5.48xlarge",
        "entry": {"prices": {"on-demand": {"usdPerHour": "55.04"}}},
        "source": "contract 2026",
        "expiresAt": "2027-01-31T08:00:00Z",
    },
    "Spending": {},
    "SimulatedNodeTemplate": {"boot": "1m", "publish": "5s", "shutdown": "1m30s", "broken": "no such subnet"},
    "KwokNodeTemplate": {
        "labels": {"team": "research"},
        "annotations": {"kwok.x-k8s.io/node": "fake"},
        "taints": [{"key": "a", "value": "b", "effect": "NoSchedule"}],
        "publish": "1s",
    },
    "AWSNodeTemplate": {
        "cluster": {
            "name": "test",
            "endpoint": "https://e",
            "certificateAuthority": "Q0E=",
            "serviceCidr": "10.0.0.0/16",
        },
        "subnets": [{"tags": {"kubernetes.io/cluster/test": "owned"}}, {"id": "subnet-1"}],
        "securityGroups": [{"id": "sg-1"}],
        "ami": {"ssmParameter": "/aws/service/ami", "follow": True},
        "instanceProfile": "nodes",
        "userData": {"kind": "Bottlerocket", "text": "[settings.host-containers.admin]\nenabled = true"},
        "labels": {"team": "research"},
        "tags": {"cost": "x"},
        "blockDevices": [
            {"sizeGiB": 200, "iops": 3000, "throughput": 125, "snapshotId": "snap-1", "kmsKeyId": "alias/x"},
        ],
        "networkInterfaces": "Single",
        "placementGroup": "g",
        "metadataHopLimit": 2,
        "detailedMonitoring": True,
        "openReservations": "Avoid",
    },
    "AWSGroupNodeTemplate": {
        "autoScalingGroups": ["a"],
        "clusterName": "c",
        "nodeGroups": ["n"],
        "launch": "DesiredCapacity",
    },
    "GCPNodeTemplate": {
        "cluster": {"name": "c", "location": "us-central1"},
        "nodePools": ["h100"],
        "instanceGroups": [{"zone": "us-central1-a", "name": "g"}],
    },
}
LEAST: Final[dict[str, Json]] = {
    "CapacityPool": {"limits": {"nodes": 1}},
    "CapacityBlock": {
        name: FULL["CapacityBlock"][name]
        for name in ("pool", "reservation", "instanceType", "zone", "count", "startsAt", "endsAt")
    },
    "ProvisionedNode": {
        "pool": "p",
        "nodeName": "n",
        "offerings": [{"instanceType": "t", "zone": "z", "capacityType": "spot"}],
        "prediction": {"instanceType": "t"},
    },
    "LaunchBatch": {
        "pool": "p",
        "nodes": ["n"],
        "offerings": [{"instanceType": "t", "zone": "z", "capacityType": "spot"}],
    },
    "InstanceTypeOverlay": {"cloud": "aws", "instanceType": "t", "source": "s"},
    "Spending": {},
    "SimulatedNodeTemplate": {},
    "KwokNodeTemplate": {},
    "AWSNodeTemplate": {
        "cluster": {"name": "test"},
        "subnets": [{"id": "subnet-1"}],
        "securityGroups": [{"id": "sg-1"}],
        "ami": {"id": "ami-1"},
        "instanceProfile": "nodes",
    },
    "AWSGroupNodeTemplate": {"autoScalingGroups": ["a"]},
    "GCPNodeTemplate": {"instanceGroups": [{"zone": "us-central1-a", "name": "g"}]},
}

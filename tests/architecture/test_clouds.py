"""A third cloud touches no room but its own: names and labels of clouds are in their rooms, and facts are data."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from instance_catalog.kubernetes import labels
from instance_catalog.types.clouds import CloudFacts, cloud_facts, facts_of
from tests.architecture.test_house import PACKAGES, ROOT

# What is about one cloud, or puts the process together.
ROOMS = (
    "autoscaler/cli/aws/",
    "autoscaler/cli/gcp/",
    "autoscaler/composition/",
    "autoscaler/kube/custom/aws_node_template.py",
    "autoscaler/kube/custom/gcp_node_template.py",
    "instance_catalog/kubernetes/labels.py",
    "instance_catalog/prediction/drivers/",
    "instance_catalog/prediction/system_labels.py",
    "providers/aws/",
    "providers/gcp/",
)
# Every other file with a string that is the name of a cloud or a label of one.
ELSEWHERE = {
    "autoscaler/cli/blocks/market.py": "two markets are asked in two ways",
    "autoscaler/kube/autoscalers/karpenter.py": "the node classes of Karpenter, one for each cloud",
}
# Every other file in whose code a cloud is part of a name: of a function, a variable, a constant or a module.
NAMED = {
    "autoscaler/advice/pod_changes.py": "the instance types of SageMaker are those of EC2",
    "autoscaler/advice/named_models.py": "the ComputeClasses of GKE",
    "autoscaler/advice/situation.py": "the node pool of GKE that the hosts of a TPU slice share",
    "autoscaler/checks/rights.py": "a row for each node template",
    "autoscaler/cli/blocks/market.py": "two markets are asked in two ways",
    "autoscaler/cluster/resources.py": "a row for each node template",
    "autoscaler/lint/other_systems.py": "an annotation of GKE's slice controller",
    "autoscaler/lint/pods/compute_classes.py": "the ComputeClasses of GKE",
    "autoscaler/lint/pods/unknown_types.py": "the instance types of SageMaker are those of EC2",
    "autoscaler/lint/supply_advice.py": "GKE's Workload Identity, which plans assume",
    "autoscaler/lint/tpu_advice.py": "the topology of TPU slices",
    "autoscaler/manifests/queued/requests.py": "ProvisioningRequests, which GKE's node pools answer",
    "autoscaler/manifests/readers.py": "a row for each node template",
    "autoscaler/planning/placement/packing_input.py": "the topology of TPU slices",
    "autoscaler/settings/settings.py": "the settings of each cloud",
    "instance_catalog/drift/repair.py": "the driver aws-net",
    "instance_catalog/prediction/predict.py": "a row for each driver",
}
CLOUD = re.compile(r"(aws|gcp)|.*(cloud\.google\.com|karpenter\.k8s\.aws|eks\.amazonaws\.com)/.*", re.DOTALL)
WORD = re.compile(r"(?<![a-z])(aws|gcp|ec2|eks|gce|gke|amazon|google)(?![a-z])", re.IGNORECASE)


def test_clouds_are_named_in_their_rooms() -> None:
    found = {
        name
        for package in PACKAGES
        for path in (ROOT / package).rglob("*.py")
        if not (name := str(path.relative_to(ROOT))).startswith(ROOMS) and any(map(CLOUD.fullmatch, _texts(path)))
    }
    assert found == set(ELSEWHERE)


def test_code_about_one_cloud_is_in_its_room() -> None:
    found = {
        name
        for package in PACKAGES
        for path in (ROOT / package).rglob("*.py")
        if not (name := str(path.relative_to(ROOT))).startswith(ROOMS) and any(map(WORD.search, _names(path)))
    }
    assert found == set(NAMED)


def _names(path: Path) -> Iterator[str]:
    """The identifiers of a module, and the modules that it imports."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name) | ast.alias(name=name):
                yield name
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name) | ast.ImportFrom(module=str(name)):
                yield name


def _texts(path: Path) -> Iterator[str]:
    """The string constants of a module that are no docstrings."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    said = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in said:
            yield node.value


def test_a_cloud_without_a_file_has_no_facts() -> None:
    assert facts_of("azure") == CloudFacts()
    assert not facts_of("azure").region.match("")


def test_labels_of_clouds_are_spelt_as_in_the_table_of_labels() -> None:
    gke = facts_of("gcp")
    assert gke.group_per_type == labels.GKE_NODE_POOL
    assert gke.group_per_type in gke.pool_labels
    wanted = dict.fromkeys((labels.GKE_NO_DEVICE_PLUGIN, labels.GKE_NVIDIA_GPU_DRA_DRIVER), "true")
    assert gke.driver_labels == {"nvidia": wanted, "tpu": {labels.GKE_TPU_DRA_DRIVER: "true"}}
    assert {labels.GKE_ACCELERATOR, labels.GKE_TPU_ACCELERATOR} <= gke.machine_labels
    for cloud, facts in cloud_facts().items():
        assert all(key.startswith(facts.domains) for key in facts.machine_labels | facts.pool_labels), cloud

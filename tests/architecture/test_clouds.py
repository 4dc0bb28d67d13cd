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
ELSEWHERE = {
    "autoscaler/cli/blocks/market.py": "two markets are asked in two ways",
    "autoscaler/cli/catalog/add.py": "the cloud of a template that is shown as an example",
    "autoscaler/cli/catalog/sync.py": "the commands `catalog sync aws` and `catalog sync gcp`",
    "autoscaler/cli/common/extras.py": "which extra installs an SDK",
    "autoscaler/cli/main.py": "the commands `aws` and `gcp`",
    "autoscaler/kube/workloads/ray.py": "labels that a message proposes",
    "autoscaler/lint/other_systems.py": "checks of GKE's labels, named so",
    "autoscaler/manifests/kinds.py": "API groups of kinds that are not read, with what to write instead",
    "autoscaler/report/advice_text.py": "what people write for a label of GKE",
}
CLOUD = re.compile(r"(aws|gcp)|.*(cloud\.google\.com|karpenter\.k8s\.aws|eks\.amazonaws\.com)/.*", re.DOTALL)


def test_clouds_are_named_in_their_rooms() -> None:
    found = {
        name
        for package in PACKAGES
        for path in (ROOT / package).rglob("*.py")
        if not (name := str(path.relative_to(ROOT))).startswith(ROOMS) and any(map(CLOUD.fullmatch, _texts(path)))
    }
    assert found == set(ELSEWHERE)


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
    assert gke.driver_labels == {"nvidia": wanted}
    assert {labels.GKE_ACCELERATOR, labels.GKE_TPU_ACCELERATOR} <= gke.machine_labels
    for cloud, facts in cloud_facts().items():
        assert all(key.startswith(facts.domains) for key in facts.machine_labels | facts.pool_labels), cloud

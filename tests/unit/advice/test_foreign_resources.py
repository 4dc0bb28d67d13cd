"""Resources that only nodes of other clouds or systems have: the pod is planned without them."""

from __future__ import annotations

import pytest

from autoscaler.advice.advise import advise
from autoscaler.advice.change import ChangeKind
from autoscaler.model.pod import Container
from autoscaler.planning.planner import plan_for
from autoscaler.planning.policy import Policy
from instance_catalog.dataclass import replace
from instance_catalog.drivers.device_plugins import network_card
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes import labels
from instance_catalog.kubernetes.quantity import Quantity
from tests.builders import GPU, NOW, pod, shipped, snapshot
from tests.one_line_advice import advice_lines


def advised(
    machine: str, *resources: str, selector: dict[str, str] | None = None, flavor: dict[str, str] | None = None
) -> list[str]:
    wants = FrozenMap({name: Quantity.of(1) for name in resources})
    selected = FrozenMap({**(selector or {}), **(flavor or {})})
    waiting = replace(pod("p", node_selector=selected), containers=(Container("c", wants),))
    waiting = replace(waiting, flavor_labels=FrozenMap(dict.fromkeys(flavor or {}, "a100s")))
    served = (replace(GPU, extended_resource_name="nvidia.com/gpu"),)
    given, policy, catalog = replace(snapshot([waiting]), classes=served), Policy(considered=100), shipped(machine)
    found = advise(waiting, given, catalog, plan_for(given, catalog, policy, NOW), policy, NOW)
    parts = (part for one in found for part in one.change.steps)
    return advice_lines(found) if any(part.kind is ChangeKind.DROP_RESOURCES for part in parts) else []


@pytest.mark.parametrize(
    ("machine", "network"),
    [
        ("p4d.24xlarge", "; for RDMA request vpc.amazonaws.com/efa instead, of which p4d.24xlarge has 4"),
        ("g2-standard-4", "; g2-standard-4 has no RDMA: the pods have its plain network"),
        ("a3-ultragpu-8g", "; for RDMA claim cards of a3-ultragpu-8g through DRANET (driver dra.net): it has 8"),
    ],
)
def test_the_network_of_another_system_is_dropped_and_replaced(machine: str, network: str) -> None:
    (line,) = advised(machine, "nvidia.com/gpu", "rdma/hca")
    assert "pod default/p: drop the request of rdma/hca, which only nodes of other clouds or systems have" in line
    assert network in line


def test_a_resource_of_another_cloud_that_is_no_network_is_dropped_alone() -> None:
    (line,) = advised("p4d.24xlarge", "nvidia.com/gpu", "tke.cloud.tencent.com/eni-ip")
    assert "RDMA" not in line


def test_it_is_dropped_together_with_the_machine_of_its_cloud() -> None:
    (line,) = advised(
        "p4d.24xlarge", "nvidia.com/gpu", "nvidia.com/sriov_rdma_vf", selector={labels.INSTANCE_TYPE: "BM.GPU4.8"}
    )
    assert "require foreslice.dev/accelerator In [nvidia-a100-40gb]" in line
    assert "drop the request of nvidia.com/sriov_rdma_vf" in line


def test_it_is_dropped_together_with_the_flavor_of_its_cloud() -> None:
    labelled = {labels.INSTANCE_TYPE: "BM.GPU4.8", "nvidia.com/gpu": "true"}
    (line,) = advised("p4d.24xlarge", "nvidia.com/gpu", "nvidia.com/sriov_rdma_vf", flavor=labelled)
    assert "instead of what spec.nodeLabels of ResourceFlavor a100s adds" in line
    assert "drop the request of nvidia.com/sriov_rdma_vf" in line


@pytest.mark.parametrize("resources", [("rdma/hca",), ("nvidia.com/gpu", "example.com/camera")])
def test_no_other_resource_is_dropped_and_no_gpu_bought_for_a_network_card(resources: tuple[str, ...]) -> None:
    assert advised("p4d.24xlarge", *resources) == []


@pytest.mark.parametrize(
    ("resource", "expected"),
    [
        ("rdma/hca_shared_devices_a", True),
        ("nvidia.com/rdma_shared_device_a", True),
        ("intel.com/intel_sriov_netdevice", True),
        ("openshift.io/mlxnics", True),
        ("nvidia.com/hostdev", True),
        ("nvidia.com/mlnxnics", True),
        ("vpc.amazonaws.com/efa", False),
        ("networking.gke.io.networks/rdma-0", False),  # which GKE's nodes have
        ("nvidia.com/gpu", False),
        ("rdma", False),
    ],
)
def test_which_resources_are_network_cards(resource: str, expected: bool) -> None:
    assert network_card(resource) == expected

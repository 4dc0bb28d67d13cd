"""Labels that pods select in clusters of GKE and Karpenter are predicted as those systems write them."""

from __future__ import annotations

import pytest

from instance_catalog.files.loader import load_catalog
from instance_catalog.prediction.system_labels import SYSTEM_KEYS, capacity_labels, type_labels
from instance_catalog.types.instance_type import CapacityType

CATALOG = load_catalog()


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (
            "p5.48xlarge",
            {
                "karpenter.k8s.aws/instance-family": "p5",
                "karpenter.k8s.aws/instance-size": "48xlarge",
                "karpenter.k8s.aws/instance-category": "p",
                "karpenter.k8s.aws/instance-generation": "5",
                "karpenter.k8s.aws/instance-cpu": "192",
                "karpenter.k8s.aws/instance-memory": "2097152",
                "karpenter.k8s.aws/instance-local-nvme": "30400",
                "karpenter.k8s.aws/instance-gpu-name": "h100",
                "karpenter.k8s.aws/instance-gpu-manufacturer": "nvidia",
                "karpenter.k8s.aws/instance-gpu-count": "8",
                "karpenter.k8s.aws/instance-gpu-memory": "81920",
            },
        ),
        (
            "g2-standard-24",
            {
                "cloud.google.com/machine-family": "g2",
                "cloud.google.com/gke-accelerator": "nvidia-l4",
                "cloud.google.com/gke-accelerator-count": "2",
                "cloud.google.com/gke-gpu": "true",
            },
        ),
        ("ct6e-standard-4t", {"cloud.google.com/machine-family": "ct6e"}),
        # A part of a card: how these systems count it was not seen.
        (
            "g4-standard-6",
            {
                "cloud.google.com/machine-family": "g4",
                "cloud.google.com/gke-accelerator": "nvidia-rtx-pro-6000",
                "cloud.google.com/gke-gpu": "true",
            },
        ),
    ],
)
def test_labels_of_a_type(name: str, expected: dict[str, str]) -> None:
    assert dict(type_labels(CATALOG.get(name))) == expected


def test_trainium_is_no_gpu() -> None:
    found = type_labels(CATALOG.get("trn2.48xlarge"))
    assert found["karpenter.k8s.aws/instance-category"] == "trn"
    assert not any("gpu" in key for key in found)


@pytest.mark.parametrize(
    ("capacity_type", "karpenter", "eks"),
    [
        ("capacity-block", "reserved", "CAPACITY_BLOCK"),
        ("reserved", "reserved", "ON_DEMAND"),
        ("spot", "spot", "SPOT"),
        ("on-demand", "on-demand", "ON_DEMAND"),
    ],
)
def test_labels_of_a_capacity_type(capacity_type: str, karpenter: str, eks: str) -> None:
    found = capacity_labels("aws", CapacityType(capacity_type))
    assert dict(found) == {"karpenter.sh/capacity-type": karpenter, "eks.amazonaws.com/capacityType": eks}


def test_nodes_of_gke_say_how_they_are_provisioned() -> None:
    spot = {"cloud.google.com/gke-spot": "true", "cloud.google.com/gke-provisioning": "spot"}
    assert dict(capacity_labels("gcp", CapacityType.SPOT)) == spot
    assert dict(capacity_labels("gcp", CapacityType.ON_DEMAND)) == {"cloud.google.com/gke-provisioning": "standard"}
    assert not capacity_labels("gcp", CapacityType.CAPACITY_BLOCK)
    assert not capacity_labels("lab", CapacityType.SPOT)


def test_every_label_is_among_those_that_offerings_are_compared_by() -> None:
    written = {key for t in CATALOG for key in type_labels(t)}
    assert written <= SYSTEM_KEYS


def test_flex_start_nodes_of_gke_say_so() -> None:
    assert dict(capacity_labels("gcp", CapacityType.FLEX_START)) == {"cloud.google.com/gke-flex-start": "true"}

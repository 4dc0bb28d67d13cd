"""Volumes of a cloud's CSI driver name the zone by the driver's own label, which its nodes have."""

from __future__ import annotations

from decimal import Decimal

import pytest

from autoscaler.model.snapshot import Snapshot
from autoscaler.model.storage import PersistentVolume, PersistentVolumeClaim
from instance_catalog.dataclass import replace
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes import labels
from instance_catalog.kubernetes.node_selector import NodeSelector, NodeSelectorTerm, Requirement
from instance_catalog.types.catalog import Catalog
from instance_catalog.types.instance_type import CapacityType, Price
from tests.builders import SMALL, claim, machine, plan, pod, snapshot

GKE, EBS = "topology.gke.io/zone", "topology.ebs.csi.aws.com/zone"
PRICES = FrozenMap({CapacityType.ON_DEMAND: Price(Decimal(2), "us-central1", "2026")})
GOOGLES = replace(machine("googles", SMALL, 1, None, cloud="gcp"), prices=PRICES)
CATALOG = Catalog.of([machine("theirs", SMALL, 1, "1"), GOOGLES])


def _mounting(key: str, zone: str) -> Snapshot:
    """A pod with a GPU and a bound volume that selects nodes by the label."""
    here = NodeSelector((NodeSelectorTerm((Requirement(key, "In", (zone,)),)),))
    volumes = FrozenMap({"pv": PersistentVolume("pv", node_affinity=here, claim="default/data")})
    claims = FrozenMap({"default/data": PersistentVolumeClaim("default", "data", volume="pv")})
    return snapshot([pod("p", "c", volumes=("data",))], [claim("c")], volume_claims=claims, volumes=volumes)


@pytest.mark.parametrize(
    ("key", "zone", "bought"),
    [
        (GKE, "us-central1-a", "googles"),
        (EBS, "us-east-1a", "theirs"),
        (labels.ZONE, "us-central1-a", "googles"),
        (labels.ZONE, "us-east-1a", "theirs"),
    ],
)
def test_a_node_is_bought_in_the_zone_of_the_volume(key: str, zone: str, bought: str) -> None:
    found = plan(_mounting(key, zone), catalog=CATALOG)
    assert [(node.offering.instance_type, node.offering.zone) for node in found.launches] == [(bought, zone)]


@pytest.mark.parametrize(("key", "zone"), [(GKE, "us-east-1a"), (EBS, "us-central1-a")])
def test_no_node_of_another_cloud_has_the_label(key: str, zone: str) -> None:
    found = plan(_mounting(key, zone), catalog=CATALOG)
    assert not found.launches
    assert [left.pod for left in found.left_out] == ["default/p"]

"""Which clouds the volumes of pods leave."""

from __future__ import annotations

from typing import Any

import pytest

from autoscaler.model.capacity import CapacityPool, Mode
from autoscaler.model.storage import PersistentVolume, PersistentVolumeClaim, StorageClass
from autoscaler.planning.demand.implied_machines import with_implied_selectors
from autoscaler.planning.demand.mounted import clouds_of_volumes
from autoscaler.planning.one_cloud import clouds_of_pools
from instance_catalog.dataclass import replace
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes import labels
from instance_catalog.kubernetes.node_selector import Requirement
from tests.builders import pod, shipped, snapshot

CATALOG = shipped("g4dn.xlarge", "g2-standard-4")

GCS, EBS, NFS = "gcsfuse.csi.storage.gke.io", "ebs.csi.aws.com", "nfs.csi.k8s.io"


def claimed(*, driver: str = "", provisioner: str = "") -> dict[str, Any]:
    claim = PersistentVolumeClaim("default", "data", storage_class="sc", volume="pv" if driver else None)
    return {
        "volume_claims": FrozenMap({"default/data": claim}),
        "volumes": FrozenMap({"pv": PersistentVolume("pv", driver=driver)}),
        "storage_classes": FrozenMap({"sc": StorageClass("sc", provisioner=provisioner)}),
    }


@pytest.mark.parametrize(
    ("driver", "provisioner", "clouds"),
    [
        (EBS, "", {"aws"}),
        ("", "pd.csi.storage.gke.io", {"gcp"}),
        ("", "kubernetes.io/aws-ebs", {"aws"}),
        (NFS, "", set()),
        # A volume that is there says where it is, whatever its class would make.
        (NFS, "pd.csi.storage.gke.io", set()),
    ],
)
def test_by_the_volume_of_a_claim_else_by_its_class(driver: str, provisioner: str, clouds: set[str]) -> None:
    mounting = replace(pod("p"), volumes=("data",))
    given = snapshot([mounting], **claimed(driver=driver, provisioner=provisioner))
    assert clouds_of_volumes(given.pods, given).keys() == clouds


def test_by_volumes_in_the_pod() -> None:
    inline = replace(pod("p"), csi_drivers=(GCS,))
    assert clouds_of_volumes([inline], snapshot([inline])) == {"gcp": ("default/p", GCS)}


def test_both_where_pods_differ() -> None:
    pods = [replace(pod("p"), csi_drivers=(GCS,)), replace(pod("q"), csi_drivers=(EBS,)), pod("r")]
    assert clouds_of_volumes(pods, snapshot(pods)) == {"gcp": ("default/p", GCS), "aws": ("default/q", EBS)}


def test_a_claim_that_is_not_there_says_nothing() -> None:
    mounting = replace(pod("p"), volumes=("absent",))
    assert clouds_of_volumes([mounting], snapshot([mounting])) == {}


@pytest.mark.parametrize(("admitted", "narrowed"), [({"aws", "gcp"}, True), ({"gcp"}, False)])
def test_pools_of_several_clouds_serve_a_pod_where_its_volume_is(admitted: set[str], *, narrowed: bool) -> None:
    """A pool of another cloud alone decides: the plan says that the pod does not work there."""
    mounting = replace(pod("p"), volumes=("data",))
    pools = (CapacityPool("any", Mode.ACT),)
    given = snapshot([mounting, pod("q")], pools=pools, **claimed(provisioner=EBS))
    found, other = with_implied_selectors(given, admitted).pods
    assert found.required_values({labels.CLOUD}) == ([("aws",)] if narrowed else [])
    assert not other.required_values({labels.CLOUD})


def test_clouds_that_pools_admit() -> None:
    of_one = Requirement(labels.CLOUD, "In", ("gcp",))
    pools = (CapacityPool("any", Mode.ACT), CapacityPool("one", Mode.ACT, requirements=(of_one,)))
    found = [clouds_of_pools(snapshot([], pools=(pool,)), CATALOG) for pool in pools]
    assert found == [{"aws", "gcp"}, {"gcp"}]

"""Which clouds the volumes of pods leave."""

from __future__ import annotations

from typing import Any

import pytest

from autoscaler.model.storage import PersistentVolume, PersistentVolumeClaim, StorageClass
from autoscaler.planning.demand.mounted import clouds_of_volumes
from instance_catalog.dataclass import replace
from instance_catalog.frozen_map import FrozenMap
from tests.builders import pod, snapshot

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

"""Paths of the node that a pod mounts."""

from __future__ import annotations

from tests.unit.kube.test_pod import parsed, pod


def test_paths_of_the_node_that_must_be_there_before() -> None:
    volumes = [
        {"name": "models", "hostPath": {"path": "/data", "type": "Directory"}},
        {"name": "cache", "hostPath": {"path": "/cache", "type": "DirectoryOrCreate"}},
        {"name": "any", "hostPath": {"path": "/any"}},
        {"name": "socket", "hostPath": {"path": "/x.sock", "type": "Socket"}},
        {"name": "shm", "emptyDir": {"medium": "Memory"}},
    ]
    found, problems = parsed(pod(volumes=volumes))
    assert (found.host_paths, problems) == (("/data", "/x.sock"), [])


def test_rdma_cards_of_the_node() -> None:
    volumes = [{"name": "d", "hostPath": {"path": path}} for path in ("/dev/shm", "/dev/infiniband/uverbs0")]
    found, _ = parsed(pod(volumes=volumes))
    assert found.rdma == "/dev/infiniband/uverbs0"


def test_drivers_of_volumes_that_are_written_into_the_pod() -> None:
    volumes = [
        {"name": "a", "csi": {"driver": "gcsfuse.csi.storage.gke.io", "volumeAttributes": {"bucketName": "b"}}},
        {"name": "b", "csi": {"driver": "gcsfuse.csi.storage.gke.io"}},
        {"name": "c", "persistentVolumeClaim": {"claimName": "c"}},
    ]
    found, problems = parsed(pod(volumes=volumes))
    assert (found.csi_drivers, problems) == (("gcsfuse.csi.storage.gke.io",), [])


def test_an_amount_that_no_sum_can_be_written_of_is_refused() -> None:
    """The API server stores it; a pod of one tenant must not end the arithmetic of all."""
    requests = {"cpu": "1e30000"}
    _, problems = parsed(pod(containers=[{"name": "c", "image": "x", "resources": {"requests": requests}}]))
    assert problems == ["spec.containers[0].resources.requests.cpu: the string '1e30000' is too large to count with"]

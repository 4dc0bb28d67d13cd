"""Paths of the node that a pod mounts."""

from __future__ import annotations

import pytest

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


@pytest.mark.parametrize(
    ("path", "mount", "told"),
    [
        ("/srv/models", {"mountPath": "/m"}, True),
        ("/mnt/data", {"mountPath": "/models"}, True),
        ("/mnt/data", {"mountPath": "/d", "readOnly": True}, True),
        ("/mnt/data", {"mountPath": "/d"}, False),
        ("/models", {"mountPath": "/root/.cache/huggingface"}, False),
        ("/srv/output", {"mountPath": "/model-output"}, False),
    ],
)
def test_directories_of_the_node_whose_files_a_container_needs(
    path: str, mount: dict[str, object], *, told: bool
) -> None:
    volume = {"name": "v", "hostPath": {"path": path}}
    mounting = {"name": "c", "image": "x", "volumeMounts": [{"name": "v", **mount}]}
    with_gpu = {**mounting, "resources": {"limits": {"nvidia.com/gpu": 1}}}
    found, problems = parsed(pod(volumes=[volume], containers=[with_gpu]))
    assert (found.paths_read, problems) == ((path,) if told else (), [])
    typed = {"name": "v", "hostPath": {"path": path, "type": "DirectoryOrCreate"}}
    assert parsed(pod(volumes=[typed], containers=[with_gpu]))[0].paths_read == ()
    without, _ = parsed(pod(volumes=[volume], containers=[mounting]))
    assert without.paths_read == ((path,) if mount.get("readOnly") else ())
    filled, _ = parsed(pod(volumes=[volume], containers=[with_gpu], initContainers=[{**mounting, "name": "i"}]))
    assert filled.paths_read == ((path,) if told and mount.get("readOnly") else ())


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

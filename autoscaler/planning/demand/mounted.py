"""Finds the clouds whose machines alone mount the volumes of pods, and those that the names of their volumes mean."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from autoscaler.model.pod import Pod
from autoscaler.model.snapshot import Snapshot
from autoscaler.model.storage import VolumeBindingMode
from instance_catalog.types.clouds import cloud_facts


def clouds_of_volumes(pods: Iterable[Pod], snapshot: Snapshot) -> dict[str, tuple[str, str]]:
    """The clouds whose machines alone can mount the volumes of pods: by cloud, the first such pod and the driver."""
    found: dict[str, tuple[str, str]] = {}
    for pod in pods:
        for driver in _storage_drivers(pod, snapshot):
            for cloud, facts in cloud_facts().items():
                if driver in (*facts.disk_drivers, *facts.file_drivers):
                    found.setdefault(cloud, (pod.key, driver))
    return found


def clouds_of_storage_names(pods: Iterable[Pod], snapshot: Snapshot) -> dict[str, str]:
    """The clouds whose storage people call by the names of claims and StorageClasses that are not in sight, such as
    gp3 or efs-claim: by cloud, the first name."""
    found: dict[str, str] = {}
    for pod in pods:
        for name in pod.volumes:
            claim = snapshot.volume_claims.get(f"{pod.namespace}/{name}")
            if claim is not None:
                known = snapshot.storage_classes.get(claim.storage_class or "")
                name = known.name if known is not None and known.binding_mode == VolumeBindingMode.UNKNOWN else ""
            for cloud, facts in cloud_facts().items():
                if facts.storage_names.fullmatch(name):
                    found.setdefault(cloud, name)
    return found


def _storage_drivers(pod: Pod, snapshot: Snapshot) -> Iterator[str]:
    yield from pod.csi_drivers
    for name in pod.volumes:
        claim = snapshot.volume_claims.get(f"{pod.namespace}/{name}")
        if claim is None:
            continue
        volume = snapshot.volumes.get(claim.volume or "")
        storage_class = snapshot.storage_classes.get(claim.storage_class or "")
        if volume is not None:
            yield volume.driver
        elif storage_class is not None:
            yield storage_class.provisioner

"""Volumes for one node that the pods of several nodes share: kube-scheduler places them, and most do not start.

Upstream: IsMultiAttachAllowed in pkg/controller/volume/attachdetach/util and pkg/volume/util of k8s.io/kubernetes
v1.36.3: the controller attaches a PersistentVolume that has neither ReadWriteMany nor ReadOnlyMany to one node only.
VolumeRestrictions of kube-scheduler checks ReadWriteOncePod alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from autoscaler.model.plan import Plan
from autoscaler.model.reason import Code, Reason, Subject
from autoscaler.model.snapshot import Snapshot
from autoscaler.model.storage import PersistentVolumeClaim
from instance_catalog.types.clouds import cloud_facts

_OF_MANY_NODES: Final = frozenset({"ReadWriteMany", "ReadOnlyMany"})
_NOT_ATTACHED: Final = frozenset({"", "kubernetes.io/no-provisioner"})  # NFS, local disks and paths of nodes


def shared_volumes(snapshot: Snapshot, plan: Plan) -> Iterator[Reason]:
    """Each claim for one node whose pods the plan puts on several; `not_working` is the number of pods on all but one
    of them, if its driver surely attaches disks."""
    place = {pod.key: pod.node_name for pod in snapshot.pods if pod.node_name is not None}
    place |= {placement.pod: placement.node for placement in plan.placements}
    planned = {placement.pod for placement in plan.placements}
    users: dict[str, list[str]] = {}
    for pod in snapshot.pods:
        for name in pod.volumes if pod.key in place else ():
            users.setdefault(f"{pod.namespace}/{name}", []).append(pod.key)
    for key, pods in users.items():
        claim = snapshot.volume_claims.get(key)
        nodes = [place[pod] for pod in pods]
        if claim is None or len(set(nodes)) < 2 or not any(pod in planned for pod in pods):
            continue
        modes, driver = _modes_and_driver(claim, snapshot)
        if modes and not _OF_MANY_NODES & set(modes) and not _mounts_only(driver):
            most = max(nodes.count(node) for node in nodes)
            yield _shared(claim, modes, driver, nodes, len(pods) - most)


def _modes_and_driver(claim: PersistentVolumeClaim, snapshot: Snapshot) -> tuple[tuple[str, ...], str]:
    """Those of the volume, else those that it is going to have."""
    volume = snapshot.volumes.get(claim.volume or "")
    if volume is not None:
        return volume.access_modes, volume.driver
    storage_class = snapshot.storage_classes.get(claim.storage_class or "")
    return claim.access_modes, storage_class.provisioner if storage_class is not None else ""


def _mounts_only(driver: str) -> bool:
    return driver in _NOT_ATTACHED or any(driver in facts.file_drivers for facts in cloud_facts().values())


def _shared(
    claim: PersistentVolumeClaim, modes: tuple[str, ...], driver: str, nodes: list[str], stopped: int
) -> Reason:
    known = next((facts for facts in cloud_facts().values() if driver in facts.disk_drivers), None)
    unless = "" if known else f", unless {driver} attaches nothing (attachRequired: false in its CSIDriver)"
    files = f" (such as {known.file_drivers[0]})" if known and known.file_drivers else ""
    problem = (
        f"spec.accessModes: has {' and '.join(modes)} and pods on {len(set(nodes))} nodes of the plan: the volume is "
        f"attached to one node at a time, and the pods on the others do not start (Multi-Attach error){unless}"
    )
    step = (
        f"use ReadWriteMany with a StorageClass of a file system{files}, give each pod a claim of its own "
        "(volumeClaimTemplates of a StatefulSet), or keep the pods on one node by podAffinity over "
        "kubernetes.io/hostname"
    )
    subject = Subject("PersistentVolumeClaim", claim.key)
    if known is None:
        return Reason.of(Code.ADVICE, subject, problem=problem, next_step=step)
    return Reason.of(Code.ADVICE, subject, problem=problem, next_step=step, not_working=stopped)

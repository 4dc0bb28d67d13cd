"""Warnings about space for files: root disks whose size is assumed, volumes in memory, and directories of nodes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Final

from autoscaler.lint.advice import surprise
from autoscaler.model.plan import Plan
from autoscaler.model.pod import Pod
from autoscaler.model.snapshot import Snapshot
from autoscaler.model.storage import PersistentVolume
from autoscaler.scheduling.pv_controller import with_bound_claims
from autoscaler.scheduling.resources import pod_requests
from autoscaler.scheduling.volumes import Volumes
from instance_catalog.diagnostic import Diagnostic, Path, all_of
from instance_catalog.types.catalog import Catalog
from instance_catalog.types.clouds import facts_of
from instance_catalog.types.instance_type import InstanceType
from instance_catalog.types.node_allocatable import EPHEMERAL_STORAGE, assumes_root_disk, node_allocatable

# Directories that node images have, with what is in them.
_OF_EVERY_NODE: Final = (
    *("/dev", "/sys", "/proc", "/lib", "/usr", "/etc", "/run", "/var/run", "/var/log", "/var/lib/kubelet", "/boot"),
    *("/opt/cni", "/home/kubernetes", "/tmp", "/bin", "/sbin", "/lib64"),
)
# Directories that Linux has, whatever is in them (Filesystem Hierarchy Standard 3.0), and those of them that are not
# empty on a new node.
_FILLED: Final = ("/", "/var", "/var/lib", "/var/cache")
_OF_LINUX: Final = (*_FILLED, "/home", "/mnt", "/opt", "/root")


def assumed_disk(snapshot: Snapshot, plan: Plan, catalog: Catalog) -> Iterator[Diagnostic]:
    """The size of the root disk on which a pod relies, once, for the first node that gets such a pod."""
    asking = {pod.key for pod in snapshot.pods if any(EPHEMERAL_STORAGE in c.requests for c in pod.containers)}
    for node in plan.launches:
        found = catalog.types.get(node.offering.instance_type)
        if found is not None and assumes_root_disk(found) and asking & set(node.pods):
            yield surprise(
                f"instance type {found.name}",
                (),
                f"pods request ephemeral-storage, and its root disk is assumed to have {found.reservation.root_disk}",
                _of_yours(found),
            )
            return


def memory_volumes(snapshot: Snapshot, plan: Plan) -> Iterator[Diagnostic]:
    """The first pod whose emptyDir of medium Memory may have more than all memory of the new node that it gets:
    the kubelet takes the least of sizeLimit, the pod's limit and what the node has (KEP-1967, on by default from 1.22).
    """
    pods = {pod.key: pod for pod in snapshot.pods if pod.memory_volume is not None}
    for node in plan.launches if pods else ():
        free = node.node.allocatable.get("memory")
        for pod in (pods[key] for key in node.pods if key in pods):
            if free is not None and pod.memory_volume is not None and pod.memory_volume > free:
                yield surprise(
                    f"Pod {pod.key}",
                    ("spec", "volumes"),
                    f"has an emptyDir of medium Memory with sizeLimit {pod.memory_volume}, and "
                    f"{node.offering.instance_type}, which it gets, has {free.int64_value() / 2**30:.1f}Gi of memory "
                    "for pods: the kubelet makes the volume no larger than that, and what is in it counts as memory of "
                    "the pod",
                    "request as much memory as the pod writes there, or lower sizeLimit to what it needs",
                    pod.origin,
                )
                return


def directories_of_nodes(snapshot: Snapshot, plan: Plan) -> Iterator[Diagnostic]:
    """Each PersistentVolume that is a directory of the node, for pods on new nodes: kube-scheduler binds them there."""
    users: dict[str, list[str]] = {}
    found: dict[str, PersistentVolume] = {}
    for key, volume in _of_any_node(snapshot, plan):
        users.setdefault(volume.name, []).append(key)
        found[volume.name] = volume
    for name, keys in users.items():
        volume, more = found[name], f" and {len(keys) - 1} more" if len(keys) > 1 else ""
        yield surprise(
            f"PersistentVolume {name}",
            ("spec", "hostPath"),
            f"is {volume.host_path} of whichever node its pod is on, which is a new one for {keys[0]}{more}: "
            "what the pod expects there, such as the weights of a model, is not on it",
            "use a file system that all nodes mount, or have your nodes fill the path when they start",
            volume.origin,
        )


def _of_any_node(snapshot: Snapshot, plan: Plan) -> Iterator[tuple[str, PersistentVolume]]:
    """By key, the pods on new nodes with each such volume that they mount."""
    volumes = with_bound_claims(Volumes.of(snapshot))
    pods = {pod.key: pod for pod in snapshot.pods if pod.volumes}
    for pod in (pods[key] for node in plan.launches for key in node.pods if key in pods):
        claims = (volumes.claim(f"{pod.namespace}/{name}") for name in pod.volumes)
        for found in (volumes.volume(claim.volume or "") for claim in claims if claim is not None):
            if found is not None and found.host_path and found.node_affinity is None:
                yield pod.key, found


def path_of_node(pod: Pod) -> str:
    """A path of the node that has to be there and that no node image is known to have; or nothing."""
    there = (path for path in _unknown_paths(pod) if path in pod.host_paths)
    return next((path for path in there if _plain(path) not in _OF_LINUX), "")


def files_of_node(pod: Pod) -> str:
    """A path of the node that is empty on a new one, while the pod needs what is in it; or nothing."""
    return next((path for path in _unknown_paths(pod) if path in pod.paths_read), "")


def _unknown_paths(pod: Pod) -> Iterator[str]:
    """The paths of the node in which a new one may lack what the pod expects."""
    for path in (*pod.host_paths, *pod.paths_read):
        plain = _plain(path)
        inside = any(plain == known or plain.startswith(f"{known}/") for known in _OF_EVERY_NODE)
        if not inside and plain not in _FILLED:
            yield path


def _plain(path: str) -> str:
    return path.rstrip("/") or "/"


def missing_path(path: str) -> tuple[Path, str, str]:
    return (
        ("spec", "volumes"),
        f"mounts {path} of its node (hostPath), which must be there before: it does not start on a new node "
        "whose image or start script does not make the path",
        "put the data on a PersistentVolume, or have your nodes make the path when they start",
    )


def empty_path(path: str) -> tuple[Path, str, str]:
    return (
        ("spec", "volumes"),
        f"mounts {path} of its node (hostPath), which is empty on a new node: what the pod expects there, such as the "
        "weights of a model, is not on it",
        "use a file system that all nodes mount, or have your nodes fill the path when they start",
    )


def empty_paths(snapshot: Snapshot, plan: Plan) -> str:
    """That new nodes lack what pods expect in directories of theirs, for a change that buys them; "" if no pod does."""
    pods = {pod.key: pod for pod in snapshot.pods}
    placed = (pods[key] for node in plan.launches for key in node.pods if key in pods)
    paths = dict.fromkeys(path for pod in placed for path in islice(_unknown_paths(pod), 1))
    paths |= dict.fromkeys(volume.host_path for _, volume in _of_any_node(snapshot, plan))
    if not paths:
        return ""
    return (
        f"a new node does not have what is in {all_of(tuple(paths))} (hostPath): put it on a file system that all "
        "nodes mount, or have your nodes fill the path when they start"
    )


def advised_disk(pods: Mapping[str, InstanceType | None], snapshot: Snapshot) -> str:
    """The same of the first pod, by key, for which a change buys a machine of this type, where it asks for half or more
    of what that disk leaves to pods: a little less and the pod does not fit. "" if none does."""
    for pod in snapshot.pods:
        found = pods.get(pod.key)
        wanted = pod_requests(pod).get(EPHEMERAL_STORAGE, 0)
        if found is None or not wanted or not assumes_root_disk(found):
            continue
        free = node_allocatable(found)[EPHEMERAL_STORAGE].int64_value()
        if wanted * 2 >= free:
            return (
                f"{pod.key}: requests ephemeral-storage, of which {found.name} has {free / 2**30:.1f}Gi for pods if "
                f"its root disk has {found.reservation.root_disk}, as is assumed; {_of_yours(found)}"
            )
    return ""


def _of_yours(machine: InstanceType) -> str:
    return (
        f"if yours differ ({facts_of(machine.cloud).root_disk}), say so: `foreslice catalog set {machine.name} "
        "allocatable.ephemeral-storage=… --into DIR --reason WHY`"
    )

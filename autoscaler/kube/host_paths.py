"""Directories and devices of its node that a pod mounts (hostPath); schedulers do not look at them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from autoscaler.kube.fields import Fields

# Types of hostPath that the kubelet looks for before it starts the pod.
_THERE_BEFORE: Final = ("Directory", "File", "Socket", "CharDevice", "BlockDevice")
_RDMA_DEVICES: Final = "/dev/infiniband"  # where rdma-core opens them
# Names of directories with files that a program reads, and of those that it fills itself.
_OF_FILES: Final = re.compile(r"(?i)(?<![a-z])(?:models?|weights|checkpoints?|datasets?)(?![a-z])")
_FILLED: Final = re.compile(r"(?i)cache|output|results?(?![a-z])|logs?(?![a-z])")


def paths_there_before(spec: Fields) -> tuple[str, ...]:
    """Paths that have to be on the node for the pod to start."""
    return tuple(one.text("path") for _, one in _mounted(spec) if one.text("type") in _THERE_BEFORE)


def paths_read(spec: Fields) -> tuple[str, ...]:
    """Paths without a type, of which the container runtime makes an empty directory where they are missing, if the pod
    needs what is in them: it mounts them to read only, or by their name the models or data of a container with devices.
    What an init container may write is its own work."""
    untyped = {name: one.text("path") for name, one in _mounted(spec) if not one.text("type")}
    if not untyped:
        return ()
    found: dict[str, None] = {}
    for container in spec.children("containers"):
        for mount in container.children("volumeMounts"):
            path, at = untyped.get(mount.text("name"), ""), mount.text("mountPath")
            if path and (mount.flag("readOnly") or (_has_devices(container) and _of_files(f"{path} {at}"))):
                found[path] = None
    for container in spec.children("initContainers"):
        for mount in container.children("volumeMounts"):
            if not mount.flag("readOnly"):
                found.pop(untyped.get(mount.text("name"), ""), None)
    return tuple(found)


def rdma_devices(spec: Fields) -> str:
    """The directory of the node's RDMA devices, where the pod mounts that or one of them."""
    return next((one.text("path") for _, one in _mounted(spec) if one.text("path").startswith(_RDMA_DEVICES)), "")


def _mounted(spec: Fields) -> Iterator[tuple[str, Fields]]:
    for volume in spec.children("volumes"):
        if "hostPath" in volume:
            yield volume.text("name"), volume.child("hostPath")


def _of_files(names: str) -> bool:
    return bool(_OF_FILES.search(names)) and not _FILLED.search(names)


def _has_devices(container: Fields) -> bool:
    resources = container.child("resources")
    return "claims" in resources or any("/" in name for name in resources.child("limits").names())

"""The field by which a pod requires a label of its node, for messages."""

from __future__ import annotations

from collections.abc import Collection

from autoscaler.model.pod import Pod
from instance_catalog.diagnostic import Path

_SELECTOR: Path = ("spec", "nodeSelector")
_AFFINITY: Path = ("spec", "affinity", "nodeAffinity")


def field_of(pod: Pod, *keys: str) -> Path:
    """nodeSelector with the first of the keys that it has, or else nodeAffinity."""
    return next(((*_SELECTOR, key) for key in keys if key in pod.node_selector), _AFFINITY)


def as_required(path: Path, pod: Pod, keys: Collection[str] = ()) -> Path:
    """A path in nodeSelector, or nodeAffinity if the pod requires the label of the path, or of `keys`, there alone."""
    named = path[2:] or tuple(keys)
    if path[:2] != _SELECTOR or not named or any(key in pod.node_selector for key in named):
        return path
    return _AFFINITY

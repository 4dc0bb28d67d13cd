"""Annotations by which pods ask HAMi for GPUs, which no plan follows.

Project-HAMi/HAMi 4707fb0: docs/dynamic-mig-support.md, docs/config.md (options of a pod), pkg/device/nvidia.
"""

from __future__ import annotations

from typing import Final

from autoscaler.model.pod import Pod
from instance_catalog.diagnostic import Path
from instance_catalog.kubernetes import labels

_MODES: Final = {
    "mig": "a MIG part of a GPU, which HAMi makes itself",
    "hami-core": "a share of a GPU that the library HAMi-core limits",
    "mps": "a share of a GPU by MPS",
}
_ASKS: Final = {
    labels.HAMI_USE_TYPE: "a GPU of type {}",
    labels.HAMI_AVOID_TYPE: "a GPU that is not of type {}",
    labels.HAMI_AVOID_DEVICE: "a GPU that is none of {}",
    labels.HAMI_MODE: "mode {}",
    labels.HAMI_NODE_POLICY: "a node by policy {}",
    labels.HAMI_GPU_POLICY: "a GPU by policy {}",
}
_TYPES: Final = (
    f"select the nodes by {labels.ACCELERATOR} or {labels.INSTANCE_TYPE}, or write a resource claim with a CEL selector"
)
_PART: Final = "claim a part of a GPU through DRA (docs/examples/mig-parts.yaml has claims of MIG profiles)"
_STEPS: Final = {labels.HAMI_USE_TYPE: _TYPES, labels.HAMI_AVOID_TYPE: _TYPES, labels.HAMI_MODE: _PART}


def asked_of_hami(pod: Pod, *, but: str = "") -> str:
    """The annotations of the pod that ask HAMi for something, "name=value" on a line each; or nothing. UUIDs of the
    GPUs that it wants have a warning of their own, and so has the annotation `but`."""
    names = (name for name in _ASKS if name in pod.annotations and name != but)
    return "\n".join(f"{name}={' '.join(pod.annotations[name].split())}" for name in names)


def hami_told(found: str) -> tuple[Path, str, str]:
    asked = dict(line.partition("=")[::2] for line in found.split("\n"))
    what = " and ".join(_what(name, value) for name, value in asked.items())
    steps = dict.fromkeys(_STEPS[name] for name in asked if name in _STEPS)
    return (
        ("metadata", "annotations", *list(asked)[:1]),
        f"asks HAMi for {what}: kube-scheduler and plans do not read that, and nodes of a plan do not run "
        "HAMi, so a plan counts whole GPUs of any kind",
        "; or ".join((*steps, "leave the pod to nodes that run HAMi, or drop the annotation")),
    )


def _what(name: str, value: str) -> str:
    mode = _MODES.get(value.strip()) if name == labels.HAMI_MODE else None
    return mode or _ASKS[name].format(value or "''")

"""Resources by which pods ask a sharing system for parts of GPUs, and for all of one."""

from __future__ import annotations

from autoscaler.model.pod import Pod
from instance_catalog.drivers.device_plugins import shared_gpu_resources, shares_in_percent
from instance_catalog.kubernetes import labels
from instance_catalog.kubernetes.quantity import Quantity

_WHOLE = Quantity.of(100)


def shared_resource(pod: Pod) -> str:
    """The resources by which the pod asks a system for parts of GPUs, all of them; or nothing."""
    requested = {name for container in (*pod.containers, *pod.init_containers) for name in container.requests}
    return " ".join(name for name in shared_gpu_resources() if name in requested)


def shared_told(found: str) -> tuple[tuple[str, ...], str, str]:
    names = found.split()
    system, several = shared_gpu_resources()[names[0]], len(names) > 1
    return (
        ("spec", "containers", "resources"),
        f"asks for {' and '.join(names)}, with which {system} hands out parts of a GPU{{rest}}: nodes of a plan do not "
        f"run it, so none has {'these resources' if several else 'the resource'}",
        "claim a part of a GPU through DRA (docs/examples/mig-parts.yaml has claims of MIG profiles), or drop "
        f"{'them' if several else 'it'} for whole GPUs; or run {system} on GPU nodes that a CapacityPool keeps by "
        f"spec.baseline: it has to require {labels.ACCELERATOR}, and a plan finds the pods' places on such nodes once "
        "they are given",
    )


def whole_by_share(pod: Pod) -> str:
    """The same resources where they are all of each GPU: 100 percent of what they count."""
    names = shared_resource(pod).split()
    if not names or not shares_in_percent().issuperset(names):
        return ""
    amounts = [container.requests.get(name, _WHOLE) for name in names for container in pod.containers]
    return " ".join(names) if all(one == _WHOLE for one in amounts) else ""


def whole_told(found: str) -> tuple[tuple[str, ...], str, str]:
    names = found.split()
    system = shared_gpu_resources()[names[0]]
    return (
        ("spec", "containers", "resources"),
        f"asks for 100 percent of each GPU by {' and '.join(names)} of {system}{{rest}}: nodes of a plan do not run it",
        f"drop {'both' if len(names) == 2 else 'it'}: nvidia.com/gpu alone is whole GPUs",
    )

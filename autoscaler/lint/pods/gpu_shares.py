"""Resources by which pods ask a sharing system for parts of GPUs, and for all of one."""

from __future__ import annotations

from collections.abc import Callable, Collection, Set
from typing import Final

from autoscaler.model.pod import Container, Pod
from instance_catalog.dataclass import replace
from instance_catalog.drivers.device_plugins import (
    shared_gpu_resources,
    shares_counted,
    shares_in_percent,
    shares_of_memory,
)
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes import labels
from instance_catalog.kubernetes.quantity import Quantity

NVIDIA_GPU: Final = "nvidia.com/gpu"
SHARED_PRODUCT: Final = "-SHARED"  # at the end of a product's name, in what GPU feature discovery writes
SHARING_CLAIM: Final = "let the pods use one ResourceClaim (docs/examples/shared-claim.yaml)"
_WHOLE = Quantity.of(100)
_MEBI: Final = 2**20
# Labels of NVIDIA's GPU feature discovery whose values say that pods share GPUs: NVIDIA/k8s-device-plugin 1b826ac,
# README.md and docs/gpu-feature-discovery/README.md.
_SHARING: Final[dict[str, Callable[[Collection[str]], bool]]] = {
    labels.NVIDIA_GPU_SHARING: lambda names: "none" not in names,
    labels.NVIDIA_MPS_CAPABLE: lambda names: "false" not in names,
    labels.NVIDIA_GPU_REPLICAS: lambda names: "1" not in names,
}


def shared_resource(pod: Pod) -> str:
    """The resources by which the pod asks a system for parts of GPUs, all of them; or nothing."""
    requested = {name for container in (*pod.containers, *pod.init_containers) for name in container.requests}
    return " ".join(name for name in shared_gpu_resources() if name in requested)


def shared_told(found: str) -> tuple[tuple[str, ...], str, str]:
    names = found.split()
    system, several = shared_gpu_resources()[names[0]], len(names) > 1
    gpus = "whole GPUs with as much memory" if shares_of_memory() & set(names) else "whole GPUs"
    whole = f"request {NVIDIA_GPU} {'instead' if shares_counted() & set(names) else 'alone'}, for {gpus}"
    return (
        ("spec", "containers", "resources"),
        f"asks for {' and '.join(names)}, with which {system} hands out parts of a GPU: nodes of a plan do not "
        f"run it, so none has {'these resources' if several else 'the resource'}",
        f"claim a part of a GPU through DRA (docs/examples/mig-parts.yaml has claims of MIG profiles), or {whole}; or "
        f"run {system} on GPU nodes that a CapacityPool keeps by spec.baseline: it has to require "
        f"{labels.ACCELERATOR}, and a plan finds the pods' places on such nodes once they are given",
    )


def sharing_label(pod: Pod, had: Set[str]) -> str:
    """The label by which the pod selects nodes that share each GPU among pods, none of which is `had`; or nothing. A
    product's name has a warning of its own."""
    found = ((key, names) for key, shares in _SHARING.items() for names in pod.required_values({key}) if shares(names))
    named = any(
        name.endswith(SHARED_PRODUCT) for names in pod.required_values({labels.NVIDIA_GPU_PRODUCT}) for name in names
    )
    written = (f"{key}={name}" for key, names in found for name in names)
    return next((label for label in written if not named and label not in had), "")


def sharing_told(label: str) -> tuple[tuple[str, ...], str, str]:
    return (
        ("spec", "nodeSelector", label.partition("=")[0]),
        f"selects {label}: GPU feature discovery writes it where NVIDIA's device plugin shares each GPU among "
        "pods (time slicing or MPS); nodes of a plan hand out whole GPUs and have no such label",
        f"{SHARING_CLAIM}, drop the label for a whole GPU each, or, {labelled_as_shared(label)}",
    )


def labelled_as_shared(label: str) -> str:
    """The pool for new nodes that share GPUs: no plan knows into how many parts."""
    return (
        f"if the device plugin of your new nodes is to share them, give a CapacityPool {label} in spec.labels, their "
        f"GPU ({labels.ACCELERATOR}) in spec.requirements and spec.scope.pods: All; a plan then counts a whole GPU for "
        "each pod that finds no room on such nodes"
    )


def whole_instead(pod: Pod) -> tuple[Pod, str]:
    """The pod with whole GPUs for what it asks such a system for, and what it requests then. A pod that would ask for
    no GPU stays as it is, with ""."""
    had, changed = _gpus(pod), _each_container(pod, _whole)
    asked = _gpus(changed)
    if not asked:
        return pod, ""
    if asked == had:
        return changed, f"{NVIDIA_GPU} alone"
    each = f"{NVIDIA_GPU} {' and '.join(map(str, asked))}"
    total = sum(number.int64_value() for number in asked)
    return changed, f"{each} in its containers ({total} whole GPUs in all)" if len(asked) > 1 else each


def memory_shared(pod: Pod) -> Quantity | None:
    """The most memory that one of its containers asks such a system for of one GPU; None if none says it."""
    every = (*pod.containers, *pod.init_containers)
    asked = [one.requests[name] for one in every for name in shares_of_memory() if name in one.requests]
    return Quantity.of(max(found.int64_value() for found in asked) * _MEBI) if asked else None


def _gpus(pod: Pod) -> list[Quantity]:
    every = (*pod.containers, *pod.init_containers)
    return [container.requests[NVIDIA_GPU] for container in every if NVIDIA_GPU in container.requests]


def _each_container(pod: Pod, changed: Callable[[Container], Container]) -> Pod:
    containers, before = (tuple(map(changed, every)) for every in (pod.containers, pod.init_containers))
    return replace(pod, containers=containers, init_containers=before)


def _whole(container: Container) -> Container:
    """One GPU for each that the container shares."""
    shares, counted = shared_gpu_resources(), shares_counted()
    kept = {name: amount for name, amount in container.requests.items() if name not in shares}
    number = next((amount for name, amount in container.requests.items() if name in counted), None)
    whole = {} if number is None or NVIDIA_GPU in kept else {NVIDIA_GPU: number}
    return replace(container, requests=FrozenMap(kept | whole))


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
        f"asks for 100 percent of each GPU by {' and '.join(names)} of {system}: nodes of a plan do not run it",
        f"drop {'both' if len(names) == 2 else 'it'}: nvidia.com/gpu alone is whole GPUs",
    )

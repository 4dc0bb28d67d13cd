"""What a pod requests, in the integers the scheduler counts in.

Upstream: k8s.io/component-helpers resource/helpers.go and the plugin noderesources, v1.36.
"""

from __future__ import annotations

from collections.abc import Mapping

from autoscaler.model.pod import Pod
from instance_catalog.quantity import Quantity

POD_LEVEL = ("cpu", "memory")  # and hugepages-*: the only resources pod-level requests may set (KEP-2837)
_STANDARD = ("cpu", "memory", "ephemeral-storage", "pods")


def units(resource: str, quantity: Quantity) -> int:
    """The integer the scheduler counts in: thousandths of a core for cpu, whole units rounded up for the rest."""
    return quantity.milli() if resource == "cpu" else quantity.ceil()


def is_extended(resource: str) -> bool:
    """Whether NodeResourcesFit treats it as an extended resource: domain-prefixed and not one of Kubernetes' own."""
    if resource in _STANDARD or resource.startswith(("hugepages-", "attachable-volumes-", "requests.")):
        return False
    domain, slash, _ = resource.partition("/")
    return bool(slash) and domain != "kubernetes.io" and not domain.endswith(".kubernetes.io")


def pod_requests(pod: Pod) -> dict[str, int]:
    """Effective requests in `units`: containers and sidecars, or the largest init step, plus overhead.

    An init container runs beside the sidecars started before it. Pod-level requests replace the sum for the resources
    they may set.
    """
    running: dict[str, int] = {}
    for container in pod.containers:
        _add(running, container.requests)
    sidecars: dict[str, int] = {}
    largest_init: dict[str, int] = {}
    for container in pod.init_containers:
        if container.sidecar:
            _add(running, container.requests)
            _add(sidecars, container.requests)
            step = dict(sidecars)
        else:
            step = dict(sidecars)
            _add(step, container.requests)
        _raise_to(largest_init, step)
    _raise_to(running, largest_init)
    if pod.pod_requests is not None:
        for resource, quantity in pod.pod_requests.items():
            if resource in POD_LEVEL or resource.startswith("hugepages-"):
                running[resource] = units(resource, quantity)
    _add(running, pod.overhead)
    return running


def _add(total: dict[str, int], requests: Mapping[str, Quantity]) -> None:
    for resource, quantity in requests.items():
        total[resource] = total.get(resource, 0) + units(resource, quantity)


def _raise_to(total: dict[str, int], other: Mapping[str, int]) -> None:
    for resource, amount in other.items():
        total[resource] = max(total.get(resource, 0), amount)

"""The requests of a pod, in the integers that the scheduler counts in.

Upstream: k8s.io/component-helpers resource/helpers.go and the plugin noderesources, v1.36.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from autoscaler.model.pod import Pod
from autoscaler.model.requests import NOTHING, add, together
from instance_catalog.dataclass import replace
from instance_catalog.kubernetes.quantity import Quantity

POD_LEVEL = ("cpu", "memory")  # and hugepages-*: the only resources pod-level requests may set (KEP-2837)
# pkg/scheduler/util/pod_resources.go
_DEFAULTS: Final = {"cpu": Quantity(100, -3), "memory": Quantity.of(200 * 1024 * 1024)}


def units(resource: str, quantity: Quantity) -> int:
    """The integer that the scheduler counts: thousandths of a core for cpu, whole units rounded up for the rest."""
    return quantity.milli() if resource == "cpu" else quantity.ceil()


def pod_requests(pod: Pod, missing: Mapping[str, Quantity] = NOTHING) -> dict[str, int]:
    """Effective requests in `units`: containers and sidecars, or the largest init step, plus overhead.

    The amounts that the claims of a bound pod take are added. Pod-level requests replace the sum for the resources they
    may set. `missing` are the amounts of a container for resources that it does not request.
    """
    running = together(pod.containers, pod.init_containers, missing)
    add(running, pod.claim_amounts)
    running.update(pod_level(pod))
    add(running, pod.overhead)
    return {resource: units(resource, quantity) for resource, quantity in running.items()}


def scored_requests(pod: Pod, *, bound: bool) -> tuple[int, int]:
    """cpu and memory in `units` as LeastAllocated counts them: a container that requests nothing is not free.

    Upstream treats the two kinds of pods differently (v1.36.3). One that is being scheduled counts without its
    pod-level requests: NewFit does not enable them for the scorer (noderesources/fit.go). One already `bound` that has
    any gets defaults only for resources without any request (getNonMissingContainerRequests in framework/types.go).
    """
    if not bound:
        requests = pod_requests(replace(pod, pod_requests=None), _DEFAULTS)
    elif pod.pod_requests is not None:
        asked = pod_requests(pod)
        requests = pod_requests(pod, {name: amount for name, amount in _DEFAULTS.items() if name not in asked})
    else:
        requests = pod_requests(pod, _DEFAULTS)
    return requests.get("cpu", 0), requests.get("memory", 0)


def is_hugepages(resource: str) -> bool:
    """True for hugepages-2Mi, hugepages-1Gi and so on."""
    return resource.startswith("hugepages-")


def pod_level(pod: Pod) -> dict[str, Quantity]:
    """The pod-level requests that count."""
    requests = pod.pod_requests or NOTHING
    return {name: amount for name, amount in requests.items() if name in POD_LEVEL or is_hugepages(name)}

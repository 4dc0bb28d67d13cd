"""The resources of a pod during an in-place resize (KEP-1287, KEP-5419): the largest of all reported amounts.

Upstream: component-helpers resource/helpers.go, v0.36.3. From a request for less until the kubelet has applied it, and
from a request for more until it is available, the larger amount counts; an infeasible resize does not count.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from autoscaler.kube.containers import resource_list
from autoscaler.kube.fields import Fields
from autoscaler.model.pod import Container
from autoscaler.model.requests import raise_to
from instance_catalog.dataclass import replace
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.quantity import Quantity

_NONE = Quantity.of(0)


def resized(containers: tuple[Container, ...], statuses: str, status: Fields) -> tuple[Container, ...]:
    """The containers with their current amounts; `statuses` is their field of the pod's `status`.

    Only those that run as long as the pod can be resized: init containers that are no sidecars are unchanged.
    """
    if not containers or statuses not in status:
        return containers
    reported = {entry.text("name"): entry for entry in status.children(statuses)}
    lasting = statuses == "containerStatuses"
    return tuple(
        _resized(container, reported[container.name], status)
        if container.name in reported and (lasting or container.sidecar)
        else container
        for container in containers
    )


def _resized(container: Container, entry: Fields, status: Fields) -> Container:
    held = _held(container.requests, entry, status)
    return container if held is container.requests else replace(container, requests=held)


def resized_pod(requests: FrozenMap[str, Quantity] | None, status: Fields) -> FrozenMap[str, Quantity] | None:
    """Pod-level requests with the pod's current amounts."""
    if requests is None:
        return None
    held = _held(requests, status, status)
    return requests if held is requests else FrozenMap({name: held.get(name, _NONE) for name in requests})


def _held(spec: FrozenMap[str, Quantity], entry: Fields, status: Fields) -> FrozenMap[str, Quantity]:
    """The current amounts, nearly always `spec` itself, which is checked first: a cluster may have 100,000
    containers."""
    resources = entry.optional_child("resources")
    if resources is None:
        return spec
    actual = resource_list(resources, "requests")
    same = resources.raw("requests") == entry.raw("allocatedResources")
    allocated = actual if same else resource_list(entry, "allocatedResources")
    if actual == spec == allocated:
        return spec
    return _most([actual, allocated] if _infeasible(status) else [spec, actual, allocated])


def _infeasible(status: Fields) -> bool:
    pending = (entry for entry in status.children("conditions") if entry.text("type") == "PodResizePending")
    return next((entry.text("reason") == "Infeasible" for entry in pending), False)


def _most(sources: Iterable[Mapping[str, Quantity]]) -> FrozenMap[str, Quantity]:
    most: dict[str, Quantity] = {}
    for source in sources:
        raise_to(most, source)
    return FrozenMap(most)

"""What a pod holds while it is resized in place (KEP-1287, KEP-5419): the most that anybody says about it.

Upstream: component-helpers resource/helpers.go, v0.36.3. From asking for less to the kubelet's having done it, and from
asking for more to its being there, the larger amount counts; a resize that the node can never do does not count.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from autoscaler.kube.containers import resource_list
from autoscaler.kube.fields import Fields
from autoscaler.model.pod import Container
from autoscaler.model.requests import raise_to
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.quantity import Quantity


def resized(containers: Iterable[Container], statuses: str, status: Fields) -> tuple[Container, ...]:
    """The containers with what they hold; `statuses` is their field of the pod's `status`.

    Only those that run as long as the pod can be resized, so init containers that are no sidecars stay as they are.
    """
    reported = {entry.text("name"): entry for entry in status.children(statuses)}
    lasting = statuses == "containerStatuses"
    return tuple(
        replace(container, requests=_held(container.requests, entry, status))
        if (lasting or container.sidecar) and (entry := reported.get(container.name)) is not None
        else container
        for container in containers
    )


def resized_pod(requests: FrozenMap[str, Quantity] | None, status: Fields) -> FrozenMap[str, Quantity] | None:
    """Pod-level requests with what the pod holds."""
    held = None if requests is None else _held(requests, status, status)
    if requests is None or held is requests or held is None:
        return requests
    return FrozenMap({name: held.get(name, Quantity.of(0)) for name in requests})


def _held(spec: FrozenMap[str, Quantity], entry: Fields, status: Fields) -> FrozenMap[str, Quantity]:
    if entry.optional_child("resources") is None:
        return spec
    sources = [resource_list(entry.child("resources"), "requests"), resource_list(entry, "allocatedResources")]
    return _most(sources if _infeasible(status) else [spec, *sources])


def _infeasible(status: Fields) -> bool:
    pending = (entry for entry in status.children("conditions") if entry.text("type") == "PodResizePending")
    return next((entry.text("reason") == "Infeasible" for entry in pending), False)


def _most(sources: Iterable[Mapping[str, Quantity]]) -> FrozenMap[str, Quantity]:
    most: dict[str, Quantity] = {}
    for source in sources:
        raise_to(most, source)
    return FrozenMap(most)

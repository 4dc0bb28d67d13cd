"""The total requests of containers (AggregateContainerRequests in component-helpers resource/helpers.go, v0.36.3)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from autoscaler.model.pod import Container
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.quantity import Quantity

NOTHING: Final[FrozenMap[str, Quantity]] = FrozenMap()


def together(
    containers: Iterable[Container], init_containers: Iterable[Container], missing: Mapping[str, Quantity] = NOTHING
) -> dict[str, Quantity]:
    """The sum of containers and sidecars, or the largest init step if that is more.

    An init container runs beside the sidecars started before it. `missing` are the amounts of a container for resources
    that it does not request.
    """
    running: dict[str, Quantity] = {}
    for container in containers:
        add(running, _completed(container, missing))
    sidecars: dict[str, Quantity] = {}
    largest_init: dict[str, Quantity] = {}
    for container in init_containers:
        requests = _completed(container, missing)
        if container.sidecar:
            add(running, requests)
            add(sidecars, requests)
            step = dict(sidecars)
        else:
            step = dict(sidecars)
            add(step, requests)
        raise_to(largest_init, step)
    raise_to(running, largest_init)
    return running


def add(total: dict[str, Quantity], requests: Mapping[str, Quantity]) -> None:
    """Add `requests` to `total`."""
    for resource, quantity in requests.items():
        total[resource] = total[resource] + quantity if resource in total else quantity


def raise_to(total: dict[str, Quantity], other: Mapping[str, Quantity]) -> None:
    """Make `total` as large as `other`, resource by resource."""
    for resource, amount in other.items():
        if resource not in total or total[resource] < amount:
            total[resource] = amount


def _completed(container: Container, missing: Mapping[str, Quantity]) -> Mapping[str, Quantity]:
    return {**missing, **container.requests} if missing else container.requests

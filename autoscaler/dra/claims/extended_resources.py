"""Extended resources served through DRA (KEP-5004): `nvidia.com/gpu: 1` becomes a request in a generated claim.

Rules of kube-scheduler's plugin dynamicresources, extendeddynamicresources.go, v1.36. Here the snapshot determines
which class serves a resource; the scheduler maintains that map by events (dynamic-resource-allocation,
deviceclass/extendedresourcecache), with results that depend on history: see `contested_resources`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from autoscaler.model.device_class import DeviceClass
from autoscaler.model.node import Node
from autoscaler.model.pod import Container, Pod
from autoscaler.model.resource_claim import DeviceRequest, ResourceClaim
from instance_catalog.kubernetes.profile import KubernetesProfile

IMPLICIT_PREFIX = "deviceclass.resource.kubernetes.io/"
EXTENDED_RESOURCE_GATE: Final = "DRAExtendedResource"  # alpha in 1.34, on by default from 1.36
# Far above what a claim may request (32), and far below where sums overflow.
_TOO_MANY: Final = 1_000_000


def extended_resource_classes(classes: Iterable[DeviceClass]) -> dict[str, DeviceClass]:
    """The class that serves each resource, by name of the resource: every class by its implicit and its explicit name.

    Of several classes with one explicit name the newest wins, then the first by name.
    """
    ordered = sorted(classes, key=lambda device_class: (-device_class.created, device_class.name))
    serving: dict[str, DeviceClass] = {}
    for device_class in ordered:
        serving[f"{IMPLICIT_PREFIX}{device_class.name}"] = device_class
        if device_class.extended_resource_name:
            serving.setdefault(device_class.extended_resource_name, device_class)
    return serving


def contested_resources(classes: Iterable[DeviceClass]) -> frozenset[str]:
    """Implicit names that kube-scheduler may or may not serve, depending on the order in which it received the classes.

    A class that appears after one that wins their explicit name gets neither name. Classes appear when they are
    created, and by name after a restart of kube-scheduler; only a class that is first in both orders certainly has its
    implicit name.
    """
    sharing: dict[str, list[DeviceClass]] = {}
    for device_class in classes:
        if device_class.extended_resource_name:
            sharing.setdefault(device_class.extended_resource_name, []).append(device_class)
    return frozenset(
        f"{IMPLICIT_PREFIX}{loser.name}"
        for rivals in sharing.values()
        for loser in rivals
        if any(_may_come_first(other, loser) for other in rivals)
    )


def _may_come_first(winner: DeviceClass, loser: DeviceClass) -> bool:
    """True if `winner` takes the explicit name from `loser` and may have appeared before it."""
    if winner.created == loser.created:
        return winner.name < loser.name
    return winner.created > loser.created and winner.name < loser.name


def extended_resource_claim(
    pod: Pod, node: Node, class_map: Mapping[str, DeviceClass], profile: KubernetesProfile
) -> ResourceClaim | None:
    """The claim that the scheduler would create for the pod on this node; None if the node serves nothing through DRA.

    A node that has the resource itself (a device plugin) serves it alone, even if it has too little.
    """
    if not profile.gates.extended_resource or not class_map:
        return None
    containers = (*pod.init_containers, *pod.containers)
    resources = sorted(
        name
        for name in {name for container in containers for name in container.requests}
        if name in class_map and not _available(node, name) and any(_amount(c, name) for c in containers)
    )
    requests = [request for name in resources for request in _requests(pod, containers, name, class_map[name].name)]
    if not requests:
        return None
    # The scheduler generates the claim's name when it creates it; until then the pod's name identifies the claim.
    return ResourceClaim(
        namespace=pod.namespace,
        name=f"{pod.name}-extended-resources",
        requests=tuple(sorted(requests, key=lambda request: request.name)),
        controller=pod.uid,
    )


def _available(node: Node, resource: str) -> bool:
    allocatable = node.allocatable.get(resource)
    return allocatable is not None and allocatable.sign > 0


def _requests(pod: Pod, containers: tuple[Container, ...], resource: str, device_class: str) -> Iterable[DeviceRequest]:
    """One request per long-lived container, and one for what short-lived init containers need in addition."""
    short_lived = [i for i, container in enumerate(pod.init_containers) if not container.sidecar]
    lasting = {
        i: request
        for i, container in enumerate(containers)
        if i not in short_lived and (request := _request(i, container, resource, device_class, reusable=0))
    }
    extra: DeviceRequest | None = None
    for i in short_lived:
        # The devices of later containers are free while it runs.
        reusable = sum(request.count for j, request in lasting.items() if j >= i)
        request = _request(i, containers[i], resource, device_class, reusable=reusable)
        if request is not None and (extra is None or request.count > extra.count):
            extra = request
    if extra is not None:
        yield extra
    yield from lasting.values()


def _request(
    index: int, container: Container, resource: str, device_class: str, *, reusable: int
) -> DeviceRequest | None:
    amount = _amount(container, resource)
    if amount <= reusable or not amount:
        return None
    position = sorted(container.requests).index(resource)
    return DeviceRequest(f"container-{index}-request-{position}", device_class, count=amount - reusable)


def _amount(container: Container, resource: str) -> int:
    """The amount. If it is no whole number of 64 bits, it is more than a claim may have: no node is launched."""
    quantity = container.requests.get(resource)
    if quantity is None:
        return 0
    amount = quantity.as_int64()
    return _TOO_MANY if amount is None or amount > _TOO_MANY else amount

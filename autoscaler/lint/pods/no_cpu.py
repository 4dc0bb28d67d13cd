"""Pods that use devices and request no CPU, where that decides on the machine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set

from autoscaler.lint.advice import surprise
from autoscaler.lint.pods.card_names import accelerators_named
from autoscaler.model.pod import Container, Pod
from autoscaler.model.snapshot import Snapshot
from autoscaler.planning.demand.images import TYPE_KEYS
from autoscaler.planning.demand.scope import requested_resources
from instance_catalog.diagnostic import Diagnostic
from instance_catalog.types.catalog import Catalog


def no_cpu(snapshot: Snapshot, catalog: Catalog) -> Iterator[Diagnostic]:
    """Pods that claim devices and ask for no CPU in the container with them: kube-scheduler takes them for free."""
    served = {one.extended_resource_name for one in snapshot.classes} - {None}
    found = [
        pod
        for pod in snapshot.pods
        if not pod.bound and (_claims(pod, snapshot) or not served.isdisjoint(requested_resources(pod)))
        if not (_requests_cpu(pod, _with_devices(pod, served)) or _of_one_size(pod, catalog))
    ]
    if found:
        yield surprise(
            f"Pod {found[0].key}",
            ("spec", "containers", next(iter(_with_devices(found[0], served)), 0), "resources", "requests"),
            "asks for devices and requests no cpu: the smallest machine with the device is enough for it",
            "request the cpu and memory that it uses",
            found[0].origin,
            others=len(found) - 1,
        )


def _of_one_size(pod: Pod, catalog: Catalog) -> bool:
    """True if the pod selects one instance type, or accelerators of which all machines have the same number: its
    requests change nothing about the machine."""
    if any(len(set(values)) == 1 for values in pod.required_values(TYPE_KEYS)):
        return True
    selected = ((key, values) for key in pod.selected_labels for values in pod.required_values({key}))
    named = {card for key, values in selected for value in values for card in accelerators_named(key, value, catalog)}
    sizes = {one.device_count for one in catalog if one.accelerator and one.accelerator.key in named and not one.share}
    return len(sizes) == 1


def _claims(pod: Pod, snapshot: Snapshot) -> bool:
    return any(entry.claim and f"{pod.namespace}/{entry.claim}" in snapshot.claims for entry in pod.claims)


def _with_devices(pod: Pod, served: Set[str | None]) -> dict[int, Container]:
    """Its containers that use devices, by their index: what others beside them request is not for the same program."""
    return {i: one for i, one in enumerate(pod.containers) if one.claims or served & one.requests.keys()}


def _requests_cpu(pod: Pod, having: Mapping[int, Container]) -> bool:
    """True if its containers `having` devices request CPU, or any of it where none is known to have them."""
    own = tuple(having.values()) or (*pod.containers, *(one for one in pod.init_containers if not one.sidecar))
    amounts = [container.requests for container in own]
    amounts += [pod.pod_requests] if pod.pod_requests is not None else []
    return any("cpu" in requests and requests["cpu"].sign > 0 for requests in amounts)

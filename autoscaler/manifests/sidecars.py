"""Containers that the webhooks of clouds add to a pod when it is created, which files therefore lack."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from autoscaler.model.pod import Container, Pod
from instance_catalog.kubernetes.quantity import Quantity, QuantityError
from instance_catalog.types.clouds import Sidecar, cloud_facts


def with_sidecars(pod: Pod) -> Pod:
    """The pod with those that it asks for by annotations and does not have. Pods of a cluster have them."""
    annotations = pod.annotations
    known = {container.name for container in (*pod.containers, *pod.init_containers)}
    added = tuple(
        _container(sidecar, annotations)
        for facts in cloud_facts().values()
        for sidecar in facts.sidecars
        if annotations.get(sidecar.annotation) == "true" and sidecar.name not in known
    )
    return replace(pod, init_containers=(*added, *pod.init_containers)) if added else pod


def _container(sidecar: Sidecar, annotations: Mapping[str, str]) -> Container:
    requests = {name: _amount(f"{sidecar.prefix}{name}", annotations) for name in sidecar.requests}
    asked = sidecar.requests.with_items({name: amount for name, amount in requests.items() if amount is not None})
    return Container(sidecar.name, asked, sidecar=True)


def _amount(prefix: str, annotations: Mapping[str, str]) -> Quantity | None:
    """What annotations say that it requests; a limit alone is the request, too. What cannot be read says nothing."""
    for form in ("request", "limit"):
        text = annotations.get(f"{prefix}-{form}")
        try:
            found = Quantity.parse(text) if text else None
        except QuantityError:
            return None
        if found is not None and (form == "request" or found.sign > 0):
            return found
    return None

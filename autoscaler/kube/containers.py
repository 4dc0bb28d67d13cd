"""Containers as far as they decide where a pod fits: effective requests, host ports, claims used."""

from __future__ import annotations

from collections.abc import Iterable

from autoscaler.kube.fields import Fields
from autoscaler.model.pod import Container, HostPort
from autoscaler.model.requests import together
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.quantity import Quantity

_IGNORED = (
    "args",
    "command",
    "env",
    "envFrom",
    "imagePullPolicy",
    "lifecycle",
    "livenessProbe",
    "readinessProbe",
    "resizePolicy",
    "securityContext",
    "startupProbe",
    "stdin",
    "stdinOnce",
    "terminationMessagePath",
    "terminationMessagePolicy",
    "tty",
    "volumeDevices",
    "volumeMounts",
    "workingDir",
)
# Only these resources have a pod-level default from pod-level limits (pkg/apis/core/v1/defaults.go, v1.36.3).
_POD_LEVEL = ("cpu", "memory")


def parse_container(fields: Fields, *, init: bool, host_network: bool) -> tuple[Container, tuple[str, ...]]:
    """A container and the names of its unknown fields."""
    fields.ignore(*_IGNORED)
    resources = fields.child("resources")
    container = Container(
        name=fields.required("name"),
        requests=effective_requests(resources),
        sidecar=init and fields.text("restartPolicy") == "Always",
        host_ports=tuple(_host_ports(fields, host_network=host_network)),
        claims=tuple(entry.text("name") for entry in resources.children("claims")),
        image=fields.text("image"),
        restarts_all=any(
            rule.text("action") == "RestartAllContainers" for rule in fields.children("restartPolicyRules")
        ),
    )
    fields.ignore("restartPolicy")
    return container, (*resources.unread(), *fields.unread())


def resource_list(fields: Fields, name: str) -> FrozenMap[str, Quantity]:
    """A ResourceList as the API server keeps it: rounded up to thousandths (core/v1 defaults.go, v1.36.3)."""
    found = fields.quantities(name)
    return FrozenMap({key: q if q.scale >= -3 else Quantity(q.milli(), -3, q.format) for key, q in found.items()})


def effective_requests(resources: Fields) -> FrozenMap[str, Quantity]:
    """Requests, completed by limits without a request (the API server's default)."""
    limits, requests = resource_list(resources, "limits"), resource_list(resources, "requests")
    for name, wanted in requests.items():
        if name in limits and limits[name] < wanted:
            message = f"request {wanted} of {name} is above its limit {limits[name]}"
            resources.error("requests", message, "raise the limit or lower the request")
    return FrozenMap({**limits, **requests})


def pod_level_requests(
    resources: Fields | None, containers: Iterable[Container], init_containers: Iterable[Container]
) -> FrozenMap[str, Quantity] | None:
    """Pod-level requests (KEP-2837), None without any pod-level resources.

    Once there is a limit, what containers ask for together stands in for a missing request, or else the limit does
    (defaultPodRequests in pkg/apis/core/v1/defaults.go, v1.36.3).
    """
    if resources is None:
        return None
    limits, requests = resource_list(resources, "limits"), resource_list(resources, "requests")
    if not limits and not requests:
        return None
    resources.unread()
    if not limits:
        return requests
    asked = {name: amount for name, amount in together(containers, init_containers).items() if name in _POD_LEVEL}
    defaults = {name: limit for name, limit in limits.items() if name.startswith("hugepages-") or name in _POD_LEVEL}
    return FrozenMap({**defaults, **asked, **requests})


def _host_ports(fields: Fields, *, host_network: bool) -> Iterable[HostPort]:
    for entry in fields.children("ports"):
        entry.ignore("name")
        container_port = entry.integer("containerPort")
        port = entry.integer("hostPort") or (container_port if host_network else 0)
        found = HostPort(port, entry.text("protocol") or "TCP", entry.text("hostIP"))
        entry.unread()
        if port:
            yield found

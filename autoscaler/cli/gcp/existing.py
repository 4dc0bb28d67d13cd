"""Finds ProvisioningRequests and PodTemplates of a cluster that a command is about to write."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

import click

from autoscaler.cli.common.live import connected
from autoscaler.cluster.api import NotFoundError
from autoscaler.cluster.client.client import KubernetesClient
from autoscaler.cluster.client.kubeconfig import default_namespace
from autoscaler.cluster.resources import POD_TEMPLATES, PROVISIONING_REQUESTS, Resource
from autoscaler.manifests.queued.requests import QueuedRequest

_RESOURCES: Final[Mapping[str, Resource]] = MappingProxyType(
    {resource.kind: resource for resource in (POD_TEMPLATES, PROVISIONING_REQUESTS)}
)


def existing_objects(
    requests: Sequence[QueuedRequest], kubeconfig: str, context: str
) -> frozenset[tuple[str, str, str]]:
    """(kind, namespace, name) of what exists, with namespaces as the requests name them. Raises ApiError when the
    cluster cannot be asked."""
    client = connected(kubeconfig, context)
    default = default_namespace(kubeconfig=kubeconfig, context=context)
    wanted = dict.fromkeys((kind, one.namespace, name) for one in requests for kind, name in one.names())
    served = {kind: _served(client, kind, one.namespace or default) for one in requests[:1] for kind in _RESOURCES}
    return frozenset(
        (kind, namespace, name)
        for kind, namespace, name in wanted
        if served[kind] and _exists(client, _RESOURCES[kind], name, namespace or default)
    )


def _served(client: KubernetesClient, kind: str, namespace: str) -> bool:
    """True if the cluster serves the kind: without it no object of it exists, and none can be applied."""
    try:
        client.list(_RESOURCES[kind], namespace=namespace, limit=1)
    except NotFoundError:
        version = _RESOURCES[kind].api_version
        click.echo(f"note: {client.server} has no {kind} of {version}: is it the GKE cluster?", err=True)
        return False
    return True


def _exists(client: KubernetesClient, resource: Resource, name: str, namespace: str) -> bool:
    try:
        client.get(resource, name, namespace=namespace)
    except NotFoundError:
        return False
    return True

"""The client does on a real API server what every KubernetesApi must do; and what only a real one shows."""

from __future__ import annotations

from typing import Final

import pytest

from autoscaler.clock import SystemClock
from autoscaler.cluster.api import ForbiddenError, NotFoundError, UnavailableError
from autoscaler.cluster.client.client import KubernetesClient
from autoscaler.cluster.client.transport import connect
from autoscaler.cluster.resources import DEVICE_CLASSES, NODES, POD_GROUPS, PODS, Resource
from autoscaler.errors import ConfigurationError
from tests.conformance.kubernetes_api import *  # noqa: F403  # every check of the module is a test here
from tests.conformance.kubernetes_api import pod
from tests.e2e.harness.binary import version
from tests.e2e.harness.control_plane import ControlPlane

DEFINITIONS: Final = Resource("apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition")
THINGS: Final = Resource("conformance.foreslice.dev", "v1", "things", "Thing")


def client_for(control_plane: ControlPlane, user: str, *groups: str) -> KubernetesClient:
    clock = SystemClock()
    return KubernetesClient(connect(clock, kubeconfig=str(control_plane.identity(user, *groups))), clock)


@pytest.fixture
def api(control_plane: ControlPlane) -> KubernetesClient:
    return client_for(control_plane, "conformance", "system:masters")


@pytest.fixture
def expired(control_plane: ControlPlane, api: KubernetesClient) -> tuple[Resource, str]:
    """A resource that was not there yet at a version: the API server's cache begins later."""
    names = {"plural": THINGS.plural, "singular": "thing", "kind": THINGS.kind}
    schema = {"openAPIV3Schema": {"type": "object"}}
    versions = [{"name": THINGS.version, "served": True, "storage": True, "schema": schema}]
    spec = {"group": THINGS.group, "names": names, "scope": "Cluster", "versions": versions}
    api.create(DEFINITIONS, {"metadata": {"name": str(THINGS)}, "spec": spec})

    def served() -> bool:
        try:
            return api.list(THINGS).items == ()
        except NotFoundError:
            return False

    control_plane.wait_until(served, "a custom resource")
    return THINGS, "1"


def test_the_profile_is_read_from_the_server(api: KubernetesClient) -> None:
    assert api.profile().name == version()


def test_a_kind_that_is_not_served_is_not_found(api: KubernetesClient) -> None:
    with pytest.raises(NotFoundError, match="does not serve its kind"):
        api.list(POD_GROUPS)


def test_what_the_role_does_not_grant_is_forbidden(control_plane: ControlPlane) -> None:
    nobody = client_for(control_plane, "nobody")
    with pytest.raises(ForbiddenError, match='User "nobody" cannot list resource "nodes"'):
        nobody.list(NODES)
    with pytest.raises(ForbiddenError):
        nobody.create(PODS, pod("never"))
    with pytest.raises(ForbiddenError):
        next(nobody.watch(DEVICE_CLASSES, resource_version="1", timeout_seconds=20))


def test_an_unknown_context_is_named(control_plane: ControlPlane) -> None:
    kubeconfig = str(control_plane.identity("conformance", "system:masters"))
    with pytest.raises(ConfigurationError, match="nowhere"):
        connect(SystemClock(), kubeconfig=kubeconfig, context="nowhere")


def test_a_server_that_is_not_there_is_unavailable(control_plane: ControlPlane) -> None:
    path = control_plane.identity("elsewhere", "system:masters")
    port = control_plane.url.rpartition(":")[2]
    path.write_text(path.read_text().replace(f":{port}", ":1"))
    clock = SystemClock()
    with pytest.raises(UnavailableError, match="no answer from"):
        KubernetesClient(connect(clock, kubeconfig=str(path)), clock).create(PODS, pod("never"))

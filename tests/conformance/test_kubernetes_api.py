"""The in-memory API server does what every KubernetesApi must do."""

from __future__ import annotations

import pytest

from autoscaler.clock import VirtualClock
from autoscaler.cluster.resources import NAMESPACES, Resource
from autoscaler.simulation.api_server import ApiServer
from tests.conformance.kubernetes_api import *  # noqa: F403  # every check of the module is a test here


@pytest.fixture
def api() -> ApiServer:
    server = ApiServer(VirtualClock())
    for name in ("default", "kube-system"):
        server.create(NAMESPACES, {"metadata": {"name": name}})
    return server


@pytest.fixture
def expired(api: ApiServer) -> tuple[Resource, str]:
    version = api.list(NAMESPACES).resource_version
    api.create(NAMESPACES, {"metadata": {"name": "later"}})
    api.compact()
    return NAMESPACES, version

"""What the process is put together from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import pytest

from autoscaler.cluster.api import ForbiddenError
from autoscaler.cluster.client.client import KubernetesClient
from autoscaler.cluster.lease import LeadershipLostError
from autoscaler.cluster.resources import NODES
from autoscaler.composition.build import leaders_only, profile_when_ready
from instance_catalog.kubernetes.profile import REFERENCE, KubernetesProfile
from providers.contract import Clock
from tests.desk import new_desk

NODE = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}}


def test_a_replica_that_does_not_lead_any_more_reads_and_writes_nothing() -> None:
    leading = True
    desk = new_desk()
    api = leaders_only(desk.api, lambda: leading)
    api.create(NODES, NODE)
    leading = False
    for write in (
        lambda: api.patch(NODES, "n1", {"metadata": {"labels": {"a": "b"}}}),
        lambda: api.delete(NODES, "n1"),
        lambda: api.update(NODES, NODE),
        lambda: api.evict("p", namespace="default"),
    ):
        with pytest.raises(LeadershipLostError):
            write()
    assert "labels" not in api.get(NODES, "n1")["metadata"]


@dataclass
class Starting:
    """An API server that forbids everything until it has read its roles."""

    refusals: int
    asked: int = 0

    def profile(self, _gates: str = "") -> KubernetesProfile:
        self.asked += 1
        if self.asked <= self.refusals:
            raise ForbiddenError("GET /version: forbidden (403)")
        return REFERENCE


@dataclass
class Waits:
    """How long somebody waited."""

    seconds: float = 0

    def wait(self, seconds: float) -> None:
        self.seconds += seconds


def test_an_api_server_that_starts_is_asked_again() -> None:
    clock, server = Waits(), Starting(refusals=2)
    assert profile_when_ready(cast(KubernetesClient, server), "", cast(Clock, clock)) is REFERENCE
    assert (server.asked, clock.seconds) == (3, 2)


def test_what_stays_forbidden_is_said() -> None:
    clock, server = Waits(), Starting(refusals=100)
    with pytest.raises(ForbiddenError):
        profile_when_ready(cast(KubernetesClient, server), "", cast(Clock, clock))
    assert clock.seconds == 10

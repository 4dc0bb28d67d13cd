"""Pods wait for a CapacityBlock that begins soon: whole lives under the production loop, in virtual time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cache
from typing import Any

import pytest

from autoscaler.cluster.api import Object, list_all
from autoscaler.cluster.resources import (
    CAPACITY_BLOCKS,
    CAPACITY_POOLS,
    CLAIM_TEMPLATES,
    EVENTS,
    NODES,
    PODS,
    PROVISIONED_NODES,
)
from autoscaler.kube.custom.schema import moment_text
from autoscaler.simulation.simulation import TEMPLATE_KIND, Simulation
from instance_catalog.files.loader import load_catalog
from instance_catalog.types.catalog import Catalog
from instance_catalog.types.instance_type import CapacityType
from providers.contract import OfferingKey
from tests.crash.life import START

MINUTE = timedelta(minutes=1)
TYPE, ZONE = "g6.12xlarge", "us-east-1a"
BEGINS = START + 20 * MINUTE
LATER = START + 40 * MINUTE
# Minutes after which the simulation has a machine that was asked for, and the pod runs.
BOOTS = 5


@cache
def one_type() -> Catalog:
    return Catalog.of([load_catalog().get(TYPE)])


def pool(name: str, capacity_type: str) -> Object:
    zone = {"key": "topology.kubernetes.io/zone", "operator": "In", "values": [ZONE]}
    return {
        "metadata": {"name": name},
        "spec": {
            "mode": "Act",
            "requirements": [zone],
            "capacityTypes": [capacity_type],
            "nodeTemplateRef": {"kind": TEMPLATE_KIND, "name": name},
            "drivers": {"profiles": ["nvidia"]},
            "limits": {"nodes": 10},
        },
    }


@dataclass
class Cluster:
    """A cluster with on-demand machines and a block of one machine that begins in twenty minutes."""

    max_wait: str = "30m"
    really: timedelta = timedelta(0)  # how much later than said the machines are there
    running: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.simulation = Simulation(catalog=one_type(), start=START)
        self.cloud, self.api = self.simulation.cloud, self.simulation.api
        key = OfferingKey(TYPE, ZONE, CapacityType.CAPACITY_BLOCK)
        ends = BEGINS + timedelta(hours=24)
        self.offering = self.cloud.reserve("cr-1", key, count=1, starts_at=BEGINS + self.really, ends_at=ends)
        for name in ("capacity-block", "on-demand"):
            self.api.create(CAPACITY_POOLS, pool(name, name))
        block = {
            "pool": "capacity-block",
            "reservation": "cr-1",
            "instanceType": TYPE,
            "zone": ZONE,
            "count": 1,
            "startsAt": moment_text(BEGINS),
            "endsAt": moment_text(ends),
            "maxWait": self.max_wait,
            "taint": {"effect": "None"},
        }
        self.api.create(CAPACITY_BLOCKS, {"metadata": {"name": "soon"}, "spec": block})
        request = {"name": "gpu", "exactly": {"deviceClassName": "gpu.nvidia.com", "count": 4}}
        spec = {"spec": {"devices": {"requests": [request]}}}
        self.api.create(CLAIM_TEMPLATES, {"metadata": {"name": "gpus"}, "spec": spec})

    def submit(self, name: str, **annotations: str) -> None:
        claims = [{"name": "gpu", "resourceClaimTemplateName": "gpus"}]
        spec: dict[str, Any] = {"containers": [{"name": "main"}], "resourceClaims": claims}
        self.api.create(
            PODS,
            {"metadata": {"name": name, "namespace": "default", "annotations": dict(annotations)}, "spec": spec},
        )

    def at(self, minutes: float) -> None:
        """Live until so many minutes after the start."""
        self.simulation.run(START + minutes * MINUTE)

    def where(self) -> dict[str, str]:
        """The capacity type of the nodes on which pods run."""
        nodes = {n["metadata"]["name"]: n["metadata"]["labels"] for n in self.api.list(NODES).items}
        pods = (p for p in self.api.list(PODS).items if p.get("status", {}).get("phase") == "Running")
        return {p["metadata"]["name"]: nodes[p["spec"]["nodeName"]]["foreslice.dev/capacity-type"] for p in pods}

    def launched(self) -> list[str]:
        """The capacity types of everything that was ever launched and is not gone."""
        found = self.api.list(PROVISIONED_NODES).items
        return sorted(node["spec"]["pool"] for node in found)

    def events(self, pod: str) -> list[tuple[str, str]]:
        events, _ = list_all(self.api, EVENTS)
        return [(e["reason"], e["message"]) for e in events if e["involvedObject"]["name"] == pod]


def test_the_pod_waits_and_runs_on_the_block() -> None:
    cluster = Cluster()
    cluster.submit("a")
    cluster.at(19)
    assert cluster.launched() == []
    assert ("WaitsForBlock", "waits for CapacityBlock soon, which begins at ") in [
        (reason, message.partition(": ")[2].partition("20")[0]) for reason, message in cluster.events("a")
    ]
    cluster.at(30)
    assert (cluster.where(), cluster.launched()) == ({"a": "capacity-block"}, ["capacity-block"])


def test_its_event_is_written_once() -> None:
    cluster = Cluster()
    cluster.submit("a")
    cluster.at(19)
    assert [reason for reason, _ in cluster.events("a")].count("WaitsForBlock") == 1


@pytest.mark.parametrize(("max_wait", "annotations"), [("0s", {}), ("30m", {"foreslice.dev/max-wait": "5m"})])
def test_nobody_waits_longer_than_told(max_wait: str, annotations: dict[str, str]) -> None:
    cluster = Cluster(max_wait)
    cluster.submit("a", **annotations)
    cluster.at(10)
    assert cluster.where() == {"a": "on-demand"}


def test_the_second_pod_gets_a_machine_at_once() -> None:
    cluster = Cluster()
    cluster.submit("a")
    cluster.submit("b")
    cluster.at(10)
    assert cluster.launched() == ["on-demand"]
    cluster.at(30)
    assert sorted(cluster.where().values()) == ["capacity-block", "on-demand"]


def gone(cluster: Cluster) -> None:
    """The reservation is not there any more."""
    del cluster.cloud.holdings["cr-1"]


def taken(cluster: Cluster) -> None:
    """Somebody else of the account uses the machine."""
    cluster.cloud.take("cr-1", 1)


def refused(cluster: Cluster) -> None:
    """Launches into it fail."""
    cluster.cloud.quota(CapacityType.CAPACITY_BLOCK, 0)


@pytest.mark.parametrize(("harm", "late"), [(gone, 0), (taken, 2), (refused, 0)])
def test_a_block_that_fails_costs_nothing_but_the_wait(harm: Callable[[Cluster], None], late: int) -> None:
    """Machines that are only not counted may be there within two minutes; other failures are seen at once."""
    cluster = Cluster()
    cluster.submit("a")
    cluster.at(15)
    harm(cluster)
    cluster.at(20 + late + BOOTS)
    assert cluster.where() == {"a": "on-demand"}


def test_a_block_that_is_late_costs_two_minutes_more() -> None:
    cluster = Cluster(really=timedelta(hours=1))
    cluster.submit("a")
    cluster.at(21.5)
    assert cluster.launched() == []
    cluster.at(22.5)
    assert cluster.launched() == ["on-demand"]


def test_a_block_that_is_postponed_does_not_keep_it_waiting() -> None:
    cluster = Cluster()
    cluster.submit("a")
    cluster.at(15)
    block = cluster.api.get(CAPACITY_BLOCKS, "soon")
    cluster.api.update(CAPACITY_BLOCKS, block | {"spec": block["spec"] | {"startsAt": moment_text(LATER)}})
    cluster.at(16)
    assert cluster.launched() == ["on-demand"]


def test_an_event_does_not_change_with_each_boot_that_is_seen() -> None:
    cluster = Cluster("0s")
    cluster.submit("a")
    cluster.at(10)
    cluster.submit("b")
    cluster.at(11)
    (first,), (second,) = ([m for r, m in cluster.events(name) if r == "TriggeredScaleUp"] for name in ("a", "b"))
    assert "ready in" not in first + second

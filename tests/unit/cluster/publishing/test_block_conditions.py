"""A block that cannot be used says so: condition, event and status.note, from what EC2 answers to the API."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from autoscaler.cluster.resources import AWS_NODE_TEMPLATES, CAPACITY_BLOCKS, CAPACITY_POOLS, EVENTS
from autoscaler.kube.custom.schema import moment_text
from autoscaler.simulation.api_server import ApiServer
from tests.aws import Rig
from tests.fakes.ec2 import refused
from tests.unit.cluster.publishing.test_template_status import SPEC, loop_of

DAY = timedelta(days=1)


class Cluster:
    """A pool on AWS with one block of two p5.48xlarge, and the loop on both."""

    def __init__(self, zone: str = "us-east-1a", **details: Any) -> None:
        self.rig = Rig()
        self.api = ApiServer(self.rig.clock)
        self.held = self.rig.fake.account.block("p5.48xlarge", zone, 2, starts_in=timedelta(0), lasts=DAY, **details)
        self.template = {**SPEC, "subnets": [{"id": "subnet-00000000000000000"}]}
        self.loop = loop_of(self.rig, self.api)

    def ticked(self, **changes: Any) -> tuple[str, str, str]:
        """The condition Ready of the block after a tick; `changes` are fields of its spec."""
        now = self.rig.clock.now()
        block = {
            "pool": "gpu",
            "reservation": self.held.id,
            "instanceType": "p5.48xlarge",
            "zone": self.held.zone,
            "count": 2,
            "startsAt": moment_text(now),
            "endsAt": moment_text(now + DAY),
            **changes,
        }
        pool = {"nodeTemplateRef": {"kind": "AWSNodeTemplate", "name": "gpu"}, "limits": {"nodes": 4}}
        for resource, name, spec in (
            (AWS_NODE_TEMPLATES, "gpu", self.template),
            (CAPACITY_POOLS, "gpu", pool),
            (CAPACITY_BLOCKS, "b", block),
        ):
            self.api.create(resource, {"metadata": {"name": name}, "spec": spec})
        self.loop.tick()
        (ready,) = self.api.get(CAPACITY_BLOCKS, "b")["status"]["conditions"]
        return ready["status"], ready["reason"], ready["message"]

    def told(self, kind: str) -> list[str]:
        return [e["reason"] for e in self.api.list(EVENTS).items if e["involvedObject"]["kind"] == kind]


def test_a_block_that_can_be_used() -> None:
    cluster = Cluster()
    assert cluster.ticked() == ("True", "Accepted", "")
    assert cluster.told("CapacityBlock") == []


@pytest.mark.parametrize(
    ("details", "changes", "reason", "message"),
    [
        pytest.param({"paid_at": None}, {}, "ReservationNotUsable", "not paid yet", id="not paid"),
        pytest.param({"override": "unavailable"}, {}, "ReservationNotUsable", "AWS Support", id="broken"),
        pytest.param({"override": "cancelled"}, {}, "ReservationNotUsable", "cancelled", id="cancelled"),
        pytest.param(
            {}, {"reservation": "cr-0"}, "ReservationNotUsable", "check the id and the region", id="no such id"
        ),
        pytest.param({"zone": "us-east-1b"}, {}, "NoSubnetInZone", "create a subnet in us-east-1b", id="no subnet"),
    ],
)
def test_a_block_that_cannot(details: dict[str, Any], changes: dict[str, Any], reason: str, message: str) -> None:
    cluster = Cluster(**details)
    status, found, text = cluster.ticked(**changes)
    assert (status, found) == ("False", reason)
    assert message in text
    assert cluster.told("CapacityBlock") == [reason]


def test_a_block_that_is_over_says_so_without_alarm() -> None:
    cluster = Cluster()
    cluster.rig.clock.advance(DAY)
    status, reason, message = cluster.ticked(endsAt=moment_text(cluster.rig.clock.now() + DAY))
    assert (status, reason) == ("False", "Ended")
    assert "delete the object" in message
    (event,) = [e for e in cluster.api.list(EVENTS).items if e["involvedObject"]["kind"] == "CapacityBlock"]
    assert (event["type"], event["reason"]) == ("Normal", "Ended")


def test_a_provider_that_does_not_answer_is_told_and_changes_nothing() -> None:
    cluster = Cluster()
    cluster.rig.fake.faults.inject("DescribeInstances", refused("UnauthorizedOperation", status=403))
    assert cluster.ticked(reservation="cr-0") == ("True", "Accepted", "")
    assert cluster.told("Provider") == ["Permission"]

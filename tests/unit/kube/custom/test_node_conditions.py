"""The conditions of a ProvisionedNode: what `kubectl wait` can wait for."""

from __future__ import annotations

from datetime import datetime, timedelta
from decimal import Decimal

import pytest

from autoscaler.clock import EPOCH
from autoscaler.kube.custom.provisioned_node import write_provisioned_node
from autoscaler.model.provisioned_node import OfferingRef, Phase, PhaseChange, Prediction, ProvisionedNode
from instance_catalog.dataclass import replace
from instance_catalog.types.instance_type import CapacityType

OFFERING = OfferingRef("p5.4xlarge", "z", CapacityType.ON_DEMAND, Decimal("6.88"))
NEW = ProvisionedNode("n", "gpu", "n", "b", (OFFERING,), Prediction("p5.4xlarge", (), "c", "s"))


def at(minutes: int) -> datetime:
    return EPOCH + timedelta(minutes=minutes)


LIFE = (
    PhaseChange(Phase.LAUNCHING, at(0), "CallRecorded"),
    PhaseChange(Phase.LAUNCHED, at(1), "Obtained"),
    PhaseChange(Phase.REGISTERED, at(2), "NodeRegistered"),
    PhaseChange(Phase.DRIVERS_READY, at(3), "SlicesComplete"),
    PhaseChange(Phase.READY, at(4), ""),
)


def lived(steps: int) -> ProvisionedNode:
    phase, moment, _ = LIFE[steps - 1]
    return replace(NEW, phase=phase, phase_since=moment, history=LIFE[:steps])


DRAINING = replace(lived(5), phase=Phase.DRAINING, phase_since=at(9))


@pytest.mark.parametrize(
    ("node", "told"),
    [
        pytest.param(NEW, {}, id="not-begun"),
        pytest.param(
            lived(2),
            {
                "Launched": ("True", "Obtained", 1),
                "Registered": ("False", "NotYet", 0),
                "DriversReady": ("False", "NotYet", 0),
                "Ready": ("False", "NotYet", 0),
            },
            id="has-a-machine",
        ),
        pytest.param(
            lived(5),
            {
                "Launched": ("True", "Obtained", 1),
                "Registered": ("True", "NodeRegistered", 2),
                "DriversReady": ("True", "SlicesComplete", 3),
                "Ready": ("True", "Ready", 4),
            },
            id="ready",
        ),
        pytest.param(DRAINING, {"Ready": ("False", "Draining", 9)}, id="on-its-way-out"),
        pytest.param(
            replace(lived(5), unhealthy_since=at(7)),
            {"Ready": ("False", "NodeNotReady", 7)},
            id="its-node-is-not-ready",
        ),
    ],
)
def test_milestones(node: ProvisionedNode, told: dict[str, tuple[str, str, int]]) -> None:
    conditions = {found["type"]: found for found in write_provisioned_node(node)["status"]["conditions"]}
    assert set(conditions) == ({"Launched", "Registered", "DriversReady", "Ready"} if told else set())
    for name, (status, reason, minutes) in told.items():
        found = conditions[name]
        assert (found["status"], found["reason"]) == (status, reason)
        assert datetime.fromisoformat(found["lastTransitionTime"]) == at(minutes)
        assert found["observedGeneration"] == 1

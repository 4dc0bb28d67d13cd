"""A LaunchBatch comes back from the API as it was written; a status that does not belong to its spec is refused."""

from __future__ import annotations

from typing import Any

import pytest

from autoscaler.errors import BadInputError
from autoscaler.kube.custom.launch_batch import parse_launch_batch, write_launch_batch
from autoscaler.model.capacity import NodeTemplateRef
from autoscaler.model.provisioned_node import BatchMember, BatchOutcome, LaunchBatch
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.quantity import Quantity
from instance_catalog.kubernetes.taint import Taint
from tests.unit.kube.custom.test_seam import NODE, PREDICTION

BATCH = LaunchBatch(
    name="b-1",
    pool="research",
    members=(
        BatchMember("research-x1", ("default/train-0",), "i-1", NODE.offerings[1]),
        BatchMember("research-x2"),
    ),
    offerings=NODE.offerings,
    attempt=1,
    token="t-1",
    parameter_hash="h",
    answered=True,
    outcome=BatchOutcome.CALLING,
    uid="u-4",
    resource_version="18",
    minimum=2,
    provider="simulated",
    prediction=PREDICTION,
    labels=FrozenMap({"team": "research"}),
    taints=(Taint("team", "research", "NoExecute"),),
    kubelet_reserved=FrozenMap({"cpu": Quantity.parse("1")}),
    template=NodeTemplateRef("KwokNodeTemplate", "default"),
)

OFFERING = {"instanceType": "s1", "zone": "any", "capacityType": "on-demand", "usdPerHour": "1.00"}
SPEC: dict[str, Any] = {"pool": "p", "nodes": ["n1", "n2"], "offerings": [OFFERING, OFFERING]}


def batch(spec: dict[str, Any], status: dict[str, Any]) -> dict[str, Any]:
    return {"metadata": {"name": "b"}, "spec": {**SPEC, **spec}, "status": status}


@pytest.mark.parametrize(
    "status",
    [
        pytest.param({}, id="nothing-was-asked-yet"),
        pytest.param({"outcome": "Calling", "attempt": 1}, id="the-last-attempt"),
        pytest.param({"instances": ["i-1", ""], "obtained": [1, -1], "attempt": 1}, id="half-of-it"),
        pytest.param(
            {"instances": ["i-1", ""], "obtained": [1, -1], "attempt": 2, "outcome": "Launched"}, id="no-offering-left"
        ),
    ],
)
def test_what_a_launch_leaves_behind_is_read(status: dict[str, Any]) -> None:
    assert parse_launch_batch(batch({}, status)).nodes == ("n1", "n2")


@pytest.mark.parametrize(
    ("spec", "status"),
    [
        pytest.param({}, {"instances": ["i-1"], "obtained": [0]}, id="a-machine-for-one-of-two-nodes"),
        pytest.param({}, {"instances": ["i-1", "i-2"]}, id="machines-of-no-offering"),
        pytest.param({}, {"instances": ["i-1", "i-2"], "obtained": [0, 2]}, id="an-offering-that-was-not-asked-for"),
        pytest.param({}, {"instances": ["i-1", "i-2"], "obtained": [0, -1]}, id="a-machine-that-was-not-obtained"),
        pytest.param({}, {"attempt": 2, "outcome": "Calling"}, id="an-attempt-at-nothing"),
        pytest.param({"pods": [["default/a"]]}, {}, id="pods-for-one-of-two-nodes"),
    ],
)
def test_what_cannot_be_ours_is_refused(spec: dict[str, Any], status: dict[str, Any]) -> None:
    with pytest.raises(BadInputError, match="LaunchBatch 'b' cannot be read: its status is not one of its nodes"):
        parse_launch_batch(batch(spec, status))


@pytest.mark.parametrize(
    "batch",
    [
        pytest.param(BATCH, id="every field"),
        pytest.param(LaunchBatch("b", "p", (BatchMember("n"),), NODE.offerings), id="defaults"),
    ],
)
def test_a_launch_batch_survives_the_way_there_and_back(batch: LaunchBatch) -> None:
    assert parse_launch_batch(write_launch_batch(batch)) == batch

"""What is no label is refused in what people write; records that an earlier version made with it stay readable."""

from __future__ import annotations

import pytest

from autoscaler.kube.custom.capacity_block import parse_capacity_block
from autoscaler.kube.custom.capacity_pool import parse_capacity_pool
from autoscaler.kube.custom.launch_batch import parse_launch_batch, write_launch_batch
from autoscaler.kube.custom.provisioned_node import parse_provisioned_node, write_provisioned_node
from autoscaler.kube.problem import Problems
from tests.e2e.harness.custom_objects import BATCH, FULL, NODE

FLAG = "x --anonymous-auth=true"


@pytest.mark.parametrize(
    ("change", "field"),
    [
        pytest.param({"labels": {"team": FLAG}}, "spec.labels.team", id="value"),
        pytest.param({"labels": {"a b": "x"}}, "spec.labels", id="key"),
        pytest.param({"taints": [{"key": FLAG, "effect": "NoSchedule"}]}, "spec.taints[0].key", id="taint key"),
        pytest.param(
            {"startupTaints": [{"key": "a", "value": "x\n", "effect": "NoSchedule"}]},
            "spec.startupTaints[0].value",
            id="startup taint value",
        ),
    ],
)
def test_a_pool_that_asks_for_it_is_refused_with_the_field(change: object, field: str) -> None:
    problems = Problems()
    assert isinstance(change, dict)
    raw = {"metadata": {"name": "gpu"}, "spec": {**FULL["CapacityPool"], **change}}
    assert parse_capacity_pool(raw, problems) is None
    (problem,) = problems
    assert problem.field == field
    assert problem.next_step


def test_a_block_that_asks_for_it_is_refused_with_the_field() -> None:
    problems = Problems()
    spec = {**FULL["CapacityBlock"], "taint": {"key": "a", "value": "x y"}}
    assert parse_capacity_block({"metadata": {"name": "b"}, "spec": spec}, problems) is None
    assert [problem.field for problem in problems] == ["spec.taint.value"]


def test_records_of_machines_stay_readable() -> None:
    batch = write_launch_batch(BATCH)
    batch["spec"] |= {"labels": {"a b": FLAG}, "taints": [{"key": FLAG, "value": FLAG, "effect": "NoSchedule"}]}
    assert dict(parse_launch_batch(batch).labels) == {"a b": FLAG}
    node = write_provisioned_node(NODE)
    node["spec"]["labels"] = {"a b": FLAG}
    assert dict(parse_provisioned_node(node).labels) == {"a b": FLAG}

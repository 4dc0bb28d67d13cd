"""Changes of claims that say the same in the words of the driver."""

from __future__ import annotations

from dataclasses import replace

import pytest

from autoscaler.advice.advise import advise
from autoscaler.advice.change import ChangeKind
from autoscaler.planning.planner import plan_for
from autoscaler.planning.policy import Policy
from autoscaler.report.advice_text import advice_lines
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.quantity import Quantity
from tests.builders import NOW, claim, gpus, pod, shipped, snapshot


@pytest.mark.parametrize(
    ("amount", "expected"), [pytest.param("4Gi", True, id="there is as much"), pytest.param("4Ti", False, id="no")]
)
def test_a_capacity_is_named_without_the_domain_of_its_driver(amount: str, expected: bool) -> None:
    wanted = replace(gpus(), capacity=FrozenMap({"gpu.nvidia.com/memory": Quantity.parse(amount)}))
    given, policy, catalog = (
        snapshot([pod("p", "c")], [claim("c", wanted)]),
        Policy(considered=100),
        shipped("g6.xlarge"),
    )
    found = advise(given.pods[0], given, catalog, plan_for(given, catalog, policy, NOW), policy, NOW)
    assert (ChangeKind.RENAME_CAPACITY in {entry.change.kind for entry in found}) == expected
    text = "write memory instead of gpu.nvidia.com/memory in capacity.requests → 1 × g6.xlarge"
    assert any(text in line for line in advice_lines(found)) == expected

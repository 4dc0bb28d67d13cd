"""A plan in which equal nodes are scheduled once, beside the plan that schedules each of them."""

from __future__ import annotations

import pytest

from autoscaler.model.plan import Plan
from autoscaler.model.snapshot import Snapshot
from autoscaler.model.verdict import Fits
from autoscaler.planning.placement.device_states import PodApart
from autoscaler.planning.placement.equal_nodes import EqualNodes
from autoscaler.planning.planner import plan_for
from autoscaler.planning.policy import Policy
from autoscaler.planning.supply.candidates import Candidate
from instance_catalog.types.catalog import Catalog
from tests.builders import NOW


def scheduled_once(state: Snapshot, catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> tuple[Plan, list[bool]]:
    """The plan, which is that of scheduling every node, and for each node whether it repeated an equal one."""
    repeats: list[bool] = []
    known = EqualNodes.repeated

    def counted(self: EqualNodes, candidate: Candidate, pods: tuple[PodApart, ...], node: str) -> list[Fits] | None:
        found = known(self, candidate, pods, node)
        repeats.append(found is not None)
        return found

    monkeypatch.setattr(EqualNodes, "repeated", counted)
    once = plan_for(state, catalog, Policy(), NOW)
    monkeypatch.setattr(EqualNodes, "repeated", lambda *_: None)
    assert once == plan_for(state, catalog, Policy(), NOW)
    return once, repeats

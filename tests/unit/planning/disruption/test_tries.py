"""How many nodes are tried in one reconcile."""

from __future__ import annotations

import pytest

from autoscaler.model.plan import Plan
from autoscaler.model.provisioned_node import Phase
from autoscaler.model.snapshot import Snapshot
from tests.unit.planning.disruption.moving import node, present, served, state, step


@pytest.mark.parametrize(("work", "most"), [(0, 8), (250_000, 8), (500_000, 4), (10_000_000, 2)])
def test_fewer_nodes_while_pending_pods_make_plans_expensive(work: int, most: int) -> None:
    """Each try plans all pending pods again, and pods of others wait for the end of the reconcile."""
    names = [f"n{number:02}" for number in range(20)]
    found = state([served(f"p-{name}", name) for name in names], [node(name) for name in names])
    tries: list[int] = []

    def tried(without: Snapshot) -> Plan:
        tries.append(sum(n.phase is Phase.DRAINING for n in without.provisioned))
        return Plan()

    step(found, tried, plan=present(found, work=work))
    assert tries.count(1) == most
    assert max(tries) == most, "they are tried together, too"

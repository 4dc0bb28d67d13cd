"""`decide` is a pure function: it changes nothing that it is given, and the same input gives the same decisions."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

import pytest

from autoscaler.cluster.resources import CAPACITY_POOLS, PODS
from autoscaler.loop import decision, loop
from autoscaler.loop.decision import Decisions, changed_pairs, charged, decide, forbid, without_pairs
from autoscaler.model.capacity import CapacityPool, ConsolidationPolicy, Disruption, Mode, NodeTemplateRef
from autoscaler.model.plan import NodeAction
from autoscaler.model.provisioned_node import Phase
from autoscaler.model.reason import Code, Reason
from autoscaler.model.snapshot import Quarantine, Snapshot
from autoscaler.planning.disruption.consolidation.tried_moves import MovesTried
from autoscaler.planning.failing_objects import FailingObject
from autoscaler.settings.settings import DEFAULTS, Settings
from autoscaler.simulation.scenario import parse_scenario
from autoscaler.simulation.simulation import TEMPLATE_KIND, Simulation
from instance_catalog.dataclass import replace
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.types.catalog import Catalog
from providers.simulated.machines import Behaviour
from tests.builders import CATALOG, NOW, claim, pod, snapshot
from tests.crash.life import START, scenario, small_catalog
from tests.unit.planning.disruption.moving import node, served, state
from tests.unit.simulation.test_contradictions import SCENARIO, believed, live, with_another_gpu

POOL = CapacityPool("team", mode=Mode.ACT, node_template=NodeTemplateRef(TEMPLATE_KIND, "gpu"))
WAITING = snapshot([pod("a", "a")], [claim("a")], pools=(POOL,))


def decided_twice(monkeypatch: pytest.MonkeyPatch) -> list[Decisions]:
    """Have every decision of a loop made twice, on copies; all of them."""
    made: list[Decisions] = []

    def checked(
        observed: Snapshot,
        catalog: Catalog,
        settings: Settings,
        now: datetime,
        *,
        failing: Mapping[str, FailingObject],
        **given: Any,
    ) -> Decisions:
        before = copy.deepcopy(observed)
        first = decide(observed, catalog, settings, now, failing=failing, **given)
        assert observed == before
        assert decide(before, catalog, settings, now, failing=failing, **given) == first
        made.append(first)
        return first

    monkeypatch.setattr(loop, "decide", checked)
    return made


def test_a_life_with_launches_and_drains_is_decided_by_values_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    made = decided_twice(monkeypatch)
    simulation = Simulation(catalog=small_catalog(), start=START)
    simulation.add(scenario())
    simulation.run(START + timedelta(hours=2))
    assert any(decisions.launches for decisions in made)
    assert any(decisions.plan.nodes for decisions in made)


def test_a_pod_that_is_resized_while_its_node_boots_has_no_type_avoided() -> None:
    simulation = Simulation(catalog=believed(), start=START)
    simulation.new_loop()
    simulation.add(parse_scenario(SCENARIO.replace("limits: {nodes: 4}", "limits: {nodes: 1}")))
    simulation.run(START + timedelta(minutes=1))
    assert [machine.offering.instance_type for machine in simulation.cloud.machines.values()] == ["g6.xlarge"]
    raised = {"name": "main", "resources": {"claims": [{"name": "gpu"}], "requests": {"cpu": "40"}}}
    simulation.api.patch(PODS, "work", {"spec": {"containers": [raised]}}, namespace="default")
    simulation.run(START + timedelta(minutes=20))
    assert not simulation.api.get(CAPACITY_POOLS, "gpu")["status"].get("quarantines")


def test_so_is_one_in_which_reality_contradicts_the_catalog(monkeypatch: pytest.MonkeyPatch) -> None:
    made = decided_twice(monkeypatch)
    simulation = Simulation(catalog=with_another_gpu(believed(), "g6.xlarge"), start=START)
    simulation.new_loop(catalog=believed())
    live(simulation, 0.9)
    assert any(decisions.drifts for decisions in made)
    assert any(decisions.snapshot.quarantines for decisions in made)


@pytest.mark.slow
def test_so_is_one_in_which_machines_never_boot(monkeypatch: pytest.MonkeyPatch) -> None:
    made = decided_twice(monkeypatch)
    simulation = Simulation(catalog=believed(), start=START, behaviour=Behaviour(boot=timedelta(days=2)))
    live(simulation, 1.5)
    assert any(q.failed_boots for decisions in made for q in decisions.snapshot.quarantines)


def test_what_is_decided_on_a_pair_that_could_not_be_saved_is_not_launched_and_not_charged() -> None:
    decisions = decide(WAITING, CATALOG, DEFAULTS, NOW)
    (launch,) = decisions.launches
    assert charged(decisions, DEFAULTS.policy).recent_launches == 1
    pair = ("team", launch.offering.instance_type, launch.prediction.drivers)
    left = without_pairs(decisions, {pair})
    assert (left.launches, charged(left, DEFAULTS.policy).recent_launches) == ((), 0)
    assert left.plan == decisions.plan
    assert without_pairs(decisions, {("other", *pair[1:])}) == decisions


def test_a_pair_has_changed_when_more_or_less_is_known_of_it() -> None:
    same, more, gone, new = (Quarantine("team", name, ("nvidia",)) for name in ("same", "more", "gone", "new"))
    found = changed_pairs([same, more, gone], [same, replace(more, failed_boots=("i-1",)), new])
    assert {name for _, name, _ in found} == {"more", "gone", "new"}


def test_where_nothing_may_be_written_no_pool_acts() -> None:
    decisions = forbid(decide(WAITING, CATALOG, DEFAULTS, NOW), "it is forbidden")
    assert [pool.acts for pool in decisions.snapshot.pools] == [False]
    assert any("it is forbidden" in str(r.detail) for c in decisions.conditions for r in c.reasons)


def test_an_error_in_moving_pods_forgets_no_replacement(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise the same machine is launched again after each error."""

    def fails(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(decision, "consolidated", fails)
    known = MovesTried(replaced=FrozenMap({"old": (NOW, 3)}), going=("old",))
    found = decide(snapshot([]), CATALOG, DEFAULTS, NOW, moves=known)
    assert isinstance(found.unmoved, ZeroDivisionError)
    assert (found.moves.replaced, found.moves.going, found.moves.last) == (known.replaced, (), NOW)
    assert found.move_at is not None
    assert found.move_at > NOW


def test_in_a_cluster_too_the_nodes_of_a_merge_close() -> None:
    new = node("new", replaces=("a", "b"), phase_since=NOW - timedelta(minutes=5))
    going = node("a", phase=Phase.DRAINING, reasons=(Reason.of(Code.NODE_DISPENSABLE),))
    cheaper = replace(POOL, disruption=Disruption(consolidate=ConsolidationPolicy.CHEAPER))
    found = state([served("pb", "b")], [going, node("b"), new], [cheaper])
    decided = decide(found, CATALOG, DEFAULTS, NOW)
    assert {one.provisioned_node: one.action for one in decided.plan.nodes}["b"] is NodeAction.CLOSE

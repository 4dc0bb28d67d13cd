"""What is the same for thousands of pods is worked out once, and the plan is that of working it out for each."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from autoscaler.model.node import Node
from autoscaler.model.plan import ConsideredOutcome
from autoscaler.model.pod import Pod
from autoscaler.model.verdict import Fatal, Fits, Verdict
from autoscaler.planning.demand.bundles import Bundle
from autoscaler.planning.placement import considered
from autoscaler.planning.placement.equal_nodes import EqualNodes
from autoscaler.planning.placement.launches import _Replay
from autoscaler.planning.placement.packing_input import PackingInput
from autoscaler.planning.placement.trial import PackingOracle
from autoscaler.planning.planner import plan_for
from autoscaler.planning.policy import Policy
from autoscaler.scheduling.fit import fit_claims
from autoscaler.scheduling.world import World
from instance_catalog.dataclass import replace
from tests.builders import NOW, claim, plan, pod, snapshot
from tests.properties.test_device_states import CATALOG, DRIVERS, packing_of
from tests.properties.test_matching_claims import UNSURE, selecting

_MEMORY = "device.capacity['gpu.nvidia.com'].memory.compareTo(quantity('{}Gi')) >= 0"
# An L4 has 23 Gi: on a larger GPU it is an error.
_ERROR = (
    "device.capacity['gpu.nvidia.com'].memory.compareTo(quantity('30Gi')) < 0"
    " || device.attributes['gpu.nvidia.com'].missing == 'x'"
)


def test_lists_of_offerings_are_shared_where_an_answer_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    packing = selecting(*[_MEMORY.format(10)] * 8, catalog=UNSURE, driver=DRIVERS[2])
    made: list[int] = []
    begun = considered._View.__init__

    def counted(self: considered._View, packing: PackingInput, item: int, policy: Policy) -> None:
        made.append(item)
        begun(self, packing, item, policy)

    monkeypatch.setattr(considered._View, "__init__", counted)
    shared = plan_for(packing.snapshot, UNSURE, Policy(), NOW)
    told = {entry.outcome for demand in shared.demands for entry in demand.considered}
    assert ConsideredOutcome.UNKNOWN in told
    assert len(made) < len(shared.demands) == 8
    monkeypatch.setattr(PackingInput, "same_outcomes", lambda *_: None)
    assert replace(shared, work=0) == replace(plan_for(packing.snapshot, UNSURE, Policy(), NOW), work=0)


def test_a_new_node_is_scheduled_without_the_devices_of_other_new_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    state = selecting(*[_MEMORY.format(10)] * 6).snapshot
    monkeypatch.setattr(EqualNodes, "repeated", lambda *_: None)
    beside: list[int] = []
    place = _Replay.place

    def counted(self: _Replay, bundle: Bundle, name: str) -> None:
        beside.append(len(self.world.allocated.pools))
        place(self, bundle, name)

    monkeypatch.setattr(_Replay, "place", counted)
    own = plan_for(state, CATALOG, Policy(), NOW)
    assert len(own.launches) > 1
    assert max(beside) < len(own.launches)
    beside.clear()
    monkeypatch.setattr(EqualNodes, "remember", lambda *_: False)  # as if they used devices of other nodes
    assert plan_for(state, CATALOG, Policy(), NOW) == own
    assert max(beside) >= len(own.launches) - 1


@pytest.mark.parametrize("expressions", [[_MEMORY.format(10)] * 4, [_MEMORY.format(10), _ERROR, _ERROR]])
def test_what_breaks_is_what_each_class_would_say(expressions: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    packing = selecting(*expressions)
    shapes, items = range(len(packing.shapes)), range(len(expressions))
    every = {(shape, item): packing.trials.verdict(shape, item) for shape in shapes for item in items}
    taken = {item for (_, item), verdict in every.items() if isinstance(verdict, Fits)}
    fatal = {shape: [i for i in items if isinstance(every[shape, i], Fatal) and i in taken] for shape in shapes}
    assert any(fatal.values()) == (_ERROR in expressions)
    again = packing_of(packing.snapshot)
    asked: list[tuple[int, int]] = []
    verdict = PackingOracle.verdict

    def counted(self: PackingOracle, shape: int, item: int) -> Verdict:
        asked.append((shape, item))
        return verdict(self, shape, item)

    monkeypatch.setattr(PackingOracle, "verdict", counted)
    assert again.trials.breaking(shapes, items) == {shape: found[0] for shape, found in fatal.items() if found}
    assert [again.trials.breaks(shape, items) for shape in shapes] == [next(iter(fatal[s]), None) for s in shapes]
    if not any(fatal.values()):
        # As if each had been asked, but they were not.
        assert [again.trials.known_shapes(i) for i in items] == [packing.trials.known_shapes(i) for i in items]
        assert len([one for one in asked if one[1] != 0]) < len(items)


def test_a_question_about_a_new_node_is_asked_beside_the_claims_of_the_pod_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[set[str]] = []

    def counted(pod: Pod, node: Node, world: World) -> Verdict:
        seen.append(set(world.claims))
        return fit_claims(pod, node, world)

    monkeypatch.setattr("autoscaler.planning.placement.device_states.fit_claims", counted)
    packing = selecting(*(_MEMORY.format(10 + number) for number in range(6)))
    for item in range(6):
        packing.trials.fits(0, item)
    assert seen == [{f"default/c{item}"} for item in range(len(seen))]


def test_where_nothing_is_to_be_bought_no_purchase_is_searched_for(monkeypatch: pytest.MonkeyPatch) -> None:
    searched: list[int] = []
    problem = PackingInput.problem

    def counted(self: PackingInput, *args: Any) -> Any:
        searched.append(1)
        return problem(self, *args)

    monkeypatch.setattr(PackingInput, "problem", counted)
    wanted = pod("train", "gpus")
    quiet = plan(snapshot([replace(wanted, node_name="n", phase="Running")], [claim("gpus")], nodes=(Node("n"),)))
    assert (quiet.launches, quiet.at_least_usd_per_hour, quiet.work, searched) == ((), Decimal(0), 0, [])
    assert plan(snapshot([wanted], [claim("gpus")])).launches
    assert searched

"""A remembered solution is the one that would be found again, whatever changed in between."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from random import Random
from typing import Any

import pytest

from autoscaler.model.capacity import CapacityPool, Limits, Mode
from autoscaler.model.device_class import DeviceTaintRule, Selector
from autoscaler.model.labels import LabelSelector
from autoscaler.model.pod import Pod, PodAffinityTerm
from autoscaler.model.resource_claim import ResourceClaim
from autoscaler.model.snapshot import Backoff, DaemonSet, Snapshot
from autoscaler.planning.memory import PlanMemory
from autoscaler.planning.packing.kept_solutions import KeptSolutions, without_slack_limits
from autoscaler.planning.packing.problem import Column, Item, Kind, Problem, Solution
from autoscaler.planning.policy import Policy, WorkLimits
from instance_catalog.dataclass import replace
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes import labels
from instance_catalog.kubernetes.node_selector import Requirement
from instance_catalog.kubernetes.profile import REFERENCE
from instance_catalog.kubernetes.resource_slice import NodeReach
from instance_catalog.kubernetes.taint import Taint, Toleration
from tests.builders import NOW, claim, gpus, plan, pod, shipped, snapshot
from tests.e2e.harness.machines import machine

CATALOG = shipped("g6.xlarge", "g6.4xlarge", "g6.12xlarge", "g5.xlarge", "g5.12xlarge", "p4d.24xlarge")
QUICK = Policy().only_answers()
BIG = 'device.capacity["gpu.nvidia.com"].memory.compareTo(quantity("30Gi")) >= 0'
POOL = CapacityPool("team", Mode.ACT, drivers=("nvidia",))
BROKEN = DeviceTaintRule("rule", Taint("broken", "", "NoSchedule"), driver="gpu.nvidia.com")
APART = PodAffinityTerm(LabelSelector(), labels.HOSTNAME, ("default",))


def _rules(draw: Random) -> Snapshot:
    """A cluster with a pool and without pods."""
    limits = draw.choice((Limits(), Limits(), Limits(nodes=1), Limits(accelerators=4)))
    pool = replace(POOL, taints=draw.choice(((), (), (Taint("team", "a", "NoSchedule"),))), limits=limits)
    return snapshot([], pools=(pool,), profile=REFERENCE.with_gates(device_taint_rules=True))


def _waiting(draw: Random) -> tuple[list[Pod], list[ResourceClaim]]:
    """One or two pods of few kinds, so that the same ones come again."""
    pods, claims = list[Pod](), list[ResourceClaim]()
    for number in range(draw.choice((1, 1, 2))):
        name = f"p{number}"
        selectors = draw.choice(((), (), (Selector(BIG),)))
        claims.append(claim(name, replace(gpus(draw.choice((1, 1, 4))), selectors=selectors)))
        steered = {"node_selector": FrozenMap({labels.INSTANCE_TYPE: draw.choice(("g5.12xlarge", "g6.12xlarge"))})}
        tolerant, apart = {"tolerations": (Toleration(operator="Exists"),)}, {"pod_anti_affinity": (APART,)}
        fields = draw.choice(({}, {}, {}, {}, steered, tolerant, apart))
        pods.append(pod(name, name, cpu=draw.choice(("3", "3001m")), **fields))
    return pods, claims


@pytest.mark.parametrize("seed", range(6))
def test_a_plan_is_the_same_with_what_is_remembered(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    draw, memory, asked = Random(seed), PlanMemory(), 0
    of = KeptSolutions.of

    def counted(self: KeptSolutions, *arguments: Any) -> Solution:
        nonlocal asked
        asked += self is memory.solutions
        return of(self, *arguments)

    monkeypatch.setattr(KeptSolutions, "of", counted)
    rules = _rules(draw)
    for _ in range(100):
        if draw.random() < 0.05:
            rules = _rules(draw)
        if draw.random() < 0.2:
            rules = replace(rules, taint_rules=() if rules.taint_rules else (BROKEN,))
        pods, claims = _waiting(draw)
        state = replace(rules, pods=tuple(pods), claims=snapshot([], claims).claims)
        found = plan(state, catalog=CATALOG, policy=QUICK, memory=memory)
        assert replace(found, work=0) == replace(plan(state, catalog=CATALOG, policy=QUICK), work=0)
    assert asked > 30
    assert len(memory.solutions) < asked - 3, "some came again"


def test_what_too_little_work_was_spent_on_is_solved_again() -> None:
    state = snapshot(
        [pod("p", "c", cpu="3")], [claim("c", replace(gpus(1), selectors=(Selector(BIG),)))], pools=(POOL,)
    )
    memory, poor = PlanMemory(), replace(QUICK, work=WorkLimits(per_pod=100))
    assert not plan(state, catalog=CATALOG, policy=poor, memory=memory).launches
    assert len(memory.solutions) == 0
    assert plan(state, catalog=CATALOG, policy=QUICK, memory=memory).launches
    assert len(memory.solutions) == 1


def test_devices_that_all_nodes_reach_decide_as_well() -> None:
    (piece,) = (p for p in machine("g6.xlarge", "there").slices if p.driver == "gpu.nvidia.com")
    anywhere, memory = replace(piece, reach=NodeReach(all_nodes=True)), PlanMemory()
    state = snapshot([pod("p", "c", cpu="3")], [claim("c")], pools=(POOL,), slices=(anywhere,))
    assert plan(state, catalog=CATALOG, policy=QUICK, memory=memory).launches
    assert len(memory.solutions) == 0


def test_pods_that_daemons_exclude_from_new_nodes_are_decided_by_their_labels() -> None:
    term = replace(APART, selector=LabelSelector((Requirement("app", "In", ("a",)),)))
    daemons, memory = (DaemonSet("default", "agent", pod("agent", pod_anti_affinity=(term,))),), PlanMemory()
    for app, launched in (("a", 0), ("b", 1), ("a", 0)):
        waiting = pod("p", "c", labels=FrozenMap({"app": app}))
        state = snapshot([waiting], [claim("c")], pools=(POOL,), daemon_sets=daemons)
        assert len(plan(state, catalog=CATALOG, policy=QUICK, memory=memory).launches) == launched


def test_new_nodes_of_earlier_plans_are_forgotten() -> None:
    """With a back-off of the whole pool each plan has other candidates, and the problem is as small as possible."""
    resting, memory = Backoff(NOW + timedelta(hours=1), pool="team"), PlanMemory()
    state = snapshot([pod("p", "c")], [claim("c")], pools=(POOL,), backoffs=(resting,))
    for _ in range(20):
        assert not plan(state, catalog=CATALOG, policy=QUICK, memory=memory).launches
    assert len(memory.solutions) == 8


def test_plans_that_explain_remember_no_solution() -> None:
    memory = PlanMemory()
    plan(snapshot([pod("p", "c", cpu="3")], [claim("c")], pools=(POOL,)), catalog=CATALOG, memory=memory)
    assert len(memory.solutions) == 0


def test_a_limit_that_no_solution_reaches_does_not_distinguish_problems() -> None:
    kind = Kind(0, Decimal(1), uses=(Decimal(4), Decimal(1)))
    problem = Problem((Item(2),), (kind,), limits=(Decimal(8), Decimal(1)))
    assert without_slack_limits(problem).limits == (Decimal("Infinity"), Decimal(1))
    assert without_slack_limits(replace(problem, limits=(Decimal(7), Decimal(2)))).limits == (
        Decimal(7),
        Decimal("Infinity"),
    )


def test_problems_with_other_limits_within_reach_are_solved_apart() -> None:
    kind = Kind(0, Decimal(1), uses=(Decimal(1),))
    memory, one = KeptSolutions(), Problem((Item(2),), (kind,), limits=(Decimal(1),))
    for problem in (one, replace(one, limits=(Decimal(0),))):
        found = memory.of("shapes", "asked", problem, lambda p: Solution((), (int(p.limits[0]),), p.zero), lambda: True)
        assert found.left == problem.limits


def test_the_memory_has_a_bound() -> None:
    memory = KeptSolutions()
    for number in range(30):
        problem = Problem(tuple(Item(1) for _ in range(1000)), (), limits=())
        memory.of("shapes", number, problem, lambda found: Solution((), found.demand, found.zero), lambda: True)
    assert len(memory) == 20
    assert memory.of("shapes", 29, problem, lambda _: pytest.fail("it is known"), lambda: True).left == problem.demand


def test_the_nodes_of_solutions_count_for_the_bound() -> None:
    """One class of thousands of pods is a small problem with a large solution."""
    memory, node = KeptSolutions(), Column(0, (0,), Problem((), ()).zero)
    for number in range(30):
        problem = Problem((Item(1000 + number),), ())
        memory.of(
            "shapes", (), problem, lambda found: Solution((node,) * found.demand[0], (0,), found.zero), lambda: True
        )
    assert len(memory) == 19

"""Properties that every plan has, on random small worlds."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from autoscaler.model.capacity import CapacityPool, Limits
from autoscaler.model.pod import Pod
from autoscaler.model.resource_claim import ResourceClaim
from autoscaler.model.snapshot import Snapshot
from autoscaler.model.verdict import Fits
from autoscaler.planning.packing.problem import Budget
from autoscaler.planning.policy import Policy
from autoscaler.scheduling.fit import fit
from autoscaler.scheduling.world import World
from instance_catalog.dataclass import replace
from tests.builders import claim, gang, gpus, ours, plan, pod, snapshot


@st.composite
def worlds(draw: st.DrawFn) -> Snapshot:
    """Up to eight pods: shared claims, a gang, priorities, limits, a coming node."""
    names = [f"c{i}" for i in range(draw(st.integers(1, 5)))]
    claims: list[ResourceClaim] = [
        claim(n, gpus(draw(st.integers(1, 9)), product=draw(st.sampled_from(["", "", "Large L9"])))) for n in names
    ]
    pods: list[Pod] = [
        pod(
            f"p{i}",
            draw(st.sampled_from(names)),
            cpu=draw(st.sampled_from(["1", "12"])),
            priority=draw(st.integers(0, 1)),
            gang=draw(st.sampled_from(["", "", "g"])),
        )
        for i in range(draw(st.integers(1, 6)))
    ]
    limits = draw(st.sampled_from([Limits(), Limits(nodes=2), Limits(usd_per_hour=Decimal("9.5"))]))
    coming = draw(st.sampled_from([(), (ours("coming"),)]))
    pool = CapacityPool("team", limits=limits)
    return snapshot(pods, claims, gangs=gang("g", draw(st.integers(1, 3))), pools=(pool,), provisioned=coming)


SOME = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@SOME
@given(worlds())
def test_every_pending_pod_is_in_exactly_one_place(state: Snapshot) -> None:
    result = plan(state)
    mentioned = [p.pod for p in result.placements] + [entry.pod for entry in result.left_out]
    assert sorted(mentioned) == sorted(p.key for p in state.pods)
    assert all(entry.reasons for entry in result.left_out)


@SOME
@given(worlds())
def test_the_scheduler_agrees_with_every_placement(state: Snapshot) -> None:
    """Replay: each new node joins the world, and its pods fit there one after the other."""
    result = plan(state)
    world = World.of(state)
    pods = {p.key: p for p in state.pods}
    for node in result.launches:
        world = world.with_node(node.node, node.slices)
        assert node.pods
        for key in node.pods:
            verdict = fit([pods[key]], node.name, world)
            assert isinstance(verdict, Fits)
            world = world.placed([pods[key]], node.name, verdict)
    assert {key for node in result.launches for key in node.pods} == {
        p.pod for p in result.placements if p.node != "coming"
    }


@SOME
@given(worlds())
def test_gangs_and_limits_hold(state: Snapshot) -> None:
    result = plan(state)
    limits = state.pools[0].limits
    assert limits.nodes is None or len(result.launches) + len(state.provisioned) <= limits.nodes
    spent = result.usd_per_hour + sum((n.offering.usd_per_hour or Decimal(0) for n in state.provisioned), Decimal(0))
    assert limits.usd_per_hour is None or spent <= limits.usd_per_hour
    members = {p.key for p in state.pods if p.gang}
    placed = sum(1 for p in result.placements if p.pod in members)
    assert placed == 0 or placed >= state.gangs["default/g"].min_count


@pytest.mark.slow
@SOME
@given(worlds())
def test_a_starved_planner_is_never_better_and_says_so(state: Snapshot) -> None:
    best, starved = plan(state), plan(state, policy=Policy(budget=Budget(demands=0, puts=0)))
    assert len(starved.placements) <= len(best.placements)
    if len(starved.placements) == len(best.placements) and not best.left_out:
        assert best.usd_per_hour <= starved.usd_per_hour


@SOME
@given(worlds(), st.data())
def test_the_order_of_the_pods_does_not_change_the_cost(state: Snapshot, data: st.DataObject) -> None:
    fresh = replace(state, provisioned=())
    turned = replace(fresh, pods=tuple(data.draw(st.permutations(fresh.pods))))
    first, second = plan(fresh), plan(turned)
    assert (first.usd_per_hour, len(first.launches)) == (second.usd_per_hour, len(second.launches))
    assert len(first.placements) == len(second.placements)

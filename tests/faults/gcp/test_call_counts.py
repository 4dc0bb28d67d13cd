"""How many calls the adapter of Google Cloud needs, with Google's rate quotas in force."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta

import pytest

from autoscaler.clock import VirtualClock
from autoscaler.cluster.api import list_all
from autoscaler.cluster.resources import PODS
from instance_catalog.dataclass import replace
from providers.contract import TAG_CLUSTER, describe_all
from providers.errors import ThrottledError
from tests.crash.life import SMALL, START, small_catalog
from tests.fakes.gce.rates import LIMITS
from tests.faults.gcp.schedules import GcpSchedules
from tests.faults.gcp.world import ACCELERATORS, GcpSimulation
from tests.faults.scenes import PODS_OF
from tests.faults.schedules import scenario
from tests.gcp import A3, A3_SPOT, CLUSTER, Rig, request

MINUTE = timedelta(minutes=1)


def crowd(pods: int) -> GcpSimulation:
    """As many pods as need a GPU each, that run for an hour."""
    simulation = GcpSimulation(catalog=small_catalog(*SMALL, *ACCELERATORS), start=START)
    pools = GcpSchedules.pools.replace("nodes: 8", f"nodes: {pods}")
    simulation.add(scenario(f"{pools}---" + PODS_OF.format(number=1, copies=pods, minutes=60, gang="")))
    return simulation


@pytest.mark.slow
def test_a_thousand_instances_are_described_in_few_calls() -> None:
    rig = Rig()
    for batch in range(10):
        names = tuple(f"b{batch}-{node}" for node in range(100))
        rig.provider.launch(request(*names, batch=f"b{batch}"))
    rig.settle()
    before = Counter(rig.fake.calls)
    found = list(describe_all(rig.provider, {TAG_CLUSTER: CLUSTER}))
    asked = rig.fake.calls - before
    assert len(found) == 1000
    assert asked["instances.aggregatedList"] == 2  # pages of 500
    # A reconcile that begins every ten seconds, the longest that changes are gathered for.
    assert asked.total() * 6 <= LIMITS["lists"] / 10


def test_a_hundred_nodes_in_one_reconcile_take_at_most_five_launch_calls() -> None:
    simulation = crowd(100)
    simulation.run(START)
    assert len(list_all(simulation.api, PODS)[0]) == 100
    assert sum(len(group.members) for group in simulation.fake.project.groups.values()) == 100
    assert 0 < simulation.fake.calls["createInstances"] <= 5


def test_minutes_of_booting_nodes_stay_far_below_the_quotas() -> None:
    simulation = crowd(100)
    simulation.run(START + 5 * MINUTE)
    busiest = simulation.fake.rates.most
    assert busiest["changes"] > 0
    assert not simulation.fake.rates.refused
    assert all(calls <= LIMITS[group] / 5 for group, calls in busiest.items())


def test_a_launch_beyond_the_quota_launches_nothing_and_is_made_in_the_next_minute() -> None:
    clock = VirtualClock()
    clock.advance_to(clock.now().replace(second=5, microsecond=0) + MINUTE)
    rig = Rig(clock=clock)
    rig.fake.rates.limits["changes"] = 1
    rig.provider.launch(request(offerings=(A3,)))
    second = replace(request(batch="b2", offerings=(A3_SPOT,)))
    with pytest.raises(ThrottledError):
        rig.provider.launch(second)
    assert [len(group.members) for group in rig.fake.project.groups.values()] == [1, 0, 0]
    clock.advance_to(clock.now() + MINUTE)
    (launched,) = rig.provider.launch(second).instances
    assert launched.node == "b2-0"
    assert rig.fake.rates.refused == {"changes": 1}


def test_a_minute_without_any_quota_loses_nothing() -> None:
    """All calls are refused while pods wait; their nodes come when Google answers again, once for each pod."""
    simulation = crowd(3)
    simulation.fake.rates.limits = dict.fromkeys(LIMITS, 0)
    simulation.run(START + 2 * MINUTE)
    assert not any(group.members for group in simulation.fake.project.groups.values())
    simulation.fake.rates.limits = dict(LIMITS)
    simulation.run(START + 30 * MINUTE)
    assert sum(len(group.members) for group in simulation.fake.project.groups.values()) == 3
    assert all(one["spec"].get("nodeName") for one in list_all(simulation.api, PODS)[0])


def test_launches_of_one_reconcile_read_the_groups_once_and_their_own_again() -> None:
    rig = Rig()
    rig.provider.launch(request())
    before = Counter(rig.fake.calls)
    rig.provider.launch(request(batch="b2"))
    asked = rig.fake.calls - before
    assert asked["instanceGroupManagers.get"] == 1
    rig.advance(timedelta(seconds=30))
    before = Counter(rig.fake.calls)
    rig.provider.launch(request(batch="b3"))
    asked = rig.fake.calls - before
    assert asked["instanceGroupManagers.get"] == len(rig.fake.project.groups) + 1


def test_a_launch_sees_its_group_as_it_is_now() -> None:
    """Another launch of the same reconcile has just read it, and it was in order then."""
    rig = Rig()
    rig.provider.launch(request())
    rig.group(A3).bulk = True
    answer = rig.provider.launch(request(batch="b2"))
    assert [one.error.kind for one in answer.failures] == ["NotInGroups"]
    assert rig.fake.calls["createInstances"] == 1

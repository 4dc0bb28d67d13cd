"""How many calls the adapter needs, with EC2's request rates in force."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta

import pytest

from autoscaler.loop.loop import Tick
from autoscaler.simulation.scenario import parse_scenario
from providers.contract import TAG_CLUSTER, describe_all
from tests.aws import CLUSTER, Rig, request
from tests.crash.life import START, small_catalog
from tests.faults.scenes import PODS_OF, POOL
from tests.faults.world import AwsSimulation

LAUNCHES = ("CreateFleet", "RunInstances")
MINUTE = timedelta(minutes=1)


def crowd(pods: int) -> AwsSimulation:
    """As many pods as need a GPU each, that run for an hour."""
    simulation = AwsSimulation(catalog=small_catalog(), start=START)
    text = (
        POOL.replace("nodes: 8", f"nodes: {pods}").replace("KIND", "AWSNodeTemplate")
        + "---"
        + PODS_OF.format(number=1, copies=pods, minutes=60, gang="")
    )
    simulation.add(parse_scenario(text))
    return simulation


def test_a_hundred_nodes_in_one_tick_take_at_most_five_launch_calls() -> None:
    simulation = crowd(100)
    ticks: list[Tick] = []
    simulation.run(START, ticks.append)
    assert ticks[0].troubles == ()
    assert len(simulation.fake.account.alive()) == 100
    assert 0 < sum(simulation.fake.calls[name] for name in LAUNCHES) <= 5


def test_a_minute_of_booting_nodes_takes_at_most_forty_calls() -> None:
    simulation = crowd(8)
    simulation.run(START)
    busiest = 0
    for minute in range(5):
        before = simulation.fake.calls.total()
        simulation.run(START + (minute + 1) * MINUTE)
        busiest = max(busiest, simulation.fake.calls.total() - before)
    assert 0 < busiest <= 40


@pytest.mark.slow
def test_a_thousand_instances_are_described_in_few_calls() -> None:
    rig = Rig()
    rig.fake.rates_apply = False  # they limit how fast a thousand are launched
    for batch in range(10):
        names = tuple(f"b{batch}-{node}" for node in range(100))
        rig.provider.launch(request(*names, batch=f"b{batch}"))
    rig.fake.rates_apply = True
    before = Counter(rig.fake.calls)
    found = list(describe_all(rig.provider, {TAG_CLUSTER: CLUSTER}))
    asked = rig.fake.calls - before
    assert len(found) == len(rig.fake.account.alive()) == 1000
    # A tick that begins every ten seconds, the longest that changes are gathered for, stays below forty a minute.
    assert asked.total() * 6 <= 40

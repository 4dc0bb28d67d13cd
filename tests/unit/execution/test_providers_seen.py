"""From a provider that does not answer nothing is concluded: no machine is missed, no node fails, no block ends."""

from __future__ import annotations

from datetime import timedelta

import pytest

from autoscaler.clock import ClockJumps
from autoscaler.cluster.resources import NODES
from autoscaler.execution.providers_seen import ProvidersSeen, ask
from autoscaler.lifecycle.reflect import reflect
from autoscaler.model.node import Node
from autoscaler.model.provisioned_node import Phase, ProvisionedNode
from autoscaler.model.snapshot import Snapshot
from instance_catalog.dataclass import replace
from providers.simulated.cloud import Call, Fault
from tests.desk import planned
from tests.fakes.clocks import Jumping
from tests.unit.execution.node_site import Site


@pytest.fixture
def site() -> Site:
    """One machine that was launched long ago, and whose Node is gone: nothing but its provider speaks for it."""
    site = Site()
    site.desk.api.delete(NODES, "n1")
    site.desk.clock.advance(timedelta(minutes=5))
    return site


def phases(site: Site, seen: ProvidersSeen) -> list[Phase]:
    """What the nodes come to, with all batches lost."""
    world = seen.world(Snapshot(provisioned=site.desk.nodes()), {}, batches=frozenset())
    return [node.phase for node in reflect(world, site.desk.now).provisioned]


@pytest.mark.parametrize("call", [Call.DESCRIBE, Call.RESERVATIONS], ids=lambda call: call.value)
@pytest.mark.parametrize("fault", list(Fault), ids=lambda fault: fault.value)
def test_nothing_is_concluded_from_a_provider_that_fails(site: Site, call: Call, fault: Fault) -> None:
    site.desk.record(planned("n2"))
    site.desk.clock.advance(timedelta(minutes=5))
    site.desk.cloud.machines.clear()
    site.desk.cloud.inject(call, fault)
    seen = ask(site.desk.providers, now=site.desk.now)
    assert [trouble.name for trouble in seen.silent] == ["simulated"]
    assert (dict(seen.machines), dict(seen.windows), seen.reservations) == ({}, {}, None)
    assert phases(site, seen) == [Phase.LAUNCHED, Phase.INTENDED]


def test_a_provider_that_answers_is_believed(site: Site) -> None:
    site.desk.record(planned("n2"))
    site.desk.clock.advance(timedelta(minutes=5))
    assert phases(site, ask(site.desk.providers, now=site.desk.now)) == [Phase.LAUNCHED, Phase.FAILED]
    site.desk.cloud.machines.clear()
    assert phases(site, ask(site.desk.providers, now=site.desk.now)) == [Phase.GONE, Phase.FAILED]


@pytest.mark.parametrize("silent", [False, True], ids=["for good", "and back while the provider was silent"])
def test_a_machine_is_not_old_because_the_clock_jumped(site: Site, *, silent: bool) -> None:
    clock = Jumping(site.desk.clock)
    jumps = ClockJumps(clock)
    window = timedelta(minutes=6)  # the machine is five minutes old
    site.desk.cloud.behaviour = replace(site.desk.cloud.behaviour, visibility=window)
    site.desk.cloud.machines.clear()

    def found() -> list[Phase]:
        seen = ask(site.desk.providers, now=clock.now(), jumps=jumps)
        world = seen.world(Snapshot(provisioned=site.desk.nodes()), {}, batches=frozenset())
        return [node.phase for node in reflect(world, clock.now()).provisioned]

    clock.offset = timedelta(minutes=2)
    if silent:  # while it was wrong
        site.desk.cloud.inject(Call.DESCRIBE, Fault.LOST_REQUEST)
        assert found() == [Phase.LAUNCHED]
        clock.offset = timedelta(0)
        site.desk.clock.advance(timedelta(minutes=2))
    assert found() == [Phase.LAUNCHED]
    site.desk.clock.advance(window - timedelta(seconds=1))
    assert found() == [Phase.LAUNCHED]
    site.desk.clock.advance(timedelta(seconds=1))
    assert found() == [Phase.GONE]


def test_no_batch_is_lost_while_one_of_several_providers_is_silent(site: Site) -> None:
    site.desk.cloud.inject(Call.DESCRIBE, Fault.LOST_REQUEST)
    silent = ask(site.desk.providers, now=site.desk.now)
    assert silent.world(Snapshot(), {}, batches=frozenset()).launched is None
    (node,) = site.desk.nodes()
    assert ask(site.desk.providers, now=site.desk.now).world(Snapshot(), {}, batches=frozenset()).launched == {
        node.batch
    }


def test_machines_with_a_node_that_nobody_has_written_down_count_by_their_batch() -> None:
    site = Site()
    (batch,) = site.desk.journal.batches
    nodes = site.seen().snapshot.nodes

    def unwritten(*provisioned: ProvisionedNode, nodes: tuple[Node, ...] = nodes) -> dict[str, int]:
        seen = ask(site.desk.providers, now=site.desk.now)
        world = seen.world(Snapshot(provisioned=provisioned, nodes=nodes), {}, batches=frozenset())
        return dict(reflect(world, site.desk.now).unwritten)

    assert unwritten() == {batch.name: 1}
    assert unwritten(*site.desk.nodes()) == unwritten(nodes=()) == {}
    site.desk.cloud.stop(next(iter(site.desk.cloud.machines)))
    assert unwritten() == {batch.name: 1}
    site.desk.cloud.lose(next(iter(site.desk.cloud.machines)))
    assert unwritten() == {}

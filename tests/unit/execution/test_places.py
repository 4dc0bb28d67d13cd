"""A machine that is missing in its provider's list is looked up by its id, in the place where it was launched."""

from __future__ import annotations

from datetime import timedelta

import pytest

from autoscaler.cluster.resources import NODES
from autoscaler.execution.providers_seen import ProvidersSeen, ask
from autoscaler.lifecycle.reflect import reflect
from autoscaler.model.provisioned_node import Phase
from autoscaler.model.snapshot import Snapshot
from instance_catalog.dataclass import replace
from instance_catalog.frozen_map import EMPTY
from providers.places import same_place
from providers.simulated.cloud import Call, Fault
from tests.desk import POOL, planned
from tests.unit.execution.node_site import Site

MACHINES = 8


@pytest.fixture
def site() -> Site:
    """Machines that were launched long ago, and whose Nodes are gone."""
    site = Site()
    for number in range(2, MACHINES + 1):
        site.desk.record(planned(f"n{number}"))
    site.carry_out()
    site.desk.api.delete(NODES, "n1")
    site.desk.clock.advance(timedelta(minutes=20))
    return site


def seen_by(site: Site) -> ProvidersSeen:
    return ask(site.desk.providers, site.desk.nodes(), now=site.desk.now)


def phases(site: Site, seen: ProvidersSeen) -> set[Phase]:
    world = replace(
        seen.world(Snapshot(provisioned=site.desk.nodes(), pools=(POOL,)), {}, batches=frozenset()),
        batches=None,
    )
    found = reflect(world, site.desk.now).provisioned
    # How long a machine may take to boot is not the question here.
    return {Phase.LAUNCHED if node.phase is Phase.FAILED else node.phase for node in found}


def hide(site: Site) -> None:
    """The list by tags is empty; what is asked for by its id is answered."""
    for machine in site.desk.cloud.machines.values():
        machine.tags = EMPTY


def test_what_the_provider_calls_terminated_is_gone_in_any_number(site: Site) -> None:
    hide(site)
    for machine in site.desk.cloud.machines:
        site.desk.cloud.lose(machine)
    assert phases(site, seen_by(site)) == {Phase.GONE}


def test_what_the_provider_does_not_know_is_gone_in_small_numbers_only(site: Site) -> None:
    site.desk.cloud.machines.clear()
    assert phases(site, seen_by(site)) == {Phase.LAUNCHED}


def test_a_machine_that_lost_its_tags_stays_and_is_told(site: Site) -> None:
    hide(site)
    seen = seen_by(site)
    assert phases(site, seen) == {Phase.LAUNCHED}
    assert len(seen.doubts) == len(seen.machines["simulated"]) == MACHINES
    assert {trouble.kind for trouble in seen.doubts} == {"ProvisionedNode"}
    assert "foreslice.dev/cluster" in seen.doubts[0].text


def test_nothing_is_looked_up_while_everything_is_listed(site: Site) -> None:
    before = site.desk.cloud.calls.count(Call.DESCRIBE)
    assert seen_by(site).doubts == ()
    assert site.desk.cloud.calls.count(Call.DESCRIBE) == before + 1


def test_a_look_up_that_fails_concludes_nothing(site: Site) -> None:
    site.desk.cloud.machines.clear()
    site.desk.cloud.inject(Call.DESCRIBE, Fault.LOST_ANSWER)
    seen = seen_by(site)
    assert ([trouble.reason for trouble in seen.silent], dict(seen.windows)) == (["Ambiguous"], {})


def test_the_place_of_a_launch_is_written_down(site: Site) -> None:
    assert {node.place for node in site.desk.nodes()} == {"simulated/everywhere"}


def test_a_machine_without_a_place_gets_the_one_where_it_is_seen(site: Site) -> None:
    site.desk.journal.save_node(replace(site.node, place=""))
    world = seen_by(site).world(Snapshot(provisioned=site.desk.nodes()), {}, batches=frozenset())
    assert {node.place for node in reflect(world, site.desk.now).provisioned} == {"simulated/everywhere"}


def test_in_another_place_nothing_is_concluded_and_nothing_is_launched(site: Site) -> None:
    site.desk.cloud.machines.clear()
    site.desk.cloud.place = "simulated/elsewhere"
    seen = seen_by(site)
    (trouble,) = seen.silent
    assert "simulated/everywhere" in trouble.text
    assert "restore the region and the credentials" in trouble.text
    assert (dict(seen.windows), phases(site, seen)) == ({}, {Phase.LAUNCHED})
    reason = seen.serving["SimulatedNodeTemplate"]
    assert reason is not None, "which holds its pools back, with a condition"


def test_a_call_of_unknown_outcome_is_not_repeated_in_another_place() -> None:
    site = Site()
    site.desk.record(planned("n2"))
    site.desk.cloud.inject(Call.LAUNCH, Fault.LOST_ANSWER)
    site.carry_out()
    site.desk.cloud.place = "simulated/elsewhere"
    site.desk.clock.advance(timedelta(minutes=10))
    calls = site.desk.cloud.calls.count(Call.LAUNCH)
    (trouble,) = site.carry_out()
    assert (trouble.kind, "simulated/elsewhere" in trouble.text) == ("LaunchBatch", True)
    assert site.desk.cloud.calls.count(Call.LAUNCH) == calls
    site.desk.cloud.place = "simulated/everywhere"
    site.desk.clock.advance(timedelta(minutes=5))
    site.carry_out()
    assert [node.phase for node in site.desk.nodes()] == [Phase.LAUNCHED] * 2


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("1/us", "1/us", True),
        ("1/us", "2/us", False),
        ("1/us", "1/eu", False),
        ("1/us", "/us", True),
        ("1/us", "/eu", False),
        ("", "1/us", True),
    ],
)
def test_what_is_unknown_is_no_other_place(one: str, other: str, same: bool) -> None:
    assert same_place(one, other) is same_place(other, one) is same

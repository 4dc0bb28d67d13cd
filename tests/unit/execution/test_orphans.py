"""Machines without an object: adopted where pods may run, terminated where nobody ever came, left alone in doubt."""

from __future__ import annotations

from datetime import timedelta

import pytest

from autoscaler.cluster.resources import LAUNCH_BATCHES
from autoscaler.errors import ConfigurationError
from autoscaler.execution.launch import launch
from autoscaler.execution.orphans import MINIMUM_AGE, OwnLaunches, adopt_all, find_orphans
from autoscaler.lifecycle.boot_times import LONGEST
from autoscaler.model.node import Node
from autoscaler.model.provisioned_node import Phase
from instance_catalog.dataclass import replace
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes import labels
from instance_catalog.types.instance_type import CapacityType
from providers.contract import TAG_BATCH, TAG_CLUSTER, TAG_POOL, Instance, InstanceState, OfferingKey, describe_all
from tests.builders import ours
from tests.desk import POOL, A, Desk, planned
from tests.unit.execution.node_site import Site

CLUSTER = {TAG_CLUSTER: "uid-1"}


def machine(name: str, desk: Desk, *, age: timedelta = timedelta(hours=1), **tags: str) -> Instance:
    return Instance(
        id=name,
        provider_id=f"simulated:///z/{name}",
        offering=OfferingKey("p5.48xlarge", "us-east-1a", CapacityType.ON_DEMAND),
        state=InstanceState.RUNNING,
        launched_at=desk.now - age,
        tags=FrozenMap({**CLUSTER, TAG_POOL: "gpu", TAG_BATCH: "lost", **tags}),
    )


def by_provider_id(*machines: Instance) -> dict[str, Instance]:
    return {found.provider_id: found for found in machines}


def test_known_machines_are_no_orphans(desk: Desk) -> None:
    desk.record(planned("n1"))
    launch(
        desk.journal.batches[0], providers=desk.providers, journal=desk.journal, backoffs=desk.backoffs, now=desk.now
    )
    provider = desk.providers.by_template["SimulatedNodeTemplate"]
    machines = by_provider_id(*describe_all(provider, CLUSTER))
    later = desk.now + LONGEST * 2
    assert len(machines) == 1
    assert find_orphans(machines, journal=desk.journal, nodes=(), now=later).terminate == ()


@pytest.mark.parametrize(
    ("boot", "age"),
    [
        pytest.param(timedelta(hours=2), timedelta(hours=2), id="its pool lets it boot for long"),
        pytest.param(timedelta(minutes=2), MINIMUM_AGE, id="its launch may still be written down"),
    ],
)
def test_one_that_may_still_boot_is_left_alone(desk: Desk, boot: timedelta, age: timedelta) -> None:
    pools = (replace(POOL, boot_timeout=boot),)
    young, old = machine("i-1", desk, age=age - timedelta(seconds=1)), machine("i-2", desk, age=age)
    found = find_orphans(by_provider_id(young, old), journal=desk.journal, nodes=(), pools=pools, now=desk.now)
    assert found.terminate == (old,)


def test_a_machine_of_a_batch_that_is_under_way_is_none(desk: Desk) -> None:
    desk.record(planned("n1"))
    mine = machine("i-1", desk, **{TAG_BATCH: desk.journal.batches[0].name})
    found = find_orphans(by_provider_id(mine), journal=desk.journal, nodes=(), now=desk.now)
    assert (found.adopt, found.terminate) == ((), ())


def test_one_of_a_slice_that_never_registered_ends_with_the_slice(desk: Desk) -> None:
    desk.record(*(replace(planned(name, A), whole="s") for name in ("n1", "n2")))
    (batch,) = desk.journal.batches
    launch(batch, providers=desk.providers, journal=desk.journal, backoffs=desk.backoffs, now=desk.now)
    more = machine("i-9", desk, **{TAG_BATCH: batch.name})
    found = find_orphans(by_provider_id(more), journal=desk.journal, nodes=(), now=desk.now)
    assert (found.adopt, found.terminate) == ((), ())
    desk.api.delete(LAUNCH_BATCHES, batch.name)
    desk.journal.resume((), desk.nodes(), desk.now, seen_up_to=10**9)
    found = find_orphans(by_provider_id(more), journal=desk.journal, nodes=(), now=desk.now)
    assert (desk.journal.batches, found.adopt, found.terminate) == ((), (), ())


def test_a_host_of_a_slice_is_adopted_as_one_although_its_launch_is_written_down_nowhere(desk: Desk) -> None:
    lost = [replace(machine(f"i-{n}", desk, **{TAG_BATCH: "lost-1f", TAG_POOL: "gpu"}), hosts=2) for n in (1, 2)]
    provider = desk.providers.by_template["SimulatedNodeTemplate"]
    adopt_all([(one, Node(one.id)) for one in lost], provider=provider, journal=desk.journal, now=desk.now)
    assert [(node.batch, node.hosts) for node in desk.nodes()] == [("lost-1f", 2)] * 2


@pytest.mark.parametrize(
    ("age", "terminated"),
    [(LONGEST - timedelta(seconds=1), False), (LONGEST, True), (-timedelta(hours=3), True)],
    ids=["too young", "old enough", "launched before the clock was set back"],
)
def test_one_that_never_registered_is_terminated_past_a_minimum_age(
    desk: Desk, age: timedelta, terminated: bool
) -> None:
    lost = machine("i-1", desk, age=age)
    found = find_orphans(by_provider_id(lost), journal=desk.journal, nodes=(), now=desk.now)
    assert found.terminate == ((lost,) if terminated else ())


def test_one_whose_node_is_registered_is_adopted(desk: Desk) -> None:
    lost = machine("i-1", desk)
    node = Node("n1", provider_id=lost.provider_id)
    found = find_orphans(by_provider_id(lost), journal=desk.journal, nodes=(node,), now=desk.now)
    assert found.terminate == (), "pods may run there"
    provider = desk.providers.by_template["SimulatedNodeTemplate"]
    adopt_all(found.adopt, provider=provider, journal=desk.journal, now=desk.now)
    (adopted,) = desk.nodes()
    assert (adopted.name, adopted.pool, adopted.provider_id) == ("n1", "gpu", lost.provider_id)
    assert (adopted.phase, adopted.provider) == (Phase.REGISTERED, "simulated")
    again = find_orphans(by_provider_id(lost), journal=desk.journal, nodes=(node,), now=desk.now)
    assert (again.adopt, again.terminate) == ((), ())


def test_without_a_pool_in_its_tags_the_label_of_the_node_says_it(desk: Desk) -> None:
    """Machines of a node pool may lack our tags; one of which nobody knows the pool holds up no other."""
    lost, nowhere = (replace(machine(name, desk), tags=FrozenMap()) for name in ("i-1", "i-2"))
    node = Node("n1", provider_id=lost.provider_id, labels=FrozenMap({labels.POOL: "gpu"}))
    unlabelled = Node("n2", provider_id=nowhere.provider_id)
    provider = desk.providers.by_template["SimulatedNodeTemplate"]
    with pytest.raises(ConfigurationError, match=r"machine i-2 .* name a CapacityPool") as raised:
        adopt_all([(nowhere, unlabelled), (lost, node)], provider=provider, journal=desk.journal, now=desk.now)
    assert f"label its Node with {labels.POOL}" in raised.value.next_step
    assert [(adopted.name, adopted.pool) for adopted in desk.nodes()] == [("n1", "gpu")]


@pytest.mark.parametrize(("lost", "others", "stopped"), [(2, 0, False), (3, 0, True), (3, 30, False), (5, 30, True)])
def test_above_a_bound_the_sweep_stops(desk: Desk, lost: int, others: int, stopped: bool) -> None:
    machines = [machine(f"i-{index}", desk) for index in range(lost)]
    known = [machine(f"k-{index}", desk, age=timedelta(0)) for index in range(others)]
    found = find_orphans(by_provider_id(*machines, *known), journal=desk.journal, nodes=(), now=desk.now)
    assert found.stopped is stopped
    assert len(found.terminate) == (0 if stopped else lost)


@pytest.mark.parametrize(("slices", "stopped"), [(2, False), (3, True)])
def test_a_slice_counts_as_one_machine(desk: Desk, slices: int, stopped: bool) -> None:
    """One launch that nobody knows any more leaves all its hosts."""
    tags = [{TAG_BATCH: f"lost-{number}"} for number in range(slices) for _ in range(4)]
    hosts = [replace(machine(f"i-{n}", desk, **tag), hosts=4) for n, tag in enumerate(tags)]
    found = find_orphans(by_provider_id(*hosts), journal=desk.journal, nodes=(), now=desk.now)
    assert (found.stopped, len(found.terminate)) == (stopped, 0 if stopped else len(hosts))


def test_hosts_whose_launch_is_unknown_count_one_by_one(desk: Desk) -> None:
    hosts = [replace(machine(f"i-{n}", desk, **{TAG_BATCH: ""}), hosts=4) for n in range(4)]
    assert find_orphans(by_provider_id(*hosts), journal=desk.journal, nodes=(), now=desk.now).stopped


def test_hosts_without_a_node_do_not_end_beside_one_that_is_adopted(desk: Desk) -> None:
    """They belong to its slice from then on, and end with it."""
    hosts = [replace(machine(f"i-{n}", desk, **{TAG_BATCH: "lost-1f"}), hosts=2) for n in (1, 2)]
    joined = (Node("n", provider_id=hosts[0].provider_id),)
    found = find_orphans(by_provider_id(*hosts), journal=desk.journal, nodes=joined, now=desk.now)
    assert ([one.id for one, _ in found.adopt], found.terminate) == (["i-1"], ())


def test_ended_machines_are_ignored(desk: Desk) -> None:
    lost = machine("i-1", desk)
    ended = Instance(**{**{f: getattr(lost, f) for f in lost.__slots__}, "state": InstanceState.TERMINATED})
    assert find_orphans(by_provider_id(ended), journal=desk.journal, nodes=(), now=desk.now).terminate == ()


def led(site: Site, minutes: int) -> None:
    """The controller has led for so long, with a machine of its own."""
    site.carry_out()
    site.desk.clock.advance(timedelta(minutes=minutes))


def test_a_machine_that_a_second_controller_launches_is_left_alone_and_told() -> None:
    site = Site()
    led(site, 180)
    stranger = machine("i-9", site.desk, age=timedelta(hours=1), **{TAG_BATCH: "of-the-other"})
    seen = site.seen()
    listed = {"simulated": {**seen.machines["simulated"], stranger.provider_id: stranger}}
    (trouble,) = site.carry_out(seen=replace(seen, machines=listed))
    assert "another controller uses the same uid" in trouble.text
    assert "stop one of the two" in trouble.text


@pytest.mark.parametrize(
    ("age", "batch", "excluded"),
    [
        pytest.param(timedelta(hours=1), "of-the-other", True, id="since we lead"),
        pytest.param(
            timedelta(hours=4), "of-the-other", False, id="before: a process before this one may have lost it"
        ),
        pytest.param(timedelta(hours=2, minutes=55), "of-the-other", False, id="clocks may be apart"),
        pytest.param(timedelta(hours=1), "mine", False, id="its objects were deleted by force"),
        pytest.param(timedelta(hours=-12), "of-the-other", True, id="our clock was set back, until it is right again"),
    ],
)
def test_only_what_was_launched_since_we_lead_is_another_controllers(
    desk: Desk, age: timedelta, batch: str, excluded: bool
) -> None:
    own = OwnLaunches()
    desk.record(planned("n1"))
    mine = replace(desk.journal.batches[0], name="mine")
    assert not own.excludes(machine("i-1", desk), desk.clock), "it does not lead yet"
    own.note([mine], desk.nodes(), desk.clock)
    desk.clock.advance(timedelta(hours=3))
    own.note([], [], desk.clock)
    found = machine("i-1", desk, age=age, **{TAG_BATCH: batch})
    assert own.excludes(found, desk.clock) is excluded


def test_a_machine_of_ours_that_its_group_makes_anew_is_no_other_controllers(desk: Desk) -> None:
    """Its batch may be forgotten by then, and a name of Google Cloud does not say which that was."""
    own, old = OwnLaunches(), machine("i-1", desk)
    own.note([], [ours("n1", provider_id=old.provider_id)], desk.clock)
    desk.clock.advance(timedelta(hours=3))
    again = replace(old, id="i-9", launched_at=desk.now - timedelta(minutes=30), tags=FrozenMap(CLUSTER))
    assert not own.excludes(again, desk.clock)
    assert own.excludes(replace(again, provider_id="simulated:///z/i-2"), desk.clock)


def test_a_machine_that_is_made_anew_is_an_orphan_while_its_batch_lives_on(desk: Desk) -> None:
    """The node that had its name is gone; another node of the batch is still there."""
    desk.record(planned("n1"), planned("n2"))
    (batch,) = desk.journal.batches
    launch(batch, providers=desk.providers, journal=desk.journal, backoffs=desk.backoffs, now=desk.now)
    first = next(node for node in desk.journal.nodes if node.name == "n1")
    desk.journal.forget(first)
    assert [one.name for one in desk.journal.batches] == [batch.name]
    again = replace(machine("i-9", desk, **{TAG_BATCH: batch.name}), provider_id=first.provider_id)
    listed = by_provider_id(again)
    assert find_orphans(listed, journal=desk.journal, nodes=(), now=desk.now).terminate == (again,)
    node = Node("n1", provider_id=again.provider_id)
    assert find_orphans(listed, journal=desk.journal, nodes=(node,), now=desk.now).adopt == ((again, node),)
    desk.record(planned("n1"))
    assert find_orphans(listed, journal=desk.journal, nodes=(), now=desk.now).terminate == (again,), "not for that one"

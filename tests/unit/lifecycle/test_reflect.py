"""What was seen moves nodes and blocks, and what was not seen moves nothing unless it would have to be seen."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from autoscaler.kube.custom.provisioned_node import parse_provisioned_node, write_provisioned_node
from autoscaler.lifecycle.provisioned_node import EDGES, MachineState, Observation, advance, awaits_node
from autoscaler.lifecycle.reflect import SeenReservation, World, complete_drivers, occupies, reflect
from autoscaler.model.capacity import CapacityBlock, CapacityPool, NodeTemplateRef
from autoscaler.model.node import Node
from autoscaler.model.pod import Pod
from autoscaler.model.provisioned_node import OfferingRef, Phase, PhaseChange, ProvisionedNode
from autoscaler.model.snapshot import Snapshot
from instance_catalog.dataclass import replace
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.labels import POOL
from instance_catalog.kubernetes.resource_slice import NodeReach, Pool, ResourceSlice
from instance_catalog.types.instance_type import CapacityType
from tests.builders import ours
from tests.lifecycle_reference import generated_files

NOW = datetime(2027, 1, 31, 8, 0, tzinfo=UTC)
EARLIER = NOW - timedelta(minutes=5)
OFFERING = OfferingRef("p5.48xlarge", "us-east-1a", CapacityType.ON_DEMAND)
LAUNCHED = ours(
    "n1",
    offering=OFFERING,
    pool="p",
    phase=Phase.LAUNCHED,
    phase_since=EARLIER,
    provider="sim",
    provider_id="sim:///i-1",
    history=(PhaseChange(Phase.LAUNCHED, EARLIER, "Obtained"),),
)
READY = replace(LAUNCHED, phase=Phase.READY)
NODE = Node("n1", provider_id="sim:///i-1")
UNNAMED = Node("n1", labels=FrozenMap({POOL: "p"}))
BLOCK = CapacityBlock("b", "p5.48xlarge", "us-east-1a", 4, EARLIER, NOW + timedelta(days=1), reservation="cr-1")
GPU, NIC = "gpu.nvidia.com", "dra.net"


def published(
    driver: str = GPU, *, node: str = "n1", pool: str = "n1", generation: int = 1, count: int = 1
) -> ResourceSlice:
    name = f"{node}-{driver}-{pool}-{generation}"
    return ResourceSlice(name, driver, Pool(pool, generation, count), reach=NodeReach(node_name=node))


def world(provisioned: ProvisionedNode = LAUNCHED, **changes: object) -> World:
    snapshot = Snapshot(provisioned=(provisioned,), nodes=(NODE,), slices=(published(),))
    base = World(snapshot, {"sim:///i-1": MachineState.RUNNING}, {"sim": timedelta(minutes=1)})
    for name, value in changes.items():
        holder = "snapshot" if hasattr(snapshot, name) else ""
        if holder:
            base = replace(base, snapshot=replace(base.snapshot, **{name: value}))
        else:
            base = replace(base, **{name: value})
    return base


def phase(seen: World) -> Phase:
    return reflect(seen, NOW).provisioned[0].phase


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        pytest.param(world(), Phase.READY, id="all is there"),
        pytest.param(world(nodes=()), Phase.LAUNCHED, id="no Node"),
        pytest.param(world(nodes=(replace(NODE, deleting=True),)), Phase.LAUNCHED, id="Node on its way out"),
        pytest.param(world(nodes=(UNNAMED,)), Phase.READY, id="Node without an id counts by name and label"),
        pytest.param(world(nodes=(Node("n1"),)), Phase.LAUNCHED, id="Node without an id and without our label"),
        pytest.param(
            world(nodes=(replace(UNNAMED, provider_id="sim:///i-2"),)), Phase.LAUNCHED, id="Node of another machine"
        ),
        pytest.param(
            world(nodes=(Node("other", provider_id="sim:///i-1"),), slices=(published(node="other"),)),
            Phase.READY,
            id="the id counts before the name",
        ),
        pytest.param(world(nodes=(replace(NODE, ready=False),)), Phase.DRIVERS_READY, id="not ready"),
        pytest.param(world(slices=()), Phase.REGISTERED, id="no slices"),
        pytest.param(world(slices=(published(count=2),)), Phase.REGISTERED, id="incomplete pool"),
        pytest.param(world(slices=(published(node="n2"),)), Phase.REGISTERED, id="slices of another node"),
        pytest.param(world(expected_drivers={"n1": frozenset({GPU, NIC})}), Phase.REGISTERED, id="a driver is missing"),
        pytest.param(world(expected_drivers={"n1": frozenset()}, slices=()), Phase.READY, id="no driver expected"),
        pytest.param(world(machines={}, nodes=(replace(NODE, ready=False),)), Phase.GONE, id="machine lost"),
        pytest.param(world(machines={}, nodes=()), Phase.GONE, id="machine lost with its Node"),
        pytest.param(world(machines={}), Phase.READY, id="not listed, but its Node is Ready"),
        pytest.param(world(machines={}, windows={}), Phase.READY, id="provider silent"),
        pytest.param(world(machines={}, windows={"sim": timedelta(hours=1)}), Phase.READY, id="too young to be missed"),
        pytest.param(world(machines={"sim:///i-1": MachineState.TERMINATING}), Phase.TERMINATING, id="interrupted"),
        pytest.param(
            world(replace(LAUNCHED, provider_id="", phase=Phase.LAUNCHING)), Phase.LAUNCHING, id="no machine yet"
        ),
    ],
)
def test_a_node_moves_to_what_was_seen(seen: World, expected: Phase) -> None:
    assert phase(seen) is expected


@pytest.mark.parametrize("registered", [True, False])
@pytest.mark.parametrize("machine", [None, *MachineState])
@pytest.mark.parametrize("at", [one for one in Phase if not awaits_node(replace(LAUNCHED, phase=one))])
def test_slices_decide_only_on_nodes_that_wait_for_them(at: Phase, machine: MachineState, registered: bool) -> None:
    node = replace(LAUNCHED, phase=at)
    seen = Observation(machine, registered=registered, ready=True)
    assert advance(node, replace(seen, slices_complete=True), NOW) == advance(node, seen, NOW)


def test_a_node_of_which_nothing_changed_stays_the_same_object() -> None:
    node = replace(READY, empty_since=EARLIER)
    assert reflect(world(node), NOW).provisioned[0] is node


@pytest.mark.parametrize(
    ("windows", "announced", "expected"),
    [
        pytest.param({"sim": timedelta(minutes=1)}, {"sim:///i-1": NOW}, NOW, id="announced"),
        pytest.param({"sim": timedelta(minutes=1)}, {}, None, id="taken back"),
        pytest.param({}, {}, NOW + timedelta(hours=1), id="the provider is silent"),
    ],
)
def test_the_end_of_a_machine_is_what_its_provider_said_last(
    windows: dict[str, timedelta], announced: dict[str, datetime], expected: datetime | None
) -> None:
    ending = replace(READY, reclaim_at=NOW + timedelta(hours=1))
    assert reflect(world(ending, windows=windows, reclaims=announced), NOW).provisioned[0].reclaim_at == expected


WINDOW = {"sim": timedelta(minutes=1)}
SOON, LATE = NOW + timedelta(minutes=2), NOW + timedelta(days=3)


@pytest.mark.parametrize(
    ("written", "noticed", "announced", "ends"),
    [
        pytest.param(None, SOON, SOON, (SOON, SOON), id="heard now"),
        pytest.param(SOON, None, None, (SOON, SOON), id="heard by the leader before"),
        pytest.param(SOON, LATE, LATE, (SOON, SOON), id="a later one does not replace it"),
        pytest.param(LATE, SOON, SOON, (SOON, SOON), id="an earlier one does"),
        pytest.param(SOON, None, LATE, (SOON, SOON), id="before the end of the reservation"),
        pytest.param(LATE, None, SOON, (SOON, LATE), id="after the end of the reservation"),
        pytest.param(NOW - timedelta(hours=1), None, None, (None, None), id="outlived"),
        pytest.param(NOW - timedelta(hours=1), None, LATE, (LATE, None), id="outlived in a reservation"),
    ],
)
def test_an_end_that_is_said_once_is_kept(
    written: datetime | None,
    noticed: datetime | None,
    announced: datetime | None,
    ends: tuple[datetime | None, datetime | None],
) -> None:
    seen = world(
        replace(READY, reclaim_at=written, noticed_at=written),
        windows=WINDOW,
        reclaims={} if announced is None else {"sim:///i-1": announced},
        notices={} if noticed is None else {"sim:///i-1": noticed},
    )
    (node,) = reflect(seen, NOW).provisioned
    assert (node.reclaim_at, node.noticed_at) == ends
    stored = parse_provisioned_node(write_provisioned_node(node))
    assert (stored.reclaim_at, stored.noticed_at) == ends


@pytest.mark.parametrize("at", [Phase.LAUNCHED, Phase.REGISTERED, Phase.DRIVERS_READY, Phase.READY])
def test_a_stopped_machine_changes_nothing_but_is_told(at: Phase) -> None:
    since = NOW - timedelta(hours=1)
    stopped = replace(READY, phase=at, phase_since=since, empty_since=since, unhealthy_since=since)
    seen = world(stopped, machines={"sim:///i-1": MachineState.STOPPED}, windows=WINDOW, nodes=())
    (node,) = reflect(seen, NOW).provisioned
    assert (node.phase, node.stopped_since, node.empty_since, node.unhealthy_since) == (at, NOW, None, None)
    conditions = write_provisioned_node(node)["status"]["conditions"]
    assert [found["status"] for found in conditions if found["type"] == "MachineStopped"] == ["True"]
    stored = parse_provisioned_node(write_provisioned_node(node))
    later = NOW + timedelta(days=1)
    running = {"sim:///i-1": MachineState.RUNNING}
    (again,) = reflect(world(stored, machines=running, windows=WINDOW, nodes=()), later).provisioned
    assert again.phase in (at, Phase.LAUNCHED), "its time to boot begins anew"
    assert (again.stopped_since, again.phase_since) == (None, later)


def test_a_silent_provider_does_not_start_a_stopped_machine() -> None:
    stopped = replace(READY, stopped_since=NOW)
    assert reflect(world(stopped, machines={}, windows={}), NOW).provisioned[0].stopped_since == NOW


def test_a_node_that_the_cloud_named_is_called_by_its_name_from_then_on() -> None:
    cloud = Node("ip-10-0-0-1", provider_id="sim:///i-1")
    named = reflect(world(nodes=(cloud,)), NOW).provisioned[0]
    assert (named.name, named.node_name) == ("n1", "ip-10-0-0-1")
    written = parse_provisioned_node(write_provisioned_node(named))
    assert written.node_name == "ip-10-0-0-1", "its Node may be gone when it is read again"
    assert reflect(world(nodes=()), NOW).provisioned[0].node_name == "n1"


def test_age_counts_from_the_launch_not_from_the_latest_phase() -> None:
    seen = world(replace(READY, phase_since=NOW), machines={}, windows={"sim": timedelta(minutes=4)}, nodes=())
    assert phase(seen) is Phase.GONE


def test_a_node_is_idle_from_the_first_tick_without_pods_on() -> None:
    pod = Pod("default", "train", node_name="n1", phase="Running")
    assert reflect(world(READY, pods=(pod,)), NOW).provisioned[0].empty_since is None
    idle = reflect(world(READY), NOW).provisioned[0]
    assert idle.empty_since == NOW
    later = NOW + timedelta(minutes=1)
    assert reflect(world(idle), later).provisioned[0].empty_since == NOW
    assert reflect(world(idle, pods=(pod,)), later).provisioned[0].empty_since is None


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        pytest.param(Pod("a", "b", node_name="n1", phase="Running"), True, id="running"),
        pytest.param(Pod("a", "b", node_name="n1", phase="Running", owner="Job/x"), True, id="of a job"),
        pytest.param(Pod("a", "b", node_name="n1", phase="Pending"), True, id="bound and starting"),
        pytest.param(Pod("a", "b", node_name="n1", phase="Running", deleting=True), True, id="still stopping"),
        pytest.param(Pod("a", "b"), False, id="unbound"),
        pytest.param(Pod("a", "b", node_name="n1", phase="Succeeded"), False, id="finished"),
        pytest.param(Pod("a", "b", node_name="n1", phase="Running", owner="DaemonSet/x"), False, id="daemon"),
        pytest.param(Pod("a", "b", node_name="n1", phase="Running", owner="Node/n1"), False, id="mirror"),
    ],
)
def test_which_pods_occupy_a_node(pod: Pod, expected: bool) -> None:
    assert occupies(pod) is expected


@pytest.mark.parametrize(
    ("slices", "expected"),
    [
        pytest.param((published(), published(NIC)), {GPU, NIC}, id="two drivers"),
        pytest.param((published(), published(pool="second", count=2)), set(), id="one of two pools is incomplete"),
        pytest.param(
            (published(generation=1), published(generation=2, count=2)), set(), id="the newest generation counts"
        ),
        pytest.param((published(generation=1, count=9), published(generation=2)), {GPU}, id="old generations do not"),
    ],
)
def test_complete_drivers(slices: tuple[ResourceSlice, ...], expected: set[str]) -> None:
    assert complete_drivers(slices) == {"n1": expected}


def test_slices_that_belong_to_no_node_are_left_out() -> None:
    assert complete_drivers((ResourceSlice("s", GPU, Pool("p"), reach=NodeReach(all_nodes=True)),)) == {}


SEEN = SeenReservation(
    "cr-1",
    "p5.48xlarge",
    "us-east-1a",
    available=3,
    ends_at=NOW + timedelta(days=2),
    reclaim_at=NOW + timedelta(hours=47),
    tags=FrozenMap({"team": "x", "env": "y"}),
)


def block_after(block: CapacityBlock, *reservations: SeenReservation) -> CapacityBlock:
    return reflect(World(Snapshot(blocks=(block,)), reservations=reservations), NOW).blocks[0]


def test_the_provider_says_when_a_block_ends_and_what_is_left() -> None:
    block = block_after(BLOCK, SEEN)
    assert (block.ends_at, block.reclaim_at, block.available) == (SEEN.ends_at, SEEN.reclaim_at, 3)


def test_a_block_finds_its_reservation_by_tags() -> None:
    block = replace(BLOCK, reservation="", reservation_tags=FrozenMap({"team": "x"}))
    assert block_after(block, SEEN).reservation == "cr-1"


@pytest.mark.parametrize(
    "others",
    [
        pytest.param((), id="none"),
        pytest.param((SEEN, replace(SEEN, id="cr-2")), id="two"),
        pytest.param((replace(SEEN, zone="us-east-1b"),), id="another zone"),
        pytest.param((replace(SEEN, over=True),), id="over"),
    ],
)
def test_a_block_by_tags_needs_exactly_one_reservation(others: tuple[SeenReservation, ...]) -> None:
    block = replace(BLOCK, reservation="", reservation_tags=FrozenMap({"team": "x"}))
    assert block_after(block, *others) == block


def test_a_reservation_that_is_over_before_its_time_ends_the_block_now() -> None:
    block = block_after(BLOCK, replace(SEEN, over=True))
    assert (block.reclaimed, block.available) == (NOW, 0)


def test_a_reservation_that_is_over_in_time_does_not_move_the_end() -> None:
    over = replace(SEEN, over=True, ends_at=EARLIER, reclaim_at=EARLIER - timedelta(minutes=30))
    assert block_after(BLOCK, over).reclaimed == over.reclaim_at


POOL = CapacityPool("gpu", node_template=NodeTemplateRef("AWSNodeTemplate", "gpu"))
BY_TAGS = replace(BLOCK, pool="gpu", reservation="", reservation_tags=FrozenMap({"team": "x"}))


@pytest.mark.parametrize(
    ("block", "seen", "note"),
    [
        pytest.param(BLOCK, (replace(SEEN, note="not paid yet"),), "not paid yet", id="as the provider says"),
        pytest.param(replace(BLOCK, note="not paid yet"), (SEEN,), "", id="it is usable by now"),
        pytest.param(BLOCK, (), "no reservation cr-1: check the id and the region", id="another id or region"),
        pytest.param(BY_TAGS, (), "no reservation of this type and zone carries", id="other tags"),
        pytest.param(BY_TAGS, (SEEN, replace(SEEN, id="cr-2")), "2 reservations carry", id="tags of several"),
    ],
)
def test_a_block_says_why_it_cannot_be_used(block: CapacityBlock, seen: tuple[SeenReservation, ...], note: str) -> None:
    snapshot = Snapshot(pools=(POOL,), blocks=(replace(block, pool="gpu"),))
    world = World(snapshot, reservations=seen, reserving=frozenset({"AWSNodeTemplate"}))
    (found,) = reflect(world, NOW).blocks
    assert note in found.note
    assert bool(found.note) == bool(note)


@pytest.mark.parametrize(
    ("reserving", "later"),
    [
        pytest.param((), timedelta(0), id="a provider that does not know all reservations"),
        pytest.param(("AWSNodeTemplate",), timedelta(days=30), id="a block that is over anyway"),
    ],
)
def test_a_reservation_that_is_not_seen_is_not_always_missing(reserving: tuple[str, ...], later: timedelta) -> None:
    snapshot = Snapshot(pools=(POOL,), blocks=(replace(BLOCK, pool="gpu"),))
    world = World(snapshot, reservations=(), reserving=frozenset(reserving))
    assert reflect(world, NOW + later).blocks == snapshot.blocks


def test_unread_reservations_change_nothing() -> None:
    assert reflect(World(Snapshot(blocks=(BLOCK,))), NOW).blocks == (BLOCK,)


def test_the_page_names_every_reason_and_time_out() -> None:
    ((path, text),) = generated_files().items()
    assert str(path) == "docs/lifecycle.md"
    assert {edge.why.value for edge in EDGES} <= set(text.replace("|", " ").split())
    assert "BootTimedOut (15 min)" in text
    assert "the clock, after 10 min" in text


INTENDED = replace(LAUNCHED, phase=Phase.INTENDED, provider="", provider_id="", history=())


@pytest.mark.parametrize(
    ("batches", "launched", "since", "expected"),
    [
        pytest.param(frozenset(), frozenset(), EARLIER, Phase.FAILED, id="no batch, no machine"),
        pytest.param(frozenset({"b"}), frozenset(), EARLIER, Phase.INTENDED, id="its batch is there"),
        pytest.param(frozenset(), frozenset({"b"}), EARLIER, Phase.INTENDED, id="a machine of it is listed"),
        pytest.param(frozenset(), None, EARLIER, Phase.INTENDED, id="a provider is silent"),
        pytest.param(None, frozenset(), EARLIER, Phase.INTENDED, id="batches were not read"),
        pytest.param(frozenset(), frozenset(), NOW, Phase.INTENDED, id="its machine may not be listed yet"),
        pytest.param(frozenset(), frozenset(), None, Phase.INTENDED, id="its life begins now"),
    ],
)
def test_a_node_without_its_batch_fails_once_its_provider_was_asked(
    batches: frozenset[str] | None, launched: frozenset[str] | None, since: datetime | None, expected: Phase
) -> None:
    seen = world(replace(INTENDED, phase_since=since), machines={}, batches=batches, launched=launched)
    (after,) = reflect(seen, NOW).provisioned
    assert (after.phase, after.phase_since) == (expected, NOW if since is None else after.phase_since)

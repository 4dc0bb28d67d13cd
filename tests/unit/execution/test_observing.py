"""Mode Observe touches nothing that exists: what is withheld, what is said instead, and what a person may order."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from autoscaler.cluster.journal import Pending
from autoscaler.cluster.resources import CAPACITY_POOLS, NODES, PROVISIONED_NODES, Resource
from autoscaler.execution.executor import Executor
from autoscaler.execution.observed import Observed
from autoscaler.execution.unclear import read_answer
from autoscaler.lifecycle.boot_times import LONGEST
from autoscaler.lifecycle.observing import may_touch
from autoscaler.lifecycle.provisioned_node import Why
from autoscaler.model.capacity import CapacityPool, DeletionPolicy, Mode
from autoscaler.model.plan import NodeAction, NodeDecision, Plan
from autoscaler.model.provisioned_node import Phase
from autoscaler.model.reason import Code, Reason
from autoscaler.model.snapshot import Snapshot
from instance_catalog.dataclass import replace
from providers.contract import TAG_BATCH, Instance, InstanceState, Traits
from providers.simulated.cloud import Call, Fault
from tests.desk import POOL, planned
from tests.unit.execution.node_site import Site

OBSERVING = replace(POOL, mode=Mode.OBSERVE)


@pytest.fixture
def site() -> Site:
    """A site whose pool observes by now."""
    site = Site()
    observe(site)
    return site


def observe(site: Site) -> None:
    site.desk.api.patch(CAPACITY_POOLS, "gpu", {"spec": {"mode": "Observe"}})


def would(site: Site) -> list[str]:
    return [withheld.would for withheld in site.executor.take_withheld()]


def gone_with_its_node(site: Site) -> None:
    site.at(Phase.GONE)


def draining(site: Site) -> None:
    site.pod("a")
    site.drain()


def failed(site: Site) -> None:
    site.at(Phase.FAILED)


def refused_once(site: Site) -> None:
    site.at(Phase.TERMINATING)


@pytest.mark.parametrize(
    ("arrange", "says"),
    [
        (draining, "evict the pods of its Node and end its machine"),
        (failed, "end its machine"),
        (refused_once, "end its machine"),
        (gone_with_its_node, "delete Node n1"),
    ],
)
def test_a_node_on_its_way_out_is_left_alone(site: Site, arrange: Callable[[Site], None], says: str) -> None:
    arrange(site)
    site.carry_out()  # the pool's own finalizer follows
    before = site.desk.api.writes
    site.executor.take_withheld()
    for _ in range(3):
        assert site.carry_out() == ()
        (told,) = would(site)
        assert told.startswith(says)
    assert (site.desk.api.writes, site.taints) == (before, [])
    assert (site.desk.cloud.calls.count(Call.TERMINATE), site.machine_state()) == (0, InstanceState.PENDING)
    assert site.desk.api.get(NODES, "n1")


def test_it_goes_on_when_its_pool_acts_again(site: Site) -> None:
    site.at(Phase.FAILED)
    site.carry_out()
    site.desk.api.patch(CAPACITY_POOLS, "gpu", {"spec": {"mode": "Act"}})
    site.carry_out()
    site.carry_out()
    assert (site.node.phase, would(site)[1:]) == (Phase.TERMINATING, [])


def test_the_object_of_a_node_without_machine_and_node_is_removed(site: Site) -> None:
    site.desk.api.delete(NODES, "n1")
    site.at(Phase.GONE)
    site.carry_out()
    assert (site.desk.nodes(), would(site)) == ((), [])


@pytest.mark.parametrize(
    "action", [NodeAction.DRAIN, NodeAction.HOLD, NodeAction.NOTICE], ids=lambda found: found.value
)
def test_its_node_is_neither_tainted_nor_marked(site: Site, action: NodeAction) -> None:
    site.at(Phase.READY)
    site.pod("a")
    before = site.desk.api.writes
    decision = NodeDecision("n1", action, (Reason.of(Code.NODE_EMPTY),), deadline=site.desk.now)
    site.carry_out(Pending(decisions=((site.node, decision),)))
    assert site.desk.api.writes == before
    assert len(would(site)) == 1


@pytest.mark.parametrize("what", ["node", "pool"])
def test_a_persons_order_is_carried_out(what: str) -> None:
    site = Site()
    site.carry_out()  # the pool gets its finalizer
    observe(site)
    site.at(Phase.READY)
    resource: Resource = PROVISIONED_NODES if what == "node" else CAPACITY_POOLS
    site.desk.api.delete(resource, "n1" if what == "node" else "gpu")
    site.desk.journal.resume(site.desk.batches(), site.desk.nodes(), site.desk.now)
    decision = NodeDecision("n1", NodeAction.DRAIN, (Reason.of(Code.POOL_DELETED),))
    pools = site.seen().snapshot.pools
    site.desk.journal.record(Plan(nodes=(decision,)), Snapshot(pools=pools), site.desk.now)
    site.carry_out()
    site.carry_out()
    assert (site.node.phase, site.machine_state()) == (Phase.TERMINATING, InstanceState.TERMINATING)


def orphaned(site: Site) -> Observed:
    """The machine of n1 is old and has no object."""
    site.desk.clock.advance(LONGEST)  # it does not boot any more
    seen = site.seen()
    site.desk.journal.forget(site.node)
    site.desk.journal.resume((), (), site.desk.now, seen_up_to=10**9)
    return replace(seen, snapshot=replace(seen.snapshot, provisioned=()))


@pytest.mark.parametrize("registered", [True, False])
def test_machines_without_an_object_are_neither_adopted_nor_ended(site: Site, registered: bool) -> None:
    if not registered:
        site.desk.api.delete(NODES, "n1")
    seen = orphaned(site)
    site.carry_out(Pending(), seen=seen)
    assert (site.desk.nodes(), site.machine_state()) == ((), InstanceState.RUNNING)
    (told,) = would(site)
    assert told.startswith("adopt machine" if registered else "end machine")


ACTING = replace(POOL, name="other")


@pytest.mark.parametrize(
    ("pool", "pools", "may"),
    [
        ("gpu", (OBSERVING, ACTING), False),
        ("gpu", (POOL,), True),
        ("gpu", (replace(POOL, held_back=True),), True),
        ("gpu", (replace(OBSERVING, deleting=True),), True),
        ("gpu", (replace(OBSERVING, deleting=True, deletion_policy=DeletionPolicy.RETAIN),), False),
        ("", (OBSERVING,), False),
        ("", (OBSERVING, ACTING), True),
        ("gone", (OBSERVING,), False),
        ("gone", (), False),
    ],
)
def test_whose_machines_may_be_touched(pool: str, pools: tuple[CapacityPool, ...], may: bool) -> None:
    assert may_touch(pool, pools) is may


@pytest.mark.parametrize("fault", [Fault.LOST_REQUEST, Fault.LOST_ANSWER])
def test_a_call_of_unknown_outcome_is_resolved_by_reading(fault: Fault) -> None:
    site = Site()
    site.desk.record(planned("n2"))
    site.desk.cloud.inject(Call.LAUNCH, fault)
    site.carry_out()
    observe(site)
    calls = site.desk.cloud.calls.count(Call.LAUNCH)
    for _ in range(5):
        site.desk.clock.advance(timedelta(minutes=1))
        site.carry_out()
    launched = fault is Fault.LOST_ANSWER
    assert site.desk.cloud.calls.count(Call.LAUNCH) == calls
    assert [node.phase for node in site.desk.nodes()[1:]] == ([Phase.LAUNCHED] if launched else [])
    assert len(site.desk.cloud.machines) == (2 if launched else 1)
    assert any("repeat its call" in told for told in would(site)) is not launched


def test_what_a_call_has_launched_is_read_from_tags(site: Site) -> None:
    site.desk.record(planned("n2"))
    (first, batch) = site.desk.journal.batches
    (machine,) = site.seen().machines["simulated"].values()
    if not first.answered:
        first, batch = batch, first
    tags = machine.tags.with_items({TAG_BATCH: batch.name})
    mine = replace(machine, id="i-2", provider_id="x:///i-2", tags=tags, node="")
    listed: dict[str, Instance] = {found.provider_id: found for found in (machine, mine)}
    unnamed = read_answer(batch, listed, Traits(), waited=timedelta(0))
    assert unnamed is not None
    assert [(found.id, found.node) for found in unnamed.instances] == [("i-2", "n2")]
    ended = listed | {mine.provider_id: replace(mine, state=InstanceState.TERMINATED)}
    assert read_answer(batch, ended, Traits(), waited=timedelta(0)) is None
    long = timedelta(minutes=2)
    over = read_answer(batch, ended, Traits(), waited=long)
    assert over is not None
    assert over.missing == ("n2",)
    assert read_answer(batch, ended, Traits(consistency_window=long), waited=long) is None
    assert read_answer(batch, ended, Traits(exact=False, counted=True), waited=timedelta(days=1)) is None


def test_launches_come_last_and_a_slow_one_lets_no_other_begin(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    site.desk.api.patch(CAPACITY_POOLS, "gpu", {"spec": {"mode": "Act"}})
    site.at(Phase.FAILED)
    site.carry_out()
    site.desk.record(planned("n2"))
    site.desk.record(planned("n3"))
    provider = site.desk.providers.by_template["SimulatedNodeTemplate"]
    launch, done = provider.launch, list[str]()

    def slow(self: object, request: object) -> object:
        done.append(site.node.phase.value)
        site.desk.clock.advance(timedelta(minutes=1))
        return launch(request)  # type: ignore[arg-type]

    monkeypatch.setattr(type(provider), "launch", slow)
    site.carry_out()
    assert done == ["Terminating"], "the machine of n1 is ended first, and the second launch waits for the next tick"
    site.carry_out()
    assert len(done) == 2


def test_the_order_survives_a_restart(site: Site) -> None:
    site.desk.journal.move(site.node, Why.UNWANTED, site.desk.now, (Reason.of(Code.POOL_DELETED),))
    site.desk = site.desk.restarted()
    desk = site.desk
    site.executor = Executor(desk.api, desk.journal, desk.backoffs, desk.providers, desk.clock)
    site.carry_out()
    assert (site.node.phase, site.taints) == (Phase.DRAINING, [])

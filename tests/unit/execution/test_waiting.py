"""Launches that their provider holds: asked for once, kept while somebody waits, and withdrawn when nobody does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import pytest

from autoscaler.cluster.isolation import Trouble
from autoscaler.cluster.resources import LAUNCH_BATCHES, PROVISIONED_NODES
from autoscaler.cluster.store import Store
from autoscaler.execution.executor import Executor
from autoscaler.execution.launch import Providers
from autoscaler.execution.observed import Observed
from autoscaler.lifecycle.provisioned_node import counts_against_limits
from autoscaler.model.capacity import CapacityPool, Mode
from autoscaler.model.plan import NodeAction, NodeDecision, Plan
from autoscaler.model.pod import Pod
from autoscaler.model.provisioned_node import BatchOutcome, Phase
from autoscaler.model.reason import Code, Reason
from autoscaler.model.snapshot import Snapshot
from instance_catalog.dataclass import replace
from instance_catalog.kubernetes.profile import REFERENCE
from providers.contract import LaunchAnswer, LaunchRequest, TerminateAnswer, describe_all
from providers.errors import AmbiguousError, WaitingError
from providers.simulated.cloud import SimulatedCloud
from providers.simulated.provider import SimulatedProvider
from tests.desk import POOL, Desk, new_desk, planned

PODS = ("default/a", "default/b")
OBSERVED = (replace(POOL, mode=Mode.OBSERVE),)


class Queue(SimulatedProvider):
    """Holds every launch until it is `open`."""

    def __init__(self, cloud: SimulatedCloud) -> None:
        super().__init__(cloud)
        self.open = False
        self.held: dict[str, LaunchRequest] = {}
        self.asked = self.withdrawn = 0
        self.deaf = False

    def launch(self, request: LaunchRequest) -> LaunchAnswer:
        self.asked += 1
        if not self.open:
            self.held[request.token] = request
            raise WaitingError("no capacity for all of them yet")
        self.held.pop(request.token, None)
        return super().launch(request)

    def waits(self, request: LaunchRequest) -> bool:
        return request.token in self.held

    def withdraw(self, request: LaunchRequest) -> LaunchAnswer:
        self.withdrawn += 1
        if self.deaf:
            raise AmbiguousError("no answer")
        held = self.held.pop(request.token, None)
        return super().launch(request) if self.open and held else LaunchAnswer(missing=request.nodes)

    def terminate(self, ids: Sequence[str]) -> TerminateAnswer:
        raise AssertionError("nothing runs that could be ended")


@dataclass
class Gang:
    """Two nodes for two pods, whose launch waits."""

    desk: Desk = field(default_factory=new_desk)
    pods: tuple[str, ...] = PODS
    pools: tuple[CapacityPool, ...] = (POOL,)

    def __post_init__(self) -> None:
        self.queue = Queue(self.desk.cloud)
        self.restart()
        self.desk.record(*(planned(f"n{i}", pods=(key,)) for i, key in enumerate(PODS)), gang=True)
        (trouble,) = self.reconcile()
        assert trouble.reason == "Waiting"

    def restart(self) -> None:
        """A controller with empty memory."""
        if self.desk.batches():
            self.desk = self.desk.restarted()
        desk = self.desk
        providers = Providers({"SimulatedNodeTemplate": self.queue}, cluster="uid-1")
        self.executor = Executor(desk.api, desk.journal, desk.backoffs, providers, desk.clock)

    def reconcile(self, *, needed: bool = False) -> tuple[Trouble, ...]:
        """One, ten minutes after the one before."""
        self.desk.clock.advance(timedelta(minutes=10))
        found = {machine.provider_id: machine for machine in describe_all(self.queue, {})}
        snapshot = Snapshot(pods=tuple(Pod(*key.split("/")) for key in self.pods), pools=self.pools)
        code = Code.ALREADY_BOUND if needed else Code.COMING_NODE
        nodes = tuple(NodeDecision(n.name, NodeAction.KEEP, (Reason.of(code),)) for n in self.desk.journal.nodes)
        self.desk.journal.record(Plan(nodes=nodes), snapshot, self.desk.now)
        pending = self.desk.journal.pending()
        return self.executor.carry_out(pending, Observed(snapshot, {"simulated": found}), self.desk.now)

    @property
    def phases(self) -> list[Phase]:
        return [node.phase for node in self.desk.nodes()]


@pytest.fixture
def gang() -> Gang:
    return Gang()


def seen(gang: Gang) -> dict[str, datetime]:
    """What a snapshot of the cluster says of nodes that wait at their provider."""
    store = Store(gang.desk.api, REFERENCE)
    store.refresh()
    return dict(store.snapshot().waiting)


def test_a_wait_of_weeks_is_written_down_and_counts_against_limits(gang: Gang) -> None:
    (batch,) = gang.desk.batches()
    began = gang.desk.now
    assert (batch.outcome, batch.waiting_since) == (BatchOutcome.CALLING, began)
    gang.desk.clock.advance(timedelta(days=21))
    gang.restart()
    gang.reconcile()
    assert gang.desk.batches()[0].waiting_since == began
    assert seen(gang) == {node.name: began for node in gang.desk.nodes()}
    assert all(counts_against_limits(node) for node in gang.desk.nodes())
    assert gang.phases == [Phase.LAUNCHING, Phase.LAUNCHING]
    assert (len(gang.queue.held), gang.queue.withdrawn, gang.desk.pool_status().get("backoffs")) == (1, 0, None)


def test_machines_that_come_are_the_nodes(gang: Gang) -> None:
    gang.queue.open = True
    assert gang.reconcile() == ()
    (batch,) = gang.desk.batches()
    assert (batch.outcome, batch.waiting_since) == (BatchOutcome.LAUNCHED, None)
    assert gang.phases == [Phase.LAUNCHED, Phase.LAUNCHED]
    assert seen(gang) == {}


def test_it_is_withdrawn_once_when_its_pods_are_gone(gang: Gang) -> None:
    gang.pods = ()
    assert gang.reconcile() == ()
    assert (gang.queue.held, gang.queue.withdrawn) == ({}, 1)
    assert gang.phases == [Phase.FAILED, Phase.FAILED]
    gang.reconcile()
    assert (gang.queue.asked, gang.queue.withdrawn) == (1, 1)


@pytest.mark.parametrize("pods", [PODS, PODS[:1]])
def test_it_is_kept_while_one_of_its_pods_waits(gang: Gang, pods: tuple[str, ...]) -> None:
    gang.pods = pods
    gang.reconcile()
    assert (len(gang.queue.held), gang.queue.withdrawn) == (1, 0)


def test_it_is_kept_for_other_pods_that_the_plan_puts_there(gang: Gang) -> None:
    gang.pods = ("default/of-the-next-job",)
    gang.reconcile(needed=True)
    assert (len(gang.queue.held), gang.queue.withdrawn) == (1, 0)


def test_a_withdrawal_without_an_answer_is_repeated(gang: Gang) -> None:
    gang.pods, gang.queue.deaf = (), True
    (trouble,) = gang.reconcile()
    assert trouble.reason == "Ambiguous"
    assert gang.desk.batches()[0].outcome is BatchOutcome.CALLING
    gang.restart()
    gang.queue.deaf = False
    assert gang.reconcile() == ()
    assert (gang.queue.held, gang.queue.asked) == ({}, 1)


def test_machines_that_came_before_the_withdrawal_are_the_nodes(gang: Gang) -> None:
    """They are empty nodes then, which end as any other."""
    gang.pods, gang.queue.open = (), True
    gang.reconcile()
    (batch,) = gang.desk.batches()
    assert (batch.outcome, batch.waiting_since) == (BatchOutcome.LAUNCHED, None)
    assert gang.phases == [Phase.LAUNCHED, Phase.LAUNCHED]
    assert {node.provider_id for node in gang.desk.nodes()} == {
        m.provider_id for m in gang.desk.cloud.machines.values()
    }


def test_a_person_who_deletes_it_withdraws_it(gang: Gang) -> None:
    gang.desk.api.delete(LAUNCH_BATCHES, gang.desk.batches()[0].name)
    gang.restart()
    assert gang.reconcile() == ()
    assert (gang.queue.held, gang.queue.withdrawn) == ({}, 1)


def test_a_person_who_deletes_all_its_nodes_withdraws_it(gang: Gang) -> None:
    for node in gang.desk.nodes():
        gang.desk.api.delete(PROVISIONED_NODES, node.name)
    gang.restart()
    gang.reconcile()
    assert (gang.queue.held, gang.queue.withdrawn) == ({}, 1)


def test_while_its_pool_observes_it_is_left_as_it_is(gang: Gang) -> None:
    """Neither repeated, nor withdrawn, nor taken for a failure: its machines may still come."""
    gang.pools, gang.pods = OBSERVED, ()
    for _ in range(5):
        gang.reconcile()
    (batch,) = gang.desk.batches()
    assert (batch.outcome, gang.queue.asked, gang.queue.withdrawn) == (BatchOutcome.CALLING, 1, 0)
    assert [one.would for one in gang.executor.take_withheld()][-1:] == ["repeat its call, whose outcome is unknown"]
    gang.queue.held.clear()
    gang.reconcile()
    assert gang.desk.batches()[0].outcome is not BatchOutcome.CALLING

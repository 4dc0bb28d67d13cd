"""The hosts of a slice end in one call, and none of them under a pod."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta

import pytest

from autoscaler.cluster.api import list_all
from autoscaler.cluster.resources import NODES, PODS, PROVISIONED_NODES
from autoscaler.execution.executor import Executor
from autoscaler.execution.orphans import adopt_all
from autoscaler.model.node import Node
from autoscaler.model.plan import NodeAction, NodeDecision, Plan
from autoscaler.model.provisioned_node import Phase, ProvisionedNode
from autoscaler.model.reason import Code, Reason
from autoscaler.model.snapshot import Snapshot
from instance_catalog.dataclass import replace
from instance_catalog.frozen_map import EMPTY
from instance_catalog.kubernetes.labels import DRAINING_TAINT
from providers.contract import InstanceState, TerminateAnswer
from tests.desk import POOL, A, new_desk, planned
from tests.unit.execution.node_site import Site

HOSTS = ("h1", "h2", "h3")


class SliceSite(Site):
    """A desk with one slice of three hosts that have registered. `ended` are the calls that ended machines."""

    def __init__(self) -> None:
        self.desk = new_desk()
        self.desk.record(*(replace(planned(name, A), whole="s") for name in HOSTS))
        providers = self.desk.providers
        self.executor = Executor(self.desk.api, self.desk.journal, self.desk.backoffs, providers, self.desk.clock)
        self.blocks = ()
        self.ended: list[int] = []
        provider = providers.by_template["SimulatedNodeTemplate"]
        end = provider.terminate

        def counted(ids: Iterable[str]) -> TerminateAnswer:
            self.ended.append(len(tuple(ids)))
            return end(tuple(ids))

        setattr(provider, "terminate", counted)  # noqa: B010
        self.carry_out()
        for node in self.desk.nodes():
            self.desk.api.create(NODES, {"metadata": {"name": node.name}, "spec": {"providerID": node.provider_id}})
            self.desk.journal.save_node(replace(node, phase=Phase.READY))

    def decide(self, *codes: Code) -> None:
        """Every host that may still take pods goes for these reasons; without any, it stays."""
        action = NodeAction.DRAIN if codes else NodeAction.KEEP
        reasons = tuple(map(Reason.of, codes))
        plan = Plan(nodes=tuple(NodeDecision(name, action, reasons) for name in HOSTS))
        self.desk.journal.record(plan, Snapshot(pools=(POOL,)), self.desk.now)

    def phases(self) -> set[Phase]:
        return {node.phase for node in self.desk.nodes()}

    def host(self, name: str) -> ProvisionedNode:
        return next(node for node in self.desk.nodes() if node.name == name)

    def works(self, node: str) -> None:
        spec = {"nodeName": node, "containers": [{"name": "main"}]}
        self.desk.api.create(PODS, {"metadata": {"name": f"on-{node}", "namespace": "default"}, "spec": spec})

    def running(self) -> int:
        states = (m.state(self.desk.now, self.desk.cloud.behaviour) for m in self.desk.cloud.machines.values())
        return sum(state in (InstanceState.PENDING, InstanceState.RUNNING) for state in states)


@pytest.fixture
def site() -> SliceSite:
    return SliceSite()


def test_the_batch_of_a_slice_comes_as_a_whole(site: SliceSite) -> None:
    (batch,) = site.desk.cloud.launches.values()
    assert (len(batch.request.nodes), batch.request.minimum) == (3, 3)
    assert {node.hosts for node in site.desk.nodes()} == {3}


def test_an_empty_slice_ends_in_one_call(site: SliceSite) -> None:
    for _ in range(3):
        site.decide(Code.NODE_EMPTY)
        site.carry_out()
    assert (site.phases(), site.running()) == ({Phase.TERMINATING}, 0)
    assert site.ended[0] == 3


def test_a_pod_that_no_watch_has_shown_on_one_host_keeps_all_machines(site: SliceSite) -> None:
    """It is found on its own host, which goes back; and the others follow."""
    for _ in range(2):
        site.decide(Code.NODE_EMPTY)
        site.carry_out()
    assert site.phases() == {Phase.DRAINING}
    lagging = site.seen()
    site.works("h3")
    site.carry_out(seen=lagging)
    assert (site.running(), site.ended) == (3, [])
    assert site.host("h3").phase is Phase.READY
    site.carry_out()
    assert site.phases() == {Phase.READY}
    site.decide()
    site.carry_out()
    taints = [node["spec"].get("taints", []) for node in list_all(site.desk.api, NODES)[0]]
    assert taints == [[], [], []]


def test_no_drain_of_an_empty_host_begins_while_a_pod_is_seen_on_another(site: SliceSite) -> None:
    site.decide(Code.NODE_EMPTY)
    site.carry_out()
    site.works("h3")
    site.decide(Code.NODE_EMPTY)
    site.carry_out()
    assert site.phases() == {Phase.READY}


def test_a_broken_slice_evicts_first_and_ends_then(site: SliceSite) -> None:
    site.works("h1")
    site.works("h2")
    site.decide(Code.SLICE_BROKEN)
    site.carry_out()
    site.carry_out()
    assert (site.phases(), site.running(), site.ended) == ({Phase.DRAINING}, 3, [])
    site.end_pods()
    site.carry_out()
    assert (site.running(), site.ended[0]) == (0, 3)


def test_a_host_that_failed_waits_for_the_pods_of_the_others(site: SliceSite) -> None:
    site.works("h2")
    site.desk.journal.save_node(replace(site.host("h1"), phase=Phase.FAILED))
    site.carry_out()
    assert (site.running(), site.ended) == (3, [])


def test_a_host_without_its_taint_keeps_the_machines(site: SliceSite) -> None:
    for name in HOSTS:
        reasons = (Reason.of(Code.NODE_EMPTY),)
        site.desk.journal.save_node(replace(site.host(name), phase=Phase.DRAINING, reasons=reasons))
    for name in HOSTS[:2]:
        taint = {"key": DRAINING_TAINT, "effect": "NoSchedule"}
        site.desk.api.patch(NODES, name, {"spec": {"taints": [taint]}})
    site.carry_out()
    assert (site.running(), site.ended) == (3, [])
    site.carry_out()
    assert (site.running(), site.ended[0]) == (0, 3)


def test_a_machine_of_the_slice_that_nobody_has_written_down_ends_as_well(site: SliceSite) -> None:
    (launch,) = site.desk.cloud.launches.values()
    lost = site.host("h3")
    site.desk.journal.forget(lost)
    site.desk.api.delete(NODES, "h3")
    site.decide(Code.SLICE_BROKEN)
    site.carry_out()
    site.carry_out()
    assert (site.running(), site.ended[0]) == (0, len(launch.ids))


def test_a_slice_of_whose_launch_no_tag_tells_ends_in_one_call(site: SliceSite) -> None:
    """Its LaunchBatch was deleted, and machines have tags by what is written down."""
    for _ in range(3):
        site.decide(Code.NODE_EMPTY)
        seen = site.seen()
        untagged = {key: replace(machine, tags=EMPTY) for key, machine in seen.machines["simulated"].items()}
        site.carry_out(seen=replace(seen, machines={"simulated": untagged}))
    assert (site.running(), site.ended[0]) == (0, 3)


def test_an_ended_host_that_nobody_has_written_down_holds_up_nothing(site: SliceSite) -> None:
    """Its Node is still there, and it can be adopted no more."""
    lost = site.host("h3")
    site.desk.journal.forget(lost)
    site.desk.cloud.lose(site.seen().machines["simulated"][lost.provider_id].id)
    site.decide(Code.SLICE_BROKEN)
    site.carry_out()
    site.carry_out()
    assert site.running() == 0


@pytest.mark.parametrize("code", [Code.NODE_EMPTY, Code.SLICE_BROKEN])
def test_a_host_that_nobody_has_written_down_is_adopted_before_its_slice_ends(site: SliceSite, code: Code) -> None:
    """Somebody removed its object by force. Pods run there all the same."""
    site.works("h3")
    site.decide(code)
    site.carry_out()
    site.desk.journal.forget(site.host("h3"))
    for _ in range(3):
        site.decide(code)
        site.carry_out()
    assert (site.host("h3").hosts, site.running(), site.ended) == (3, 3, [])
    assert site.evicted("on-h3") is (code is Code.SLICE_BROKEN)
    site.desk.api.delete(PODS, "on-h3", namespace="default", grace_seconds=0)
    for _ in range(3):
        site.decide(code)
        site.carry_out()
    assert (site.running(), site.ended[0]) == (0, 3)


def test_an_adopted_host_ends_with_its_slice(site: SliceSite) -> None:
    lost = site.host("h3")
    machine = site.seen().machines["simulated"][lost.provider_id]
    site.desk.journal.forget(lost)
    site.desk.clock.advance(timedelta(hours=1))
    provider = site.desk.providers.by_template["SimulatedNodeTemplate"]
    adopt_all([(machine, Node("h3"))], provider=provider, journal=site.desk.journal, now=site.desk.now)
    assert (site.host("h3").hosts, site.host("h3").batch) == (3, lost.batch)
    assert len(list_all(site.desk.api, PROVISIONED_NODES)[0]) == 3


@pytest.mark.parametrize("pod", [False, True])
def test_hosts_that_register_after_their_drain_is_over_are_drained_again(site: SliceSite, *, pod: bool) -> None:
    """The slice was ordered to go before the provider listed its machines. Their Nodes come without the taint."""
    for name in HOSTS:
        site.desk.api.delete(NODES, name)
    unlisted = replace(site.seen(), machines={"simulated": {}})
    site.decide(Code.SLICE_BROKEN)
    for _ in range(2):
        site.carry_out(seen=unlisted)
    assert (site.phases(), site.ended) == ({Phase.TERMINATING}, [])
    for node in site.desk.nodes():
        site.desk.api.create(NODES, {"metadata": {"name": node.name}, "spec": {"providerID": node.provider_id}})
    if pod:
        site.works("h1")
    site.desk.clock.advance(timedelta(minutes=5))
    site.carry_out()
    assert site.ended == []
    site.carry_out()
    assert (site.running(), site.ended != []) == ((3, False) if pod else (0, True))
    if pod:
        assert "deletionTimestamp" in site.desk.api.get(PODS, "on-h1", namespace="default")["metadata"]
    site.end_pods()
    site.carry_out()
    assert (site.running(), site.ended[0]) == (0, 3)

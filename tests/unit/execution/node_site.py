"""A launched and registered node, and the executor: what the tests of nodes on their way out begin with."""

from __future__ import annotations

from typing import Any

from autoscaler.cluster.api import list_all
from autoscaler.cluster.journal import Pending
from autoscaler.cluster.resources import NODES, PODS
from autoscaler.cluster.store import Store
from autoscaler.execution.executor import Executor, Trouble
from autoscaler.execution.observed import Observed
from autoscaler.lifecycle.provisioned_node import Why
from autoscaler.model.capacity import CapacityBlock
from autoscaler.model.plan import NodeAction, NodeDecision, Plan
from autoscaler.model.provisioned_node import Phase, ProvisionedNode
from autoscaler.model.reason import Code, Reason
from autoscaler.model.snapshot import Snapshot
from instance_catalog.dataclass import replace
from instance_catalog.kubernetes.profile import REFERENCE
from instance_catalog.types.instance_type import CapacityType
from providers.contract import InstanceState, describe_all
from tests.desk import POOL, A, Desk, new_desk, planned

IN_BLOCK = replace(A, capacity_type=CapacityType.ON_DEMAND, block="cb")


class Site:
    """A desk with one launched and registered node, and the executor."""

    def __init__(self) -> None:
        self.desk: Desk = new_desk()
        self.desk.record(planned("n1", IN_BLOCK))
        self.executor = Executor(
            self.desk.api, self.desk.journal, self.desk.backoffs, self.desk.providers, self.desk.clock
        )
        self.blocks: tuple[CapacityBlock, ...] = ()
        self.carry_out()
        provider_id = self.node.provider_id
        self.desk.api.create(NODES, {"metadata": {"name": "n1"}, "spec": {"providerID": provider_id}})

    @property
    def node(self) -> ProvisionedNode:
        return self.desk.nodes()[0]

    def seen(self) -> Observed:
        store = Store(self.desk.api, REFERENCE)
        store.refresh()
        listed = describe_all(self.desk.providers.by_template["SimulatedNodeTemplate"], {})
        machines = {found.provider_id: found for found in listed}
        return Observed(replace(store.snapshot(), blocks=self.blocks), {"simulated": machines})

    def carry_out(self, pending: Pending | None = None, *, seen: Observed | None = None) -> tuple[Trouble, ...]:
        return self.executor.carry_out(pending or self.desk.journal.pending(), seen or self.seen(), self.desk.now)

    def drain(self, code: Code = Code.POOL_DELETED) -> None:
        self.desk.journal.move(self.node, Why.UNWANTED, self.desk.now, (Reason.of(code),))

    def consider(self, *codes: Code, seen: Observed | None = None) -> tuple[Trouble, ...]:
        """Carry out that the node goes for these reasons; without any, that it stays."""
        action = NodeAction.DRAIN if codes else NodeAction.KEEP
        decision = NodeDecision("n1", action, tuple(map(Reason.of, codes)))
        self.desk.journal.record(Plan(nodes=(decision,)), Snapshot(pools=(POOL,)), self.desk.now)
        return self.carry_out(seen=seen)

    def at(self, phase: Phase) -> None:
        self.desk.journal.save_node(replace(self.node, phase=phase))

    @property
    def taints(self) -> list[str]:
        return [taint["key"] for taint in self.desk.api.get(NODES, "n1")["spec"].get("taints", [])]

    def evicted(self, name: str) -> bool:
        return "deletionTimestamp" in self.desk.api.get(PODS, name, namespace="default")["metadata"]

    def pod(self, name: str, **metadata: Any) -> None:
        spec = {"nodeName": "n1", "containers": [{"name": "main"}]}
        self.desk.api.create(PODS, {"metadata": {"name": name, "namespace": "default", **metadata}, "spec": spec})

    def end_pods(self) -> None:
        for pod in list_all(self.desk.api, PODS)[0]:
            if "deletionTimestamp" in pod["metadata"]:
                self.desk.api.delete(PODS, pod["metadata"]["name"], namespace="default", grace_seconds=0)

    def machine_state(self) -> InstanceState:
        (machine,) = self.desk.cloud.machines.values()
        return machine.state(self.desk.now, self.desk.cloud.behaviour)

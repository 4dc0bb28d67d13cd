"""The write-ahead journal: what is about to happen is an API object before anything happens.

A LaunchBatch is written first and holds everything its provider calls and its ProvisionedNodes derive from. The nodes
come second, the calls third, the mapping to instances is saved before any further step. So a process may die between
any two steps: `resume` completes half-written intents, and whoever carries them out repeats the last call with
identical parameters. Every save is guarded by the resourceVersion that was read.

The journal knows no provider and decides nothing. What it holds in memory is only a copy of what the API holds.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime

from autoscaler.cluster.api import AlreadyExistsError, ConflictError, KubernetesApi, NotFoundError
from autoscaler.cluster.resources import LAUNCH_BATCHES, PROVISIONED_NODES
from autoscaler.kube.custom.launch_batch import parse_launch_batch, write_launch_batch
from autoscaler.kube.custom.provisioned_node import parse_provisioned_node, write_provisioned_node
from autoscaler.lifecycle.provisioned_node import EDGES, Why, take
from autoscaler.model.capacity import CapacityPool, Mode
from autoscaler.model.plan import Disposal, NodeDecision, Plan, PlannedNode
from autoscaler.model.provisioned_node import LaunchBatch, Phase, ProvisionedNode
from autoscaler.model.reason import Reason
from autoscaler.model.snapshot import Snapshot
from instance_catalog import labels
from instance_catalog.frozen_map import FrozenMap

# What differs between the nodes or offerings of one batch; the provider or the launch adds these.
_PER_NODE_LABELS = frozenset(
    {
        labels.HOSTNAME,
        labels.INSTANCE_TYPE,
        labels.ZONE,
        labels.REGION,
        labels.ARCHITECTURE,
        labels.OPERATING_SYSTEM,
        labels.CAPACITY_TYPE,
        labels.CAPACITY_BLOCK,
        labels.PROVISIONED_NODE,
    }
)
# Holds a deleted ProvisionedNode until its machine is gone.
FINALIZER = f"{labels.GROUP}/machine"
# From these phases on a decision to drain changes nothing any more.
_LEAVING = frozenset({Phase.DRAINING, Phase.TERMINATING, Phase.GONE, Phase.FAILED})

_LAUNCHING = frozenset({Phase.INTENDED, Phase.LAUNCHING})
# Outcomes of a LaunchBatch: something is still to be done for it, or nothing any more.
UNFINISHED = frozenset({"Intended", "Calling"})
_FINISHED = frozenset({"Launched", "Failed"})

# Decisions that need hands although they change no phase.
_TENDED = frozenset({Disposal.HOLD, Disposal.NOTICE})
_EDGES = {(edge.source, edge.why): edge for edge in EDGES}
# What one LaunchBatch holds at most, by its schema.
_LARGEST = 100
_OFFERINGS = 60


@dataclass(frozen=True, slots=True)
class Pending:
    """What is written down and not finished: launches first, then nodes on their way out, then holds and notices."""

    launches: tuple[LaunchBatch, ...] = ()
    leaving: tuple[ProvisionedNode, ...] = ()
    decisions: tuple[tuple[ProvisionedNode, NodeDecision], ...] = ()


class Journal:
    """The intents in the Kubernetes API. One writer at a time (the elected leader); others get ConflictError."""

    def __init__(self, api: KubernetesApi) -> None:
        self._api = api
        self._batches: dict[str, LaunchBatch] = {}
        self._nodes: dict[str, ProvisionedNode] = {}
        self._decisions: tuple[NodeDecision, ...] = ()

    @property
    def batches(self) -> tuple[LaunchBatch, ...]:
        """All batches as last read or written, by name."""
        return tuple(self._batches[name] for name in sorted(self._batches))

    @property
    def nodes(self) -> tuple[ProvisionedNode, ...]:
        """All ProvisionedNodes as last read or written, by name."""
        return tuple(self._nodes[name] for name in sorted(self._nodes))

    def node(self, name: str) -> ProvisionedNode | None:
        """One of them as last read or written."""
        return self._nodes.get(name)

    def resume(self, batches: Iterable[LaunchBatch], nodes: Iterable[ProvisionedNode], now: datetime) -> None:
        """Start from what the API holds, completing what was left half-written."""
        self._batches = {batch.name: batch for batch in batches}
        self._nodes = {node.name: node for node in nodes}
        self._decisions = ()
        for batch in self.batches:
            if batch.outcome == "Intended" and not batch.instances:
                self._write_nodes(batch, now)
            else:
                self.map_nodes(batch, now)
                self._drop_if_over(batch)

    def record(self, plan: Plan, snapshot: Snapshot, now: datetime) -> None:
        """Write down what the plan decides for pools that act: a batch before its nodes, and nodes that are to go."""
        acting = {pool.name for pool in snapshot.pools if pool.mode is Mode.ACT}
        launches = [launch for launch in plan.launches if launch.pool in acting]
        for batch in batches_of(launches, snapshot):
            self._write_nodes(self._create_batch(batch), now)
        self._decisions = plan.nodes
        for decision in plan.nodes:
            node = self._nodes.get(decision.provisioned_node)
            if node is None or node.phase in _LEAVING:
                continue
            # Deleting the object is a person's order, whatever the pool's mode is.
            if node.deleting or (decision.disposal is Disposal.DRAIN and node.pool in acting):
                self.move(node, Why.UNWANTED, now, () if node.deleting else decision.reasons)

    def pending(self) -> Pending:
        """What has to be carried out."""
        return Pending(
            launches=tuple(b for b in self.batches if b.outcome in UNFINISHED),
            leaving=tuple(n for n in self.nodes if n.phase in _LEAVING),
            decisions=tuple(
                (self._nodes[decision.provisioned_node], decision)
                for decision in self._decisions
                if decision.disposal in _TENDED and decision.provisioned_node in self._nodes
            ),
        )

    def save_batch(self, batch: LaunchBatch) -> LaunchBatch:
        """Save a batch's progress; ConflictError when somebody else wrote it since it was read."""
        written = self._api.update(LAUNCH_BATCHES, write_launch_batch(batch), subresource="status")
        self._batches[batch.name] = parse_launch_batch(written)
        return self._batches[batch.name]

    def save_node(self, node: ProvisionedNode) -> ProvisionedNode:
        """Save a node's progress; ConflictError when somebody else wrote it since it was read."""
        if node == self._nodes.get(node.name):
            return node
        written = self._api.update(PROVISIONED_NODES, write_provisioned_node(node), subresource="status")
        self._nodes[node.name] = parse_provisioned_node(written)
        return self._nodes[node.name]

    def move(self, node: ProvisionedNode, why: Why, now: datetime, reasons: tuple[Reason, ...] = ()) -> ProvisionedNode:
        """Save that a node took an edge of its life. Raises KeyError where its phase has no such edge."""
        after = take(node, _EDGES[node.phase, why], now)
        return self.save_node(replace(after, reasons=reasons or node.reasons))

    def note(self, nodes: Iterable[ProvisionedNode]) -> None:
        """Save what was observed of nodes. One that somebody else wrote meanwhile is looked at again next time."""
        for node in nodes:
            try:
                self.save_node(node)
            except (ConflictError, NotFoundError):
                self._nodes.pop(node.name, None)

    def adopt(self, node: ProvisionedNode) -> None:
        """Write down a machine that was found without an object."""
        self._create_node(node)
        self.save_node(replace(node, resource_version=self._nodes[node.name].resource_version))

    def forget(self, node: ProvisionedNode) -> None:
        """Remove a node whose machine is gone, and its batch when it was the last one."""
        with suppress(NotFoundError):  # a person deleted it; the finalizer was the last thing that held it
            self._api.patch(PROVISIONED_NODES, node.name, {"metadata": {"finalizers": None}})
            self._api.delete(PROVISIONED_NODES, node.name)
        self._nodes.pop(node.name, None)
        if node.batch in self._batches:
            self._drop_if_over(self._batches[node.batch])

    def map_nodes(self, batch: LaunchBatch, now: datetime) -> None:
        """Carry a batch's persisted answers over to its nodes. Repeating it changes nothing."""
        machines = batch.instances or ("",) * len(batch.nodes)
        for index, name in enumerate(batch.nodes):
            node = self._nodes.get(name)
            if node is None or node.provider_id:
                continue
            if machines[index]:
                self._give_machine(node, batch, index, now)
            elif batch.outcome in _FINISHED and node.phase in _LAUNCHING:
                self.move(node, Why.NO_OFFERING_LEFT, now)

    def _give_machine(self, node: ProvisionedNode, batch: LaunchBatch, index: int, now: datetime) -> None:
        """Save a node's machine. One that became unwanted meanwhile stays on its way out, now with a machine to end."""
        if node.phase is Phase.INTENDED:
            node = self.move(node, Why.CALL_RECORDED, now)
        if node.phase is Phase.LAUNCHING:
            node = take(node, _EDGES[node.phase, Why.OBTAINED], now)
        self.save_node(
            replace(
                node,
                provider=batch.provider,
                provider_id=batch.instances[index],
                token=batch.token,
                obtained=batch.offerings[batch.obtained[index]],
            )
        )

    def _drop_if_over(self, batch: LaunchBatch) -> None:
        if batch.outcome in _FINISHED and not self._nodes.keys() & set(batch.nodes):
            with suppress(NotFoundError):
                self._api.delete(LAUNCH_BATCHES, batch.name, uid=batch.uid)
            del self._batches[batch.name]

    def _create_batch(self, batch: LaunchBatch) -> LaunchBatch:
        try:
            written = self._api.create(LAUNCH_BATCHES, write_launch_batch(batch))
        except AlreadyExistsError:
            # Its name is the hash of its nodes' names: this very intent was written before a restart.
            written = self._api.get(LAUNCH_BATCHES, batch.name)
        self._batches[batch.name] = parse_launch_batch(written)
        return self._batches[batch.name]

    def _write_nodes(self, batch: LaunchBatch, now: datetime) -> None:
        for node in nodes_of(batch):
            if node.name not in self._nodes:
                self._create_node(node)
            created = self._nodes[node.name]
            if created.phase_since is None:
                self.save_node(replace(created, phase_since=now))

    def _create_node(self, node: ProvisionedNode) -> None:
        manifest = write_provisioned_node(node)
        manifest["metadata"]["finalizers"] = [FINALIZER]
        try:
            written = self._api.create(PROVISIONED_NODES, manifest)
        except AlreadyExistsError:
            written = self._api.get(PROVISIONED_NODES, node.name)
        self._nodes[node.name] = parse_provisioned_node(written)


def batches_of(launches: Iterable[PlannedNode], snapshot: Snapshot) -> tuple[LaunchBatch, ...]:
    """Group planned nodes that one provider call can launch: alike in everything, and of one gang or of none."""
    pools = {pool.name: pool for pool in snapshot.pools}
    gangs = {pod.key: pod.gang.key for pod in snapshot.pods if pod.gang is not None}
    groups: dict[tuple[object, ...], list[PlannedNode]] = {}
    for launch in launches:
        gang = frozenset(gangs[pod] for pod in launch.pods if pod in gangs)
        alike = (launch.pool, launch.offerings, launch.prediction, _shared_labels(launch), launch.node.taints, gang)
        groups.setdefault(alike, []).append(launch)
    return tuple(
        _batch(group[start : start + _LARGEST], pools, gang=bool(alike[-1]))
        for alike, group in groups.items()
        for start in range(0, len(group), _LARGEST)
    )


def nodes_of(batch: LaunchBatch) -> tuple[ProvisionedNode, ...]:
    """The ProvisionedNodes of a batch, derived from it alone. Raises ValueError for a batch without a prediction."""
    if batch.prediction is None:
        raise ValueError(f"batch {batch.name} has no prediction")
    return tuple(
        ProvisionedNode(
            name=name,
            pool=batch.pool,
            node_name=name,
            batch=batch.name,
            offerings=batch.offerings,
            prediction=batch.prediction,
            labels=batch.labels,
            pods=batch.pods[index] if index < len(batch.pods) else (),
        )
        for index, name in enumerate(batch.nodes)
    )


def token_of(batch: LaunchBatch, attempt: int) -> str:
    """The idempotency token of an attempt: 64 hexadecimal digits, derived only from what is written down."""
    return _digest(batch.uid, str(attempt), batch.offerings[attempt].zone)


def _batch(group: list[PlannedNode], pools: Mapping[str, CapacityPool], *, gang: bool) -> LaunchBatch:
    first = group[0]
    pool = pools[first.pool]
    names = tuple(launch.name for launch in group)
    return LaunchBatch(
        name=f"{first.pool}-{_digest(*names)[:10]}",
        pool=first.pool,
        nodes=names,
        offerings=first.offerings[:_OFFERINGS],
        minimum=len(names) if gang else 1,
        pods=tuple(launch.pods for launch in group),
        prediction=first.prediction,
        labels=_shared_labels(first),
        taints=first.node.taints,
        kubelet_reserved=pool.kubelet_reserved,
        template=pool.node_template,
    )


def _shared_labels(launch: PlannedNode) -> FrozenMap[str, str]:
    return FrozenMap({key: value for key, value in launch.node.labels.items() if key not in _PER_NODE_LABELS})


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()

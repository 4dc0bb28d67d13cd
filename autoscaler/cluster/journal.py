"""The write-ahead journal: every intention is an API object before it is carried out.

A LaunchBatch is written first, with everything that its provider calls and its ProvisionedNodes derive from. The nodes
come second, the calls third, and the mapping to instances is saved before any further step. So a process may die
between any two steps: `resume` completes half-written intents, and the executor repeats the last call with identical
parameters. Every save is guarded by the resourceVersion that was read.

If a batch or node cannot be written, it is returned as a Trouble and left out, and the others are written. A batch that
is not written with all its nodes is never pending: nothing is launched for it. The journal knows no provider and
decides nothing. Its memory is only a copy of the API's objects.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import datetime
from functools import partial

from pydantic import ValidationError

from autoscaler.cluster.api import (
    AlreadyExistsError,
    ConflictError,
    ForbiddenError,
    InvalidError,
    KubernetesApi,
    NotFoundError,
    set_finalizer,
)
from autoscaler.cluster.intents import batches_of, halves, is_complete, make, nodes_of, part_of, pods_of
from autoscaler.cluster.isolation import Intents, Isolation, Trouble, raise_first
from autoscaler.cluster.own_writes import OwnWrites
from autoscaler.cluster.parsed import Written
from autoscaler.cluster.resources import LAUNCH_BATCHES, PROVISIONED_NODES
from autoscaler.kube.custom.launch_batch import FINALIZER as BATCH_FINALIZER
from autoscaler.kube.custom.launch_batch import parse_launch_batch, write_launch_batch
from autoscaler.kube.custom.provisioned_node import parse_provisioned_node, write_provisioned_node
from autoscaler.lifecycle.leaving import checked_first, evicts
from autoscaler.lifecycle.observing import acts_on_nodes
from autoscaler.lifecycle.provisioned_node import Why, awaits_machine, can_take, edge_of, may_take_pods, take
from autoscaler.model.plan import NodeAction, NodeDecision, Plan
from autoscaler.model.provisioned_node import BatchMember, BatchOutcome, LaunchBatch, Phase, ProvisionedNode
from autoscaler.model.reason import Reason
from autoscaler.model.snapshot import Snapshot
from instance_catalog.dataclass import dataclass, replace
from instance_catalog.kubernetes import labels
from providers.at_once import each

# Holds a deleted ProvisionedNode until its machine is gone.
FINALIZER = f"{labels.GROUP}/machine"
# The edge that the beginning of an attempt is for a node.
_BEGUN_BY = {Phase.INTENDED: Why.CALL_RECORDED, Phase.LAUNCHING: Why.NEXT_OFFERING}
# An answer by which nothing was written, and by which the same will not be written either.
REFUSALS = (ForbiddenError, InvalidError, ValidationError)
# The number of parts of refused batches that are tried in one reconcile.
_MOST_PARTS = 64


@dataclass(frozen=True, slots=True)
class Pending:
    """The unfinished objects: launches, nodes that failed or are leaving, and decisions about the others (holds,
    notices, and drains that need an empty node)."""

    launches: tuple[LaunchBatch, ...] = ()
    leaving: tuple[ProvisionedNode, ...] = ()
    decisions: tuple[tuple[ProvisionedNode, NodeDecision], ...] = ()


class Journal:
    """The intents in the Kubernetes API. One writer at a time (the elected leader); others get ConflictError.

    Nodes of one step are written `at_once` at a time; the next step begins when all of them are written.
    """

    def __init__(self, api: KubernetesApi, *, at_once: int = 1, written: Written | None = None) -> None:
        """`written`: for the store that reads the same objects."""
        self._api = api
        self._at_once = at_once
        self._batches: OwnWrites[LaunchBatch] = OwnWrites(LAUNCH_BATCHES, parse_launch_batch, written)
        self._nodes: OwnWrites[ProvisionedNode] = OwnWrites(PROVISIONED_NODES, parse_provisioned_node, written)
        self._decisions: tuple[NodeDecision, ...] = ()
        self._incomplete: set[str] = set()  # batches that are not completely written
        self._odd: set[str] = set()  # planned nodes that could not be written, or in a batch with one that could not
        self._intents = Intents(api)

    @property
    def refusal(self) -> ForbiddenError | None:
        """The error that prevents all writes, if the role lacks the rights: as of this reconcile."""
        return self._intents.refusal

    @property
    def batches(self) -> tuple[LaunchBatch, ...]:
        """All batches as last read or written, by name."""
        return self._batches.values()

    @property
    def nodes(self) -> tuple[ProvisionedNode, ...]:
        """All ProvisionedNodes as last read or written, by name."""
        return self._nodes.values()

    def node(self, name: str) -> ProvisionedNode | None:
        """One of them as last read or written."""
        return self._nodes.get(name)

    def node_of(self, batch: LaunchBatch, name: str) -> ProvisionedNode | None:
        """The node of a batch, None once it is gone. Names follow from pods: while a batch still has other nodes, a
        later batch may have a node with that name, and no answer of the first one is about that node."""
        node = self._nodes.get(name)
        return node if node is not None and node.batch == batch.name else None

    def resume(
        self, batches: tuple[LaunchBatch, ...], nodes: tuple[ProvisionedNode, ...], now: datetime, seen_up_to: int = 0
    ) -> tuple[Trouble, ...]:
        """Starts from the API's objects, and completes those that were left half-written. Returns what it could not.

        `seen_up_to` is the resourceVersion up to which `batches` and `nodes` are complete: a watch may lag behind this
        process's own writes, and forgetting those would launch twice.
        """
        self._batches.merge(batches, seen_up_to)
        self._nodes.merge(nodes, seen_up_to)
        self._decisions = ()
        self._incomplete = set()
        self._intents.refusal = None
        isolation, troubles = Isolation(self._api), []
        for batch in self.batches:
            if is_complete(batch, self._nodes.get):
                continue
            trouble = self._intents.attempt(isolation, batch, partial(self._complete, batch, now))
            if trouble is not None:
                troubles.append(trouble)
                self._without_odd(batch, isolation)
        return self._intents.reported(troubles)

    def _complete(self, batch: LaunchBatch, now: datetime) -> None:
        self._incomplete.add(batch.name)
        if batch.outcome is BatchOutcome.INTENDED and not batch.answered:
            self._write_nodes(batch, now)
        else:
            self.map_nodes(batch, now)
        with suppress(ForbiddenError):  # the rights of the version before lack it, and reconciles have to go on
            self.settle(batch)
        self._drop_if_over(batch)
        self._incomplete.discard(batch.name)

    def record(self, plan: Plan, snapshot: Snapshot, now: datetime) -> tuple[Trouble, ...]:
        """Writes the plan's decisions for pools that act: a batch before its nodes, and nodes that leave.

        A drain that needs an empty node, or movable pods, is not written before execution has checked it. Each batch
        and each decision is written for itself. Returns those that could not be written; they are not pending.
        """
        buying = {pool.name for pool in snapshot.pools if pool.acts}
        acting = {pool.name for pool in snapshot.pools if acts_on_nodes(pool)}
        launches = [launch for launch in plan.launches if launch.pool in buying]
        self._odd &= {launch.name for launch in launches}
        troubles = list(self._record_batches(batches_of(launches, snapshot, apart=self._odd), now))
        self._decisions = plan.nodes
        isolation = Isolation(self._api)
        for decision in plan.nodes:
            node = self._nodes.get(decision.provisioned_node)
            if node is None:
                continue
            drains = decision.action is NodeAction.DRAIN and evicts(decision.reasons)
            ordered = drains and not checked_first(decision.reasons) and node.pool in acting
            # Deleting the object is a user's order, in every mode of the pool.
            if (node.deleting or ordered) and can_take(node, Why.UNWANTED):
                go = partial(self.move, node, Why.UNWANTED, now, () if node.deleting else decision.reasons)
                troubles += self._intents.reported([self._intents.attempt(isolation, node, go)])
        return tuple(troubles)

    def _record_batches(self, batches: Iterable[LaunchBatch], now: datetime) -> Iterator[Trouble]:
        """Writes batches with their nodes. A refusal of one node does not delay the others of its batch."""
        isolation, todo, parts = Isolation(self._api), deque(batches), 0
        while todo:
            batch = todo.popleft()
            attempt = partial(self._intents.attempt, isolation, batch)
            # Made before anything is sent, so that what cannot be made was certainly not written.
            unmade = attempt(partial(make, batch))
            trouble = unmade or attempt(partial(self._write_ahead, batch, now))
            if trouble is None:
                continue
            smaller: tuple[LaunchBatch, ...] = ()
            if self._batches.get(batch.name) is not None:
                odd = self._odd.intersection(batch.nodes)
                smaller = self._without_odd(batch, isolation)
                trouble = replace(trouble, pods=pods_of(batch, odd) or trouble.pods)
            elif batch.minimum == 1 and (unmade is not None or isinstance(trouble.error, REFUSALS)):
                smaller = halves(batch) if self.refusal is None else ()
            elif trouble.unexpected:
                self._odd.update(batch.nodes)  # it is unknown what was written: next time each by itself
            parts += len(smaller)
            within = parts <= _MOST_PARTS
            todo.extendleft(reversed(smaller if within else ()))
            if len(smaller) < 2 or not within:
                yield from self._intents.reported([trouble])

    def _write_ahead(self, batch: LaunchBatch, now: datetime) -> None:
        written = self._create_batch(batch)
        self._incomplete.add(batch.name)
        self._write_nodes(written, now)
        self._incomplete.discard(batch.name)

    def _without_odd(self, batch: LaunchBatch, isolation: Isolation) -> tuple[LaunchBatch, ...]:
        """Take back a batch of which nodes were refused, if nothing was asked for it yet; the batch of its others."""
        odd = self._odd.intersection(batch.nodes)
        if not odd or self.refusal is not None:
            return ()
        if self._intents.attempt(isolation, batch, partial(self._withdraw, batch.name)) is not None:
            return ()
        rest = [name for name in batch.nodes if name not in odd]
        return (part_of(batch, rest),) if rest and batch.minimum == 1 else ()

    def _withdraw(self, name: str) -> None:
        """Remove a batch for which no call was begun, and its nodes."""
        batch = self._batches.get(name)
        if batch is None or batch.asked:
            return
        batch = self.save_batch(replace(batch, outcome=BatchOutcome.FAILED))
        for node in [found for name in batch.nodes if (found := self.node_of(batch, name)) is not None]:
            self.forget(node)
        self._drop_if_over(batch)

    def pending(self) -> Pending:
        """The intents that are to be carried out."""
        return Pending(
            launches=tuple(b for b in self.batches if not b.outcome.finished and b.name not in self._incomplete),
            leaving=tuple(n for n in self.nodes if not may_take_pods(n)),
            decisions=tuple(
                (node, decision)
                for decision in self._decisions
                if (node := self._nodes.get(decision.provisioned_node)) is not None and may_take_pods(node)
            ),
        )

    def save_batch(self, batch: LaunchBatch) -> LaunchBatch:
        """Save a batch's progress; ConflictError when another client wrote it since it was read."""
        return self._batches.read(self._api.update(LAUNCH_BATCHES, write_launch_batch(batch), subresource="status"))

    def save_node(self, node: ProvisionedNode) -> ProvisionedNode:
        """Save a node's progress; ConflictError when another client wrote it since it was read."""
        if node == self._nodes.get(node.name):
            return node
        return self._nodes.read(self._api.update(PROVISIONED_NODES, write_provisioned_node(node), subresource="status"))

    def move(
        self, node: ProvisionedNode, why: Why, now: datetime, reasons: tuple[Reason, ...] | None = None
    ) -> ProvisionedNode:
        """Save that a node took an edge of its life, with new `reasons` unless they are None. Raises KeyError where its
        phase has no such edge."""
        after = take(node, edge_of(node.phase, why), now)
        return self.save_node(replace(after, reasons=node.reasons if reasons is None else reasons))

    def settle(self, batch: LaunchBatch) -> LaunchBatch:
        """Holds an unfinished batch by its finalizer, and releases a finished one. Writes nothing if that is done.

        The caller has copied a finished batch's answers to the nodes: the batch may be gone afterwards.
        """
        unfinished = not batch.outcome.finished
        # The API server accepts no new finalizer on an object that is being deleted.
        if unfinished == batch.guarded or (unfinished and batch.deleting):
            return batch
        try:
            found = set_finalizer(self._api, LAUNCH_BATCHES, batch.name, BATCH_FINALIZER, held=unfinished)
            written = self._batches.read(found)
        except NotFoundError:
            self._batches.drop(batch.name)
            return batch
        if written.deleting:
            self._batches.drop(batch.name)
        return written

    def begin(self, nodes: Iterable[str], now: datetime) -> None:
        """Save that an attempt begins for these nodes."""
        found = [node for name in nodes if (node := self._nodes.get(name)) is not None]
        begun = [node for node in found if node.phase in _BEGUN_BY]
        each(lambda node: self.move(node, _BEGUN_BY[node.phase], now), begun, at_once=self._at_once)

    def note(self, nodes: Iterable[ProvisionedNode]) -> tuple[Trouble, ...]:
        """Saves the observations of nodes. Returns those that could not be saved. One that another client wrote
        meanwhile is read again next time."""
        changed = [node for node in nodes if (known := self._nodes.get(node.name)) is not node and known != node]
        isolation = Isolation(self._api)
        attempt = partial(self._intents.attempt, isolation)
        return self._intents.reported(
            each(lambda node: attempt(node, partial(self._note, node)), changed, at_once=self._at_once)
        )

    def _note(self, node: ProvisionedNode) -> None:
        try:
            self.save_node(node)
        except ConflictError:
            self._reread(node.name)
        except NotFoundError:
            self._nodes.drop(node.name)

    def _reread(self, name: str) -> None:
        try:
            self._nodes.read(self._api.get(PROVISIONED_NODES, name))
        except NotFoundError:
            self._nodes.drop(name)

    def adopt(self, node: ProvisionedNode) -> None:
        """Write down a machine that was found without an object."""
        created = self._create_node(node)
        self.save_node(replace(node, uid=created.uid, resource_version=created.resource_version))

    def forget(self, node: ProvisionedNode) -> None:
        """Removes a node whose machine is gone, and its batch with the last node."""
        with suppress(NotFoundError):  # a user deleted it, and the finalizer was the last one
            released = set_finalizer(self._api, PROVISIONED_NODES, node.name, FINALIZER, held=False)
            self._nodes.read(released)
            self._api.delete(PROVISIONED_NODES, node.name)
        self._nodes.drop(node.name)
        batch = self._batches.get(node.batch)
        if batch is not None:
            self._drop_if_over(batch)

    def map_nodes(self, batch: LaunchBatch, now: datetime) -> None:
        """Carry a batch's persisted answers over to its nodes. Repeating it changes nothing.

        Every node is tried, then the first error is raised.
        """
        isolation = Isolation(self._api, logs=False)

        def carry_over(member: BatchMember) -> Trouble | None:
            mapped = partial(self._map_node, batch, member, now)
            return isolation.attempt(PROVISIONED_NODES.kind, member.node, mapped)

        raise_first(each(carry_over, batch.members, at_once=self._at_once))

    def _map_node(self, batch: LaunchBatch, member: BatchMember, now: datetime) -> None:
        node = self.node_of(batch, member.node)
        if node is None or node.provider_id:
            return
        if member.provider_id:
            self._give_machine(node, batch, member, now)
        elif batch.outcome.finished and awaits_machine(node):
            self.move(node, Why.NO_OFFERING_LEFT, now)

    def _give_machine(self, node: ProvisionedNode, batch: LaunchBatch, member: BatchMember, now: datetime) -> None:
        """Saves a node's machine. A node that became unwanted meanwhile is still leaving, now with a machine to end."""
        if node.phase is Phase.INTENDED:
            node = self.move(node, Why.CALL_RECORDED, now)
        if node.phase is Phase.LAUNCHING:
            node = take(node, edge_of(node.phase, Why.OBTAINED), now)
        else:
            # Its machine is as young as any other, and may be missing from lists for as long (absence.py).
            node = replace(node, phase_since=now)
        given = replace(node, provider_id=member.provider_id, instance_id=member.instance_id, obtained=member.obtained)
        self.save_node(replace(given, provider=batch.provider, place=batch.place, token=batch.token))

    def _drop_if_over(self, batch: LaunchBatch) -> None:
        if batch.outcome.finished and all(self.node_of(batch, name) is None for name in batch.nodes):
            with suppress(NotFoundError):
                with suppress(ForbiddenError):  # as in _complete
                    self.settle(batch)  # its finalizer would hold it
                self._api.delete(LAUNCH_BATCHES, batch.name, uid=batch.uid)
            self._batches.drop(batch.name)

    def _create_batch(self, batch: LaunchBatch) -> LaunchBatch:
        try:
            manifest = write_launch_batch(batch)
            manifest["metadata"]["finalizers"] = [BATCH_FINALIZER]
            return self._batches.read(self._api.create(LAUNCH_BATCHES, manifest))
        except AlreadyExistsError:
            # Its name is the hash of its nodes' names: this very intent was written before a restart.
            found = parse_launch_batch(self._api.get(LAUNCH_BATCHES, batch.name))
            if found.outcome.finished:
                step = f"grant patch on launchbatches, or remove the finalizers of LaunchBatch {batch.name}"
                raise ConflictError(
                    f"LaunchBatch {batch.name} is over and a finalizer keeps it", next_step=step
                ) from None
            return self._batches.put(found)

    def _write_nodes(self, batch: LaunchBatch, now: datetime) -> None:
        """Write all nodes of a batch that can be written; then the first error is raised."""
        isolation = Isolation(self._api, logs=False)

        def write(node: ProvisionedNode) -> Trouble | None:
            trouble = isolation.attempt(PROVISIONED_NODES.kind, node.name, lambda: self._write_node(node, now))
            if trouble is not None and isinstance(trouble.error, REFUSALS):
                self._odd.add(node.name)
            return trouble

        raise_first(each(write, nodes_of(batch), at_once=self._at_once))

    def _write_node(self, node: ProvisionedNode, now: datetime) -> None:
        created = self._nodes.get(node.name) or self._create_node(node)
        if created.phase_since is None:
            self.save_node(replace(created, phase_since=now))

    def _create_node(self, node: ProvisionedNode) -> ProvisionedNode:
        manifest = write_provisioned_node(node)
        manifest["metadata"]["finalizers"] = [FINALIZER]
        try:
            written = self._api.create(PROVISIONED_NODES, manifest)
        except AlreadyExistsError:
            written = self._api.get(PROVISIONED_NODES, node.name)
        return self._nodes.read(written)

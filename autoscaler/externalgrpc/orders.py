"""Orders of Cluster Autoscaler: written into the journal's objects, which the loop then carries out as its own.

An increase is one LaunchBatch, and is answered as soon as that is written: its ProvisionedNodes, the account of the
spending guards and the provider's call follow in the next reconcile. A deletion deletes the ProvisionedNode, as a user
would: its finalizer holds it while pods are evicted and the machine ends.

The memory holds the last complete list of the API and the writes since. The loop never writes here, and this module
never writes the loop's objects.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import TypeVar

from autoscaler.cluster.api import KubernetesApi, NotFoundError, Object, UnavailableError, list_all
from autoscaler.cluster.intents import batches_of, nodes_of
from autoscaler.cluster.resources import LAUNCH_BATCHES, PROVISIONED_NODES, Resource
from autoscaler.externalgrpc.node_groups import Launchable
from autoscaler.kube.custom.launch_batch import FINALIZER, parse_launch_batch, write_launch_batch
from autoscaler.kube.custom.provisioned_node import parse_provisioned_node
from autoscaler.lifecycle.boot_times import boot_timeout
from autoscaler.model.plan import PlannedNode
from autoscaler.model.provisioned_node import LaunchBatch, Prediction, ProvisionedNode
from autoscaler.planning.naming import prefix_of
from autoscaler.planning.placement.launches import digest_of
from autoscaler.planning.supply.candidates import Candidate
from autoscaler.planning.supply.hypothetical import template_of
from instance_catalog.dataclass import replace

T = TypeVar("T")


class Orders:
    """LaunchBatches and ProvisionedNodes as the API has them. For one thread at a time.

    `draw` makes a text that was never made before: names must not repeat, since each call is an order of its own.
    """

    def __init__(self, api: KubernetesApi, draw: Callable[[], str]) -> None:
        self._api = api
        self._draw = draw
        self._batches: dict[str, LaunchBatch] = {}
        self._nodes: dict[str, ProvisionedNode] = {}
        self._parsed_batches: dict[tuple[str, str], LaunchBatch] = {}  # by uid and resourceVersion
        self._parsed_nodes: dict[tuple[str, str], ProvisionedNode] = {}
        self._deleted: set[str] = set()  # names of objects whose deletion was ordered since the last list
        self.read = False

    def refresh(self) -> None:
        """Lists everything. Raises ApiError; then the previous lists are kept."""
        batches = self._list(LAUNCH_BATCHES, self._parsed_batches, parse_launch_batch)
        # Nodes after batches: a node that is created in between is seen twice, but never missed.
        nodes = self._list(PROVISIONED_NODES, self._parsed_nodes, parse_provisioned_node)
        self._batches = {batch.name: batch for batch in batches}
        self._nodes = {node.name: node for node in nodes}
        self._parsed_batches = {(found.uid, found.resource_version): found for found in batches}
        self._parsed_nodes = {(found.uid, found.resource_version): found for found in nodes}
        self._deleted = set()
        self.read = True

    def _list(self, resource: Resource, known: Mapping[tuple[str, str], T], parse: Callable[[Object], T]) -> list[T]:
        """The objects of a resource. Those that are unchanged since the last list are not parsed again."""
        manifests, _ = list_all(self._api, resource)
        keys = [(m["metadata"]["uid"], m["metadata"]["resourceVersion"]) for m in manifests]
        return [known[key] if key in known else parse(m) for key, m in zip(keys, manifests, strict=True)]

    def nodes(self) -> tuple[ProvisionedNode, ...]:
        """All nodes, those included that are ordered and not written yet."""
        return (*map(self._as_ordered, self._nodes.values()), *self._unwritten())

    def _as_ordered(self, node: ProvisionedNode) -> ProvisionedNode:
        return replace(node, deleting=True) if node.name in self._deleted else node

    def _unwritten(self) -> Iterator[ProvisionedNode]:
        """The nodes of batches for which the loop has not written them yet. Those of a finished batch are gone."""
        for batch in self._batches.values():
            if not batch.outcome.finished and not batch.deleting and batch.name not in self._deleted:
                yield from (node for node in nodes_of(batch) if node.name not in self._nodes)

    def uncharged(self, charged: frozenset[str], pools: frozenset[str]) -> int:
        """The number of ordered nodes that the account of the guards does not count yet."""
        fresh = [batch for batch in self._batches.values() if not batch.asked]
        return sum(len(batch.members) for batch in fresh if batch.pool in pools and batch.name not in charged)

    def increase(self, candidate: Candidate, launchable: Launchable, count: int) -> LaunchBatch:
        """Orders nodes of the candidate: one LaunchBatch. Raises ApiError if the write may have failed."""
        names = [f"{prefix_of(candidate.pool)}{self._draw()}" for _ in range(count)]
        launches = [_planned(candidate, launchable, name) for name in names]
        (batch,) = batches_of(launches, launchable.snapshot)
        manifest = write_launch_batch(batch)
        manifest["metadata"]["finalizers"] = [FINALIZER]
        try:
            written = self._api.create(LAUNCH_BATCHES, manifest)
        except UnavailableError:
            # The answer may be lost and the order written: then it must not be ordered again.
            written = self._found_or_raise(batch.name)
        made = parse_launch_batch(written)
        self._batches[made.name] = made
        return made

    def _found_or_raise(self, name: str) -> Object:
        try:
            return self._api.get(LAUNCH_BATCHES, name)
        except NotFoundError as error:
            raise UnavailableError(f"LaunchBatch {name} could not be written") from error

    def withdraw(self, nodes: Iterable[ProvisionedNode]) -> None:
        """Orders the removal of these nodes. A LaunchBatch whose nodes are all removed, and whose call was not made, is
        removed first, so that it is never requested. Raises ApiError; orders before the error stay."""
        going = {node.name: node for node in nodes}
        for batch in [self._batches[name] for name in {node.batch for node in going.values()} if name in self._batches]:
            if self._is_withdrawn(batch, going):
                self._delete(LAUNCH_BATCHES, batch.name, batch.uid)
        for node in going.values():
            if node.name in self._nodes and not node.deleting:
                self._delete(PROVISIONED_NODES, node.name, node.uid)

    def may_withdraw(self, nodes: Iterable[ProvisionedNode]) -> bool:
        """True if all of these are written, or are deleted with their batch: an unwritten node cannot be deleted
        alone."""
        going = {node.name: node for node in nodes}
        unwritten = [node for node in going.values() if node.name not in self._nodes]
        return all(self._is_withdrawn(self._batches[node.batch], going) for node in unwritten)

    def _is_withdrawn(self, batch: LaunchBatch, going: Mapping[str, ProvisionedNode]) -> bool:
        gone = {name for name in batch.nodes if name in going or self._is_going(name)}
        return not batch.asked and len(gone) == len(batch.nodes)

    def _is_going(self, name: str) -> bool:
        return name in self._deleted or (name in self._nodes and self._nodes[name].deleting)

    def _delete(self, resource: Resource, name: str, uid: str) -> None:
        if name in self._deleted:
            return
        with suppress(NotFoundError):  # it is gone already
            self._api.delete(resource, name, uid=uid)
        self._deleted.add(name)


def _planned(candidate: Candidate, launchable: Launchable, name: str) -> PlannedNode:
    """The node as a plan would launch it, for no pod in particular."""
    template = template_of(candidate, launchable.snapshot, name=name)
    return PlannedNode(
        name=name,
        pool=candidate.pool.name,
        drivers=candidate.profiles,
        offerings=(candidate.offering,),
        node=template.node,
        predicted=template.predicted,
        pods=(),
        devices_used=(),
        devices_total=0,
        usd_per_hour=candidate.usd_per_hour,
        prediction=Prediction(
            instance_type=candidate.instance_type.name,
            drivers=candidate.profiles,
            catalog_digest=launchable.catalog.digest,
            slices_digest=digest_of(template.predicted),
        ),
        boot_timeout=candidate.pool.boot_timeout or boot_timeout(candidate.instance_type),
    )

"""The observations of a reconcile before it acts, and the actions that it withheld because a pool only observes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from functools import cached_property

from autoscaler.execution.drain import occupants
from autoscaler.lifecycle.ownership import OwnNodes
from autoscaler.lifecycle.reflect import occupies
from autoscaler.model.plan import NodeAction, NodeDecision
from autoscaler.model.pod import Pod
from autoscaler.model.provisioned_node import ProvisionedNode
from autoscaler.model.snapshot import Snapshot
from instance_catalog.dataclass import dataclass, field
from instance_catalog.kubernetes.labels import CAPACITY_ENDS_AT, DRAINING_TAINT, HELD
from providers.contract import Instance


@dataclass(frozen=True)
class Observed:
    """The observations of a reconcile: the cluster, and the machines of each provider that answered, by provider id."""

    snapshot: Snapshot
    machines: Mapping[str, Mapping[str, Instance]]
    found_empty: set[str] = field(default_factory=set)  # slices whose hosts had no pods, read from the API server

    @cached_property
    def own(self) -> OwnNodes:
        """The Nodes, by the ProvisionedNodes that they belong to."""
        return OwnNodes(self.snapshot.nodes)

    @cached_property
    def occupants(self) -> Mapping[str, Sequence[Pod]]:
        """The pods that keep a node from being empty, by its name."""
        return occupants(self.snapshot.pods)

    def unfinished(
        self, decisions: Iterable[tuple[ProvisionedNode, NodeDecision]]
    ) -> Iterator[tuple[ProvisionedNode, NodeDecision]]:
        """The decisions without those to keep a node that has no mark of another decision, which are most of them."""
        marked = frozenset(_marked(self.snapshot))
        for node, decision in decisions:
            if decision.action is not NodeAction.KEEP or (marked and self._is_in(marked, node)):
                yield node, decision

    def _is_in(self, names: Set[str], node: ProvisionedNode) -> bool:
        """True if the Node of `node` is among those with these names."""
        found = self.own.of(node)
        return found is not None and found.name in names


def _marked(snapshot: Snapshot) -> Iterator[str]:
    """Names of nodes that have, or on which a pod has, a taint or an annotation of a drain, a hold or a notice."""
    for node in snapshot.nodes:
        annotated = HELD in node.annotations or CAPACITY_ENDS_AT in node.annotations
        if annotated or any(taint.key == DRAINING_TAINT for taint in node.taints):
            yield node.name
    for pod in snapshot.pods:
        if pod.node_name is not None and CAPACITY_ENDS_AT in pod.annotations and occupies(pod):
            yield pod.node_name


@dataclass(frozen=True, slots=True)
class Withheld:
    """An action that is withheld because its pool observes. `pool` is "" if no pool acts."""

    kind: str
    name: str
    uid: str
    pool: str
    would: str

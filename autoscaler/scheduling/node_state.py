"""A node with its pods, the input of filters; and counts over all nodes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from operator import is_
from typing import Any, Final, TypeVar

from autoscaler.cel.common.evaluation import pay
from autoscaler.model.node import Node
from autoscaler.model.pod import HostPort, Pod
from autoscaler.scheduling.resources import pod_requests, units
from instance_catalog.dataclass import dataclass, field
from instance_catalog.kubernetes.resource_slice import ResourceSlice

Value = TypeVar("Value", bound=Hashable)
Shaped = TypeVar("Shaped")

# Counts that are cached together, some 50 MB; above that all are deleted.
_MOST: Final = 300_000
# Units that are paid together.
_AT_ONCE: Final = 1_000


@dataclass(frozen=True, slots=True)
class NodeState:
    """`used` and `allocatable` are in scheduler units (see resources.units); "pods" counts pods.

    `repelling` are the topology keys of the required anti-affinity of its pods.
    """

    node: Node
    pods: tuple[Pod, ...] = ()
    used: Mapping[str, int] = field(default_factory=dict)
    allocatable: Mapping[str, int] = field(default_factory=dict)
    ports: tuple[HostPort, ...] = ()
    repelling: frozenset[str] = frozenset()

    @staticmethod
    def of(node: Node, pods: tuple[Pod, ...] = ()) -> NodeState:
        allocatable = {resource: units(resource, quantity) for resource, quantity in node.allocatable.items()}
        return NodeState(node, allocatable=allocatable).plus(pods)

    def plus(self, pods: tuple[Pod, ...]) -> NodeState:
        used = dict(self.used)
        ports = list(self.ports)
        for pod in pods:
            for resource, amount in pod_requests(pod).items():
                used[resource] = used.get(resource, 0) + amount
            used["pods"] = used.get("pods", 0) + 1
            ports.extend(host_ports(pod))
        repelling = self.repelling.union(term.topology_key for pod in pods for term in pod.pod_anti_affinity)
        return NodeState(self.node, self.pods + pods, used, self.allocatable, tuple(ports), repelling)

    def free(self, resource: str) -> int:
        """The free amount of a resource; 0 for one that the node does not have."""
        return self.allocatable.get(resource, 0) - self.used.get(resource, 0)


@dataclass(slots=True)
class StateMemory:
    """The states of nodes in the previous snapshot: few nodes change from one reconcile to the next."""

    _last: Mapping[str, NodeState] = field(default_factory=dict)

    def of(self, nodes: Iterable[Node], pods: Mapping[str, Sequence[Pod]]) -> dict[str, NodeState]:
        """The states of the nodes, by name, with their pods.

        Those of the previous call are kept if node and pods are the same objects. Threads may share them: at worst one
        computes again.
        """
        known, found = self._last, dict[str, NodeState]()
        for node in nodes:
            state, carried = known.get(node.name), pods.get(node.name, ())
            same = state is not None and state.node is node and len(state.pods) == len(carried)
            if state is None or not same or not all(map(is_, state.pods, carried)):
                state = NodeState.of(node, tuple(carried))
            found[node.name] = state
        self._last = found
        return found

    def __len__(self) -> int:
        return len(self._last)


@dataclass(frozen=True, slots=True)
class AddedNode:
    """The state of a node that is added to a world, and the slices that are added with it."""

    state: NodeState
    slices: tuple[ResourceSlice, ...] = ()


Added = TypeVar("Added", bound=AddedNode | None)


@dataclass(slots=True)
class AddedMemory:
    """The nodes that were added to the previous world: those that start, for minutes in which nothing of them changes.

    An answer counts only for exactly the objects that it was computed from, and is forgotten once a world was made
    without it. It belongs to one series of plans, which one thread makes one after the other.
    """

    _last: dict[str, tuple[tuple[object, ...], Any]] = field(default_factory=dict)
    _now: dict[str, tuple[tuple[object, ...], Any]] = field(default_factory=dict)

    def begin(self) -> None:
        """Begin the next world."""
        self._last, self._now = self._now, {}

    def of(self, name: str, read: tuple[object, ...], compute: Callable[[], Added]) -> Added:
        """The node `name` as `compute` makes it of the objects that it reads, which are immutable."""
        kept = self._last.get(name)
        if kept is None or len(kept[0]) != len(read) or not all(map(is_, kept[0], read)):
            kept = read, compute()
        self._now[name] = kept
        added: Added = kept[1]
        return added

    def nodes(self) -> Iterator[Node]:
        """The nodes of the previous world."""
        return (added.state.node for _, added in self._last.values() if added is not None)


def host_ports(pod: Pod) -> tuple[HostPort, ...]:
    """The host ports of containers and sidecars; short-lived init containers have none while the pod runs."""
    containers = [*pod.containers, *(c for c in pod.init_containers if c.sidecar)]
    return tuple(port for container in containers for port in container.host_ports if port.port)


class DomainCounts:
    """The counts of filters that depend on pods on other nodes, by topology domain; shared by all worlds of a plan.

    kube-scheduler counts once for a pod and then checks each node (PreFilter of podtopologyspread and interpodaffinity,
    k8s.io/kubernetes v1.36). Here worlds change with every pod that is placed, so the nodes of the first world are
    counted once for each question, and for every other world only the differences are read again.
    """

    __slots__ = ("_base", "_entries", "_known", "_last")

    def __init__(self, nodes: Mapping[str, NodeState] | None = None) -> None:
        self._base: Mapping[str, NodeState] = nodes or {}
        self._known: dict[Hashable, Counter[Any]] = {}
        self._entries = 0
        self._last: dict[str, tuple[Mapping[str, NodeState], Hashable, Any]] = {}

    def of(
        self,
        kind: str,
        key: Hashable,
        nodes: Mapping[str, NodeState],
        read: Callable[[NodeState], Iterable[Value]],
        shape: Callable[[Counter[Value]], Shaped],
        *,
        price: int,
    ) -> Shaped:
        """The number of times that `read` returns each value over all nodes, in the form of `shape`.

        `price`: units for each pod that is read, 0 if the current pod did not cause it. Raises BudgetSpentError if the
        current account cannot pay.
        """
        last = self._last.get(kind)
        if last is None or last[0] is not nodes or last[1] != key:
            counts: Counter[Any] = self._counted((kind, key), nodes, read, price=price)
            last = self._last[kind] = nodes, key, shape(counts)
        found: Shaped = last[2]
        return found

    def _counted(
        self, key: Hashable, nodes: Mapping[str, NodeState], read: Callable[[NodeState], Iterable[Any]], *, price: int
    ) -> Counter[Any]:
        base = self._base
        changed = [state for name, state in nodes.items() if base.get(name) is not state]
        if 2 * len(changed) >= len(nodes) or 2 * len(nodes) <= len(base):
            return _sum(nodes.values(), read, price=price)
        known = self._known.get(key)
        if known is None:
            known = _sum(base.values(), read, price=price)
            self._keep(key, known)
        found = Counter(known)
        found.update(_sum(changed, read, price=price))
        found.subtract(_sum((state for name, state in base.items() if nodes.get(name) is not state), read, price=price))
        return found

    def _keep(self, key: Hashable, counts: Counter[Any]) -> None:
        self._entries += 1 + len(counts)
        if self._entries > _MOST:
            self._known.clear()
            self._entries = 1 + len(counts)
        self._known[key] = counts


def _sum(states: Iterable[NodeState], read: Callable[[NodeState], Iterable[Any]], *, price: int) -> Counter[Any]:
    found: Counter[Any] = Counter()
    units = 0
    for state in states:
        units += price * len(state.pods)
        if units >= _AT_ONCE:
            pay(units)
            units = 0
        found.update(read(state))
    if units:
        pay(units)
    return found

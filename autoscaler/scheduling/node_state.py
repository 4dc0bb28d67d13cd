"""A node with the pods it carries: the unit the filters look at."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import is_

from autoscaler.model.node import Node
from autoscaler.model.pod import HostPort, Pod
from autoscaler.scheduling.resources import pod_requests, units


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
        """What is left of a resource; 0 for one the node does not have."""
        return self.allocatable.get(resource, 0) - self.used.get(resource, 0)


@dataclass(slots=True)
class StateMemory:
    """The states of nodes in the snapshot before: few nodes change from one reconcile to the next."""

    _last: Mapping[str, NodeState] = field(default_factory=dict)

    def of(self, nodes: Iterable[Node], pods: Mapping[str, Sequence[Pod]]) -> dict[str, NodeState]:
        """The states of the nodes, by name, with the pods they carry.

        Those of the call before are kept where node and pods are the same objects. Threads may share them: at worst one
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


def host_ports(pod: Pod) -> tuple[HostPort, ...]:
    """The host ports of containers and sidecars; short-lived init containers hold none while the pod runs."""
    containers = [*pod.containers, *(c for c in pod.init_containers if c.sidecar)]
    return tuple(port for container in containers for port in container.host_ports if port.port)

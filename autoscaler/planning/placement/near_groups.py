"""Groups of machines that a policy keeps in one place, whose name is not known before a machine exists.

All nodes of such a group have one value of a label: the value of the registered nodes, and before that a value that
only they have. The distance between two groups is not known. So this serves gangs that must be together, and no pods
that must be apart. If two nodes of a group differ in the label, the group guarantees nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from autoscaler.model.capacity import CapacityPool, GroupNodes
from autoscaler.model.pod import Pod
from autoscaler.model.snapshot import Snapshot
from autoscaler.planning.demand.bundles import BundleClass
from autoscaler.planning.supply.candidates import Candidate
from autoscaler.planning.supply.groups import keeps_together
from instance_catalog.dataclass import dataclass
from instance_catalog.frozen_map import EMPTY


@dataclass(frozen=True, slots=True)
class NearGroups:
    """The guarantees of groups about one label: `nodes` are values by node, `known` the values of groups with nodes."""

    key: str
    nodes: Mapping[str, str | None] = EMPTY
    known: Mapping[str, str | None] = EMPTY
    serves: bool = True

    def value(self, candidate: Candidate) -> str | None:
        """The label's value on a node of the candidate, or a placeholder; None if nothing is guaranteed."""
        if not self.serves or candidate.hosts > 1:
            return None
        nodes = keeps_together(candidate.pool, candidate.offering, self.key)
        group = _name(candidate.pool, nodes) if nodes is not None else ""
        return self.known.get(group, _coming(group)) if group else None


def near_groups(key: str, snapshot: Snapshot, classes: Iterable[BundleClass]) -> NearGroups:
    """The groups for these pods. Pods that refuse others by the label, as gangs that need a place for themselves,
    get none."""
    pools = {pool.name: pool for pool in snapshot.pools if any(key in nodes.same for nodes in pool.registers)}
    if not pools or any(_repels(pod, key) for found in classes for bundle in found.members for pod in bundle.pods):
        return NearGroups(key, serves=False)
    there = {node.name: node.labels for node in snapshot.nodes}
    groups: dict[str, str] = {}
    for node in snapshot.provisioned:
        pool = pools.get(node.pool)
        nodes = keeps_together(pool, node.offering, key) if pool is not None and node.hosts == 1 else None
        if pool is not None and nodes is not None and _agrees(there.get(node.node_name, EMPTY), nodes):
            groups[node.node_name] = _name(pool, nodes)
    values = {name: there.get(name, EMPTY).get(key) for name in groups}
    # For kube-scheduler a node without the label is in no domain: if pods can run on it, its group guarantees nothing.
    without = {node.name for node in snapshot.nodes if node.ready and values.get(node.name, "") is None}
    lost = {groups[name] for name in without}
    seen: dict[str, set[str]] = {}
    for name, group in groups.items():
        value = values[name]
        seen.setdefault(group, set()).update(() if value is None else (value,))
    known = {group: None if group in lost else _one(group, found) for group, found in seen.items()}
    return NearGroups(key, {name: values[name] or known[group] for name, group in groups.items()}, known)


def _agrees(there: Mapping[str, str], nodes: GroupNodes) -> bool:
    """True if a node may belong to the group: at its launch the pool or node template may have named another one."""
    return all(there.get(key, value) == value for key, value in nodes.labels.items())


def _name(pool: CapacityPool, nodes: GroupNodes) -> str:
    return f"{pool.node_template} {nodes.offering}"


def _repels(pod: Pod, key: str) -> bool:
    return any(term.topology_key == key for term in pod.pod_anti_affinity)


def _one(group: str, found: set[str]) -> str | None:
    """The value of a group's nodes; None if they differ."""
    return next(iter(found), _coming(group)) if len(found) < 2 else None


def _coming(group: str) -> str:
    return f"{group} is coming"

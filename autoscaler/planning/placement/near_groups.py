"""Groups of machines that a policy keeps in one place, whose name is not known before a machine is there.

All nodes of such a group have one value of a label: that of those that have registered, and until then one that only
they have. Nothing is known of how near two groups are, so this serves gangs that must be together, and no pods that
must be apart. Where two nodes of a group differ in the label after all, the group promises nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from autoscaler.model.pod import Pod
from autoscaler.model.snapshot import Snapshot
from autoscaler.planning.demand.bundles import BundleClass
from autoscaler.planning.supply.candidates import Candidate
from autoscaler.planning.supply.groups import keeps_together
from instance_catalog.frozen_map import EMPTY


@dataclass(frozen=True, slots=True)
class NearGroups:
    """What groups promise of one label: `nodes` are values by node, and `known` those of groups with nodes."""

    key: str
    nodes: Mapping[str, str | None] = EMPTY
    known: Mapping[str, str | None] = EMPTY
    serves: bool = True

    def value(self, candidate: Candidate) -> str | None:
        """The label's value on a node of the candidate, or one that stands for it; None if nothing is promised."""
        if not self.serves or candidate.hosts > 1:
            return None
        group = keeps_together(candidate.pool, candidate.offering, self.key)
        return self.known.get(group, _coming(group)) if group is not None else None


def near_groups(key: str, snapshot: Snapshot, classes: Iterable[BundleClass]) -> NearGroups:
    """Pods that repel others by the label, as gangs do that want a place for themselves, are promised nothing."""
    pools = {pool.name: pool for pool in snapshot.pools if any(key in nodes.same for nodes in pool.registers)}
    if not pools or any(_repels(pod, key) for found in classes for bundle in found.members for pod in bundle.pods):
        return NearGroups(key, serves=False)
    labels = {node.name: node.labels.get(key) for node in snapshot.nodes}
    groups = {
        node.node_name: group
        for node in snapshot.provisioned
        if node.pool in pools and node.hosts == 1 and node.node_name
        if (group := keeps_together(pools[node.pool], node.offering, key)) is not None
    }
    seen: dict[str, set[str]] = {}
    for name, group in groups.items():
        value = labels.get(name)
        seen.setdefault(group, set()).update(() if value is None else (value,))
    known = {group: _one(group, found) for group, found in seen.items()}
    return NearGroups(key, {name: labels.get(name) or known[group] for name, group in groups.items()}, known)


def _repels(pod: Pod, key: str) -> bool:
    return any(term.topology_key == key for term in pod.pod_anti_affinity)


def _one(group: str, found: set[str]) -> str | None:
    """The value of a group's nodes; None where they differ."""
    return next(iter(found), _coming(group)) if len(found) < 2 else None


def _coming(group: str) -> str:
    return f"{group} is coming"

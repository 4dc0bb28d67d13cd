"""Intents as values: the planned nodes that are launched together, their objects, and the tokens of the calls.

Pure: everything follows from the plan, or from the LaunchBatch alone, so that a restart derives the same again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set

from autoscaler.kube.custom.launch_batch import write_launch_batch
from autoscaler.kube.custom.provisioned_node import write_provisioned_node
from autoscaler.model.capacity import CapacityPool
from autoscaler.model.plan import PlannedNode
from autoscaler.model.provisioned_node import BatchMember, LaunchBatch, ProvisionedNode
from autoscaler.model.snapshot import Snapshot
from instance_catalog.dataclass import replace
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes import labels
from instance_catalog.types.instance_type import CapacityType

# The labels that differ between the nodes or offerings of one batch; the provider or the launch adds them.
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
# The most nodes of one LaunchBatch, by its schema.
_LARGEST = 100
_OFFERINGS = 60
# The name of a LaunchBatch has at most 63 characters, of which a dash and the digest take 11.
_LONGEST_PREFIX = 52
# Characters of the keys of a batch's pods; the API server stores no object of more than 1.5 MB.
_LARGEST_TEXT = 1_000_000


def is_complete(batch: LaunchBatch, node: Callable[[str], ProvisionedNode | None]) -> bool:
    """True if nothing is left to complete of a batch: its answers were copied to each of its nodes that is left, found
    by name with `node`. So it is for most batches, for as long as their machines run."""
    if batch.guarded or not batch.outcome.finished:
        return False
    any_left = False
    for member in batch.members:
        found = node(member.node)
        if found is not None and found.batch == batch.name:
            if not found.provider_id:
                return False
            any_left = True
    return any_left


def batches_of(
    launches: Iterable[PlannedNode], snapshot: Snapshot, *, apart: Set[str] = frozenset()
) -> tuple[LaunchBatch, ...]:
    """Groups planned nodes that one provider call can launch: equal in everything, and of one gang or of none.

    Nodes whose names are in `apart` are launched separately, unless they belong to a gang. So are flex-start nodes,
    since one that waits would make the others of its request wait. The hosts of a slice are always a batch of their
    own: two slices are two purchases.
    """
    pools = {pool.name: pool for pool in snapshot.pools}
    gangs = {pod.key: pod.gang.key for pod in snapshot.pods if pod.gang is not None}
    groups: dict[tuple[object, ...], list[PlannedNode]] = {}
    for launch in launches:
        gang = frozenset(gangs[pod] for pod in launch.pods if pod in gangs)
        waits = any(one.capacity_type == CapacityType.FLEX_START for one in launch.offerings)
        together = gang or launch.whole
        alone = launch.name if (waits or launch.name in apart) and not together else ""
        alike = (launch.pool, launch.offerings, launch.prediction, _shared_labels(launch), launch.node.taints)
        key = (*alike, launch.replaces, alone, launch.whole or gang)
        groups.setdefault(key, []).append(launch)
    return tuple(_batch(part, pools, gang=bool(alike[-1])) for alike, group in groups.items() for part in _parts(group))


def halves(batch: LaunchBatch) -> tuple[LaunchBatch, ...]:
    """The batch as two, to find the part that cannot be written; () for a batch of one node."""
    nodes = batch.nodes
    middle = len(nodes) // 2
    return tuple(part_of(batch, piece) for piece in (nodes[:middle], nodes[middle:])) if middle else ()


def part_of(batch: LaunchBatch, nodes: Sequence[str]) -> LaunchBatch:
    """The batch for some of its nodes only, before anything of it was written."""
    members = tuple(member for member in batch.members if member.node in nodes)
    return replace(batch, name=_batch_name(batch.pool, nodes), members=members)


def _parts(group: list[PlannedNode]) -> Iterator[list[PlannedNode]]:
    """The group in pieces that one LaunchBatch can hold."""
    part: list[PlannedNode] = []
    size = 0
    for launch in group:
        text = sum(map(len, launch.pods))
        if part and (len(part) == _LARGEST or size + text > _LARGEST_TEXT):
            yield part
            part, size = [], 0
        part.append(launch)
        size += text
    yield part


def nodes_of(batch: LaunchBatch) -> tuple[ProvisionedNode, ...]:
    """The ProvisionedNodes of a batch, derived from it alone. Raises ValueError for a batch without a prediction."""
    if batch.prediction is None:
        raise ValueError(f"batch {batch.name} has no prediction")
    return tuple(
        ProvisionedNode(
            name=member.node,
            pool=batch.pool,
            node_name=member.node,
            batch=batch.name,
            offerings=batch.offerings,
            prediction=batch.prediction,
            labels=batch.labels,
            boot_timeout=batch.boot_timeout,
            pods=member.pods,
            hosts=len(batch.members) if batch.whole else 1,
            replaces=batch.replaces,
        )
        for member in batch.members
    )


def make(batch: LaunchBatch) -> None:
    """Builds all objects of a batch as they are written. Raises the error that prevents it."""
    write_launch_batch(batch)
    for node in nodes_of(batch):
        write_provisioned_node(node)


def pods_of(batch: LaunchBatch, nodes: Set[str]) -> tuple[str, ...]:
    """Keys of the pods that some of a batch's nodes are for."""
    return tuple(pod for member in batch.members if member.node in nodes for pod in member.pods)


def token_of(batch: LaunchBatch, attempt: int) -> str:
    """The idempotency token of an attempt: 64 hexadecimal digits, derived only from recorded data."""
    return _digest(batch.uid, str(attempt), batch.offerings[attempt].zone)


def _batch(group: list[PlannedNode], pools: Mapping[str, CapacityPool], *, gang: bool) -> LaunchBatch:
    first = group[0]
    pool = pools[first.pool]
    names = tuple(launch.name for launch in group)
    return LaunchBatch(
        name=_batch_name(first.pool, names),
        pool=first.pool,
        members=tuple(BatchMember(launch.name, launch.pods) for launch in group),
        offerings=first.offerings[:_OFFERINGS],
        minimum=len(names) if gang else 1,
        prediction=first.prediction,
        labels=_shared_labels(first),
        taints=(*first.node.taints, *pool.startup_taints),
        kubelet_reserved=pool.kubelet_reserved,
        template=pool.node_template,
        boot_timeout=first.boot_timeout,
        whole=bool(first.whole),
        replaces=first.replaces,
    )


def _batch_name(pool: str, nodes: Sequence[str]) -> str:
    """Of at most 63 characters; the digest of the node names distinguishes pools with long names."""
    return f"{pool[:_LONGEST_PREFIX].rstrip('-.')}-{_digest(*nodes)[:10]}"


def _shared_labels(launch: PlannedNode) -> FrozenMap[str, str]:
    return FrozenMap({key: value for key, value in launch.node.labels.items() if key not in _PER_NODE_LABELS})


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()

"""NodePools of Karpenter among the pools of a plan: those of ordinary machines offer nothing that the catalog has."""

from __future__ import annotations

from typing import Final

from autoscaler.model.capacity import CapacityPool
from autoscaler.model.snapshot import Snapshot
from autoscaler.planning.supply.offering_labels import type_facts
from instance_catalog.dataclass import replace
from instance_catalog.kubernetes import labels
from instance_catalog.kubernetes.node_selector import requirement_matches
from instance_catalog.prediction.system_labels import OF_ANY_MODEL, type_labels
from instance_catalog.types.catalog import Catalog
from instance_catalog.types.instance_type import InstanceType

_NAMES: Final = frozenset({labels.KARPENTER_NODE_POOL})
# What does not follow from the machine.
_PLACES: Final = OF_ANY_MODEL | {labels.ZONE, labels.REGION, labels.CAPACITY_TYPE}


def without_ordinary_pools(snapshot: Snapshot, catalog: Catalog) -> Snapshot:
    """The snapshot without the NodePools whose machines have no accelerator: were such a one the only pool, pods with
    devices would be refused for what another NodePool of their cluster serves. One that a pod selects stays."""
    named = {name for pod in snapshot.pods for names in pod.required_values(_NAMES) for name in names}
    kept = tuple(
        pool
        for pool in snapshot.pools
        if not pool.of_karpenter or pool.name in named or any(_admits(pool, one) for one in catalog)
    )
    return snapshot if len(kept) == len(snapshot.pools) else replace(snapshot, pools=kept)


def _admits(pool: CapacityPool, machine: InstanceType) -> bool:
    facts = {**type_labels(machine), **type_facts(machine)}
    return all(requirement_matches(one, facts) for one in pool.requirements if one.key not in _PLACES)

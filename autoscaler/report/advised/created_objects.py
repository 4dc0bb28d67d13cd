"""The objects that changes have somebody create, as they were tried: CapacityPools, CapacityBlocks, node templates.

What only their owner knows is a placeholder, such as <ZONE>, which no reader of manifests takes for a value.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, Final

from autoscaler.advice.change import Change, ChangeKind
from autoscaler.advice.pool_opening import any_group
from autoscaler.advice.trial import Advice
from autoscaler.kube.custom.capacity_block import NO_TAINT
from autoscaler.kube.custom.schema import API_VERSION, taint_json
from autoscaler.kube.custom.selectors import selector_json
from autoscaler.model.capacity import CapacityBlock, CapacityPool, PodScope, Scope
from autoscaler.model.snapshot import Snapshot
from autoscaler.planning.demand.scope import IMPLICIT
from autoscaler.planning.policy import Where
from instance_catalog.dataclass import replace
from instance_catalog.types.clouds import cloud_facts

_NAME: Final = "advised"
_GROUP: Final = '"<GROUP>"'
# What people write in the place of each.
MEANINGS: Final = {
    "<CLUSTER>": "the name of your cluster",
    "<LOCATION>": "its region or zone",
    "<GROUP>": "the name of your node pool, another one in each node template",
    "<POOL>": "the CapacityPool whose nodes the block has",
    "<ZONE>": "the zone of the machines that you buy",
    "<RESERVATION>": "the provider's id of the reservation, another one in each CapacityBlock",
    "<START>": "when it begins, such as 2027-01-31T11:30:00Z",
    "<END>": "when it ends",
}


def created_objects(found: Iterable[Advice], snapshot: Snapshot) -> list[dict[str, Any]]:
    """Those of every change, each with a name of its own; none for what a change edits or asks for besides."""
    written: list[dict[str, Any]] = []
    for advice in found:
        name = f"{_NAME}-{number}" if (number := _used(written)) else _NAME
        written += _objects(advice, snapshot, name)
    return written


def placeholders(written: Iterable[dict[str, Any]]) -> list[str]:
    """Those that are left to fill in, in the order of the objects. A pool has none: what looks like one there, such as
    the name of a scheduler, is from a manifest."""
    found = (text for one in written if one["kind"] != "CapacityPool" for text in _texts(one["spec"]))
    return list(dict.fromkeys(text for text in found if text in MEANINGS))


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for one in value.values() if isinstance(value, dict) else value:
            yield from _texts(one)


def _used(written: Iterable[dict[str, Any]]) -> int:
    """The number of the next name; 0 for the first, which needs none."""
    names = {one["metadata"]["name"] for one in written}
    return len(names) + 1 if names else 0


def _objects(advice: Advice, snapshot: Snapshot, name: str) -> Iterator[dict[str, Any]]:
    after, launched = advice.change.edit(snapshot), sum(count for _, count in advice.result.launches)
    created = [pool for pool in after.pools if pool.name == IMPLICIT.name and pool not in snapshot.pools]
    groups = [part for part in advice.change.steps if part.kind is ChangeKind.LIST_GROUP]
    # What the change allows by an option of the command line, the text names as a field of the pool.
    allowed = advice.change.where(Where()).capacity_types
    for found in created:
        pool = replace(found, capacity_types=allowed) if allowed else found
        templates = [_template(part, name) for part in groups]
        yield from templates
        yield _object("CapacityPool", name, _pool(pool, launched, templates, given=_labels(groups)))
    others = [pool.name for pool in after.pools if pool not in created]
    of_block = name if created else others[0] if len(others) == 1 else "<POOL>"
    for number, block in enumerate(after.blocks[len(snapshot.blocks) :], start=1):
        yield _object("CapacityBlock", f"{name}-{number}" if number > 1 else name, _block(block, of_block))


def _object(kind: str, name: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": API_VERSION, "kind": kind, "metadata": {"name": name}, "spec": spec}


def _labels(groups: Iterable[Change]) -> set[str]:
    """The keys of labels that the node template gives."""
    named = (part.detail["labels"] for part in groups)
    return {str(label).partition("=")[0] for found in named if isinstance(found, tuple) for label in found}


def _template(part: Change, name: str) -> dict[str, Any]:
    """The node template with the group that nodes of the pool start in."""
    (facts,) = (one for one in cloud_facts().values() if one.group_per_type in _labels((part,)))
    kind, spec = facts.group_template
    group = part.detail["group"]
    return _object(kind, name, json.loads(spec if any_group(group) else spec.replace(_GROUP, json.dumps(group))))


def _pool(pool: CapacityPool, launched: int, templates: list[dict[str, Any]], *, given: set[str]) -> dict[str, Any]:
    """Only what differs from the defaults, and the limit that every pool needs."""
    spec: dict[str, Any] = {
        "limits": {"nodes": max(1, launched)},
        "scope": _scope(pool.scope),
        "nodeTemplateRef": next(({"kind": one["kind"], "name": one["metadata"]["name"]} for one in templates), None),
        "requirements": [{"key": r.key, "operator": r.operator, "values": list(r.values)} for r in pool.requirements],
        "capacityTypes": [kind.value for kind in pool.capacity_types]
        if pool.capacity_types != IMPLICIT.capacity_types
        else None,
        "labels": {key: value for key, value in pool.labels.items() if key not in given},
        "taints": list(map(taint_json, pool.taints)),
        "drivers": {"profiles": list(pool.drivers)} if pool.drivers else None,
        "fractional": pool.fractional.value if pool.fractional is not IMPLICIT.fractional else None,
    }
    return {key: value for key, value in spec.items() if value}


def _scope(scope: Scope) -> dict[str, Any]:
    written: dict[str, Any] = {
        "pods": scope.pods.value if scope.pods is not PodScope.DEVICE_CLAIMS else None,
        "podSelector": selector_json(scope.pod_selector),
        "schedulerNames": list(scope.schedulers) if scope.schedulers != IMPLICIT.scope.schedulers else None,
    }
    return {key: value for key, value in written.items() if value is not None}


def _block(block: CapacityBlock, pool: str) -> dict[str, Any]:
    return {
        "pool": pool,
        "instanceType": block.instance_type,
        "count": block.count,
        "zone": "<ZONE>",
        "reservation": "<RESERVATION>",
        "startsAt": "<START>",
        "endsAt": "<END>",
        "taint": taint_json(block.taint) if block.taint else {"effect": NO_TAINT},
    }

"""Recorded allocation cases to model values, taken literally: no defaults, no validation.

autoscaler/kube applies the API server's defaults; these cases were given to the Go library as they stand (count 0,
empty allocation modes), so they need a reader of their own.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from autoscaler.dra.inventory.allocated import AllocatedState, PoolUse
from autoscaler.model.device_class import DeviceClass, Selector
from autoscaler.model.node import Node
from autoscaler.model.resource_claim import (
    Constraint,
    DeviceRequest,
    DistinctAttribute,
    FirstAvailable,
    MatchAttribute,
    Request,
    ResourceClaim,
    UnknownConstraint,
)
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.node_selector import NodeSelector, NodeSelectorTerm, Requirement
from instance_catalog.kubernetes.profile import KubernetesProfile
from instance_catalog.kubernetes.quantity import Quantity
from instance_catalog.kubernetes.resource_slice import (
    AttributeValue,
    Capacity,
    CounterConsumption,
    CounterSet,
    Device,
    ListValue,
    NodeReach,
    Pool,
    RequestPolicy,
    ResourceSlice,
    Unset,
    ValidRange,
    Version,
)
from instance_catalog.kubernetes.taint import Taint, Toleration

Json = dict[str, Any]
DATA = Path(__file__).parents[2] / "data" / "allocation"

_GATES = {
    "AdminAccess": "admin_access",
    "ConsumableCapacity": "consumable_capacity",
    "DeviceBindingAndStatus": "binding_conditions",
    "DeviceTaints": "device_taints",
    "PartitionableDevices": "partitionable_devices",
    "PrioritizedList": "prioritized_list",
}


def lines(name: str) -> Iterator[Json]:
    """The objects of a gzipped file with one JSON object per line."""
    with gzip.open(DATA / name, "rt", encoding="utf-8") as file:
        for line in file:
            yield json.loads(line)


def profile_of(case: Json, base: KubernetesProfile) -> KubernetesProfile:
    """`base` with the gates of the case."""
    features = case["features"]
    return base.with_gates(**{gate: bool(features.get(name)) for name, gate in _GATES.items()})


def node(raw: Json) -> Node:
    meta = raw["metadata"]
    return Node(name=meta["name"], labels=FrozenMap(meta.get("labels") or {}))


def device_class(raw: Json) -> DeviceClass:
    return DeviceClass(raw["metadata"]["name"], _selectors(raw["spec"].get("selectors")))


def resource_slice(raw: Json) -> ResourceSlice:
    spec = raw["spec"]
    pool = spec["pool"]
    return ResourceSlice(
        name=raw["metadata"]["name"],
        driver=spec["driver"],
        pool=Pool(pool["name"], pool.get("generation", 0), pool.get("resourceSliceCount", 0)),
        devices=tuple(_device(device) for device in spec.get("devices") or ()),
        reach=_reach(spec),
        per_device_node_selection=spec.get("perDeviceNodeSelection"),
        shared_counters=tuple(
            CounterSet(entry["name"], _counters(entry.get("counters"))) for entry in spec.get("sharedCounters") or ()
        ),
    )


def claim(raw: Json) -> ResourceClaim:
    meta, devices = raw["metadata"], raw["spec"].get("devices") or {}
    return ResourceClaim(
        namespace=meta.get("namespace", ""),
        name=meta["name"],
        requests=tuple(_request(request) for request in devices.get("requests") or ()),
        constraints=tuple(_constraint(constraint) for constraint in devices.get("constraints") or ()),
    )


def allocated(raw: Json, profile: KubernetesProfile) -> AllocatedState:
    """The allocated state as recorded: devices, share ids and consumed capacity are listed apart."""
    exclusive: dict[tuple[str, str], set[str]] = {}
    shares: dict[tuple[str, str], set[tuple[str, str]]] = {}
    consumed: dict[tuple[str, str], dict[str, FrozenMap[str, Quantity]]] = {}
    for entry in raw.get("devices") or ():
        exclusive.setdefault((entry["driver"], entry["pool"]), set()).add(entry["device"])
    for entry in raw.get("shared") or ():
        shares.setdefault((entry["driver"], entry["pool"]), set()).add((entry["device"], entry.get("shareID", "")))
    for entry in raw.get("capacity") or ():
        of_pool = consumed.setdefault((entry["driver"], entry["pool"]), {})
        total = dict(of_pool.get(entry["device"], {}))
        for name, value in (entry.get("consumed") or {}).items():
            quantity = Quantity.parse(value)
            total[name] = total[name] + quantity if name in total else quantity
        of_pool[entry["device"]] = FrozenMap(total)
    return AllocatedState(
        {
            key: PoolUse(
                frozenset(exclusive.get(key, ())), frozenset(shares.get(key, ())), FrozenMap(consumed.get(key, {}))
            )
            for key in {*exclusive, *shares, *consumed}
        }
    )


def _selectors(raw: list[Json] | None) -> tuple[Selector, ...]:
    return tuple(Selector((entry.get("cel") or {}).get("expression")) for entry in raw or ())


def _reach(raw: Json) -> NodeReach:
    selector = raw.get("nodeSelector")
    return NodeReach(
        node_name=raw.get("nodeName"),
        node_selector=node_selector(selector) if selector is not None else None,
        all_nodes=bool(raw.get("allNodes")),
    )


def node_selector(raw: Json) -> NodeSelector:
    return NodeSelector(
        tuple(
            NodeSelectorTerm(_requirements(term.get("matchExpressions")), _requirements(term.get("matchFields")))
            for term in raw.get("nodeSelectorTerms") or ()
        )
    )


def _requirements(raw: list[Json] | None) -> tuple[Requirement, ...]:
    return tuple(Requirement(entry["key"], entry["operator"], tuple(entry.get("values") or ())) for entry in raw or ())


def _device(raw: Json) -> Device:
    conditions, failures = raw.get("bindingConditions"), raw.get("bindingFailureConditions")
    return Device(
        name=raw["name"],
        attributes=FrozenMap({name: _attribute(value) for name, value in (raw.get("attributes") or {}).items()}),
        capacity=FrozenMap({name: _capacity(value) for name, value in (raw.get("capacity") or {}).items()}),
        consumes_counters=tuple(
            CounterConsumption(entry["counterSet"], _counters(entry.get("counters")))
            for entry in raw.get("consumesCounters") or ()
        ),
        taints=tuple(Taint(t.get("key", ""), t.get("value", ""), t["effect"]) for t in raw.get("taints") or ()),
        reach=_reach(raw),
        allow_multiple_allocations=bool(raw.get("allowMultipleAllocations")),
        binds_to_node=bool(raw.get("bindsToNode")),
        binding_conditions=None if conditions is None else tuple(conditions),
        binding_failure_conditions=None if failures is None else tuple(failures),
    )


def _attribute(raw: Json) -> AttributeValue:
    lists = {"strings": "string", "ints": "int", "bools": "bool", "versions": "version"}
    if len(raw) != 1:
        return Unset(", ".join(raw))
    ((kind, value),) = raw.items()
    if kind == "version":
        return Version(value)
    if kind in ("string", "int", "bool"):
        return value  # type: ignore[no-any-return]
    if kind in lists:
        items = tuple(Version(item) if kind == "versions" else item for item in value)
        return ListValue(lists[kind], items)  # type: ignore[arg-type]
    return Unset(kind)


def _counters(raw: Json | None) -> FrozenMap[str, Quantity]:
    return FrozenMap({name: Quantity.parse(counter["value"]) for name, counter in (raw or {}).items()})


def _capacity(raw: Json) -> Capacity:
    policy = raw.get("requestPolicy")
    return Capacity(Quantity.parse(raw["value"]), None if policy is None else _policy(policy))


def _policy(raw: Json) -> RequestPolicy:
    valid = raw.get("validRange")
    return RequestPolicy(
        default=_quantity(raw.get("default")),
        valid_values=tuple(Quantity.parse(value) for value in raw.get("validValues") or ()),
        valid_range=None
        if valid is None
        else ValidRange(_quantity(valid.get("min")), _quantity(valid.get("max")), _quantity(valid.get("step"))),
    )


def _quantity(raw: str | None) -> Quantity | None:
    return None if raw is None else Quantity.parse(raw)


def _request(raw: Json) -> Request:
    if raw.get("firstAvailable"):
        return FirstAvailable(raw["name"], tuple(_exact(sub["name"], sub) for sub in raw["firstAvailable"]))
    return _exact(raw["name"], raw.get("exactly") or {})


def _exact(name: str, raw: Json) -> DeviceRequest:
    capacity = raw.get("capacity")
    return DeviceRequest(
        name=name,
        device_class=raw.get("deviceClassName", ""),
        selectors=_selectors(raw.get("selectors")),
        allocation_mode=raw.get("allocationMode", ""),
        count=raw.get("count", 0),
        admin_access=raw.get("adminAccess"),
        tolerations=tuple(toleration(entry) for entry in raw.get("tolerations") or ()),
        capacity=None
        if capacity is None
        else FrozenMap({key: Quantity.parse(value) for key, value in (capacity.get("requests") or {}).items()}),
    )


def toleration(raw: Json) -> Toleration:
    return Toleration(
        key=raw.get("key", ""),
        operator=raw.get("operator", ""),
        value=raw.get("value", ""),
        effect=raw.get("effect", ""),
        toleration_seconds=raw.get("tolerationSeconds"),
    )


def _constraint(raw: Json) -> Constraint:
    requests = tuple(raw.get("requests") or ())
    if "matchAttribute" in raw:
        return MatchAttribute(raw["matchAttribute"], requests)
    if "distinctAttribute" in raw:
        return DistinctAttribute(raw["distinctAttribute"], requests)
    return UnknownConstraint(", ".join(raw), requests)

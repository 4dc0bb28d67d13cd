"""Finds the cheapest offering of the catalog that fits a pod, and the reason why each pool does not offer it.

Missing drivers are checked first: a node of the pool with these drivers must take the pods. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from functools import cached_property
from itertools import islice
from typing import Final

from autoscaler.model.capacity import CapacityPool
from autoscaler.model.plan import LeftOut
from autoscaler.model.pod import Pod
from autoscaler.model.reason import NO_SUBJECT, Code, Fact, Reason
from autoscaler.model.snapshot import DaemonSet, Snapshot
from autoscaler.model.verdict import Fits
from autoscaler.planning.demand.scope import network_card_alone, requested_resources, served_resources
from autoscaler.planning.placement.nothing_has import asks_in_vain
from autoscaler.planning.placement.packing_input import PackingInput
from autoscaler.planning.supply.candidates import Candidate, excluded_by
from autoscaler.planning.supply.drivers import handed_out
from autoscaler.planning.supply.hypothetical import Hypothetical, hypothetical
from autoscaler.scheduling.world import World
from instance_catalog.dataclass import replace
from instance_catalog.diagnostic import all_of
from instance_catalog.drivers.device_plugins import other_device
from instance_catalog.drivers.profile import DriverSet
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.prediction.device_plugins import (
    MIG_CLASS,
    is_plugin_resource,
    mig_condition,
    mig_profile,
    plugin_of,
    plugin_resources,
    undescribed_device,
)
from instance_catalog.types.catalog import Catalog

_POOLS: Final = 3  # the most pools in a reason
_NODE: Final = "foreslice-trial"
_NOWHERE: Final = FrozenMap({"foreslice.dev/nowhere": ""})


class OutsidePools:
    """Answers for many classes of pods, most of which have the same few offerings: reasons of pools are cached."""

    def __init__(self, whole: Callable[[], PackingInput], packing: PackingInput, world: World) -> None:
        """`whole` returns the packing input without pools. `world` is the cluster with the pods that have a place."""
        self._make = whole
        self._packing = packing
        self._alone = replace(world, nodes={})
        self._excluded: dict[tuple[str, int], str] = {}  # by pool and candidate
        self._nodes: dict[tuple[str, int, tuple[str, ...]], Hypothetical] = {}  # by device plugins

    def reasons(self, item: int) -> Iterator[Reason]:
        """The cheapest type of the catalog that would fit, and for each pool the reason why it does not offer it."""
        whole = self._whole
        pods = whole.classes[item].sample.pods
        if asks_in_vain(whole, item) or all(map(network_card_alone, pods)):
            return
        for index in whole.by_cost:
            if whole.trials.ledger.refused(item):
                return
            if whole.candidates[index].barred is None and whole.trials.takes(whole.shape_of[index], item):
                found = (r for pool in self._packing.snapshot.pools if (r := self._lacking(pool, index, item)))
                yield from islice(found, _POOLS)
                return

    @cached_property
    def _whole(self) -> PackingInput:
        return self._make()

    @cached_property
    def _listed(self) -> frozenset[tuple[str, str, DriverSet]]:
        """The offers of pools: pool, instance type and drivers."""
        return frozenset((c.pool.name, c.instance_type.name, c.drivers) for c in self._packing.candidates)

    def _lacking(self, pool: CapacityPool, index: int, item: int) -> Reason | None:
        """The reason why the pool does not offer the candidate; None if no known reason applies."""
        candidate = self._whole.candidates[index]
        name, pods = candidate.instance_type.name, self._whole.classes[item].sample.pods
        if (pool.name, index) not in self._excluded:
            self._excluded[pool.name, index] = excluded_by(pool, candidate)
        if why := self._excluded[pool.name, index]:
            return Reason.of(Code.NO_POOL, NO_SUBJECT, instance_type=name, pool=pool.name, why=why)
        plugins = _missing_plugins(candidate, pods, self._packing.snapshot)
        listed = (pool.name, name, candidate.drivers) in self._listed
        changed = pool if listed else replace(pool, drivers=candidate.profiles)
        if (listed and not plugins) or not self._takes(self._node(changed, index, plugins), item):
            return None
        named: dict[str, Fact] = {"plugins": tuple(plugins)} if plugins else {}
        if listed:
            return Reason.of(Code.NO_POOL, NO_SUBJECT, instance_type=name, pool=pool.name, **named)
        named |= {"running": pool.drivers} if pool.drivers else {}
        profiles = ", ".join(candidate.profiles)
        step = f"set spec.drivers: {{profiles: [{profiles}]}}" if profiles else "leave out spec.drivers"
        return Reason.of(Code.NO_POOL, NO_SUBJECT, instance_type=name, pool=pool.name, step=step, **named)

    def _node(self, pool: CapacityPool, index: int, plugins: Mapping[str, str]) -> Hypothetical:
        """The node of the pool with the device plugins running."""
        drivers = tuple(sorted(set(plugins.values())))
        if (pool.name, index, drivers) not in self._nodes:
            nowhere = Pod("", "device-plugin", uid="", node_selector=_NOWHERE)
            running = (DaemonSet("", f"{name}-device-plugin", nowhere, device_plugin=name) for name in drivers)
            state = self._packing.snapshot
            state = replace(state, daemon_sets=(*state.daemon_sets, *running))
            basis = replace(self._whole.candidates[index], pool=pool)
            self._nodes[pool.name, index, drivers] = hypothetical(basis, state, name=_NODE)
        return self._nodes[pool.name, index, drivers]

    def _takes(self, node: Hypothetical, item: int) -> bool:
        """True if the node takes the class. The class pays for this check, as for everything that only gives a hint."""
        pods = self._whole.classes[item].sample.pods
        return isinstance(self._whole.trials.ledger.fit(item, pods, _NODE, node.added_to(self._alone)), Fits)


def _missing_plugins(candidate: Candidate, pods: tuple[Pod, ...], snapshot: Snapshot) -> dict[str, str]:
    """The device plugin resources that the pods request on the candidate and that no visible DaemonSet provides,
    with their drivers."""
    asked = {resource for pod in pods for resource in requested_resources(pod)} - served_resources(snapshot)
    offered = {r for amounts in plugin_resources(candidate.instance_type).values() for r in amounts}
    found = {resource: plugin for resource in sorted(asked & offered) if (plugin := plugin_of(resource))}
    return {resource: plugin.driver for resource, plugin in found.items() if plugin.driver not in handed_out(snapshot)}


def without_machines(outside: Sequence[LeftOut], catalog: Catalog, snapshot: Snapshot) -> tuple[LeftOut, ...]:
    """The ignored pods; for those whose devices no instance type or node has, the clouds, and for MIG parts the claim
    that asks for the same: no scope of a pool changes that. For those whose devices only a vendor's own plugin hands
    out, an instance type that has them."""
    asked = {name for entry in outside for reason in entry.reasons for name in _by_plugin(reason)}
    if not asked:
        return tuple(outside)
    having = {name: one.name for one in catalog for amounts in plugin_resources(one).values() for name in amounts}
    lacking = {name for name in asked if _counted(name) or other_device(name) or mig_profile(name)}
    lacking -= {*having, *(name for one in catalog for name in one.allocatable)}
    lacking -= {name for node in snapshot.nodes for name in node.allocatable}
    clouds = all_of(sorted({one.cloud for one in catalog}))
    return tuple(
        replace(entry, reasons=_useful(_handed_out(_nowhere(r, lacking, clouds), having) for r in entry.reasons))
        for entry in outside
    )


def _useful(reasons: Iterable[Reason]) -> tuple[Reason, ...]:
    """Without the scheduler's where no machine has the devices: a pool that includes it changes nothing."""
    found = tuple(reasons)
    nowhere = any("clouds" in reason.detail for reason in found)
    return tuple(reason for reason in found if not (nowhere and reason.code is Code.OTHER_SCHEDULER))


def _handed_out(reason: Reason, having: Mapping[str, str]) -> Reason:
    """The reason with the instance type whose device plugin hands out what the pod asks for, if the plugin is not
    known by itself."""
    asked = _by_plugin(reason)
    own = next((having[name] for name in asked if name in having and not is_plugin_resource(name)), "")
    if not own or "by" in reason.detail or not all(name in having or is_plugin_resource(name) for name in asked):
        return reason
    by = f"device plugins of instance type {own}"
    return Reason.of(reason.code, reason.subject, resources=reason.detail["resources"], by=by)


def _by_plugin(reason: Reason) -> tuple[str, ...]:
    """The resources of device plugins that keep a pod out of all scopes."""
    found = reason.detail.get("resources")
    known = reason.code is Code.OUT_OF_SCOPE and reason.detail.keys() <= {"resources", "by", "whole"}
    return tuple(map(str, found)) if known and isinstance(found, tuple) else ()


def _nowhere(reason: Reason, lacking: Set[str], clouds: str) -> Reason:
    names = tuple(name for name in _by_plugin(reason) if name in lacking)
    if parts := tuple(filter(mig_profile, names)):
        devices = tuple(map(mig_condition, parts))
        return Reason.of(reason.code, reason.subject, resources=parts, device_class=MIG_CLASS, devices=devices)
    device = next(filter(None, (other_device(name) for name in names if not is_plugin_resource(name))), "")
    named: dict[str, Fact] = {"device": device} if device else {}
    if device and not undescribed_device(names[0]):
        named["addable"] = "or add a type that has them with `foreslice catalog add`"
    plugin = plugin_of(names[0]) if names else None
    if plugin is not None and plugin.unserved:
        named["but"] = "".join(f" (the {card} does not count: {why})" for card, why in plugin.unserved.items())
    return Reason.of(reason.code, reason.subject, resources=names, clouds=clouds, **named) if names else reason


def _counted(resource: str) -> bool:
    """True if the catalog knows how many of them a machine hands out; those of NVIDIA depend on DeviceClasses."""
    found = plugin_of(resource)
    return found is not None and bool(found.whole)

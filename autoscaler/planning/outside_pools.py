"""What the cheapest offering of the whole catalog that would fit lacks in the pools that there are.

What is said about drivers is tried first: a node of the pool with them takes the pods. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from autoscaler.model.capacity import CapacityPool
from autoscaler.model.pod import Pod
from autoscaler.model.reason import Code, Fact, Reason
from autoscaler.model.snapshot import DaemonSet, Snapshot
from autoscaler.model.verdict import Fits
from autoscaler.planning.demand.scope import network_card_alone, requested_resources, served_resources
from autoscaler.planning.placement.nothing_has import asks_in_vain
from autoscaler.planning.placement.packing_input import PackingInput
from autoscaler.planning.supply.candidates import Candidate, excluded_by
from autoscaler.planning.supply.drivers import handed_out
from autoscaler.planning.supply.hypothetical import Hypothetical, hypothetical
from autoscaler.scheduling.fit import fit
from autoscaler.scheduling.world import World
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.prediction.device_plugins import plugin_of, plugin_resources

_POOLS: Final = 3  # whose reasons are named; more would hide the first
_NODE: Final = "foreslice-trial"
_NOWHERE: Final = FrozenMap({"foreslice.dev/nowhere": ""})


def outside_the_pools(whole: PackingInput, packing: PackingInput, item: int, world: World) -> Iterator[Reason]:
    """The cheapest type of the catalog that would fit if a pool admitted it, and what keeps each pool from that.

    `whole` is the input without pools; `world`, what is there once the pods that have a place are on it.
    """
    pods = whole.classes[item].sample.pods
    if asks_in_vain(whole, item) or all(map(network_card_alone, pods)):
        return
    for candidate, shape in ((whole.candidates[i], whole.shape_of[i]) for i in whole.by_cost):
        if whole.trials.ledger.refused(item):
            return
        if candidate.barred is None and whole.trials.takes(shape, item):
            found = (r for pool in packing.snapshot.pools if (r := _lacking(pool, candidate, pods, packing, world)))
            yield from (reason for _, reason in zip(range(_POOLS), found, strict=False))
            return


def _lacking(
    pool: CapacityPool, candidate: Candidate, pods: tuple[Pod, ...], packing: PackingInput, world: World
) -> Reason | None:
    """What keeps the pool from the candidate; None where nothing that can be said does."""
    name = candidate.instance_type.name
    if why := excluded_by(pool, candidate):
        return Reason.of(Code.NO_POOL, "", instance_type=name, pool=pool.name, why=why)
    plugins = _missing_plugins(candidate, pods, packing.snapshot)
    listed = any(c.pool.name == pool.name and _same_node(c, candidate) for c in packing.candidates)
    changed = pool if listed else replace(pool, drivers=candidate.profiles)
    if (listed and not plugins) or not _takes(_there(changed, candidate, packing, plugins), pods, world):
        return None
    named: dict[str, Fact] = {"plugins": tuple(plugins)} if plugins else {}
    if listed:
        return Reason.of(Code.NO_POOL, "", instance_type=name, pool=pool.name, **named)
    named |= {"running": pool.drivers} if pool.drivers else {}
    profiles = ", ".join(candidate.profiles)
    step = f"set spec.drivers: {{profiles: [{profiles}]}}" if profiles else "leave out spec.drivers"
    return Reason.of(Code.NO_POOL, "", instance_type=name, pool=pool.name, step=step, **named)


def _same_node(one: Candidate, other: Candidate) -> bool:
    return one.instance_type.name == other.instance_type.name and one.drivers == other.drivers


def _missing_plugins(candidate: Candidate, pods: tuple[Pod, ...], snapshot: Snapshot) -> dict[str, str]:
    """The resources that the pods have of device plugins on the candidate and that no DaemonSet in sight hands out,
    with their drivers."""
    asked = {resource for pod in pods for resource in requested_resources(pod)} - served_resources(snapshot)
    offered = {r for amounts in plugin_resources(candidate.instance_type).values() for r in amounts}
    found = {resource: plugin for resource in sorted(asked & offered) if (plugin := plugin_of(resource))}
    return {resource: plugin.driver for resource, plugin in found.items() if plugin.driver not in handed_out(snapshot)}


def _there(pool: CapacityPool, candidate: Candidate, packing: PackingInput, plugins: Mapping[str, str]) -> Hypothetical:
    """The node of the pool once the device plugins run."""
    nowhere = Pod("", "device-plugin", uid="", node_selector=_NOWHERE)
    drivers = sorted(set(plugins.values()))
    running = tuple(DaemonSet("", f"{name}-device-plugin", nowhere, device_plugin=name) for name in drivers)
    snapshot = replace(packing.snapshot, daemon_sets=(*packing.snapshot.daemon_sets, *running))
    return hypothetical(replace(candidate, pool=pool), snapshot, name=_NODE)


def _takes(node: Hypothetical, pods: Sequence[Pod], world: World) -> bool:
    return isinstance(fit(pods, _NODE, node.added_to(replace(world, nodes={}))), Fits)

"""Decides where a pool buys: zones and regions that it requires or that the demand names, within those of the command
line.

A catalog without synchronisation knows no zones. Its offerings have the zone "any": of a region if one is named,
otherwise of the region in which the provider launches.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from autoscaler.model.capacity import CapacityPool
from autoscaler.model.node import Node
from autoscaler.model.pod import Pod
from autoscaler.model.snapshot import Snapshot
from autoscaler.planning.policy import Where
from instance_catalog.dataclass import dataclass, replace
from instance_catalog.kubernetes import labels
from instance_catalog.kubernetes.label_syntax import LONGEST_VALUE
from instance_catalog.kubernetes.node_selector import NodeSelector, Requirement
from instance_catalog.types.catalog import Catalog
from instance_catalog.types.clouds import cloud_facts, region_of, zone_labels
from instance_catalog.types.instance_type import ANY_ZONE

# The labels of kubelets and cloud providers before today's labels; pools may still use them.
OLD_KEYS: Final = {
    labels.ZONE_BETA: labels.ZONE,
    labels.REGION_BETA: labels.REGION,
    "beta.kubernetes.io/arch": labels.ARCHITECTURE,
    "beta.kubernetes.io/os": labels.OPERATING_SYSTEM,
    "beta.kubernetes.io/instance-type": labels.INSTANCE_TYPE,
}


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """A zone, or with zone "any" the whole region; without a region, the place where the provider launches."""

    zone: str = ANY_ZONE
    region: str = ""

    @staticmethod
    def of_zone(zone: str) -> Place:
        """A zone in its region."""
        return Place(zone, region_of(zone))

    def in_cloud(self, cloud: str) -> bool:
        """True if the names may belong to the cloud. A cloud with unknown names has every place."""
        names = cloud_facts().get(cloud)
        if names is None:
            return True
        if self.zone != ANY_ZONE:
            return _is_named(self.zone, names.zone)
        return not self.region or _is_named(self.region, names.region)


def _is_named(name: str, pattern: re.Pattern[str]) -> bool:
    """No node has a name that is longer than a label's value; a node affinity may want one as long as an object."""
    return len(name) <= LONGEST_VALUE and pattern.match(name) is not None


def priced_regions(catalog: Catalog) -> frozenset[str]:
    """The regions for which the catalog has zones or prices."""
    types = tuple(catalog)
    prices = [
        price for found in types for known in (found.prices, *found.zone_prices.values()) for price in known.values()
    ]
    return frozenset({price.region for price in prices} | {name for found in types for name in found.zones}) - {""}


def narrowed(pool: CapacityPool, where: Where) -> CapacityPool:
    """The pool within the restrictions of the plan, with today's keys in its requirements."""
    extra = [
        Requirement(key, "In", values)
        for key, values in ((labels.CLOUD, where.clouds), (labels.REGION, where.regions))
        if values
    ]
    old = any(requirement.key in OLD_KEYS for requirement in pool.requirements)
    if not (extra or old or where.capacity_types):
        return pool
    return replace(
        pool,
        requirements=(*(today(requirement) for requirement in pool.requirements), *extra),
        capacity_types=where.capacity_types or pool.capacity_types,
    )


def today(requirement: Requirement) -> Requirement:
    """The requirement with the key that nodes have today."""
    key = OLD_KEYS.get(requirement.key)
    return requirement if key is None else replace(requirement, key=key)


def places_of(pool: CapacityPool, named: Iterable[Place]) -> tuple[Place, ...]:
    """The places of a pool's offerings: those that it requires, otherwise the zones of its groups, otherwise
    anywhere; and within that the places that the demand names."""
    zones, regions = _required(pool, labels.ZONE), _required(pool, labels.REGION)
    if zones is not None:
        return tuple(map(Place.of_zone, zones))
    if pool.groups:
        groups = (Place.of_zone(zone) for zone in sorted({group.zone for group in pool.groups}))
        return tuple(place for place in groups if regions is None or place.region in regions)
    if regions is None:
        return tuple(dict.fromkeys((Place(), *named)))
    whole = [Place(region=region) for region in regions]
    return tuple(dict.fromkeys((*whole, *(place for place in named if place.region in regions))))


def _required(pool: CapacityPool, key: str) -> tuple[str, ...] | None:
    """The values that every requirement on the key admits; None without a requirement."""
    found = [r.values for r in pool.requirements if r.key == key and r.operator == "In"]
    if not found:
        return None
    return tuple(value for value in found[0] if all(value in values for values in found[1:]))


def places_of_nodes(nodes: Iterable[Node]) -> Where:
    """The clouds and regions of nodes, by their labels and provider ids."""
    places = dict.fromkeys(found for node in nodes for found in _place_of(node))
    return Where(
        clouds=tuple(sorted({cloud for cloud, _ in places})),
        regions=tuple(sorted({region for _, region in places if region})),
    )


def _place_of(node: Node) -> Iterator[tuple[str, str]]:
    region = node.labels.get(labels.REGION) or region_of(node.labels.get(labels.ZONE, ""))
    clouds = [cloud for cloud, names in cloud_facts().items() if names.region.match(region)]
    scheme = node.provider_id.partition("://")[0]
    named = (cloud for cloud, names in cloud_facts().items() if names.provider_id == scheme)
    cloud = next(named, clouds[0] if clouds else None)
    if cloud is not None:
        yield cloud, region if cloud in clouds else ""


_KEYS: Final = {labels.ZONE: labels.ZONE, labels.REGION: labels.REGION, **dict.fromkeys(zone_labels(), labels.ZONE)}


def named_places(pods: Sequence[Pod], snapshot: Snapshot) -> tuple[Place, ...]:
    """Zones and regions that pods or their volumes require by name."""
    named = {(_KEYS[key], pod.node_selector[key]) for pod in pods for key in _KEYS if key in pod.node_selector}
    for pod in pods:
        named.update(_named(pod.affinity))
        for claim in pod.volumes:
            found = snapshot.volume_claims.get(f"{pod.namespace}/{claim}")
            volume = snapshot.volumes.get(found.volume) if found and found.volume else None
            if volume:
                key = labels.ZONE if labels.ZONE in volume.topology else labels.REGION
                named.update((key, value) for value in volume.topology.get(key, ()))
                named.update(_named(volume.node_affinity))
    return tuple(sorted(Place.of_zone(name) if key == labels.ZONE else Place(region=name) for key, name in named))


def _named(selector: NodeSelector | None) -> Iterator[tuple[str, str]]:
    for term in selector.terms if selector else ():
        for requirement in term.match_expressions:
            if requirement.key in _KEYS and requirement.operator == "In":
                yield from ((_KEYS[requirement.key], value) for value in requirement.values)

"""Reports parts of pools and blocks that cannot be used, so that nothing is ignored silently.

A pool or block that cannot be read offers nothing and is reported with the plan; planning continues with the others.
The form of a manifest is checked when it is read. These checks need the catalog and predictions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from autoscaler.errors import ConfigurationError
from autoscaler.model.capacity import CapacityPool, ConsolidationPolicy
from autoscaler.model.plan import PlannedNode
from autoscaler.model.reason import Code, Reason, Subject
from autoscaler.model.snapshot import Snapshot
from autoscaler.planning.disruption.windows import Window
from autoscaler.planning.supply.candidates import admits_type, has_label
from autoscaler.planning.supply.drivers import running_drivers
from autoscaler.planning.supply.places import places_of, today
from autoscaler.planning.supply.remembered import LastAnswers, Same
from instance_catalog.drivers.profile import DriverProfileError, parse_driver_set
from instance_catalog.kubernetes import labels
from instance_catalog.prediction.predict import unpredictable
from instance_catalog.spelling import did_you_mean
from instance_catalog.types.catalog import Catalog
from instance_catalog.types.clouds import cloud_facts, clouds_of_labels
from instance_catalog.types.instance_type import ANY_ZONE, CapacityType

_USUAL_KEYS: Final = (
    labels.CLOUD,
    labels.ZONE,
    labels.REGION,
    labels.INSTANCE_TYPE,
    labels.ACCELERATOR,
    labels.CAPACITY_TYPE,
    labels.KARPENTER_CAPACITY_TYPE,
    labels.ARCHITECTURE,
    labels.OPERATING_SYSTEM,
)

# Of all pools together: there may be more of them than answers are remembered.
_UNUSABLE: Final = LastAnswers[tuple[Reason, ...]]()
_UNPRICED: Final = LastAnswers[tuple[Reason, ...]]()


def unusable_fields(snapshot: Snapshot, catalog: Catalog, *, buy_unpriced: bool = False) -> tuple[Reason, ...]:
    """One reason for each part that cannot be used."""
    pools, running = snapshot.pools, running_drivers(snapshot)
    known = (pools, snapshot.profile, running, Same(catalog))
    found = [*_UNUSABLE.of(known, lambda: tuple(_unusable(snapshot, catalog)))]
    prepaid = any(block.pool in ("", pool.name) for pool in pools for block in snapshot.blocks)
    if not (buy_unpriced or prepaid):
        found += _UNPRICED.of((pools, Same(catalog)), lambda: tuple(r for p in pools for r in _unpriced(p, catalog)))
    for block in snapshot.blocks:
        if block.instance_type not in catalog.types:
            problem = f"{block.instance_type!r} is not in the catalog; `foreslice catalog list` shows what is"
            found.append(
                Reason.of(Code.UNUSABLE, Subject("block", block.name), field="spec.instanceType", problem=problem)
            )
    return tuple(found)


def guessed_prices(launches: Iterable[PlannedNode], catalog: Catalog) -> Iterator[Reason]:
    """One reason if the plan buys something at an estimated price."""
    if types := guessed_types(launches, catalog):
        yield Reason.of(Code.PRICE_GUESSED, types=", ".join(types))


def guessed_types(launches: Iterable[PlannedNode], catalog: Catalog) -> tuple[str, ...]:
    """The instance types that are bought at an estimated price."""
    bought = {(node.offering.instance_type, node.offering.zone, node.offering.capacity_type) for node in launches}
    prices = {name: catalog.get(name).price_in(zone, CapacityType(kind)) for name, zone, kind in sorted(bought)}
    return tuple(name for name, price in prices.items() if price is not None and price.guess)


def _unusable(snapshot: Snapshot, catalog: Catalog) -> Iterator[Reason]:
    """Those of the pools, one pool after the other."""
    for pool in snapshot.pools:
        yield from _wrong_requirements(pool, snapshot, catalog)
        yield from _drivers(pool, catalog)
        yield from _schedules(pool)
        yield from _only_simulated(pool)


def _wrong_requirements(pool: CapacityPool, snapshot: Snapshot, catalog: Catalog) -> Iterator[Reason]:
    """Requirements on a label that no node of the catalog will have: they admit nothing."""
    for index, requirement in enumerate(map(today, pool.requirements)):
        if requirement.operator == "NotIn" and requirement.key in (labels.ZONE, labels.REGION):
            yield from _not_in_places(pool, requirement.key, index)
        if requirement.operator in ("NotIn", "DoesNotExist"):
            continue
        if has_label(requirement.key, pool, snapshot, catalog):
            yield from _of_another_cloud(pool, index)
            continue
        step = did_you_mean(requirement.key, _USUAL_KEYS, "docs/plan.md lists the keys that are known")
        problem = f"no instance type has a label {requirement.key!r}, so the pool admits none; {step}"
        field = f"spec.requirements[{index}].key"
        yield Reason.of(Code.UNUSABLE, Subject("pool", pool.name), field=field, problem=problem)


def _of_another_cloud(pool: CapacityPool, index: int) -> Iterator[Reason]:
    """A requirement on a label of one cloud's nodes, in a pool that may buy only in other clouds."""
    key = today(pool.requirements[index]).key
    having = clouds_of_labels((key,))
    asked = [r for r in pool.requirements if r.key == labels.CLOUD]
    named = [set(r.values) for r in asked if r.operator == "In"]
    excluded = {value for r in asked if r.operator == "NotIn" for value in r.values}
    places = places_of(pool, ())
    clouds = {cloud for cloud in cloud_facts() if any(place.in_cloud(cloud) for place in places)} - excluded
    clouds = clouds.intersection(*named)
    if having and clouds and key not in pool.labels and not having & clouds:
        problem = (
            f"only nodes of {' and '.join(sorted(having))} have a label {key!r}, and the pool buys in "
            f"{' and '.join(sorted(clouds))}, so it admits none; drop one of the two"
        )
        field = f"spec.requirements[{index}].key"
        yield Reason.of(Code.UNUSABLE, Subject("pool", pool.name), field=field, problem=problem)


def _not_in_places(pool: CapacityPool, key: str, index: int) -> Iterator[Reason]:
    """A pool that excludes places and includes none: the provider would choose any other place."""
    places = places_of(pool, ())
    if not all(place.zone == ANY_ZONE if key == labels.ZONE else not place.region for place in places):
        return
    what = "zones" if key == labels.ZONE else "regions"
    problem = f"the pool names no {what} to launch in, so none is known to be another one; use operator In"
    field = f"spec.requirements[{index}]"
    yield Reason.of(Code.UNUSABLE, Subject("pool", pool.name), field=field, problem=problem)


def _only_simulated(pool: CapacityPool) -> Iterator[Reason]:
    """Close may keep nodes closed that would serve pods for less than the nodes that are launched instead."""
    if pool.disruption.consolidate is ConsolidationPolicy.CLOSE:
        feature = (
            "disruption.consolidate Close (only `foreslice simulate` does it; a controller treats it as WhenEmpty)"
        )
        yield Reason.of(Code.UNSUPPORTED, Subject("pool", pool.name), feature=feature)


def _unpriced(pool: CapacityPool, catalog: Catalog) -> tuple[Reason, ...]:
    """A pool in places in which none of its types has a known price: it never buys anything."""
    places = places_of(pool, ())
    if not any(place.region for place in places):
        return ()
    clouds: dict[str, None] = {}
    for instance_type in catalog:
        for place in places:
            if admits_type(pool, instance_type) and place.in_cloud(instance_type.cloud):
                clouds.setdefault(instance_type.cloud)
                for kind in instance_type.capacity_types:
                    if kind.value not in pool.capacity_types or kind.needs_reservation:
                        continue
                    if instance_type.price_in(place.zone, kind, region=place.region) is not None:
                        return ()
    regions = ", ".join(dict.fromkeys(place.region for place in places if place.region))
    if not clouds:
        return ()
    return (Reason.of(Code.NO_PRICE, Subject("pool", pool.name), region=regions, cloud=" ".join(clouds)),)


def _drivers(pool: CapacityPool, catalog: Catalog) -> tuple[Reason, ...]:
    if not pool.drivers:
        return ()
    subject = Subject("pool", pool.name)
    try:
        drivers = parse_driver_set(",".join(pool.drivers), custom=catalog.drivers)
    except DriverProfileError as error:
        return (Reason.of(Code.UNUSABLE, subject, field="spec.drivers.profiles", problem=str(error)),)
    barred = {t.name: why for t in catalog if admits_type(pool, t) and (why := unpredictable(t, drivers))}
    if not barred:
        return ()
    example, why = next(iter(barred.items()))
    types = len(barred)
    return (Reason.of(Code.UNSUPPORTED, subject, drivers=drivers.text, problem=why, types=types, example=example),)


def _schedules(pool: CapacityPool) -> Iterator[Reason]:
    windows = [(f"spec.baseline[{i}]", b.schedule, b.time_zone) for i, b in enumerate(pool.baselines)]
    windows += [(f"spec.disruption.budgets[{i}]", b.schedule, "UTC") for i, b in enumerate(pool.disruption.budgets)]
    for field, schedule, zone in windows:
        try:
            Window.parse(schedule or "* * * * *", zone)
        except ConfigurationError as error:
            problem = f"{error.message}. {error.next_step}"
            yield Reason.of(Code.UNUSABLE, Subject("pool", pool.name), field=field, problem=problem)

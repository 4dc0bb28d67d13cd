"""What in pools and blocks cannot be used, so that nothing is ignored silently.

A pool or block that cannot be read offers nothing and is reported with the plan; the others go on. Whether a manifest
is well-formed is checked at the edge; here it is about what only catalog and predictions know.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from autoscaler.errors import ConfigurationError
from autoscaler.model.capacity import CapacityPool
from autoscaler.model.plan import PlannedNode
from autoscaler.model.reason import Code, Reason, subject_of
from autoscaler.model.snapshot import Snapshot
from autoscaler.planning.disruption.windows import Window
from autoscaler.planning.supply.candidates import admits_type
from instance_catalog.drivers.profile import DriverProfileError, parse_driver_set
from instance_catalog.prediction.predict import unpredictable
from instance_catalog.types.catalog import Catalog
from instance_catalog.types.instance_type import CapacityType


def objections(snapshot: Snapshot, catalog: Catalog) -> tuple[Reason, ...]:
    """One reason for everything that cannot be used."""
    found = [reason for pool in snapshot.pools for reason in (*_drivers(pool, catalog), *_schedules(pool))]
    for block in snapshot.blocks:
        if block.instance_type not in catalog.types:
            problem = f"{block.instance_type!r} is not in the catalog; `foreslice catalog list` shows what is"
            found.append(
                Reason.of(Code.UNUSABLE, subject_of("block", block.name), field="spec.instanceType", problem=problem)
            )
    return tuple(found)


def guessed_prices(launches: Iterable[PlannedNode], catalog: Catalog) -> Iterator[Reason]:
    """One reason if something is bought at a price that nobody has quoted."""
    bought = {(node.offering.instance_type, node.offering.zone, node.offering.capacity_type) for node in launches}
    prices = {name: catalog.get(name).price_in(zone, CapacityType(kind)) for name, zone, kind in sorted(bought)}
    types = [name for name, price in prices.items() if price is not None and price.guess]
    if types:
        yield Reason.of(Code.PRICE_GUESSED, types=", ".join(types))


def _drivers(pool: CapacityPool, catalog: Catalog) -> Iterator[Reason]:
    if not pool.drivers:
        return
    try:
        drivers = parse_driver_set(",".join(pool.drivers), custom=catalog.drivers)
    except DriverProfileError as error:
        yield Reason.of(Code.UNUSABLE, subject_of("pool", pool.name), field="spec.drivers.profiles", problem=str(error))
        return
    barred = {t.name: why for t in catalog if admits_type(pool, t) and (why := unpredictable(t, drivers))}
    if barred:
        example, why = next(iter(barred.items()))
        yield Reason.of(
            Code.UNSUPPORTED,
            subject_of("pool", pool.name),
            feature=f"{drivers.text}: {why}",
            types=len(barred),
            example=example,
        )


def _schedules(pool: CapacityPool) -> Iterator[Reason]:
    windows = [(f"spec.baseline[{i}]", b.schedule, b.time_zone) for i, b in enumerate(pool.baselines)]
    windows += [(f"spec.disruption.budgets[{i}]", b.schedule, "UTC") for i, b in enumerate(pool.disruption.budgets)]
    for field, schedule, zone in windows:
        try:
            Window.parse(schedule or "* * * * *", zone)
        except ConfigurationError as error:
            problem = f"{error.message}. {error.next_step}"
            yield Reason.of(Code.UNUSABLE, subject_of("pool", pool.name), field=field, problem=problem)

"""Lists everything that could be bought: pool × offering × drivers, with the reasons that bar some of it. It does
not know pods."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import datetime
from decimal import Decimal
from functools import cached_property
from typing import Final

from autoscaler.model.capacity import CapacityBlock, CapacityPool, Permission
from autoscaler.model.provisioned_node import OfferingRef
from autoscaler.model.reason import Code, Reason, Subject
from autoscaler.model.snapshot import Backoff, Quarantine, Snapshot
from autoscaler.planning.demand.scope import pools_of
from autoscaler.planning.policy import Policy
from autoscaler.planning.supply.blocks import available, kept_to_blocks, overflow_refused, unusable_block
from autoscaler.planning.supply.drivers import driver_sets, handed_out, plans_slices, running_drivers
from autoscaler.planning.supply.groups import group_keys, in_groups
from autoscaler.planning.supply.offering_labels import capacity_type_facts, offering_labels, type_facts
from autoscaler.planning.supply.places import Place, narrowed, places_of, today
from autoscaler.planning.supply.remembered import LastAnswers, Same
from instance_catalog.dataclass import dataclass, replace
from instance_catalog.drivers.profile import DriverSet
from instance_catalog.frozen_map import EMPTY
from instance_catalog.kubernetes import labels
from instance_catalog.kubernetes.node_selector import Requirement, requirement_matches
from instance_catalog.prediction.predict import hosts, node_labels
from instance_catalog.prediction.runnable import why_not_runnable
from instance_catalog.prediction.system_labels import capacity_labels, type_labels
from instance_catalog.types.catalog import Catalog
from instance_catalog.types.instance_type import ANY_ZONE, CapacityType, InstanceType, Offering

# Reasons that exclude an offering completely, rather than making it unavailable for now.
_EXCLUDED = frozenset({Code.NOT_RUNNABLE, Code.FRACTION_UNASKED, Code.NOT_IN_GROUPS})
# Errors of providers without capacity; "" if the error was not recorded.
_SOLD_OUT = frozenset({"", "Capacity", "ReservationExhausted", "Shortage"})


@dataclass(frozen=True)
class Candidate:
    """An offering with drivers in a pool. `usd_per_hour` None: no price is known.

    `barred` is the reason why it is not bought although it may fit; it is used in explanations only.
    """

    pool: CapacityPool
    instance_type: InstanceType
    drivers: DriverSet
    offering: OfferingRef
    usd_per_hour: Decimal | None
    block: CapacityBlock | None = None
    barred: Reason | None = None

    @property
    def excluded(self) -> bool:
        """True if the pool never buys it, whatever its devices are."""
        return self.barred is not None and self.barred.code in _EXCLUDED

    @property
    def rank(self) -> int:
        """The capacity type's position in the pool's list."""
        return self.pool.capacity_types.index(self.offering.capacity_type)

    @cached_property
    def hosts(self) -> int:
        """The number of such nodes that are bought together or not at all."""
        return hosts(self.instance_type, self.drivers)

    @cached_property
    def profiles(self) -> tuple[str, ...]:
        """The driver profiles that its pool must list, as in manifests."""
        return tuple(profile.text for profile in self.drivers.profiles)


@dataclass(frozen=True, slots=True)
class Named:
    """Properties that a demand names: zones and regions, drivers of its DeviceClasses, feature gates without which
    drivers refuse its claims, as (profile name, gate), topologies of TPU slices, and drivers whose devices it
    requests from device plugins. `linked`: it needs IMEX channels."""

    places: tuple[Place, ...] = ()
    drivers: frozenset[str] = frozenset()
    gates: frozenset[tuple[str, str]] = frozenset()
    topologies: frozenset[str] = frozenset()
    plugged: frozenset[str] = frozenset()
    linked: bool = False


_ADMITTED: Final = LastAnswers[tuple["Candidate", ...]]()


def candidates_of(
    snapshot: Snapshot, catalog: Catalog, policy: Policy, *, now: datetime, named: Named | None = None
) -> tuple[Candidate, ...]:
    """The candidates of the pools in a stable order: heavier pools, plainer drivers, cheaper offerings first.

    `named` are the names in the demand. A catalog without synchronisation knows only the zone "any". Drivers that are
    not installed by default are offered in implicit pools only if the demand names them.
    """

    def compute() -> tuple[Candidate, ...]:
        return tuple(c for c in _candidates(snapshot, catalog, policy, now=now, named=named) if not refusals(c))

    if snapshot.blocks or snapshot.backoffs or snapshot.quarantines:
        return compute()  # these change with time
    pools = pools_of(snapshot)
    origins = tuple(pool.origin for pool in pools)  # which equality ignores
    bought = (policy.where, policy.buy_unpriced)
    run = (running_drivers(snapshot), handed_out(snapshot), snapshot.from_files)
    of = (Same(catalog), tuple(pools), origins, snapshot.profile, run, bought, named)
    return _ADMITTED.of(of, compute)


def every_candidate(
    snapshot: Snapshot, catalog: Catalog, policy: Policy, *, now: datetime, named: Named | None = None
) -> tuple[Candidate, ...]:
    """The same with candidates that requirements of the pools exclude, for explanations."""
    return _candidates(snapshot, catalog, policy, now=now, named=named, excluded=True)


def _candidates(
    snapshot: Snapshot,
    catalog: Catalog,
    policy: Policy,
    *,
    now: datetime,
    named: Named | None,
    excluded: bool = False,
) -> tuple[Candidate, ...]:
    """Without `excluded`, types are left out whose names a requirement of the pool refuses."""
    named = named or Named()
    found: list[Candidate] = []
    running, handed = running_drivers(snapshot), handed_out(snapshot)
    for pool in (narrowed(pool, policy.where) for pool in pools_of(snapshot)):
        held = list(_block_offers(pool, snapshot, catalog, now=now))
        types = [t for t in catalog if excluded or _may_be_named(t, pool)]
        offers = [*held, *_catalog_offers(pool, snapshot, types, named.places, _types_of(held))]
        numbered = [
            (variant, _candidate(pool, drivers, offer, snapshot, policy=policy, now=now))
            for offer in offers
            for variant, drivers in enumerate(
                driver_sets(
                    pool,
                    offer.instance_type,
                    kubernetes=snapshot.profile,
                    block=offer.block,
                    running=running,
                    wanted=named.drivers,
                    gates=named.gates,
                    topologies=named.topologies,
                    plugged=(handed, named.plugged),
                    linked=named.linked,
                    instead=snapshot.from_files,
                )
            )
        ]
        found += [candidate for _, candidate in sorted(numbered, key=_order)]
    return tuple(found)


@dataclass(frozen=True, slots=True)
class _Offer:
    """An offering before it is combined with drivers."""

    instance_type: InstanceType
    offering: Offering
    block: CapacityBlock | None = None


def _types_of(offers: Iterable[_Offer]) -> frozenset[str]:
    return frozenset(offer.instance_type.name for offer in offers)


def _order(numbered: tuple[int, Candidate]) -> tuple[object, ...]:
    variant, candidate = numbered
    price = candidate.usd_per_hour
    offering = candidate.offering
    return (variant, price is None, price or 0, offering.instance_type, candidate.rank, offering.zone, offering.block)


def _block_offers(pool: CapacityPool, snapshot: Snapshot, catalog: Catalog, *, now: datetime) -> Iterator[_Offer]:
    if CapacityType.CAPACITY_BLOCK not in pool.capacity_types:
        return
    for block in snapshot.blocks:
        instance_type = catalog.types.get(block.instance_type)
        if block.pool not in ("", pool.name) or not block.open_at(now) or instance_type is None:
            continue
        if available(block, snapshot.provisioned):
            reservation = block.reservation or block.name
            place = Place.of_zone(block.zone)
            kind = CapacityType.CAPACITY_BLOCK
            offering = Offering(
                instance_type.name, place.zone, kind, Decimal(0), reservation=reservation, region=place.region
            )
            yield _Offer(instance_type, offering, block)


def _catalog_offers(
    pool: CapacityPool,
    snapshot: Snapshot,
    types: Iterable[InstanceType],
    named: tuple[Place, ...],
    held: Collection[str],
) -> Iterator[_Offer]:
    """The offerings of the catalog that the pool may buy.

    If open blocks have types (`held`), no other block with these types is bought before they are used.
    """
    wanted = places_of(pool, named)
    for instance_type in types:
        for place in wanted:
            if not place.in_cloud(instance_type.cloud) or not instance_type.sold_in(place.zone, region=place.region):
                continue
            for kind in instance_type.capacity_types:
                if kind.value not in pool.capacity_types:
                    continue
                if kind is CapacityType.CAPACITY_BLOCK and instance_type.name in held:
                    continue
                yield _Offer(instance_type, instance_type.offering(kind, zone=place.zone, region=place.region))


def admits_type(pool: CapacityPool, instance_type: InstanceType) -> bool:
    """True if the pool's requirements on types admit the type in some offering."""
    facts = type_facts(instance_type)
    return all(_meets(r, facts, instance_type) for r in map(today, pool.requirements) if r.key in facts)


def has_label(key: str, pool: CapacityPool, snapshot: Snapshot, catalog: Catalog) -> bool:
    """True if some node of the pool may have the label, so that requirements may name it."""
    facts = {labels.ZONE, labels.REGION, labels.ACCELERATOR, *capacity_type_facts(CapacityType.ON_DEMAND), *pool.labels}
    facts |= group_keys(pool)
    if key in facts or any(key in type_facts(found) or key in type_labels(found) for found in catalog):
        return True
    if any(
        key in capacity_labels(cloud, kind) for cloud in {found.cloud for found in catalog} for kind in CapacityType
    ):
        return True
    running = running_drivers(snapshot)
    return any(
        key in node_labels(instance_type, drivers)
        for instance_type in catalog
        for drivers in driver_sets(pool, instance_type, kubernetes=snapshot.profile, running=running)
    )


def _candidate(
    pool: CapacityPool,
    drivers: DriverSet,
    offer: _Offer,
    snapshot: Snapshot,
    *,
    policy: Policy,
    now: datetime,
) -> Candidate:
    offering, price = offer.offering, offer.offering.usd_per_hour
    ref = OfferingRef(
        instance_type=offering.instance_type,
        zone=offering.zone,
        capacity_type=offering.capacity_type,
        usd_per_hour=price,
        reservation=offering.reservation or "",
        block=offer.block.name if offer.block else "",
        region=offering.region,
        price_region=offering.price_region,
        price_date=offering.price_date,
    )
    found = Candidate(pool, offer.instance_type, drivers, ref, price, offer.block)
    barred = _barred(found, offering, snapshot, policy=policy, now=now)
    return found if barred is None else replace(found, barred=barred)


def _barred(
    candidate: Candidate, offering: Offering, snapshot: Snapshot, *, policy: Policy, now: datetime
) -> Reason | None:
    """The reason why the offering is not bought now."""
    ref, subject = candidate.offering, Subject("offering", candidate.offering.instance_type)
    unusable = why_not_runnable(candidate.instance_type, candidate.drivers)
    if unusable is not None:
        return Reason.of(Code.NOT_RUNNABLE, subject, problem=unusable.problem, source=unusable.source)
    if candidate.hosts > 1 and not plans_slices(candidate.pool, candidate.hosts):
        return Reason.of(Code.SLICE_NOT_LAUNCHED, subject, hosts=candidate.hosts, instance_type=ref.instance_type)
    if candidate.instance_type.share and candidate.pool.fractional is not Permission.ALLOW:
        return Reason.of(Code.FRACTION_UNASKED, subject, share=candidate.instance_type.share)
    if not in_groups(ref, candidate.pool):
        template = candidate.pool.node_template
        held = {"block": ref.block} if ref.block else {}
        return Reason.of(Code.NOT_IN_GROUPS, subject, kind=template.kind, template=template.name, **held)
    if offering.capacity_type.needs_reservation and not offering.reservation:
        return _needs_reservation(candidate, subject, snapshot, now=now)
    kept_to = () if offering.capacity_type.needs_reservation else kept_to_blocks(candidate.pool, snapshot)
    if kept_to:
        return overflow_refused(candidate.pool, kept_to, subject, now=now)
    if offering.usd_per_hour is None and not policy.buy_unpriced:
        return Reason.of(Code.NO_PRICE, subject, region=offering.region, cloud=candidate.instance_type.cloud)
    for backoff in snapshot.backoffs:
        if backoff.until > now and backoff.pool in ("", candidate.pool.name) and backoff.covers(ref):
            return _unavailable(backoff, subject)
    for quarantine in snapshot.quarantines:
        if quarantine.until is not None and quarantine.until > now and _quarantines(quarantine, candidate):
            what = {
                "boots": len(quarantine.failed_boots),
                "mispredictions": len(quarantine.mispredictions),
                "drifts": len(quarantine.drifts),
            }
            return Reason.of(Code.QUARANTINED, subject, until=quarantine.until.isoformat(), **what)
    return None


def _needs_reservation(candidate: Candidate, subject: Subject, snapshot: Snapshot, *, now: datetime) -> Reason:
    """With the block that there is, if it cannot be used now; otherwise with how else the type is sold."""
    kind, known = candidate.offering.capacity_type, candidate.instance_type
    block = (
        unusable_block(candidate.pool, known.name, snapshot, now=now) if kind is CapacityType.CAPACITY_BLOCK else EMPTY
    )
    others = () if known.sold_on_demand or block else known.capacity_types
    sold = {"sold_as": tuple(kind.value for kind in others)} if others else {}
    return Reason.of(Code.NEEDS_RESERVATION, subject, capacity_type=kind, **sold, **block)


def _unavailable(backoff: Backoff, subject: Subject) -> Reason:
    """The reason of a back-off: the cloud has no capacity, or refused for another reason."""
    until = backoff.until.isoformat(timespec="seconds")
    if backoff.reason in _SOLD_OUT:
        return Reason.of(Code.SHORTAGE, subject, until=until)
    return Reason.of(Code.LAUNCH_FAILED, subject, until=until, error=backoff.reason, message=backoff.message)


def _quarantines(quarantine: Quarantine, candidate: Candidate) -> bool:
    about = (quarantine.pool, quarantine.instance_type, quarantine.drivers)
    return about == (candidate.pool.name, candidate.instance_type.name, candidate.profiles)


def refusals(candidate: Candidate) -> tuple[Requirement, ...]:
    """The requirements of its pool that the offering does not meet."""
    if not candidate.pool.requirements:
        return ()
    facts = offering_labels(candidate) | capacity_type_facts(candidate.offering.capacity_type)
    requirements = candidate.pool.requirements
    if any(requirement.key not in facts for requirement in requirements):
        facts = {**node_labels(candidate.instance_type, candidate.drivers), **candidate.pool.labels, **facts}
    return tuple(r for r in requirements if not _meets(r, facts, candidate.instance_type))


def excluded_by(pool: CapacityPool, candidate: Candidate) -> str:
    """The part of the pool's spec that excludes a candidate of another pool, except for drivers; "" if there is
    none."""
    facts = offering_labels(candidate) | capacity_type_facts(candidate.offering.capacity_type)
    facts |= dict(node_labels(candidate.instance_type, candidate.drivers)) | dict(pool.labels)
    anywhere = candidate.offering.zone == ANY_ZONE
    for requirement in map(today, pool.requirements):
        if requirement.key in (labels.ZONE, labels.REGION) and anywhere:
            places = places_of(pool, ())
            met = any(place.in_cloud(candidate.instance_type.cloud) for place in places)
        else:
            met = _meets(requirement, facts, candidate.instance_type)
        if not met:
            return f"requirement {requirement.key}"
    if candidate.offering.capacity_type not in pool.capacity_types:
        return f"spec.capacityTypes has no {candidate.offering.capacity_type}"
    if not in_groups(candidate.offering, pool):
        return f"no group of {pool.node_template.kind} {pool.node_template.name} starts it"
    return ""


def _meets(requirement: Requirement, facts: Mapping[str, str], instance_type: InstanceType) -> bool:
    """True if the offering meets the requirement. A requirement on the type or the accelerator may use any of its
    names."""
    if requirement.operator == "NotIn" and facts.get(requirement.key) == ANY_ZONE:
        return False  # an unknown zone or region may be one of these
    names = _names(requirement.key, instance_type)
    if not names:
        return requirement_matches(requirement, facts)
    answers = [requirement_matches(requirement, {requirement.key: name}) for name in names]
    return all(answers) if requirement.operator == "NotIn" else any(answers)


def _may_be_named(instance_type: InstanceType, pool: CapacityPool) -> bool:
    """True if the pool's requirements on names of types and accelerators admit it, whatever the offering is."""
    return all(
        _meets(requirement, EMPTY, instance_type)
        for requirement in pool.requirements
        if _names(requirement.key, instance_type)
    )


def _names(key: str, instance_type: InstanceType) -> tuple[str, ...]:
    """The usual names of a type or an accelerator; () for keys with one value only.

    A machine with attached accelerators (n1) has the catalog's name for the pair in addition to the machine type of its
    label.
    """
    if key == labels.INSTANCE_TYPE:
        return (instance_type.name, instance_type.machine_type)
    accelerator = instance_type.accelerator
    if key != labels.ACCELERATOR or accelerator is None:
        return ()
    return tuple(name for name in (accelerator.key, accelerator.model, accelerator.product_name) if name)

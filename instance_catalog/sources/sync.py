"""A cloud's own listing, merged into the catalog: values to write, conflicts with users' values, types that are gone.
Pure.

The result is one catalog file that the sync alone owns, with a priority below all values of users and nodes. So a
user's edit is never overwritten; if the two contradict each other, the conflict is reported. Only differences from the
catalog without the file are written, which keeps the file short enough to be read.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final, TypeAlias

from instance_catalog.dataclass import dataclass, field
from instance_catalog.kubernetes.quantity import Quantity
from instance_catalog.types.catalog import Catalog
from instance_catalog.types.clouds import facts_of, region_of
from instance_catalog.types.instance_type import Accelerator, CapacityType, InstanceType

Content: TypeAlias = dict[str, Any]

# Below the values of nodes (-10) and of users (0), above shipped ones.
PRIORITY: Final = -20
# A listing that lost more than this share of its types is more likely broken than true.
MOST_REMOVED: Final = Fraction(1, 5)
_GROUPS: Final = ("shape", "accelerator", "network")


@dataclass(frozen=True, slots=True)
class ListedAccelerator:
    """The accelerators of a type in the cloud's API; `memory` is of one device."""

    vendor: str
    api_name: str
    count: Fraction
    memory: Quantity | None = None


@dataclass(frozen=True, slots=True)
class ListedType:
    """An instance type in a cloud's listing. `zones` have it; None and "": not listed."""

    name: str
    architecture: str
    vcpu: int
    memory: Quantity
    accelerator: ListedAccelerator | None
    capacity_types: tuple[CapacityType, ...] = ()
    zones: tuple[str, ...] = ()
    network: str = ""
    local_nvme_gb: int | None = None
    rdma_cards: int = 0


@dataclass(frozen=True, slots=True)
class ListedPrice:
    """A price in a zone or region."""

    type_name: str
    place: str
    capacity_type: CapacityType
    usd_per_hour: Decimal


@dataclass(frozen=True, slots=True)
class CloudListing:
    """Everything a cloud sells in `regions`, on `date` (ISO), and where from that is known."""

    cloud: str
    regions: tuple[str, ...]
    source: str
    date: str
    types: tuple[ListedType, ...]
    prices: tuple[ListedPrice, ...] = ()
    price_source: str = ""
    prices_are_guesses: bool = False


@dataclass(frozen=True, slots=True)
class Conflict:
    """A value of the cloud, `theirs`, that differs from the catalog's, `ours`, which remains effective.

    Not a Diagnostic: neither side is known to be wrong, and both values are kept apart for logs and metrics.
    """

    type_name: str
    field: str
    theirs: str
    ours: str


@dataclass(frozen=True, slots=True)
class Merged:
    """The result of a sync. `gone` are types that the file had and that are no longer listed."""

    content: Content
    conflicts: tuple[Conflict, ...] = ()
    gone: tuple[str, ...] = ()
    notes: tuple[str, ...] = field(default=())


class ShrunkListingError(ValueError):
    """The listing lacks so many types that a person has to confirm it."""

    @classmethod
    def of(cls, gone: Sequence[str], before: int) -> ShrunkListingError:
        """`gone` are the types that are missing, of `before`."""
        some = ", ".join(gone[:5]) + (", ..." if len(gone) > 5 else "")
        return cls(f"{len(gone)} of {before} types are no longer listed ({some}); nothing is changed")


def merge_listing(
    listing: CloudListing,
    below: Catalog,
    *,
    last: Content | None = None,
    accept_removals: bool = False,
    spoken_of: Collection[str] = (),
) -> Merged:
    """The file for a listing. `below` is the catalog of everything that a sync overrides, `last` the current content of
    the file. Types and accelerators that are no longer listed stay if users' entries mention them (`spoken_of`),
    because those entries would no longer complete anything. Raises ShrunkListingError."""
    last = last or {}
    before = {str(entry["name"]) for entry in last.get("types", ()) if _is_sold(entry)}
    gone = sorted(before - {listed.name for listed in listing.types})
    if len(gone) > MOST_REMOVED * len(before) and not accept_removals:
        raise ShrunkListingError.of(gone, len(before))
    models: dict[str, Content] = {}
    conflicts: list[Conflict] = []
    types: list[Content] = []
    for listed in sorted(listing.types, key=lambda listed: listed.name):
        known = below.types.get(listed.name)
        if known is None:
            entry = _new(listed, listing, below, models)
        else:
            entry = _changes(listed, known)
            conflicts += _conflicts(listed, known, below)
        entry |= _sold(listed, listing, known)
        if entry:
            facts = {"provenance": _provenance(listing)} if known is None else {}
            types.append({"name": listed.name, **entry, **facts})
    types += _not_sold(listing, below)
    kept = list(_kept(listing, below, last, spoken_of))
    types += kept
    wanted = {*spoken_of, *(entry.get("accelerator", {}).get("model") for entry in kept)}
    known_before = {model["key"]: model for model in last.get("accelerators", ()) if model["key"] in wanted}
    prices = f"; prices: {listing.price_source}" if listing.prices else ""
    reason = f"synced on {listing.date} from {listing.source}{prices}"
    content: Content = {"priority": PRIORITY, "reason": reason, "cloud": listing.cloud}
    every = {**known_before, **models}
    content |= {"accelerators": [every[key] for key in sorted(every)]} if every else {}
    content |= {"types": sorted(types, key=lambda entry: str(entry["name"]))} if types else {}
    return Merged(content, tuple(conflicts), tuple(gone), (*_notes(models), *_notes_of_kept(kept)))


def _is_sold(entry: Mapping[str, Any]) -> bool:
    return any(entry.get("zones", {}).values())


def _new(listed: ListedType, listing: CloudListing, below: Catalog, models: dict[str, Content]) -> Content:
    entry = _shape(listed)
    if listed.accelerator is not None:
        model = _model(listed.accelerator, listing.cloud, below)
        key = model.key if model is not None else _new_model(listed.accelerator, listing, models)
        entry["accelerator"] = {"model": key, "count": _count(listed.accelerator.count)}
    entry["capacityTypes"] = [kind.value for kind in listed.capacity_types or (CapacityType.ON_DEMAND,)]
    if cards := facts_of(listing.cloud).cards:
        primary, rdma = cards
        more: list[Content] = [{"kind": rdma, "count": listed.rdma_cards}] if listed.rdma_cards else []
        entry["networkCards"] = [{"kind": primary, "primary": True}, *more]
    return entry


def _changes(listed: ListedType, known: InstanceType) -> Content:
    """The differences in a known type's size and capacity types."""
    ours = {
        "architecture": known.architecture,
        "vcpu": known.vcpu,
        "memory": known.memory,
        "network": known.network,
        "localNvmeGB": known.local_nvme_gb,
    }
    theirs = {**_shape(listed), "memory": listed.memory}
    entry = {name: value for name, value in theirs.items() if ours[name] != value}
    if "memory" in entry:
        entry["memory"] = str(listed.memory)
    # Reservations exist for types that are sold on demand; listings do not have them.
    kept = {kind for kind in known.capacity_types if kind is CapacityType.RESERVED}
    kinds = tuple(kind for kind in CapacityType if kind in {*listed.capacity_types, *kept})
    if listed.capacity_types and kinds != known.capacity_types:
        entry["capacityTypes"] = [kind.value for kind in kinds]
    return entry


def _shape(listed: ListedType) -> Content:
    found = {
        "architecture": listed.architecture,
        "vcpu": listed.vcpu,
        "memory": str(listed.memory),
        "network": listed.network or None,
        "localNvmeGB": listed.local_nvme_gb,
    }
    return {name: value for name, value in found.items() if value is not None}


def _conflicts(listed: ListedType, known: InstanceType, below: Catalog) -> Iterator[Conflict]:
    """The conflicts of accelerators. Those of known types stay: the catalog is more exact than the names of a cloud's
    API."""
    theirs = listed.accelerator
    if theirs is None:
        return
    if known.accelerator is None:
        yield Conflict(listed.name, "accelerator", f"{theirs.count} x {theirs.api_name}", "none")
        return
    if theirs.count != known.accelerator_count:
        yield Conflict(listed.name, "accelerator.count", str(theirs.count), str(known.accelerator_count))
    model = _model(theirs, known.cloud, below)
    if (
        model is not None
        and model.key != known.accelerator.key
        and not _is_called(known.accelerator, theirs, known.cloud)
    ):
        yield Conflict(listed.name, "accelerator.model", f"{theirs.api_name} ({model.key})", known.accelerator.key)


def overruled(content: Content, after: Catalog) -> tuple[Conflict, ...]:
    """The values of the file that the catalog with the file does not have, because a layer of higher priority overrides
    them."""
    return tuple(
        conflict for entry in content.get("types", ()) for conflict in _overruled(entry, after.get(entry["name"]))
    )


def _overruled(entry: Mapping[str, Any], after: InstanceType) -> Iterator[Conflict]:
    said = {
        "architecture": after.architecture,
        "vcpu": after.vcpu,
        "memory": after.memory,
        "network": after.network,
        "localNvmeGB": after.local_nvme_gb,
        "capacityTypes": [kind.value for kind in after.capacity_types],
    }
    for name, ours in said.items():
        if name in entry:
            theirs = Quantity.parse(entry[name]) if name == "memory" else entry[name]
            if theirs != ours:
                yield Conflict(after.name, name, str(entry[name]), str(ours))
    for place, prices in entry.get("zonePrices", {}).items():
        for kind, price in prices.items():
            known = after.price_in(place, CapacityType(kind))
            if known is None or known.usd_per_hour != Decimal(price["usdPerHour"]):
                shown = "none" if known is None else str(known.usd_per_hour)
                yield Conflict(after.name, f"zonePrices.{place}.{kind}", price["usdPerHour"], shown)


def _sold(listed: ListedType, listing: CloudListing, known: InstanceType | None) -> Content:
    """Zones of every region that was listed, and prices that are not known yet."""
    zones: dict[str, list[str]] = {region: [] for region in listing.regions}
    for zone in sorted(listed.zones):
        zones.setdefault(region_of(zone), []).append(zone)
    prices: dict[str, Content] = {}
    for price in sorted(listing.prices, key=lambda p: (p.place, p.capacity_type.value)):
        ours = known.price_in(price.place, price.capacity_type) if known is not None else None
        if price.type_name == listed.name and (ours is None or ours.usd_per_hour != price.usd_per_hour):
            dollars: Content = {
                "usdPerHour": str(price.usd_per_hour),
                "region": region_of(price.place),
                "date": listing.date,
            }
            dollars |= {"guess": True} if listing.prices_are_guesses else {}
            prices.setdefault(price.place, {})[price.capacity_type.value] = dollars
    return {"zones": zones, **({"zonePrices": prices} if prices else {})}


def _not_sold(listing: CloudListing, below: Catalog) -> Iterator[Content]:
    """Types of the catalog that the cloud does not have in these regions."""
    listed = {one.name for one in listing.types}
    for known in below:
        if known.cloud == listing.cloud and known.name not in listed and known.machine_type == known.name:
            yield {"name": known.name, "zones": {region: [] for region in listing.regions}}


def _kept(
    listing: CloudListing, below: Catalog, last: Mapping[str, Any], spoken_of: Collection[str]
) -> Iterator[Content]:
    """Types that only the file described, are no longer listed, and that users' entries mention: unchanged, but sold in
    no zone."""
    listed = {one.name for one in listing.types}
    for entry in last.get("types", ()):
        name = entry["name"]
        if name in spoken_of and name not in listed and name not in below.types:
            facts = {key: value for key, value in entry.items() if key != "zonePrices"}
            yield {**facts, "zones": {region: [] for region in sorted({*listing.regions, *entry.get("zones", {})})}}


def _provenance(listing: CloudListing) -> Content:
    """The provenance of a new type. A known type keeps its sources; new values over it have the layer's reason as
    theirs."""
    return {group: {"source": listing.source, "date": listing.date, "guess": False} for group in _GROUPS}


def _model(theirs: ListedAccelerator, cloud: str, below: Catalog) -> Accelerator | None:
    """The model with this name in the cloud; of several, the one with the listed memory, if there is one."""
    called = [model for model in below.accelerators.values() if _is_called(model, theirs, cloud)]
    same = [model for model in called if theirs.memory is not None and model.api_memory == theirs.memory]
    if same or len(called) == 1 or theirs.memory is None:
        return next(iter(same or called), None)
    return None


def _is_called(model: Accelerator, theirs: ListedAccelerator, cloud: str) -> bool:
    return model.api_names.get(cloud, "").lower() == theirs.api_name.lower()


def _new_model(theirs: ListedAccelerator, listing: CloudListing, models: dict[str, Content]) -> str:
    """An accelerator of which only the cloud's name is known; selectors on its published attributes are unknown."""
    words = "".join(
        c if c.isascii() and c.isalnum() else " " for c in f"{theirs.vendor} {theirs.api_name}".lower()
    ).split()
    key = "-".join(dict.fromkeys(words))
    facts = {"source": listing.source, "date": listing.date, "guess": False}
    models[key] = {
        "key": key,
        "vendor": theirs.vendor,
        "model": theirs.api_name,
        **({"apiMemory": str(theirs.memory)} if theirs.memory is not None else {}),
        "apiNames": {listing.cloud: theirs.api_name},
        "provenance": {"identity": facts},
    }
    return key


def _notes(models: Mapping[str, Content]) -> Iterator[str]:
    for key in sorted(models):
        yield f"accelerator {key} is new: give its productName, architecture and memory as its driver publishes them"


def _notes_of_kept(kept: Iterable[Content]) -> Iterator[str]:
    for entry in kept:
        yield f"{entry['name']} is no longer listed; it stays, sold nowhere, because your files name it"


def _count(count: Fraction) -> int | str:
    return int(count) if count.denominator == 1 else str(count)

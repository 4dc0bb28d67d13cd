"""Layers → Catalog: the only module in which files complete and override each other, and the whole is checked.

Pure. If anything is wrong, CatalogError lists every defect; a half-merged catalog never exists.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Literal

from instance_catalog.dataclass import dataclass, replace
from instance_catalog.diagnostic import path_text
from instance_catalog.drivers.custom import CustomDriver
from instance_catalog.drivers.schema import DriverEntry
from instance_catalog.files import build
from instance_catalog.files.build import Mismatch
from instance_catalog.files.findings import Findings
from instance_catalog.files.layers import Layer, in_force, problems_of
from instance_catalog.files.node_schema import NodeEntry
from instance_catalog.files.overlay import EMPTY, Layered, Origin, Source, Written, layered, merge, origins, value_at
from instance_catalog.files.schema import (
    AcceleratorEntry,
    AttachmentEntry,
    CatalogFile,
    InstanceTypeEntry,
    MachineEntry,
    PricesAsOf,
)
from instance_catalog.types.catalog import Catalog
from instance_catalog.types.clouds import region_of
from instance_catalog.types.instance_type import Accelerator, InstanceType
from instance_catalog.types.node_reservation import NOTHING_RESERVED, NodeReservation


@dataclass(frozen=True, slots=True)
class Place:
    """A value as one layer gives it."""

    file: str
    line: int
    value: Any
    priority: int = 0
    reason: str = ""
    expires: datetime | None = None


@dataclass(frozen=True, slots=True)
class ValueOrigin:
    """The origin of a value: the place that is used, and those that it overrides, the most recent first.

    `entry` is "types" or "accelerators", `field` a path such as "pci.root".
    """

    entry: str
    field: str
    won: Place
    overridden: tuple[Place, ...]


@dataclass(frozen=True, slots=True)
class Dispute:
    """A field of the entry `name` that an overlay gives a value, and a later file of its priority another one."""

    name: str
    field: str
    won: Place
    lost: Place


def catalog_of(layers: Iterable[Layer], *, now: datetime | None = None) -> Catalog:
    """The catalog of the layers, later ones over earlier ones of the same priority.

    Layers that have expired at `now` do not count (None: all count). Raises CatalogError with every defect.
    """
    merging = _Merging(in_force(layers, now))
    reservations = merging.reservations()
    types = merging.instance_types(reservations)
    drivers = merging.drivers()
    merging.findings.raise_if_any()
    return Catalog.of(types, merging.accelerators.values(), drivers)


def origins_of(name: str, layers: Iterable[Layer], *, now: datetime | None = None) -> tuple[ValueOrigin, ...]:
    """The layer of each value of a type and of its accelerator model, or of the accelerator model of that key.

    () for a name that is not in the catalog. Raises CatalogError as `catalog_of` does.
    """
    merging = _Merging(in_force(layers, now))
    entry = merging.types.get(name, EMPTY)
    merging.findings.raise_if_any()
    model = merging.models.get(entry.merged.get("accelerator", {}).get("model", "") if entry.sources else name, EMPTY)
    return tuple(
        merging.value_origin(section, origin)
        for section, found in (("types", entry), ("accelerators", model))
        for origin in origins(found)
    )


def disputes_of(layers: Iterable[Layer], *, now: datetime | None = None) -> tuple[Dispute, ...]:
    """Values of overlays in force at `now` that do not count, although no priority decides so.

    Raises CatalogError as `catalog_of` does.
    """
    merging = _Merging(in_force(layers, now))
    merging.findings.raise_if_any()
    return tuple(
        dispute
        for section, table in (("types", merging.types), ("accelerators", merging.models))
        for name, entry in table.items()
        for dispute in merging.disputes(section, name, entry)
    )


class _Merging:
    """The layers while they are merged, and the defects so far."""

    def __init__(self, layers: Sequence[Layer]) -> None:
        self.findings = Findings(problems_of(layers))
        self._layers = [layer for layer in layers if layer.file is not None]
        for layer in self._layers:
            self.findings.remember_line(layer.name, layer.line)
            if layer.text:
                self.findings.remember(layer.name, layer.text)
        self._of = {layer.name: layer for layer in self._layers}
        self.models = self._merged(self._written("accelerators", "key"), "accelerator")
        self.accelerators = self._accelerators()
        self.types = self._merged(((layer, self._written_types(layer)) for layer in self._layers), "instance type")

    def value_origin(self, section: str, origin: Origin) -> ValueOrigin:
        """The places of a value as text."""
        places = [self._place(source, origin) for source in reversed(origin.sources)]
        return ValueOrigin(section, path_text(origin.path), places[0], tuple(places[1:]))

    def disputes(self, section: str, name: str, entry: Layered) -> Iterator[Dispute]:
        """Values that an overlay gives the entry, and another file of the same priority otherwise."""
        if sum(not self._of[source.file].shipped for source in entry.sources) < 2:
            return
        for origin in origins(entry):
            last, *below = [self._of[source.file] for source in reversed(origin.sources)]
            if not below or not below[0].is_overlay or last.priority != below[0].priority:
                continue
            value = self.value_origin(section, origin)
            if value.won.value != value.overridden[0].value:
                yield Dispute(name, value.field, value.won, value.overridden[0])

    def _place(self, source: Source, origin: Origin) -> Place:
        layer = self._of[source.file]
        line = self.findings.line(source.file, (*source.path, *origin.path))
        value = value_at(source.value, origin.path)
        return Place(source.file, line, value, layer.priority, layer.reason, layer.expires)

    def _accelerators(self) -> dict[str, Accelerator]:
        found: dict[str, Accelerator] = {}
        for key, sources in self.models.items():
            title = f"accelerator {key}"
            entry = self.findings.checked_entry(AcceleratorEntry, sources, title)
            if entry is not None and not self._noted(build.accelerator_mismatches(entry), sources, title):
                found[key] = build.accelerator_of(entry)
        return found

    def reservations(self) -> dict[str, NodeReservation]:
        """The reservations of nodes, by cloud."""
        found: dict[str, NodeReservation] = {}
        for cloud, sources in self._merged(self._written("nodes", "cloud"), "nodes of").items():
            title = f"nodes of {cloud}"
            entry = self.findings.checked_entry(NodeEntry, sources, title)
            if entry is not None and not self._noted(build.reservation_mismatches(entry), sources, title):
                found[cloud] = build.reservation_of(entry)
        return found

    def drivers(self) -> list[CustomDriver]:
        found: list[CustomDriver] = []
        for name, sources in self._merged(self._written("drivers", "name"), "driver").items():
            entry = self.findings.checked_entry(DriverEntry, sources, f"driver {name}")
            if entry is not None and not self._noted(build.driver_mismatches(entry), sources, f"driver {name}"):
                found.append(entry.custom_driver())
        return found

    def instance_types(self, reservations: Mapping[str, NodeReservation]) -> list[InstanceType]:
        """The types without defects."""
        found: list[InstanceType] = []
        for name, sources in self.types.items():
            title = f"instance type {name}"
            homeless = self._noted(build.unknown_accelerator(sources.merged, self.models), sources, title)
            entry = self.findings.checked_entry(InstanceTypeEntry, sources, title)
            contradictory = entry is not None and self._noted(build.mismatches(entry), sources, title)
            if entry is not None and not homeless and not contradictory and self._has_accelerator(entry):
                reserved = reservations.get(entry.cloud, NOTHING_RESERVED)
                origin = sources.sources[-1].file
                found.append(build.instance_type_of(entry, self.accelerators, reserved=reserved, origin=origin))
        return found

    def _has_accelerator(self, entry: InstanceTypeEntry) -> bool:
        """True if the type's accelerator is valid, or it has none. The defects of an accelerator are reported once,
        where it is defined."""
        return entry.accelerator is None or entry.accelerator.model in self.accelerators

    def _noted(self, mismatches: Iterable[Mismatch], sources: Layered, title: str) -> bool:
        """True if there were mismatches, which are then among the findings."""
        wrong = list(mismatches)
        for one in wrong:
            self.findings.add_in(sources, one.path, entry=title, found=one.found, allowed=one.allowed, hint=one.hint)
        return bool(wrong)

    def _written(
        self, section: Literal["accelerators", "nodes", "drivers"], field: str
    ) -> Iterator[tuple[Layer, Iterable[Written]]]:
        """The entries of one section, layer by layer."""
        for layer in self._layers:
            yield (
                layer,
                [
                    entry
                    for index, raw in enumerate(layer.raw.get(section, ()))
                    for entry in self._named(raw, field, Source(layer.name, (section, index), raw))
                ],
            )

    def _written_types(self, layer: Layer) -> Iterator[Written]:
        """The types of one file: the values for all of them, then those for each."""
        file, name = layer.file, layer.name
        assert file is not None  # others were left out
        head = {"cloud": file.cloud} if file.cloud is not None else {}
        common = (
            Source(name, (), {**head, "provenance": file.provenance}),
            Source(name, ("defaults",), _with_full_prices(file.defaults, file)),
        )
        for index, raw in enumerate(file.types):
            own = Source(name, ("types", index), _with_full_prices(raw, file))
            for type_name, sources in self._named(raw, "name", own):
                yield type_name, (*common, *sources)
        for type_name, sources in expanded_attachments(file, layer.raw, name, self.accelerators):
            yield type_name, (*common, *sources)

    def _named(self, raw: Mapping[str, Any], field: str, source: Source) -> Iterator[Written]:
        """The entry with its name; a defect if it has none, since nothing can be merged then."""
        name = raw.get(field)
        if isinstance(name, str):
            yield name, (source,)
        else:
            found = "nothing" if name is None else repr(name)
            self.findings.add(
                source.file, source.path, field=(field,), found=found, allowed="the name of the entry, as text"
            )

    def _merged(self, written: Iterable[tuple[Layer, Iterable[Written]]], noun: str) -> dict[str, Layered]:
        """Entries by name. Within an overlay, or among the other files of a group, a name may appear once."""
        table: dict[str, Layered] = {}
        first: dict[tuple[str, str], Source] = {}
        for layer, entries in written:
            scope = layer.name if layer.is_overlay else f"group {layer.group}"
            for name, sources in entries:
                own = sources[-1]
                other = first.setdefault((scope, name), own)
                if other is not own:
                    where = f"{other.file}:{self.findings.line(other.file, other.path)}"
                    found = f"a second entry of this name (the other one is in {where})"
                    allowed = "one entry per directory, except in overlays: files with a reason, priority or expires"
                    self.findings.add(own.file, own.path, entry=f"{noun} {name}", found=found, allowed=allowed)
                    continue
                below = table.get(name, EMPTY)
                table[name] = layered((_over_places(source, below.merged) for source in sources), onto=below)
        return table


def _over_places(source: Source, below: Mapping[str, Any]) -> Source:
    """A price for a region replaces the prices of lower layers in that region and its zones."""
    known, given, own = below.get("zonePrices"), source.value.get("prices"), source.value.get("zonePrices", {})
    if not (isinstance(known, Mapping) and isinstance(given, Mapping) and isinstance(own, Mapping)):
        return source
    gone = {
        place: {kind: None for kind in prices if _region(given.get(kind)) == region_of(place)}
        for place, prices in known.items()
        if isinstance(prices, Mapping)
    }
    unknown = {place: kinds for place, kinds in gone.items() if kinds}
    return replace(source, value={**source.value, "zonePrices": merge(unknown, own)}) if unknown else source


def _region(price: Any) -> Any:
    return price.get("region") if isinstance(price, Mapping) else None


def _with_full_prices(raw: Mapping[str, Any], file: CatalogFile) -> Mapping[str, Any]:
    """Bare prices completed with the region (of zones: their own) and date that the file gives for them.

    A price that a file gives is a guess only if the file marks it so, whatever was below it.
    """
    if not (raw.keys() & {"prices", "zonePrices"}):
        return raw
    full = dict(raw)
    given = file.prices_as_of
    if "prices" in raw:
        full["prices"] = _full(raw["prices"], given, given.region if given else "")
    if isinstance(raw.get("zonePrices"), Mapping):
        places = raw["zonePrices"].items()
        full["zonePrices"] = {place: _full(prices, given, region_of(str(place))) for place, prices in places}
    return full


def _full(prices: Any, given: PricesAsOf | None, region: str) -> Any:
    if not isinstance(prices, Mapping):
        return prices  # the schema reports the defect
    full = dict(prices)
    for kind, price in prices.items():
        if isinstance(price, str | int) and given is not None:
            full[kind] = {"usdPerHour": price, "region": region, "date": given.date, "guess": False}
        elif isinstance(price, Mapping) and "usdPerHour" in price:
            full[kind] = {"guess": False, **price}
    return full


def expanded_attachments(
    file: CatalogFile, raw: Mapping[str, Any], name: str, accelerators: Mapping[str, Accelerator]
) -> Iterator[Written]:
    """Every pair of a machine and an attachment within its bounds (GCP N1). `raw` is the text of `file`, called `name`.

    The pairs become ordinary entries, so that defaults, overlays and checks treat them like written ones.

    A pair is called <machine>+<count>x<API name of the accelerator>, as in n1-standard-8+1xnvidia-tesla-t4.
    """
    for index, attachment in enumerate(file.attachments):
        suffix = f"+{attachment.accelerator.count}x{_api_name(attachment, file.cloud or '', accelerators)}"
        written = raw["attachments"][index]
        attached = {key: written[key] for key in ("accelerator", "fabric") if key in written}
        for position, machine in enumerate(file.machines):
            if machine.vcpu <= attachment.max_vcpu and machine.memory <= attachment.max_memory:
                own = {key: value for key, value in raw["machines"][position].items() if key != "prices"}
                named = {**own, "name": machine.name + suffix, "machine": machine.name}
                priced = {**attached, **_prices(file, machine, attachment)}
                sources = (Source(name, ("machines", position), named), Source(name, ("attachments", index), priced))
                yield machine.name + suffix, sources


def _prices(file: CatalogFile, machine: MachineEntry, attachment: AttachmentEntry) -> dict[str, Any]:
    """The sum of the prices of machine and accelerators, which are billed apart: no source has it, so it is marked as a
    guess."""
    given = file.prices_as_of
    both = [kind for kind in machine.prices if kind in attachment.prices]
    if given is None or not both:
        return {}
    return {
        "prices": {
            kind.value: {
                "usdPerHour": str(machine.prices[kind] + attachment.prices[kind]),
                "region": given.region,
                "date": given.date,
                "guess": True,
            }
            for kind in both
        }
    }


def _api_name(attachment: AttachmentEntry, cloud: str, accelerators: Mapping[str, Accelerator]) -> str:
    use = attachment.accelerator
    model = accelerators.get(use.model)  # an unknown model is reported when the pair is checked
    known = model.api_names.get(cloud, use.model) if model else use.model
    return use.api_name or known

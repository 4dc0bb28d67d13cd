"""The effective catalog of a running process: for a defective layer, its last good version counts.

Pure. The controller reads the layers when they change (files, InstanceTypeOverlay objects) and passes the effective
catalog it had before. The answer is the new one, with the layers that were refused.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime

from instance_catalog.dataclass import dataclass, replace
from instance_catalog.diagnostic import Diagnostic
from instance_catalog.files.findings import CatalogError
from instance_catalog.files.layers import Layer, in_force
from instance_catalog.files.merging import catalog_of
from instance_catalog.types.catalog import Catalog


@dataclass(frozen=True, slots=True)
class RefusedLayer:
    """A defective layer with its Diagnostics. `kept`: its last good version is used; otherwise none of it is."""

    layer: str
    kept: bool
    problems: tuple[Diagnostic, ...]


@dataclass(frozen=True, slots=True)
class EffectiveCatalog:
    """The catalog in force. `given`: the layers as they are now; `layers`: those that count; `expired`: those past
    their end.
    """

    catalog: Catalog
    given: tuple[Layer, ...]
    layers: tuple[Layer, ...]
    refused: tuple[RefusedLayer, ...] = ()
    expired: tuple[Layer, ...] = ()

    @property
    def wake_at(self) -> datetime | None:
        """The earliest expiry of the layers in force, at which the catalog changes."""
        return min((layer.expires for layer in self.layers if layer.expires is not None), default=None)


def effective_catalog(
    layers: Iterable[Layer], *, now: datetime, before: EffectiveCatalog | None = None
) -> EffectiveCatalog:
    """The catalog in force at `now`. A defective layer counts as it was in `before`, its last good version.

    If nothing has changed, the result is `before` itself. Raises CatalogError only if the shipped layers are defective,
    which is a broken installation.
    """
    every = tuple(layers)
    given = in_force(every, now)
    expired = tuple(layer for layer in every if layer.expires is not None and layer.expires <= now)
    if before is not None and before.given == given and in_force(before.layers, now) == before.layers:
        return before if before.expired == expired else replace(before, expired=expired)
    try:
        return EffectiveCatalog(catalog_of(given), given, given, expired=expired)
    except CatalogError as error:
        return replace(_without_defects(given, error, now=now, before=before), expired=expired)


def _without_defects(
    given: tuple[Layer, ...], error: CatalogError, *, now: datetime, before: EffectiveCatalog | None
) -> EffectiveCatalog:
    """Start from the layers that nothing was found against; then every other one, or its last version, that fits."""
    good, catalog = _sound(given, error)
    refused: list[RefusedLayer] = []
    for layer in given:
        if layer in good:
            continue
        tried, problems = _tried([*good, layer], given)
        if tried is not None:
            good, catalog = [*good, layer], tried
            continue
        last = in_force(_last_good(layer, before), now)
        tried, _ = _tried([*good, *last], given) if last else (None, ())
        if tried is not None:
            good, catalog = [*good, *last], tried
        refused.append(RefusedLayer(layer.name, tried is not None, problems))
    return EffectiveCatalog(catalog, given, tuple(_ordered(good, given)), tuple(refused))


def _sound(given: Sequence[Layer], error: CatalogError) -> tuple[list[Layer], Catalog]:
    """The layers and the catalog without all layers that take part in a defect. Raises CatalogError if that is
    defective, too."""
    good = list(given)
    while True:
        suspects = {name for problem in error.problems for name in (problem.file, *problem.sources)}
        fewer = [layer for layer in good if layer.shipped or layer.name not in suspects]
        if len(fewer) == len(good):
            raise error
        good = fewer
        try:
            return good, catalog_of(good)
        except CatalogError as next_error:
            error = next_error


def _tried(layers: Sequence[Layer], given: Sequence[Layer]) -> tuple[Catalog | None, tuple[Diagnostic, ...]]:
    try:
        return catalog_of(_ordered(layers, given)), ()
    except CatalogError as error:
        return None, error.problems


def _ordered(layers: Collection[Layer], given: Sequence[Layer]) -> list[Layer]:
    """In the order in which they, or their last good versions, were given."""
    place = {layer.name: index for index, layer in reversed(list(enumerate(given)))}
    return sorted(layers, key=lambda layer: place.get(layer.name, place.get(layer.group, len(place))))


def _last_good(layer: Layer, before: EffectiveCatalog | None) -> tuple[Layer, ...]:
    """The version of the layer that was used before; of a directory that can no longer be read, all its files."""
    known = before.layers if before is not None else ()
    return tuple(old for old in known if old.name == layer.name or old.group == layer.name)

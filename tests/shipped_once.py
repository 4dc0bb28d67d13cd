"""Read and merge the shipped catalog once per test process, instead of once per command that a test runs.

Both are functions of values: the layer follows from the file's text, and the catalog from layers that all are shipped.
What a test changes or adds is read and merged as always.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from functools import lru_cache
from typing import Final

from instance_catalog.files import layers as reading
from instance_catalog.files import merging
from instance_catalog.files.layers import SHIPPED, Layer, in_force
from instance_catalog.types.catalog import Catalog

read: Final = reading.text_layer
merge: Final = merging.catalog_of
_read_once: Final = lru_cache(maxsize=64)(read)  # as many texts as files are shipped, and some that tests spoil
_merged: Final[dict[tuple[int, ...], tuple[tuple[Layer, ...], Catalog]]] = {}


def install() -> None:
    """Put both in place; before `loader` is imported, since importers keep the function that they find."""
    reading.text_layer = text_layer
    merging.catalog_of = catalog_of


def text_layer(name: str, group: str, text: str) -> Layer:
    """As `layers.text_layer`."""
    return _read_once(name, group, text) if group == SHIPPED else read(name, group, text)


def catalog_of(layers: Iterable[Layer], *, now: datetime | None = None) -> Catalog:
    """As `merging.catalog_of`."""
    given = tuple(layers)
    if not all(layer.shipped for layer in given):
        return merge(given, now=now)
    counted = in_force(given, now)
    key = tuple(map(id, counted))  # an entry keeps its layers, so that no other layer gets their ids
    if key not in _merged:
        _merged[key] = (counted, merge(counted))
    return _merged[key][1]

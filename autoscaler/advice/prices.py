"""A price for what fits and has none: nobody gives up an accelerator because the catalog lacks a number."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from functools import partial
from typing import Final

from autoscaler.advice.change import Change, ChangeKind, unchanged
from autoscaler.advice.situation import Situation
from autoscaler.model.reason import Code
from instance_catalog.types.catalog import Catalog
from instance_catalog.types.instance_type import CapacityType, InstanceType, Price

# Only that there is one matters: where something else fits at a known price, nothing is asked.
_STAND_IN: Final = Price(Decimal(1), "", "", guess=True)


def prices(asked: Situation) -> Iterator[Change]:
    """For the smallest type that fits. Where a region has no price of its own, the reason names the command."""
    entries = [entry for entry in asked.considered if entry.outcome == "fits" and not entry.offering.region]
    names = {
        entry.offering.instance_type
        for entry in entries
        if any(r.code is Code.NO_PRICE and not r.detail.get("region") for r in entry.reasons)
    }
    unpriced = [asked.catalog.types[name] for name in names if asked.catalog.types[name].price is None]
    if unpriced:
        name = min(unpriced, key=_size).name
        found = Change.of(ChangeKind.SET_PRICE, "", unchanged, instance_type=name)
        yield replace(found, catalog=partial(_priced, name=name))


def _size(instance_type: InstanceType) -> tuple[int, int, str]:
    return instance_type.device_count, instance_type.vcpu, instance_type.name


def _priced(catalog: Catalog, name: str) -> Catalog:
    known = catalog.types[name]
    told = replace(known, prices=known.prices.with_items({CapacityType.ON_DEMAND: _STAND_IN}))
    return replace(catalog, types=catalog.types.with_items({name: told}), digest=f"{catalog.digest}/{name}/priced")

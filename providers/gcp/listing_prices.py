"""Prices of machine types from the parts that Google bills (cores, memory, GPUs), or from a file.

No feed of Google's prices agrees with another one, which is why a file counts instead of the catalogue and people's own
overlays count before both.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any, Final

import yaml

from instance_catalog.sources.sync import ListedPrice, ListedType
from instance_catalog.types.clouds import region_of
from instance_catalog.types.instance_type import CapacityType
from providers.errors import TemplateError
from providers.listing import Row

_PLACE: Final = " running in "
_ON_SPOT: Final = "Spot Preemptible "
_GPU_ON_SPOT: Final = " attached to Spot Preemptible VMs"
_GIB: Final = 2**30
# Machine types do not say how they are sold; what has a price can be bought so.
_SOLD: Final = (CapacityType.ON_DEMAND, CapacityType.SPOT)


@dataclass(frozen=True, slots=True)
class Parts:
    """The SKUs that a machine of a family is billed by: per vCPU, per GiB and per GPU and hour."""

    core: str
    ram: str
    gpu: str


@cache
def families() -> Mapping[str, Parts]:
    """By machine family, such as a3-highgpu."""
    return {name: Parts(**parts) for name, parts in _table()["families"].items()}


def service() -> str:
    """Compute Engine, as the catalogue names it."""
    return str(_table()["service"])


@cache
def _table() -> Mapping[str, Any]:
    path = Path(__file__).parent / "price_parts.yaml"
    found: Mapping[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    return found


def sku_row(description: str, regions: Sequence[str], usd: Decimal) -> Row | None:
    """A SKU as a row, if a family is billed by it; None for all others."""
    head, found, _ = description.partition(_PLACE)
    spot = head.startswith(_ON_SPOT) or head.endswith(_GPU_ON_SPOT)
    part = head.removeprefix(_ON_SPOT).removesuffix(_GPU_ON_SPOT)
    if not found or part not in _billed():
        return None
    kind = CapacityType.SPOT if spot else CapacityType.ON_DEMAND
    return {"part": part, "regions": list(regions), "kind": kind.value, "usd": str(usd)}


@cache
def _billed() -> frozenset[str]:
    return frozenset(part for parts in families().values() for part in (parts.core, parts.ram, parts.gpu))


def composed(types: Sequence[ListedType], rows: Sequence[Row]) -> Iterator[ListedPrice]:
    """The price of every type in every region of its zones, where the catalogue has all its parts."""
    amounts = {(row["part"], region, row["kind"]): Decimal(row["usd"]) for row in rows for region in row["regions"]}
    for one in types:
        parts = families().get(one.name.rpartition("-")[0])
        if parts is None or one.accelerator is None:
            continue
        shares = {
            parts.core: Fraction(one.vcpu),
            parts.ram: one.memory.value / _GIB,
            parts.gpu: one.accelerator.count,
        }
        for region in sorted({region_of(zone) for zone in one.zones}):
            for kind in _SOLD:
                found = {part: amounts.get((part, region, kind.value)) for part in shares}
                total = sum(
                    (Fraction(usd) * shares[part] for part, usd in found.items() if usd is not None), Fraction(0)
                )
                if None not in found.values():
                    yield ListedPrice(one.name, region, kind, _dollars(total))


def _dollars(amount: Fraction) -> Decimal:
    """To a millionth."""
    return (Decimal(amount.numerator) / Decimal(amount.denominator)).quantize(Decimal("0.000001")).normalize()


def prices_of_file(path: Path) -> tuple[Row, ...]:
    """The prices of a file:

        prices:
          - {instanceType: a3-highgpu-8g, place: us-central1, capacityType: on-demand, usdPerHour: "88.49"}

    `place` is a region or zone. Raises TemplateError that names the entry and what to write.
    """
    step = 'write a list `prices` of {instanceType, place, capacityType, usdPerHour: "…"}'
    try:
        entries = yaml.safe_load(path.read_text(encoding="utf-8"))["prices"]
    except (OSError, yaml.YAMLError, KeyError, TypeError) as error:
        raise TemplateError(f"{path}: prices cannot be read: {error}", next_step=step) from error
    rows = []
    for index, entry in enumerate(entries):
        try:
            usd = Decimal(str(entry["usdPerHour"]))
            kind = CapacityType(entry["capacityType"]).value
            row = {"type": str(entry["instanceType"]), "place": str(entry["place"]), "kind": kind, "usd": str(usd)}
        except (KeyError, TypeError, ValueError, InvalidOperation) as error:
            raise TemplateError(f"{path}: prices[{index}]: {error!r}", next_step=step) from error
        if not usd.is_finite() or usd < 0:
            raise TemplateError(f"{path}: prices[{index}]: {usd} is no price", next_step="give zero or more")
        rows.append(row)
    return tuple(rows)

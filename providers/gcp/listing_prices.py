"""Computes prices of machine types from the parts that Google bills (cores, memory, GPUs), or reads them from a file.

Google's price feeds contradict each other. So a file replaces the billing catalogue, and overlays of users override
both.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any, Final

import yaml

from instance_catalog.dataclass import dataclass
from instance_catalog.sources.sync import ListedPrice, ListedType
from instance_catalog.types.clouds import region_of
from instance_catalog.types.instance_type import CapacityType
from providers.errors import TemplateError
from providers.listing import Row

_PLACE: Final = " running in "
_ON_SPOT: Final = "Spot Preemptible "
_GPU_ON_SPOT: Final = " attached to Spot Preemptible VMs"
_PREEMPTIBLE: Final = "Preemptible"
# The billing catalogue calls flex-start "Defined Duration" of the Dynamic Workload Scheduler.
_ON_FLEX: Final = "DWS Defined Duration "
_GPU_ON_FLEX: Final = " attached to DWS Defined Duration VMs"
# In the descriptions of SKUs that do not apply to a machine without a contract.
_OTHER_TERMS: Final = frozenset(
    {"Commitment", "Committed", "Reservation", "Reserved", "DWS", "Calendar", "Defined", "Flex", "Pod"}
)
_WORD: Final = re.compile(r"\w+")
_CHIPS: Final = re.compile(r"-(\d{1,2})t\Z")  # ct6e-standard-4t
_GIB: Final = 2**30
# Machine types do not contain their capacity types; a type is sold as every capacity type with a price.
_SOLD: Final = (CapacityType.ON_DEMAND, CapacityType.SPOT, CapacityType.FLEX_START)


@dataclass(frozen=True, slots=True)
class Parts:
    """The SKUs that bill a machine of a family: per vCPU, per GiB and per GPU and hour."""

    core: str
    ram: str
    gpus: tuple[str, ...]  # names of one SKU, which differ between regions


@cache
def families() -> Mapping[str, Parts]:
    """The parts by machine family, such as a3-highgpu; for attached GPUs, such as n1-standard+nvidia-tesla-t4."""
    found = {
        name: Parts(parts["core"], parts["ram"], _names(parts["gpu"])) for name, parts in _table()["families"].items()
    }
    for name, parts in _table()["attached"].items():
        for gpu, billed in parts["gpus"].items():
            found[f"{name}+{gpu}"] = Parts(parts["core"], parts["ram"], _names(billed))
    return found


@cache
def slices() -> Mapping[str, str]:
    """By machine family, the SKU that bills a GPU, and the share of a GPU that the machine has."""
    return {str(name): str(part) for name, part in _table()["slices"].items()}


@cache
def tpus() -> Mapping[str, str]:
    """By machine family, the word that identifies its SKU, per chip and hour."""
    return {str(name): str(word) for name, word in _table()["tpus"].items()}


def _names(given: str | list[str]) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(given)


def service() -> str:
    """The name of Compute Engine in the billing catalogue."""
    return str(_table()["service"])


@cache
def _table() -> Mapping[str, Any]:
    path = Path(__file__).parent / "price_parts.yaml"
    found: Mapping[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    return found


def sku_row(description: str, regions: Sequence[str], usd: Decimal) -> Row | None:
    """A SKU as a row of prices; None if it bills no family."""
    head, found, _ = description.partition(_PLACE)
    spot = head.startswith(_ON_SPOT) or head.endswith(_GPU_ON_SPOT)
    part = head.removeprefix(_ON_SPOT).removesuffix(_GPU_ON_SPOT)
    kind = CapacityType.SPOT if spot else CapacityType.ON_DEMAND
    flexible = _flexible(head) if found else ""
    if flexible:
        part, kind = flexible, CapacityType.FLEX_START
    elif not found or part not in _billed():
        part, kind = _chip(description), CapacityType.SPOT if _PREEMPTIBLE in description else CapacityType.ON_DEMAND
        if not part:
            return None
    return {"part": part, "regions": list(regions), "kind": kind.value, "usd": str(usd)}


def _flexible(head: str) -> str:
    """The part that a flex-start SKU bills; "" for other SKUs. Cores and memory lack a word, TPUs lack a prefix."""
    if head.endswith(_GPU_ON_FLEX):
        part = head.removesuffix(_GPU_ON_FLEX)
        return part if part in _billed() else ""
    rest = head.removeprefix(_ON_FLEX)
    known = {part.replace(" Instance ", " "): part for part in _billed()}
    known |= {part: part for part in _billed()} | {word.removeprefix("Tpu"): word for word in tpus().values()}
    return known.get(rest, "") if rest != head else ""


def _chip(description: str) -> str:
    """The word of a TPU that is billed by the hour without a commitment; "" for everything else."""
    words = _WORD.findall(description)
    return "" if _OTHER_TERMS & set(words) else next((word for word in words if word in tpus().values()), "")


@cache
def _billed() -> frozenset[str]:
    parts = frozenset(part for parts in families().values() for part in (parts.core, parts.ram, *parts.gpus))
    return parts | frozenset(slices().values())


def composed(types: Sequence[ListedType], rows: Sequence[Row]) -> Iterator[ListedPrice]:
    """The price of every type in every region of its zones, if the billing catalogue has each of its parts exactly
    once.

    A part with two prices in a region has no price there, because it is not known which one applies.
    """
    amounts: dict[tuple[str, str, str], set[Decimal]] = {}
    for row in rows:
        for region in row["regions"]:
            amounts.setdefault((row["part"], region, row["kind"]), set()).add(Decimal(row["usd"]))
    for one in types:
        shares = _shares(one)
        for region in sorted({region_of(zone) for zone in one.zones}) if shares else ():
            for kind in _SOLD:
                found = [
                    (set[Decimal]().union(*(amounts.get((name, region, kind.value), ()) for name in names)), share)
                    for names, share in shares
                ]
                if all(len(usd) == 1 for usd, _ in found):
                    total = sum((Fraction(next(iter(usd))) * share for usd, share in found), Fraction(0))
                    yield ListedPrice(one.name, region, kind, _dollars(total))


def _shares(one: ListedType) -> tuple[tuple[tuple[str, ...], Fraction], ...]:
    """The SKUs that bill a machine, with the amount of each; () if they are not known."""
    machine, attached, _ = one.name.partition("+")
    family = machine.rpartition("-")[0]
    chips = _CHIPS.search(one.name)
    if family in tpus() and chips is not None:
        return (((tpus()[family],), Fraction(int(chips[1]))),)
    if one.accelerator is None:
        return ()
    if family in slices():
        return (((slices()[family],), one.accelerator.count),)
    parts = families().get(f"{family}+{one.accelerator.api_name}" if attached else family)
    if parts is None:
        return ()
    return (
        ((parts.core,), Fraction(one.vcpu)),
        ((parts.ram,), one.memory.value / _GIB),
        (parts.gpus, one.accelerator.count),
    )


def _dollars(amount: Fraction) -> Decimal:
    """The amount in dollars, rounded to a millionth."""
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
            raise TemplateError(f"{path}: prices[{index}]: {usd} is not a price", next_step="give zero or more")
        rows.append(row)
    return tuple(rows)

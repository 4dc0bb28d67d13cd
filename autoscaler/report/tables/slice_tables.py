"""The tables of `foreslice slices` for predicted ResourceSlices, one per driver.

Dozens of devices differ in few attributes: values that all devices of a driver share are in a line above the table.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from autoscaler.report.tables.plan_tables import Table
from instance_catalog.kubernetes.resource_slice import (
    AttributeValue,
    Capacity,
    Device,
    ListValue,
    ResourceSlice,
    RuntimeOnly,
    Version,
)

COLUMNS = ("slice", "device", "type", "memory", "capacity", "attributes")
AT_RUN_TIME = "(run time)"
NOT_IN_CATALOG = "(not in the catalog)"
_IN_COLUMNS = frozenset({"type"})


def slice_tables(slices: Sequence[ResourceSlice]) -> tuple[Table, ...]:
    """Tables in the order of the slices, which are sorted by driver."""
    return tuple(_table(driver, tuple(group)) for driver, group in groupby(slices, key=lambda slice_: slice_.driver))


def legend(slices: Sequence[ResourceSlice]) -> tuple[str, ...]:
    """The meaning of the marks that occur in the tables."""
    devices = [device for slice_ in slices for device in slice_.devices]
    values = [value for device in devices for value in device.attributes.values() if isinstance(value, RuntimeOnly)]
    guess = any(c.guess for device in devices for c in device.capacity.values())
    lines = {
        f"{AT_RUN_TIME}: published, but the value exists only on a running node": any(
            not value.is_catalog_gap for value in values
        ),
        f"{NOT_IN_CATALOG}: the catalog does not have this fact yet": any(value.is_catalog_gap for value in values),
        "~: taken from the cloud's API; what the driver reports is not known": guess,
    }
    return tuple(line for line, occurs in lines.items() if occurs)


def _table(driver: str, slices: tuple[ResourceSlice, ...]) -> Table:
    devices = [device for slice_ in slices for device in slice_.devices]
    numbers = _token_numbers(devices)
    shown = [_shown(driver, device, numbers) for device in devices]
    amounts = [_amounts(driver, device) for device in devices]
    common = _common(shown) | _common(amounts)
    counters = sum(len(slice_.shared_counters) for slice_ in slices)
    head = f"{driver}: pool {slices[0].pool.name}, {_count(len(slices), 'slice')}, {_count(len(devices), 'device')}"
    if counters:
        head += f", {_count(counters, 'counter set')}"
    if common:
        head += f"\nevery device: {', '.join(f'{name}={value}' for name, value in sorted(common.items()))}"
    rows = [
        (*_row(slice_, device), _rest(amount, common), _rest(values, common))
        for (slice_, device), amount, values in zip(_devices(slices), amounts, shown, strict=True)
    ]
    # The first two columns identify the device; of the others only those that differ.
    used = [index for index in range(len(COLUMNS)) if index < 2 or any(row[index] for row in rows)]
    return Table(head, tuple(COLUMNS[i] for i in used), tuple(tuple(row[i] for i in used) for row in rows))


def _devices(slices: Iterable[ResourceSlice]) -> Iterator[tuple[ResourceSlice, Device]]:
    return ((slice_, device) for slice_ in slices for device in slice_.devices)


def _row(slice_: ResourceSlice, device: Device) -> tuple[str, ...]:
    kind = device.attributes.get("type")
    memory = device.capacity.get("memory")
    return (slice_.name, device.name, kind if isinstance(kind, str) else "", _amount(memory) if memory else "")


def _amounts(driver: str, device: Device) -> dict[str, str]:
    """Capacities other than memory as text."""
    return {
        name.removeprefix(f"{driver}/"): _amount(found) for name, found in device.capacity.items() if name != "memory"
    }


def _amount(found: Capacity) -> str:
    return f"~{found.value}" if found.guess else str(found.value)


def _shown(driver: str, device: Device, numbers: dict[RuntimeOnly, str]) -> dict[str, str]:
    """Attributes as text. Names in the driver's own domain have no prefix, as in claims."""
    return {
        name.removeprefix(f"{driver}/"): _text(value, numbers)
        for name, value in device.attributes.items()
        if name not in _IN_COLUMNS
    }


def _common(shown: Sequence[dict[str, str]]) -> dict[str, str]:
    """The values that every device has with the same text: of a single device, all."""
    if not shown:
        return {}
    return {n: v for n, v in shown[0].items() if all(values.get(n) == v for values in shown)}


def _rest(values: dict[str, str], common: dict[str, str]) -> str:
    return " ".join(f"{name}={value}" for name, value in sorted(values.items()) if name not in common)


def _token_numbers(devices: Sequence[Device]) -> dict[RuntimeOnly, str]:
    """A number for every token that some devices share and others do not: there the equality is the information.

    Tokens are numbered in the order of the devices, separately for each kind of thing (the end of their group).
    """
    holders: Counter[RuntimeOnly] = Counter()
    for device in devices:
        # A device may have a token twice (a PCI address under two names) and still counts once, in a stable order.
        holders.update({value: 1 for value in device.attributes.values() if isinstance(value, RuntimeOnly)})
    seen: Counter[str] = Counter()
    numbers: dict[RuntimeOnly, str] = {}
    for token, count in holders.items():
        if 1 < count < len(devices):
            thing = token.group.rpartition("/")[2]
            seen[thing] += 1
            numbers[token] = f"(run time, group {seen[thing]})"
    return numbers


def _text(value: AttributeValue, numbers: dict[RuntimeOnly, str]) -> str:
    match value:
        case RuntimeOnly() if value.is_catalog_gap:
            return NOT_IN_CATALOG
        case RuntimeOnly():
            return numbers.get(value, AT_RUN_TIME)
        case Version(text):
            return text
        case ListValue(_, items):
            return f"[{', '.join(_text(item, numbers) for item in items)}]"
        case bool():
            return str(value).lower()
        case _:
            return str(value)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"

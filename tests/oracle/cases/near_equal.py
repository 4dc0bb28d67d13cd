"""Devices that are nearly the same, so that whatever takes one for another is found out.

Values that compare as equal in some language or other without being the same (1 and true, 1000m and 1, a version and
the text of it), names that differ in their domain or not at all, and attributes that are missing. Nothing here makes a
device unique, unlike the ids that drivers publish.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

from tests.oracle.upstream import Json

# Values of one row are near each other.
_VALUES: Sequence[Sequence[Json]] = (
    ({"int": 1}, {"bool": True}, {"string": "1"}, {"string": "true"}, {"version": "1.0.0"}, {"string": "1.0.0"}),
    ({"int": 0}, {"bool": False}, {"string": "0"}, {"string": ""}, {"string": "false"}, {"version": "0.0.0"}),
    ({"version": "1.2.0"}, {"version": "1.2.0+b1"}, {"version": "1.2.0-b1"}, {"string": "1.2.0"}, {"int": 2}),
    ({"string": "a"}, {"string": "A"}, {"string": "a "}, {"string": "à"}, {"string": "a\u0300"}),
    ({"int": 2**63 - 1}, {"int": 2**53}, {"int": 2**53 + 1}, {"int": -(2**63)}, {"int": -1}),
)
_LISTS: Sequence[Sequence[Json]] = (
    ({"ints": [1]}, {"bools": [True]}, {"strings": ["1"]}, {"versions": ["1.0.0"]}, {"int": 1}, {"ints": [1, 1]}),
    ({"ints": [0, 1]}, {"bools": [False, True]}, {"ints": [1, 0]}, {"strings": ["0", "1"]}, {"ints": [0]}),
    ({"versions": ["1.2.0"]}, {"versions": ["1.2.0+b1"]}, {"strings": ["1.2.0"]}, {"version": "1.2.0"}),
)
# Equal in languages that take true for a number.
_TWINS: Sequence[tuple[Json, Json]] = (
    ({"int": 1}, {"bool": True}),
    ({"int": 0}, {"bool": False}),
    ({"ints": [1]}, {"bools": [True]}),
    ({"ints": [0, 1]}, {"bools": [False, True]}),
)
# Amounts of one row are equal, or differ by little.
_AMOUNTS: Sequence[Sequence[str]] = (
    ("1", "1000m", "1.0", "1e0", "1001m", "999m", "2"),
    ("1536Mi", "1.5Gi", "1610612736", "1610612736000m", "1536M", "1537Mi"),
    ("1k", "1000", "1e3", "1Ki", "1.0k", "1000000m"),
    ("0", "0m", "0.0", "1n"),
    ("80Gi", "80.0Gi", "81920Mi", "80G", "79.99Gi"),
)

# As an API server stores amounts (Quantity.String of k8s.io/apimachinery); those that are not here stay as they are.
_STORED: Mapping[str, str] = {
    "1000m": "1",
    "1.0": "1",
    "1.5Gi": "1536Mi",
    "1610612736000m": "1610612736",
    "1000": "1k",
    "1.0k": "1k",
    "1000000m": "1k",
    "0m": "0",
    "0.0": "0",
    "80.0Gi": "80Gi",
    "81920Mi": "80Gi",
    "79.99Gi": "85888608501760m",
    "16384Mi": "16Gi",
    "1024Mi": "1Gi",
}


def stored(value: Any) -> Any:
    """A part of a case with all amounts as an API server stores them, for an upstream that takes them as they stand."""
    match value:
        case dict():
            return {key: stored(inner) for key, inner in value.items()}
        case list():
            return [stored(inner) for inner in value]
        case str():
            return _STORED.get(value, value)
    return value


def near_equal(
    rng: Random, names: Sequence[str], amounts: Sequence[str], drivers: Sequence[str], *, lists: bool
) -> list[Json]:
    """Two to eight devices without names, as selectors see them; attributes `names`, capacities `amounts`."""
    base: Json = {"driver": drivers[0], "attributes": {}, "capacity": {}}
    for name in rng.sample(names, min(len(names), rng.choice((1, 1, 2, 3)))):
        twins = _TWINS if lists else _TWINS[:2]
        base["attributes"][name] = rng.choice(rng.choice((*twins, _row(rng, lists=lists), _row(rng, lists=lists))))
    for name in amounts:
        if rng.random() < 0.3:
            base["capacity"][name] = {"value": rng.choice(rng.choice(_AMOUNTS))}
    if rng.random() < 0.4:
        base["allowMultipleAllocations"] = rng.random() < 0.5
    return [base, *(varied(rng, base, drivers, lists=lists) for _ in range(rng.choice((1, 2, 3, 5, 7))))]


def varied(rng: Random, base: Json, drivers: Sequence[str], *, lists: bool = False) -> Json:
    """The device with one or two small changes, or none."""
    device: Json = {**base, "attributes": dict(base.get("attributes", {})), "capacity": dict(base.get("capacity", {}))}
    twins = {name: twin for name, value in device["attributes"].items() if (twin := twin_of(value)) is not None}
    if twins and rng.random() < 0.5:
        name = rng.choice(list(twins))
        device["attributes"][name] = twins[name]
        return device
    for _ in range(rng.choice((0, 1, 1, 1, 2))):
        draw = rng.random()
        if draw < 0.55 and device["attributes"]:
            name = rng.choice(list(device["attributes"]))
            device["attributes"][name] = near_value(rng, device["attributes"][name], lists=lists)
        elif draw < 0.75 and (free := [n for n, one in device["capacity"].items() if "requestPolicy" not in one]):
            name = rng.choice(free)  # a policy fits its own amount alone
            amount = device["capacity"][name]["value"]
            device["capacity"][name] = {**device["capacity"][name], "value": near_amount(rng, amount)}
        elif draw < 0.93:
            _rename(rng, device, drivers)
        else:
            device["allowMultipleAllocations"] = not device.get("allowMultipleAllocations", False)
    return device


def near_value(rng: Random, value: Json, *, lists: bool = False) -> Json:
    """A value that is easily taken for this one."""
    twin = twin_of(value)
    if twin is not None and rng.random() < 0.5:
        return twin
    rows = (*_VALUES, *_LISTS) if lists else _VALUES
    return rng.choice(next((row for row in rows if value in row), _row(rng, lists=lists)))


def twin_of(value: Json) -> Json | None:
    """The value that some languages call equal to this one."""
    for left, right in _TWINS:
        for one, other in ((left, right), (right, left)):
            if value == one and value.keys() == one.keys():
                return other
    return None


def near_amount(rng: Random, amount: str) -> str:
    """An amount that is easily taken for this one."""
    return rng.choice(next((row for row in _AMOUNTS if amount in row), rng.choice(_AMOUNTS)))


def _row(rng: Random, *, lists: bool) -> Sequence[Json]:
    return rng.choice(_LISTS if lists and rng.random() < 0.4 else (*_VALUES[:2], *_VALUES))


def _rename(rng: Random, device: Json, drivers: Sequence[str]) -> None:
    """One name goes, or moves between domains; never is it published twice, which nobody can read reliably."""
    field = rng.choice(("attributes", "capacity"))
    if not device[field]:
        return
    name = rng.choice(list(device[field]))
    value = device[field].pop(name)
    slash, identifier = "/" in name, name.rpartition("/")[2]
    draw = rng.random()
    if draw < 0.3:
        return
    renamed = identifier if slash and draw < 0.6 else f"{rng.choice(drivers)}/{identifier}"
    taken = {(n if "/" in n else f"{device['driver']}/{n}") for n in device[field]}
    if (renamed if "/" in renamed else f"{device['driver']}/{renamed}") not in taken:
        device[field][renamed] = value

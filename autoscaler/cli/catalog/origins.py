"""The output of `foreslice catalog show --provenance`: for every value, its source and the layer that it is from."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from instance_catalog.files.merging import Place, ValueOrigin
from instance_catalog.types.instance_type import InstanceType, Provenance, provenance_of

COLUMNS: Final = ("field", "value", "source", "from", "overrides")
# First step of a field → group of facts that has its provenance (docs/catalog.md, "Sources and guesses").
_GROUPS: Final = {
    "types": {
        "accelerator": "accelerator",
        "cpu": "cpu",
        "fabric": "fabric",
        "topology": "accelerator",
        "sliceTopologies": "accelerator",
        "unpriced": "price",
        "minDriver": "driver",
        "maxDriver": "driver",
        "bareMetal": "shape",
        "extendedResources": "extendedResources",
        "pci": "pci",
        "networkCards": "network",
        "network": "network",
        "prices": "price",
        "zonePrices": "price",
        "allocatable": "allocatable",
    },
    "accelerators": {"productName": "productName", "memory": "memory"},
}
_REST: Final = {"types": "shape", "accelerators": "identity"}
_MOST: Final = 48
_NO_SOURCE: Final = "-"


def origin_rows(instance_type: InstanceType, origins: Sequence[ValueOrigin]) -> list[tuple[str, ...]]:
    """One row for each value; provenance itself is the third column."""
    written = _provenance_files(origins)
    return [
        (
            _title(origin),
            _shown(origin.won.value),
            _source(instance_type, origin, written),
            _where(origin.won),
            ", ".join(f"{_shown(place.value)} ({_where(place)})" for place in origin.overridden) or "-",
        )
        for origin in origins
        if not _is_silent(origin)
    ]


def origin_data(instance_type: InstanceType, origins: Sequence[ValueOrigin]) -> list[dict[str, Any]]:
    """The same for programs."""
    written = _provenance_files(origins)
    return [
        {
            "entry": origin.entry,
            "field": origin.field,
            "source": _source(instance_type, origin, written),
            **_place(origin.won),
            "overrides": [_place(place) for place in origin.overridden],
        }
        for origin in origins
        if not _is_silent(origin)
    ]


def _where(place: Place) -> str:
    """File and line, with the properties of the layer: `my-types/deal.yaml:4 (priority 10, until 2026-12-31)`."""
    notes = [
        *([f"priority {place.priority}"] if place.priority else []),
        *([f"until {place.expires:%Y-%m-%d %H:%M}Z"] if place.expires else []),
    ]
    return f"{place.file}:{place.line}" + (f" ({', '.join(notes)})" if notes else "")


def _title(origin: ValueOrigin) -> str:
    return origin.field if origin.entry == "types" else f"model {origin.field}"


def _is_silent(origin: ValueOrigin) -> bool:
    """Provenance has a column of its own, and a price that is no guess needs no remark."""
    return origin.field.startswith("provenance.") or (origin.field.endswith(".guess") and not origin.won.value)


def _place(place: Place) -> dict[str, Any]:
    fields = {"priority": place.priority or None, "reason": place.reason or None}
    until = {"expires": place.expires.isoformat()} if place.expires else {}
    layer = {name: value for name, value in fields.items() if value is not None}
    return {"value": place.value, "file": place.file, "line": place.line, **layer, **until}


def _source(instance_type: InstanceType, origin: ValueOrigin, written: Mapping[tuple[str, str], str]) -> str:
    """The provenance of the value's group, or the reason of the overlay that gave the value without any.

    None where another later layer gave it without saying where from.
    """
    first = origin.field.partition(".")[0]
    facts = instance_type.provenance
    if origin.entry == "accelerators" and instance_type.accelerator is not None:
        facts = instance_type.accelerator.provenance
    group = _GROUPS[origin.entry].get(first, _REST[origin.entry])
    if group not in facts:
        group = _REST[origin.entry]
    if origin.won.reason and written.get((origin.entry, group)) != origin.won.file:
        return origin.won.reason
    stale = written.get((origin.entry, group)) in {place.file for place in origin.overridden}
    found = provenance_of(facts, group)
    return _text(found) if found is not None and not stale else _NO_SOURCE


def _provenance_files(origins: Sequence[ValueOrigin]) -> dict[tuple[str, str], str]:
    """The file of the provenance of each group."""
    return {(o.entry, o.field.split(".")[1]): o.won.file for o in origins if o.field.endswith(".source")}


def _text(found: Provenance) -> str:
    return " ".join(part for part in ("(guess)" if found.guess else "", found.source, found.date) if part)


def _shown(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _MOST else f"{text[: _MOST - 1]}…"

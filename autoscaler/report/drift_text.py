"""Drift as tables: the differences in what a node published, devices with the same difference in one row."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from instance_catalog.drift.compare import Aspect, Compared, Difference
from instance_catalog.kubernetes.resource_slice import Capacity, ListValue, RuntimeOnly, Unset, Version

COLUMNS = ("change", "what", "driver", "devices", "predicted", "published")
_MOST_NAMED = 3
_MOST_LENGTH = 600  # an event's message has room for 1024 characters


def drift_rows(differences: Iterable[Difference]) -> list[tuple[str, ...]]:
    """One row for each difference, with all devices that have it."""
    grouped: dict[tuple[str, ...], list[str]] = {}
    for difference in differences:
        key = (
            difference.change.value,
            _what(difference),
            difference.driver,
            shown(difference.predicted),
            shown(difference.published),
        )
        grouped.setdefault(key, []).append(difference.device)
    return [
        (change, what, driver, _named(devices), *values) for (change, what, driver, *values), devices in grouped.items()
    ]


def drift_text(differences: Iterable[Difference]) -> str:
    """The first differences in one line, as many as an event has room for, and the number of the others."""
    rows = drift_rows(differences)
    shown_rows: list[str] = []
    for change, what, driver, devices, predicted, published in rows[:_MOST_NAMED]:
        where = f" of {devices}" if devices else ""
        values = f" ({predicted} predicted, {published} published)" if (predicted, published) != ("-", "-") else ""
        text = f"{change} {what}{where} [{driver}]{values}"
        if sum(map(len, shown_rows)) + len(text) > _MOST_LENGTH:
            break
        shown_rows.append(text)
    more = len(rows) - len(shown_rows)
    return "; ".join([*shown_rows, *([f"{more} more"] if more else [])])


def drift_data(differences: Iterable[Difference]) -> list[dict[str, str]]:
    """The differences one by one, for programs."""
    return [
        {
            "change": difference.change.value,
            "aspect": difference.aspect.value,
            "driver": difference.driver,
            "device": difference.device,
            "field": difference.field,
            "predicted": shown(difference.predicted),
            "published": shown(difference.published),
        }
        for difference in differences
    ]


def shown(value: Compared) -> str:
    """A value as text."""
    match value:
        case None:
            return "-"
        case bool():
            return str(value).lower()
        case RuntimeOnly():
            return "(not in the catalog)" if value.is_catalog_gap else "(a value no other group has)"
        case Version():
            return value.text
        case ListValue():
            return f"[{', '.join(shown(item) for item in value.items)}]"
        case Unset():
            return f"(unreadable: {value.found or 'no value'})"
        case Capacity():
            return f"{value.value}{' with a request policy' if value.policy else ''}"
        case tuple():
            return f"({', '.join(str(item) for item in value)})"
        case "":
            return '""'
        case _:
            return str(value)


def _what(difference: Difference) -> str:
    if difference.aspect is Aspect.DEVICE and difference.field:
        return f"device field {difference.field}"
    return f"{difference.aspect.value} {difference.field}".strip()


def _named(devices: Sequence[str]) -> str:
    names = [device for device in devices if device]
    more = len(names) - _MOST_NAMED
    return ", ".join(names[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "") if names else "-"

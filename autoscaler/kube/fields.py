"""Typed reading of JSON objects, one field at a time.

`Fields` is a cursor: it has its path, records every value of the wrong type as a problem, and records which fields were
read, so that `unread` can report the rest. It contains nothing about Kubernetes kinds.

null counts as absent everywhere, as in the API server. A cluster has millions of fields, which a controller reads when
it starts: the accessors that nearly all of them go through have a first line that does no more than these need.
"""

from __future__ import annotations

import marshal
import math
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Final

from autoscaler.kube.problem import Problems, left_by_template, unquoted
from instance_catalog.diagnostic import Path
from instance_catalog.frozen_map import EMPTY, FrozenMap
from instance_catalog.kubernetes.quantity import Quantity, QuantityError

INT64: Final = range(-(2**63), 2**63)
_NO_QUANTITIES: Final[FrozenMap[str, Quantity]] = FrozenMap()


class Fields:
    """A JSON object being read. Accessors always return a usable value, and report values that do not fit."""

    __slots__ = ("_raw", "_seen", "path", "problems")

    def __init__(self, raw: object, problems: Problems | None = None, path: Path = ()) -> None:
        self.problems = Problems() if problems is None else problems
        self.path = path
        self._raw: dict[object, object] = raw if isinstance(raw, dict) else {}
        self._seen: set[str] = set()
        if raw is not None and not isinstance(raw, dict):
            self.problems.error(path, f"expected an object, found {describe(raw)}", "write it as `name: value` lines")

    def __contains__(self, name: str) -> bool:
        """True if the field is present (and not null). Does not count as reading it."""
        return self._raw.get(name) is not None

    def __bool__(self) -> bool:
        """True if the object has any field."""
        return bool(self._raw)

    def names(self) -> tuple[str, ...]:
        """The names of all fields that are present, in order; non-text keys are reported."""
        for key in self._raw:
            if not isinstance(key, str):
                self.problems.error(self.path, f"field name {key!r} is not text", "put it in quotes")
        return tuple([key for key, value in self._raw.items() if value is not None and isinstance(key, str)])

    def items(self) -> list[tuple[str, object]]:
        """The names and unchanged values of all fields that are present, in order; non-text keys are reported. Does not
        count as reading them."""
        found = [(key, value) for key, value in self._raw.items() if value is not None and isinstance(key, str)]
        if len(found) != len(self._raw):
            self.names()
        return found

    def among(self, names: Iterable[str]) -> list[str]:
        """Those of the names whose fields are present. Does not count as reading them."""
        raw = self._raw
        return [name for name in names if raw.get(name) is not None]

    def raw(self, name: str) -> object:
        """The unchanged value; None if absent."""
        self._seen.add(name)
        return self._raw.get(name)

    def without(self, *names: str) -> Fields:
        """The same object without these fields, for a reader of the others."""
        rest = Fields({key: value for key, value in self._raw.items() if key not in names}, self.problems, self.path)
        rest.ignore(*names)
        return rest

    def content(self) -> bytes | None:
        """The whole object as bytes, equal only for objects that no reader can distinguish: 1 is not true, and order
        counts. None for values that JSON does not have, such as the dates of YAML."""
        try:
            return marshal.dumps(self._raw, 2)  # later versions depend on which values are one object
        except ValueError:
            return None

    def error(self, name: str, message: str, next_step: str = "") -> None:
        self.problems.error((*self.path, name), message, next_step)

    def warn(self, name: str, message: str, next_step: str = "") -> None:
        self.problems.warn((*self.path, name), message, next_step)

    def _wrong(self, name: str, expected: str, value: object, next_step: str = "") -> None:
        self.error(name, f"expected {expected}, found {describe(value)}", next_step)

    def optional_text(self, name: str) -> str | None:
        """A string, None if absent."""
        self._seen.add(name)
        value = self._raw.get(name)
        if value is None or isinstance(value, str):
            return value
        quotes = "put the value in quotes" if not isinstance(value, dict | list) else ""
        self._wrong(name, "a string", value, left_by_template(value) or quotes)
        return None

    def text(self, name: str, default: str = "") -> str:
        value = self.optional_text(name)
        return default if value is None else value

    def required(self, name: str) -> str:
        """A string that must be present and not empty."""
        value = self.text(name)
        if not value and not isinstance(self._raw.get(name), dict | list | int | float):
            self.error(name, "is required", f"add `{name}:` here")
        return value

    def choice(self, name: str, allowed: Iterable[str], default: str) -> str:
        """One of the strings `allowed`; any other is reported and kept, so that it is not mistaken for another."""
        value = self.text(name) or default
        allowed = tuple(allowed)
        if not value:
            self.error(name, "is required", f"use one of {', '.join(allowed)}")
        elif value not in allowed:
            self.error(name, f"{value!r} is not one of {', '.join(allowed)}", "use one of the allowed values")
        return value

    def optional_flag(self, name: str) -> bool | None:
        """true or false, None if absent."""
        value = self.raw(name)
        if value is None or isinstance(value, bool):
            return value
        self._wrong(name, "true or false", value, unquoted(value, "true or false"))
        return None

    def flag(self, name: str) -> bool:
        """true or false; absent is false."""
        return bool(self.optional_flag(name))

    def optional_integer(self, name: str) -> int | None:
        """A whole number of 64 bits, None if absent."""
        value = self.raw(name)
        if value is None:
            return None
        if isinstance(value, float) and math.isfinite(value) and value.is_integer():
            value = int(value)
        if isinstance(value, int) and not isinstance(value, bool) and value in INT64:
            return value
        self._wrong(name, "a whole number", value, unquoted(value, "a whole number"))
        return None

    def integer(self, name: str, default: int = 0) -> int:
        """A whole number of 64 bits."""
        value = self.optional_integer(name)
        return default if value is None else value

    def time(self, name: str) -> datetime | None:
        """An RFC 3339 time, None if absent or unreadable."""
        text = self.optional_text(name)
        if not text:
            return None
        try:
            found = datetime.fromisoformat(text)
        except ValueError:
            self.error(name, f"{text!r} is not a time", "write it like 2027-01-31T09:00:00Z")
            return None
        return found if found.tzinfo else found.replace(tzinfo=UTC)

    def epoch(self, name: str) -> float | None:
        """An RFC 3339 time as seconds since the epoch."""
        found = self.time(name)
        return None if found is None else found.timestamp()

    def quantity(self, name: str) -> Quantity | None:
        """A Kubernetes quantity, written as a string or a number; None if absent or unreadable."""
        value = self.raw(name)
        return None if value is None else self._quantity(value, (*self.path, name))

    def _quantity(self, value: object, path: Path) -> Quantity | None:
        if isinstance(value, float) and value.is_integer():
            value = int(value)  # like sigs.k8s.io/yaml, which converts to JSON
        if isinstance(value, str | int | float) and not isinstance(value, bool):
            try:
                found = Quantity.stored(str(value))
            except QuantityError:
                pass
            else:
                if found.is_written_out:
                    return found
                self.problems.error(path, f"{describe(value)} is too large to count with", "write a smaller amount")
                return None
        number = 'write a number with an optional suffix, like "40Gi" or "500m"'
        self.problems.error(path, f"expected a quantity, found {describe(value)}", left_by_template(value) or number)
        return None

    def child(self, name: str) -> Fields:
        """The object in field `name`, empty if absent."""
        self._seen.add(name)
        return Fields(self._raw.get(name), self.problems, (*self.path, name))

    def optional_child(self, name: str) -> Fields | None:
        """The object in field `name`, None if absent or of another type."""
        if self._raw.get(name) is None:
            self._seen.add(name)
            return None
        found = self.child(name)
        return found if isinstance(self._raw[name], dict) else None

    def _list(self, name: str) -> list[object]:
        value = self.raw(name)
        if isinstance(value, list):
            return value
        if value is not None:
            self._wrong(name, "a list", value, "start each entry with `- `")
        return []

    def children(self, name: str) -> Iterator[Fields]:
        """The objects of a list."""
        self._seen.add(name)
        return iter(()) if self._raw.get(name) is None else self._children(name)

    def _children(self, name: str) -> Iterator[Fields]:
        for index, value in enumerate(self._list(name)):
            path = (*self.path, name, index)
            if value is None:
                self.problems.error(path, "expected an object, found nothing", "remove the empty entry or fill it in")
            else:
                yield Fields(value, self.problems, path)

    def texts(self, name: str) -> tuple[str, ...]:
        found = []
        for index, value in enumerate(self._list(name)):
            if isinstance(value, str):
                found.append(value)
            else:
                path = (*self.path, name, index)
                self.problems.error(path, f"expected a string, found {describe(value)}", "put the value in quotes")
        return tuple(found)

    def text_map(self, name: str) -> FrozenMap[str, str]:
        """An object whose values are strings, such as labels."""
        if self._raw.get(name) is None:
            self._seen.add(name)
            return EMPTY
        inner = self.child(name)
        return FrozenMap({key: inner.text(key) for key in inner.names()})

    def quantities(self, name: str) -> FrozenMap[str, Quantity]:
        """An object whose values are quantities, such as resource requests. A key without a value is reported."""
        if self._raw.get(name) is None:
            self._seen.add(name)
            return _NO_QUANTITIES
        inner = self.child(name)
        for key in (key for key, value in inner._raw.items() if value is None and isinstance(key, str)):
            if "/" in key:  # an API server takes it as 0, but a request that names a device needs an amount
                inner.error(key, "has no value", "write how many the pod needs, or leave the line out")
            else:
                inner.warn(key, "has no value and counts as 0", "write the amount, or leave the line out")
        pairs = ((key, inner.quantity(key)) for key in inner.names())
        return FrozenMap({key: value for key, value in pairs if value is not None})

    def quantity_list(self, name: str) -> tuple[Quantity, ...]:
        path = (*self.path, name)
        found = (self._quantity(value, (*path, index)) for index, value in enumerate(self._list(name)))
        return tuple(quantity for quantity in found if quantity is not None)

    def ignore(self, *names: str) -> None:
        """Mark fields as read that have no effect here."""
        self._seen.update(names)

    def unsupported(self, *names: str) -> tuple[str, ...]:
        """Those of the fields `names` that are present but unsupported, with a warning for each."""
        found = tuple(name for name in names if name in self)
        self._seen.update(names)
        for name in found:
            self.warn(name, f"{name} is not supported", "what depends on it gets the verdict unknown")
        return found

    def unread(self) -> tuple[str, ...]:
        """Report every field that was not read as unknown, and return their names."""
        if self._raw.keys() <= self._seen:
            return ()
        unknown = tuple(name for name in self.names() if name not in self._seen)
        for name in unknown:
            self.problems.unknown_field((*self.path, name), self._seen - set(unknown))
        return unknown


def describe(value: object) -> str:
    """A JSON value in the words of its author."""
    match value:
        case None:
            return "nothing"
        case bool():
            return str(value).lower()
        case dict():
            return "an object"
        case list():
            return "a list"
    kind = "the string" if isinstance(value, str) else "the number" if isinstance(value, int | float) else "the value"
    text = repr(value)
    return f"{kind} {text if len(text) <= 60 else text[:57] + '...'}"

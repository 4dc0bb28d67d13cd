"""The values of expressions, with equality and order.

bool, int, float, str, bytes, None (null) and list are Python's own. A Python bool is an int, so code here always uses
`type(x) is`, never isinstance. Failures are values too (`Fault`): CEL's && and || absorb them, and upstream charges the
cost of what is evaluated after one. `Unknown` is used for values that exist only once a node runs, and for results too
large to compute. Rules: cel-go v0.26.0 common/types, k8s.io/apiserver v0.36.3 pkg/cel.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from typing import Any, TypeAlias

from instance_catalog.dataclass import dataclass
from instance_catalog.kubernetes.quantity import Quantity
from instance_catalog.kubernetes.semver import SemanticVersion

# A CEL value. Its class is only known when the expression runs: every operation dispatches on it.
Value: TypeAlias = Any

INT_MIN, INT_MAX, UINT_MAX = -(2**63), 2**63 - 1, 2**64 - 1


class UInt(int):
    """An unsigned 64-bit integer."""

    __slots__ = ()


class Fault:
    """A result that is not a value."""

    __slots__ = ()


class Failure(Fault):
    """A run-time error. `missing_key` is the key that a map or a device lacks, "" for every other error."""

    __slots__ = ("message", "missing_key")

    def __init__(self, message: str, missing_key: str = "") -> None:
        self.message = message
        self.missing_key = missing_key

    @classmethod
    def no_such_key(cls, key: object) -> Failure:
        """The error for a missing key."""
        return cls(f"no such key: {key}", str(key))


class Unknown(Fault):
    """A result that depends on `attributes` ("domain/id") whose values are not known yet, or on `reason`.

    `bounds` are the least and the greatest possible value: quantities of a device's capacity, or results of compareTo()
    for one. Functions pass an unknown argument on unchanged, so only interpreter/bounds.py may read them, where the
    syntax shows their source. `choices` are all possible values of a device's attribute.
    """

    __slots__ = ("attributes", "bounds", "choices", "reason")

    def __init__(
        self,
        attributes: frozenset[str],
        reason: str = "",
        *,
        bounds: tuple[Quantity, Quantity] | tuple[int, int] | None = None,
        choices: tuple[Value, ...] = (),
    ) -> None:
        self.attributes = attributes
        self.reason = reason
        self.bounds = bounds
        self.choices = choices

    def merged(self, other: Unknown) -> Unknown:
        return Unknown(self.attributes | other.attributes, self.reason or other.reason)


FAULTS = frozenset({Failure, Unknown})


@dataclass(frozen=True, slots=True, order=True)
class Duration:
    nanoseconds: int


@dataclasses.dataclass(frozen=True, slots=True, order=True)
class Timestamp:
    """An instant in nanoseconds since 1970; `offset` in seconds is only used to print it as it was written."""

    nanoseconds: int
    offset: int = dataclasses.field(default=0, compare=False)


class QuantityCell:
    """A quantity, and True if it came from arithmetic.

    Upstream's comparisons convert a receiver in place and its add and sub may change it, so the cell is mutable; each
    evaluation creates its own. `computed` results are another Go type, which `==` does not accept on its right side.
    """

    __slots__ = ("computed", "quantity")

    def __init__(self, quantity: Quantity, *, computed: bool = False) -> None:
        self.quantity = quantity
        self.computed = computed


@dataclass(frozen=True, slots=True)
class TypeName:
    """A type as a value."""

    name: str


class OptionalValue:
    """An optional that has a value, or `NONE`."""

    __slots__ = ("value",)

    def __init__(self, value: Value) -> None:
        self.value = value


NONE = OptionalValue(None)


@dataclass(frozen=True, slots=True)
class Address:
    """An IP address: family 4 or 6 and its bits."""

    family: int
    bits: int


@dataclass(frozen=True, slots=True)
class Prefix:
    """A CIDR; host bits are kept."""

    address: Address
    length: int


@dataclass(frozen=True, slots=True)
class Url:
    """A parsed URL: its parts and, for equality, its printed text."""

    text: str
    scheme: str
    host: str
    hostname: str
    port: str
    escaped_path: str
    query: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class NamedFormat:
    """A named string format; `regex_size` affects the cost of validating."""

    name: str
    regex_size: int


class Message:
    """A protobuf message without a CEL counterpart, such as google.protobuf.Empty."""

    __slots__ = ("type_name",)

    def __init__(self, type_name: str) -> None:
        self.type_name = type_name


class CelMap:
    """A map. Keys of different kinds are different keys; numeric look-ups cross kinds as upstream's do."""

    __slots__ = ("entries",)

    def __init__(self, entries: dict[Value, Value] | None = None) -> None:
        # A string is its own key; any other key is stored as (class, value), see `key_of`.
        self.entries: dict[Value, Value] = {} if entries is None else entries

    def find(self, key: Value) -> Value:
        """The value at `key`, or MISSING. Raises PanicError for a key that cannot be hashed."""
        if type(key) is str:
            return self.entries.get(key, MISSING)
        found = self.entries.get(key_of(key), MISSING)
        if found is not MISSING or type(key) not in _NUMBERS:
            return found
        return next((self.entries[other] for other in _other_kinds(key) if other in self.entries), MISSING)

    def keys(self) -> Iterator[Value]:
        """The keys, in insertion order."""
        for key in self.entries:
            yield key if type(key) is str else key[1]

    def items(self) -> Iterator[tuple[Value, Value]]:
        for key, value in self.entries.items():
            yield (key if type(key) is str else key[1]), value

    def __len__(self) -> int:
        return len(self.entries)


class StringMap(CelMap):
    """A map that only has string keys, as device maps do: other keys are missing, not errors."""

    __slots__ = ()

    def find(self, key: Value) -> Value:
        """The value at `key`, or MISSING."""
        return self.entries.get(key, MISSING) if type(key) is str else MISSING


class DefaultMap(StringMap):
    """The outer maps of a device: a look-up of a missing domain returns an empty map; enumeration skips it."""

    __slots__ = ()

    def find(self, key: Value) -> Value:
        """The value at `key`, or an empty map."""
        return self.entries.get(key, EMPTY_MAP) if type(key) is str else EMPTY_MAP


class Missing:
    """The result of a look-up without a match."""

    __slots__ = ()


MISSING = Missing()
EMPTY_MAP = StringMap()
MAPS = frozenset({CelMap, StringMap, DefaultMap})


class _Unfindable(tuple[type, Value]):
    """The key of a value that Go hashes by its address: no other value ever equals it."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)


class PanicError(Exception):
    """A Go panic upstream, such as hashing a value that has no hash: no part of the expression can absorb it."""


# Go panics when such a value becomes the key of a native map.
_UNHASHABLE = frozenset({SemanticVersion, bytes, NamedFormat})
_NUMBERS = frozenset({int, UInt, float})
_BY_ADDRESS = frozenset({list, CelMap, StringMap, DefaultMap, OptionalValue, QuantityCell, Url, Message})


def key_of(key: Value) -> Value:
    """The form in which a map stores `key`. Raises PanicError."""
    kind = type(key)
    if kind is str:
        return key
    if kind in _UNHASHABLE:
        raise PanicError("hash of unhashable type")
    return _Unfindable((kind, key)) if kind in _BY_ADDRESS else (kind, key)


def _other_kinds(key: Value) -> list[Value]:
    """The keys of other number types under which a numeric key is looked up as well."""
    if type(key) is int:
        return [(UInt, UInt(key))] if key >= 0 else []
    if type(key) is UInt:
        return [(int, int(key))]
    if not math.isfinite(key) or key != int(key):
        return []
    return [(int, int(key)), *([(UInt, UInt(key))] if key >= 0 else [])]

"""The protobuf messages that an expression can construct, and the values they convert to (cel-go v0.26.0 common/types).

Fields accept the result of `ConvertToNative` for the given value (int.go, string.go, list.go, map.go, optional.go and
others; for Kubernetes' types k8s.io/apiserver v0.36.3 pkg/cel); anything else is a run-time error (provider.go).
"""

from __future__ import annotations

import re
import struct
from base64 import b64encode
from collections.abc import Callable, Mapping
from typing import Final

from autoscaler.cel.common import types
from autoscaler.cel.common.evaluation import enter, leave
from autoscaler.cel.common.types import Type
from autoscaler.cel.common.values import (
    FAULTS,
    INT_MAX,
    INT_MIN,
    MAPS,
    NONE,
    UINT_MAX,
    Address,
    CelMap,
    Duration,
    Failure,
    Message,
    OptionalValue,
    Prefix,
    QuantityCell,
    Timestamp,
    UInt,
    Unknown,
    Url,
    Value,
)
from autoscaler.cel.library.conversions import type_of
from autoscaler.cel.library.instants import SECOND, duration_text, timestamp_text
from autoscaler.cel.library.network import address_text, prefix_text
from instance_catalog.kubernetes.semver import SemanticVersion

_PREFIX: Final = "google.protobuf."
_WRAPPED: Final = {
    "BoolValue": (types.BOOL, False),
    "BytesValue": (types.BYTES, b""),
    "DoubleValue": (types.DOUBLE, 0.0),
    "FloatValue": (types.DOUBLE, 0.0),
    "Int32Value": (types.INT, 0),
    "Int64Value": (types.INT, 0),
    "StringValue": (types.STRING, ""),
    "UInt32Value": (types.UINT, UInt(0)),
    "UInt64Value": (types.UINT, UInt(0)),
}
_SECONDS: Final = {"seconds": types.INT, "nanos": types.INT}
_STRUCT: Final = types.map_of(types.STRING, types.DYN)
_LIST: Final = types.list_of(types.DYN)

TYPES: Final[Mapping[str, Type]] = {_PREFIX + name: types.wrapper_of(t) for name, (t, _) in _WRAPPED.items()} | {
    _PREFIX + "Struct": _STRUCT,
    _PREFIX + "ListValue": _LIST,
    _PREFIX + "Value": types.DYN,
    _PREFIX + "Any": types.ANY,
    _PREFIX + "Duration": types.DURATION,
    _PREFIX + "Timestamp": types.TIMESTAMP,
    _PREFIX + "Empty": Type("struct", _PREFIX + "Empty"),
}
FIELDS: Final[Mapping[str, Mapping[str, Type]]] = {
    _PREFIX + name: {"value": t} for name, (t, _) in _WRAPPED.items()
} | {
    _PREFIX + "Struct": {"fields": _STRUCT},
    _PREFIX + "ListValue": {"values": _LIST},
    _PREFIX + "Value": {
        "null_value": types.INT,
        "number_value": types.DOUBLE,
        "string_value": types.STRING,
        "bool_value": types.BOOL,
        "struct_value": _STRUCT,
        "list_value": _LIST,
    },
    _PREFIX + "Any": {"type_url": types.STRING, "value": types.BYTES},
    _PREFIX + "Duration": _SECONDS,
    _PREFIX + "Timestamp": _SECONDS,
    _PREFIX + "Empty": {},
}
_JSON_SAFE: Final = 2**53 - 1
_REGISTERED: Final = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+", re.ASCII)
_INT32, _UINT32 = (-(2**31), 2**31 - 1), (0, 2**32 - 1)
_DOWNCAST_LIMIT: Final = (2.0 - 2.0**-24) * 2.0**127  # from this value on a double rounds to infinity


def _mismatch(value: Value, wanted: str) -> Failure:
    return Failure(f"type conversion error from '{type_of(value).name}' to '{wanted}'")


def _whole(kind: type[int], wanted: str, limits: tuple[int, int]) -> Callable[[Value], Value]:
    low, high = limits

    def convert(value: Value) -> Value:
        if type(value) is not kind:
            return _mismatch(value, wanted)
        return value if low <= value <= high else Failure("integer overflow")

    return convert


def _only(kind: type, wanted: str) -> Callable[[Value], Value]:
    return lambda value: value if type(value) is kind else _mismatch(value, wanted)


def _to_float(value: Value) -> Value:
    """float32: rounded, infinite if it is too large."""
    if type(value) is not float:
        return _mismatch(value, "float")
    if abs(value) >= _DOWNCAST_LIMIT:
        return float("inf") if value > 0 else float("-inf")
    return struct.unpack("f", struct.pack("f", value))[0]


def _to_string(value: Value) -> Value:
    match value:
        case str():
            return value
        case QuantityCell():
            return str(value.quantity)
        case SemanticVersion():
            return str(value)
        case Address():
            return address_text(value)
        case Prefix():
            return prefix_text(value)
        case Url():
            return value.text
    return _mismatch(value, "string")


def _to_bytes(value: Value) -> Value:
    if type(value) is not list:
        return value if type(value) is bytes else _mismatch(value, "bytes")
    items = [item.value if type(item) is OptionalValue and item is not NONE else item for item in value]
    if all(type(item) is UInt and item < 256 for item in items):
        return bytes(items)
    return _mismatch(value, "bytes")


def _to_struct(value: Value) -> Value:
    """google.protobuf.Struct: JSON, in which all numbers are doubles."""
    if type(value) not in MAPS:
        return _mismatch(value, "google.protobuf.Struct")
    enter(len(value))
    entries: dict[Value, Value] = {}
    for key, item in value.items():
        name, converted = _given(_to_string, key), _given(_to_json, item)
        if type(name) in FAULTS or type(converted) in FAULTS:
            return name if type(name) in FAULTS else converted
        entries[name] = converted
    leave()
    return CelMap(entries)


def _to_list(value: Value) -> Value:
    """google.protobuf.ListValue."""
    if type(value) is not list:
        return _mismatch(value, "google.protobuf.ListValue")
    enter(len(value))
    items = []
    for item in value:
        converted = _given(_to_json, item)
        if type(converted) in FAULTS:
            return converted
        items.append(converted)
    leave()
    return items


def _to_list_message(value: Value) -> Value:
    """The same as a message of its own: upstream reads a map as the Go struct, whose only field is Values."""
    if type(value) in MAPS and all(key in ("values", "Values") for key, _ in value.items()):
        value = next((item for _, item in value.items()), [])
    return _to_list(value)


def _to_json(value: Value) -> Value:
    """google.protobuf.Value."""
    match value:
        case None | str() | bool() | float():
            return value
        case int():
            return float(value) if abs(value) <= _JSON_SAFE else str(int(value))
        case bytes():
            return b64encode(value).decode()
        case Timestamp():
            return timestamp_text(value)
        case Duration():
            return duration_text(value)
        case list():
            return _to_list(value)
        case CelMap():
            return _to_struct(value)
        case Message():
            return CelMap()
    return _mismatch(value, "google.protobuf.Value")


def _given(convert: Callable[[Value], Value], value: Value) -> Value:
    """The value for a field; an optional is replaced by its value."""
    while type(value) is OptionalValue:
        if value is NONE:
            return Failure("optional.none() dereference")
        value = value.value
    return value if type(value) in FAULTS else convert(value)


_INT64: Final = _whole(int, "int64", (INT_MIN, INT_MAX))
_SECONDS_FIELDS: Final = {"seconds": _INT64, "nanos": _whole(int, "int32", _INT32)}
# The type that each field of a message accepts. Fields of these types accept no optional, only a list or a map.
_TAKES: Final[Mapping[str, Mapping[str, Callable[[Value], Value]]]] = {
    "BoolValue": {"value": _only(bool, "bool")},
    "BytesValue": {"value": _to_bytes},
    "DoubleValue": {"value": _only(float, "double")},
    "FloatValue": {"value": _to_float},
    "Int32Value": {"value": _whole(int, "int32", _INT32)},
    "Int64Value": {"value": _INT64},
    "StringValue": {"value": _to_string},
    "UInt32Value": {"value": _whole(UInt, "uint32", _UINT32)},
    "UInt64Value": {"value": _whole(UInt, "uint64", (0, UINT_MAX))},
    "Struct": {"fields": _to_struct},
    "ListValue": {"values": _to_list},
    "Value": {
        "null_value": _whole(int, "int32", _INT32),
        "number_value": _only(float, "double"),
        "string_value": _to_string,
        "bool_value": _only(bool, "bool"),
        "struct_value": _to_struct,
        "list_value": _to_list_message,
    },
    "Any": {"type_url": _to_string, "value": _to_bytes},
    "Duration": _SECONDS_FIELDS,
    "Timestamp": _SECONDS_FIELDS,
    "Empty": {},
}
# Their only field is repeated or a map: upstream requires a list or a map before it converts.
_CONTAINERS: Final = frozenset({"Struct", "ListValue"})


def construct(name: str, given: Mapping[str, Value]) -> Value:
    """The value of a message literal, or a Failure."""
    short = name.removeprefix(_PREFIX)
    takes = _TAKES.get(short)
    if takes is None:
        return Failure(f"unknown type: {name}")
    fields: dict[str, Value] = {}
    for field, value in given.items():
        convert = takes[field]
        converted = convert(value) if short in _CONTAINERS else _given(convert, value)
        if type(converted) in FAULTS:
            return _of_field(converted, f"{name}.{field}")
        fields[field] = converted
    if short in _WRAPPED:
        return fields.get("value", _WRAPPED[short][1])
    match short:
        case "Struct":
            return fields.get("fields", CelMap())
        case "ListValue":
            return fields.get("values", [])
        case "Value":
            return next((v for key, v in fields.items() if key != "null_value"), None)
        case "Duration":
            return _duration(fields.get("seconds", 0), fields.get("nanos", 0))
        case "Timestamp":
            return Timestamp(fields.get("seconds", 0) * SECOND + fields.get("nanos", 0))
        case "Any":
            return _packed(fields.get("type_url", ""), fields.get("value", b""))
    return Message(name)


def _of_field(fault: Value, field: str) -> Value:
    if type(fault) is Failure:
        return Failure(f"field type conversion error for {field} value type: {fault.message}")
    return fault


def _duration(seconds: int, nanos: int) -> Duration:
    """Duration.AsDuration of google.golang.org/protobuf, which saturates at the bounds."""
    if not INT_MIN <= seconds * SECOND <= INT_MAX:
        return Duration(INT_MIN if seconds < 0 else INT_MAX)
    return Duration(min(max(seconds * SECOND + nanos, INT_MIN), INT_MAX))


def _packed(type_url: str, content: bytes) -> Value:
    """The message in an Any; unknown for most, because only some of the scheduler's types are implemented here."""
    name = type_url.rpartition("/")[2]
    if not content and name.removeprefix(_PREFIX) in _TAKES and name != f"{_PREFIX}Any":
        return construct(name, {})
    if _REGISTERED.fullmatch(name):
        return Unknown(frozenset(), f"what {name} in a google.protobuf.Any holds is not computed")
    return Failure(f'anypb.UnmarshalNew() failed for type "{type_url}"')

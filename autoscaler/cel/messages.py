"""The protobuf messages an expression can construct, with what they become (cel-go common/types/pb)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from autoscaler.cel import types
from autoscaler.cel.types import Type
from autoscaler.cel.values import (
    INT_MAX,
    INT_MIN,
    UINT_MAX,
    CelMap,
    Duration,
    Failure,
    Message,
    Timestamp,
    UInt,
    Value,
)

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
_RANGES: Final = {"Int32Value": (-(2**31), 2**31 - 1), "UInt32Value": (0, 2**32 - 1)}


def construct(name: str, fields: Mapping[str, Value]) -> Value:
    """The value of a message literal, or a Failure."""
    short = name.removeprefix(_PREFIX)
    if short in _WRAPPED:
        value = fields.get("value", _WRAPPED[short][1])
        low, high = _RANGES.get(short, (INT_MIN, UINT_MAX))
        if type(value) in (int, UInt) and not low <= value <= high:
            return Failure("integer overflow")
        return value
    match short:
        case "Struct":
            return fields.get("fields", CelMap())
        case "ListValue":
            return fields.get("values", [])
        case "Value":
            return next((v for key, v in fields.items() if key != "null_value"), None)
        case "Duration":
            nanoseconds = fields.get("seconds", 0) * 10**9 + fields.get("nanos", 0)
            return Duration(nanoseconds) if abs(nanoseconds) <= INT_MAX else Failure("duration out of range")
        case "Timestamp":
            return Timestamp(fields.get("seconds", 0) * 10**9 + fields.get("nanos", 0))
        case "Empty":
            return Message(name)
    return Failure(f"unknown type: {name}")

"""Conversions between kinds: int(), string(), timestamp() … (cel-go v0.26.0, ConvertToType of common/types)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from autoscaler.cel.common.numerals import parse_float, shortest
from autoscaler.cel.common.values import (
    INT_MAX,
    INT_MIN,
    MAPS,
    UINT_MAX,
    Address,
    Duration,
    Failure,
    Message,
    NamedFormat,
    OptionalValue,
    Prefix,
    QuantityCell,
    Timestamp,
    TypeName,
    UInt,
    Url,
    Value,
)
from autoscaler.cel.library.instants import (
    EARLIEST,
    LATEST,
    SECOND,
    duration_text,
    parse_duration,
    parse_timestamp,
    timestamp_text,
)
from autoscaler.cel.library.network import address_text, prefix_text
from instance_catalog.kubernetes.semver import SemanticVersion

_INTEGER: Final = re.compile(r"[+-]?[0-9]+", re.ASCII)
_UNSIGNED: Final = re.compile(r"[0-9]+", re.ASCII)
_BOOLS: Final = dict.fromkeys(("1", "t", "T", "TRUE", "true", "True"), True) | dict.fromkeys(
    ("0", "f", "F", "FALSE", "false", "False"), False
)
_TYPE_NAMES: Final[Mapping[type, TypeName]] = {
    bool: TypeName("bool"),
    int: TypeName("int"),
    UInt: TypeName("uint"),
    float: TypeName("double"),
    str: TypeName("string"),
    bytes: TypeName("bytes"),
    type(None): TypeName("null_type"),
    list: TypeName("list"),
    **dict.fromkeys(MAPS, TypeName("map")),
    TypeName: TypeName("type"),
    OptionalValue: TypeName("optional_type"),
    Timestamp: TypeName("google.protobuf.Timestamp"),
    Duration: TypeName("google.protobuf.Duration"),
    Address: TypeName("net.IP"),
    Prefix: TypeName("net.CIDR"),
    QuantityCell: TypeName("kubernetes.Quantity"),
    SemanticVersion: TypeName("kubernetes.Semver"),
    Url: TypeName("kubernetes.URL"),
    NamedFormat: TypeName("kubernetes.NamedFormat"),
}


def type_of(value: Value) -> TypeName:
    """type(value)."""
    if type(value) is Message:
        return TypeName(value.type_name)
    return _TYPE_NAMES[type(value)]


def _identity(value: Value) -> Value:
    return value


def _string_to_int(text: str) -> Value:
    if not _INTEGER.fullmatch(text) or len(text) > 1000 or not INT_MIN <= int(text) <= INT_MAX:
        return Failure(f"type conversion error from 'string' to 'int': {text!r}")
    return int(text)


def _string_to_uint(text: str) -> Value:
    if not _UNSIGNED.fullmatch(text) or len(text) > 1000 or int(text) > UINT_MAX:
        return Failure(f"type conversion error from 'string' to 'uint': {text!r}")
    return UInt(text)


def _double_to_int(value: float) -> Value:
    if not -(2.0**63) < value < 2.0**63:
        return Failure("integer overflow")
    return int(value)


def _double_to_uint(value: float) -> Value:
    if not 0 <= value < 2.0**64:
        return Failure("unsigned integer overflow")
    return UInt(int(value))


def _int_to_uint(value: int) -> Value:
    return UInt(value) if value >= 0 else Failure("unsigned integer overflow")


def _uint_to_int(value: UInt) -> Value:
    return int(value) if value <= INT_MAX else Failure("integer overflow")


def _string_to_double(text: str) -> Value:
    value = parse_float(text)
    return Failure(f"type conversion error from 'string' to 'double': {text!r}") if value is None else value


def _string_to_bool(text: str) -> Value:
    return _BOOLS.get(text, Failure(f"type conversion error from 'string' to 'bool': {text!r}"))


def _string_to_duration(text: str) -> Value:
    return parse_duration(text) or Failure(f"type conversion error from 'string' to 'duration': {text!r}")


def _string_to_timestamp(text: str) -> Value:
    return parse_timestamp(text) or Failure(f"type conversion error from 'string' to 'timestamp': {text!r}")


def _int_to_timestamp(seconds: int) -> Value:
    return Timestamp(seconds * SECOND) if EARLIEST <= seconds <= LATEST else Failure("timestamp overflow")


def _bytes_to_string(value: bytes) -> Value:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return Failure("invalid UTF-8 in bytes, cannot convert to string")


def _no_duration(_: int) -> Value:
    return Failure("no such conversion: int to duration")


IMPLEMENTATIONS: Final[Mapping[str, Callable[..., Any]]] = {
    **dict.fromkeys(
        (
            "bool_to_bool", "bytes_to_bytes", "double_to_double", "dur_to_duration", "int_to_int", "string_to_string",
            "ts_to_timestamp", "uint_to_uint",
        ),
        _identity,
    ),
    "string_to_bool": _string_to_bool,
    "string_to_bytes": str.encode,
    "int_to_double": float,
    "string_to_double": _string_to_double,
    "uint_to_double": float,
    "int_to_duration": _no_duration,
    "string_to_duration": _string_to_duration,
    "double_to_int": _double_to_int,
    "dur_to_int": lambda value: value.nanoseconds,
    "string_to_int": _string_to_int,
    "ts_to_int": lambda value: value.nanoseconds // SECOND,
    "uint_to_int": _uint_to_int,
    "bool_to_string": lambda value: "true" if value else "false",
    "bytes_to_string": _bytes_to_string,
    "double_to_string": shortest,
    "dur_to_string": duration_text,
    "int_to_string": str,
    "ts_to_string": timestamp_text,
    "uint_to_string": lambda value: str(int(value)),
    "ip_to_string": address_text,
    "cidr_to_string": prefix_text,
    "int_to_timestamp": _int_to_timestamp,
    "string_to_timestamp": _string_to_timestamp,
    "double_to_uint": _double_to_uint,
    "int_to_uint": _int_to_uint,
    "string_to_uint": _string_to_uint,
}  # fmt: skip
SINGLETONS: Final[Mapping[str, Callable[..., Any]]] = {"dyn": _identity, "type": type_of}

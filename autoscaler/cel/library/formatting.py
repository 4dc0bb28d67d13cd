"""string.format() (cel-go v0.26.0 ext/formatting.go), at run time and as a check of literal format strings."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any, Final

from autoscaler.cel.common.ast import Call, Expression, ListLiteral, Literal, MapLiteral
from autoscaler.cel.common.evaluation import enter, leave
from autoscaler.cel.common.values import INT_MAX, MAPS, Duration, Failure, Timestamp, TypeName, UInt, Unknown, Value
from autoscaler.cel.library.arithmetic import MAX_TEXT, TOO_LARGE
from autoscaler.cel.library.conversions import IMPLEMENTATIONS as _CONVERSIONS
from autoscaler.cel.library.conversions import type_of

_CLAUSE: Final = re.compile(r"%(?:(%)|(?:\.([0-9]*))?(.)?)", re.DOTALL)
_DEFAULT_PRECISION: Final = 6
_MAX_PRECISION: Final = 10_000_009  # of golang.org/x/text, which prints something else for larger ones
_SPECIAL: Final = ("NaN", "Infinity", "-Infinity")
_TO_STRING: Final = {
    int: "int_to_string",
    UInt: "uint_to_string",
    float: "double_to_string",
    bool: "bool_to_string",
    bytes: "bytes_to_string",
    Timestamp: "ts_to_string",
    Duration: "dur_to_string",
}
_SUPERSCRIPT: Final = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")


class FormatError(ValueError):
    """A clause that does not exist or does not fit its argument."""


class _PrecisionError(Exception):
    """A precision that golang.org/x/text treats as a mistake, which it prints."""


def clauses(template: str) -> list[tuple[str, int | None, int]]:
    """Verb, precision and offset of every clause but %%. Raises FormatError."""
    found = []
    for clause in _CLAUSE.finditer(template):
        if clause[1]:
            continue
        if clause[3] is None:
            raise FormatError("unexpected end of string")
        if clause[3] not in "sdfebxXo":
            raise FormatError(f'unrecognized formatting clause "{clause[3]}"')
        if clause[2] is not None and not _is_int64(clause[2]):
            raise FormatError("error while converting precision to integer")
        found.append((clause[3], None if clause[2] is None else int(clause[2]), clause.start()))
    return found


def _is_int64(digits: str) -> bool:
    significant = digits.lstrip("0")
    return bool(digits) and len(significant) < 20 and int(significant or "0") <= INT_MAX


def _format(template: str, arguments: list[Value]) -> Value:
    try:
        return _interpolated(template, arguments)
    except _PrecisionError:
        return Unknown(frozenset(), f"a precision above {_MAX_PRECISION}")
    except FormatError as error:
        return Failure(str(error))


def _interpolated(template: str, arguments: list[Value]) -> Value:
    pieces: list[str] = []
    index = length = last = 0
    for clause in _CLAUSE.finditer(template):
        pieces.append(template[last : clause.start()])
        last = clause.end()
        if clause[1]:
            pieces.append("%")
            continue
        if index >= len(arguments):
            raise FormatError(f"index {index} out of range")
        ((verb, precision, _),) = clauses(clause[0])
        pieces.append(_formatted(verb, precision, arguments[index]))
        length += len(pieces[-1])
        index += 1
        if length > MAX_TEXT:
            return TOO_LARGE
    return "".join([*pieces, template[last:]])


def _formatted(verb: str, precision: int | None, value: Value) -> str:
    kind = type(value)
    match verb:
        case "s":
            return _shown(value)
        case "d" if kind is int or kind is UInt:
            return str(int(value))
        case "f" if kind is float or value in _SPECIAL:
            return _fixed(float(value), _DEFAULT_PRECISION if precision is None else precision)
        case "e" if kind is float or value in _SPECIAL:
            return _scientific(float(value), _DEFAULT_PRECISION if precision is None else precision)
        case "b" if kind is bool:
            return "1" if value else "0"
        case "b" | "o" if kind is int or kind is UInt:
            return format(int(value), verb)
        case "x" | "X" if kind is int or kind is UInt:
            return format(int(value), verb)
        case "x" | "X" if kind is str or kind is bytes:
            digits: str = (value.encode() if kind is str else value).hex()
            return digits.upper() if verb == "X" else digits
    raise FormatError(f"%{verb} cannot format {type_of(value).name}")


def _shown(value: Value) -> str:
    """%s at the top level."""
    kind = type(value)
    if value is None:
        return "null"
    if kind is str:
        return str(value)
    if kind is TypeName:
        return str(value.name)
    if kind in _TO_STRING:
        text = _CONVERSIONS[_TO_STRING[kind]](value)
        if type(text) is not str:
            raise FormatError("could not convert argument to string")
        return text
    if kind is list or kind in MAPS:
        return _nested(value)
    raise FormatError(f"string clause cannot be used on {type_of(value).name}")


def _nested(value: Value) -> str:
    """A value inside a list or map: quoted text, six decimals, timestamps and durations as calls."""
    kind = type(value)
    if kind is str:
        return _go_quoted(value)
    if kind is bytes:
        return "b" + _go_quoted(_shown(value))
    if kind is float:
        text = f"{value:.6f}" if math.isfinite(value) else {"inf": "+Inf", "-inf": "-Inf"}.get(str(value), "NaN")
        return text if math.isfinite(value) else f'"{text}"'
    if kind is Timestamp or kind is Duration:
        return f'{"timestamp" if kind is Timestamp else "duration"}("{_shown(value)}")'
    if kind is not list and kind not in MAPS:
        return _shown(value)
    enter(len(value))
    if kind is list:
        text = f"[{', '.join(map(_nested, value))}]"
    else:
        pairs = sorted((_map_key(key), _nested(item)) for key, item in value.items())
        text = "{" + ", ".join(f"{key}:{item}" for key, item in pairs) + "}"
    leave()
    return text


def _map_key(key: Value) -> str:
    if type(key) is str:
        return _go_quoted(key)
    if type(key) in (bool, int, UInt):
        return _shown(key)
    raise FormatError(f"no formatting function for map key of type {type_of(key).name}")


def _go_quoted(text: str) -> str:
    """%q."""
    named = {"\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v"}
    out = []
    for character in text:
        if character in '"\\':
            out.append("\\" + character)
        elif character in named:
            out.append(named[character])
        elif character == " " or (character.isprintable() and not character.isspace()):
            out.append(character)
        elif ord(character) < 0x80:
            out.append(f"\\x{ord(character):02x}")
        else:
            out.append(f"\\u{ord(character):04x}" if ord(character) < 0x10000 else f"\\U{ord(character):08x}")
    return '"' + "".join(out) + '"'


def _check_precision(precision: int) -> None:
    if precision > _MAX_PRECISION:
        raise _PrecisionError


def _fixed(value: float, precision: int) -> str:
    """%f of golang.org/x/text for English: digits in groups of three."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    _check_precision(precision)
    value += 0.0  # without the sign of -0.0
    if precision < 256:
        return f"{value:,.{precision}f}"
    # initDecimal of message/print.go (golang.org/x/text v0.41.0): the least number of decimals is a uint8, the greatest
    # an int16.
    most = (precision + 2**15) % 2**16 - 2**15
    text = f"{value:,.{most}f}" if most >= 0 else f"{Decimal(repr(value)):,f}"
    whole, _, decimals = text.partition(".")
    decimals = decimals.rstrip("0").ljust(precision % 256, "0")
    return f"{whole}.{decimals}" if decimals else whole


def _scientific(value: float, width: int) -> str:
    """%e of golang.org/x/text: always six decimals, because cel-go passes the precision as a width."""
    _check_precision(width)
    width %= 2**16
    if not math.isfinite(value):
        return _fixed(value, 0).rjust(width)
    mantissa, exponent = f"{value + 0.0:.6e}".split("e")
    power = f"{abs(int(exponent)):02d}".translate(_SUPERSCRIPT)
    return f"{mantissa}×10{'⁻' if int(exponent) < 0 else ''}{power}".rjust(width)


_STATIC: Final[Mapping[str, frozenset[str]]] = {
    "s": frozenset(
        {"list", "map", "int", "uint", "double", "bool", "string", "timestamp", "bytes", "duration", "type", "null"}
    ),
    "d": frozenset({"int", "uint"}),
    "f": frozenset({"double", "string"}),
    "e": frozenset({"double", "string"}),
    "b": frozenset({"int", "uint", "bool"}),
    "x": frozenset({"int", "uint", "string", "bytes"}),
    "X": frozenset({"int", "uint", "string", "bytes"}),
    "o": frozenset({"int", "uint"}),
}


def check_literal(call: Call) -> str | None:
    """The mistake in "…".format([…]) by the types of its arguments; None if there is none or if it is no such call."""
    target = call.target
    if call.function != "format" or type(target) is not Literal or type(target.value) is not str:
        return None
    if len(call.arguments) != 1 or type(call.arguments[0]) is not ListLiteral:
        return None
    items = call.arguments[0].items
    try:
        wanted = clauses(target.value)
    except FormatError as error:
        return str(error)
    if len(wanted) != len(items):
        return f"format string has {len(wanted)} clauses for {len(items)} arguments"
    for (verb, _, _), item in zip(wanted, items, strict=True):
        if not _fits(verb, item):
            return f"%{verb} cannot format an argument of type '{item.type}'"
    return None


def _fits(verb: str, item: Expression) -> bool:
    if item.type.kind != "dyn" and item.type.kind not in _STATIC[verb]:
        return False
    if verb == "s" and type(item) is ListLiteral:
        return all(_fits("s", part) for part in item.items)
    if verb == "s" and type(item) is MapLiteral:
        return all(_fits("s", key) and _fits("s", value) for key, value, _ in item.entries)
    return True


IMPLEMENTATIONS: Final[Mapping[str, Callable[..., Any]]] = {"string_format": _format}

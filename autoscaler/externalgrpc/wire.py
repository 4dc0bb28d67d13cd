"""Protocol Buffers' wire format for dictionaries, from tables of field numbers.

The messages here are few and do not change, so a table of each (messages.py, kubernetes_types.py) replaces a compiler
and generated code. A message is a dict by JSON names: a key that is present is written, also with a zero, because a Go
pointer to false is not nil. Source: protobuf.dev/programming-guides/encoding.
"""

from __future__ import annotations

import dataclasses
import struct
from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from typing import Any, ClassVar, Final, TypeAlias

from autoscaler.errors import ForesliceError
from instance_catalog.dataclass import dataclass

Json: TypeAlias = dict[str, Any]

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_TEN_BYTES: Final = 10  # the longest varint
# No valid message is nested this deep: decoding must not exhaust the stack.
_DEEPEST: Final = 32
# Two bytes make a field, and a field some hundred bytes of memory: 32 MiB of them would be gigabytes. A question
# of the expander has fewer, because nearly each of its fields is a pod of hundreds of bytes, decoded by itself.
MOST_FIELDS: Final = 200_000


class WireError(ForesliceError):
    """Bytes that are no message."""

    reason: ClassVar[str] = "Wire"


class Fields:
    """The number of fields that may still be read of a message, with unknown ones and packed numbers."""

    def __init__(self, left: int = MOST_FIELDS) -> None:
        self._most = self._left = left

    def take(self) -> None:
        """Counts one. Raises WireError if there are too many."""
        self._left -= 1
        if self._left < 0:
            raise WireError(f"a message has more than {self._most} fields: send fewer objects in one call")


class Kind(Enum):
    """The encoding of a value."""

    TEXT = "string"
    BYTES = "bytes"
    INT = "int32 or int64"
    BOOL = "bool"
    DOUBLE = "double"
    QUANTITY = "message Quantity with one string"  # JSON has the string alone
    MESSAGE = "message"


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a message. `mapped`: a map from strings, written as a list of pairs."""

    number: int
    kind: Kind
    message: Message | None = None
    repeated: bool = False
    mapped: bool = False


@dataclasses.dataclass(frozen=True)
class Message:
    """A message type: its fields by their JSON names."""

    name: str
    fields: Mapping[str, Field]
    by_number: dict[int, tuple[str, Field]] = dataclasses.field(init=False, repr=False)

    def __post_init__(self) -> None:
        numbered = {found.number: (name, found) for name, found in self.fields.items()}
        assert len(numbered) == len(self.fields), f"{self.name} uses a number twice"
        object.__setattr__(self, "by_number", numbered)


def text(number: int) -> Field:
    return Field(number, Kind.TEXT)


def raw(number: int) -> Field:
    """Bytes, or a message that is passed on unchanged."""
    return Field(number, Kind.BYTES)


def integer(number: int) -> Field:
    """An int32, int64 or enum."""
    return Field(number, Kind.INT)


def flag(number: int) -> Field:
    return Field(number, Kind.BOOL)


def double(number: int) -> Field:
    """A field of wire type double: 64 bits, little-endian."""
    return Field(number, Kind.DOUBLE)


def quantity(number: int) -> Field:
    """A resource.Quantity of Kubernetes."""
    return Field(number, Kind.QUANTITY)


def one(message: Message, number: int) -> Field:
    return Field(number, Kind.MESSAGE, message)


def many(of: Field) -> Field:
    """A list of what `of` is."""
    return Field(of.number, of.kind, of.message, repeated=True)


def mapping(of: Field) -> Field:
    """A map from strings to what `of` is."""
    return Field(of.number, of.kind, of.message, mapped=True)


def encode(message: Message, value: Mapping[str, Any]) -> bytes:
    """The bytes of a message. Raises KeyError for a field that the table does not have."""
    written = bytearray()
    for name, given in value.items():
        found = message.fields[name]
        if found.mapped:
            for key, entry in given.items():
                pair = _tagged(1, Kind.TEXT, key) + _tagged(2, found.kind, entry, found.message)
                written += _tag(found.number, _BYTES) + _sized(pair)
        elif found.repeated:
            for entry in given:
                written += _tagged(found.number, found.kind, entry, found.message)
        else:
            written += _tagged(found.number, found.kind, given, found.message)
    return bytes(written)


def _tagged(number: int, kind: Kind, value: Any, message: Message | None = None) -> bytes:
    match kind:
        case Kind.TEXT:
            return _tag(number, _BYTES) + _sized(value.encode())
        case Kind.BYTES:
            return _tag(number, _BYTES) + _sized(value)
        case Kind.INT | Kind.BOOL:
            return _tag(number, _VARINT) + _varint(int(value))
        case Kind.DOUBLE:
            return _tag(number, _FIXED64) + struct.pack("<d", value)
        case Kind.QUANTITY:
            return _tag(number, _BYTES) + _sized(_tagged(1, Kind.TEXT, str(value)))
        case Kind.MESSAGE:
            assert message is not None
            return _tag(number, _BYTES) + _sized(encode(message, value))


def _tag(number: int, wire_type: int) -> bytes:
    return _varint(number << 3 | wire_type)


def _sized(content: bytes) -> bytes:
    return _varint(len(content)) + content


def _varint(value: int) -> bytes:
    """Negative numbers as two's complement of 64 bits."""
    left = value & 0xFFFF_FFFF_FFFF_FFFF
    written = bytearray()
    while left > 0x7F:
        written.append(left & 0x7F | 0x80)
        left >>= 7
    written.append(left)
    return bytes(written)


def decode(message: Message, content: bytes, *, fields: Fields | None = None) -> Json:
    """The message of some bytes. Fields that the table does not have are skipped. Raises WireError.

    `fields` bounds what several messages have together; without it the message has a bound of its own.
    """
    return _decode(message, content, 0, fields or Fields())


def _decode(message: Message, content: bytes, depth: int, fields: Fields) -> Json:
    if depth > _DEEPEST:
        raise WireError(f"{message.name} has messages inside of more than {_DEEPEST} others")
    found: Json = {}
    for number, wire_type, value in _parts(content, fields):
        if number not in message.by_number:
            continue
        name, known = message.by_number[number]
        read = _reader(known, wire_type, f"{message.name}.{name}", depth, fields)
        if known.mapped:
            key, entry = _pair(known, value, f"{message.name}.{name}", depth, fields)
            found.setdefault(name, {})[key] = entry
        elif known.repeated:
            packed = known.kind in (Kind.INT, Kind.BOOL) and wire_type == _BYTES
            found.setdefault(name, []).extend(
                map(_number(known.kind), _packed(value, fields)) if packed else [read(value)]
            )
        else:
            found[name] = read(value)
    return found


def _pair(known: Field, value: Any, where: str, depth: int, fields: Fields) -> tuple[str, Any]:
    if not isinstance(value, bytes):
        raise WireError(f"{where} is not a map")
    key, entry = "", _zero(known.kind)
    for number, wire_type, part in _parts(value, fields):
        if number == 1:
            key = _reader(text(1), wire_type, where, depth, fields)(part)
        elif number == 2:
            entry = _reader(known, wire_type, where, depth, fields)(part)
    return key, entry


def _zero(kind: Kind) -> Any:
    return {Kind.TEXT: "", Kind.QUANTITY: "0", Kind.BYTES: b"", Kind.MESSAGE: {}, Kind.DOUBLE: 0.0}.get(kind, 0)


_WIRE_TYPES: Final = {Kind.INT: _VARINT, Kind.BOOL: _VARINT, Kind.DOUBLE: _FIXED64}


def _reader(known: Field, wire_type: int, where: str, depth: int, fields: Fields) -> Callable[[Any], Any]:
    packed = known.repeated and known.kind in (Kind.INT, Kind.BOOL) and wire_type == _BYTES
    if wire_type != _WIRE_TYPES.get(known.kind, _BYTES) and not packed:
        raise WireError(f"{where} is written as wire type {wire_type}, which is not that of a {known.kind.value}")
    match known.kind:
        case Kind.TEXT:
            return _text(where)
        case Kind.BYTES:
            return bytes
        case Kind.INT | Kind.BOOL:
            return _number(known.kind)
        case Kind.DOUBLE:
            return lambda value: float(struct.unpack("<d", value)[0])
        case Kind.QUANTITY:
            return lambda value: _decode(_QUANTITY, value, depth + 1, fields).get("string", "0")
        case Kind.MESSAGE:
            of = known.message
            assert of is not None
            return lambda value: _decode(of, value, depth + 1, fields)


def _text(where: str) -> Callable[[bytes], str]:
    def read(value: bytes) -> str:
        try:
            return value.decode()
        except UnicodeDecodeError as error:
            raise WireError(f"{where} is no UTF-8") from error

    return read


def _number(kind: Kind) -> Callable[[int], int | bool]:
    if kind is Kind.BOOL:
        return bool
    return lambda value: value - (1 << 64) if value >= 1 << 63 else value


_QUANTITY: Final = Message("Quantity", {"string": text(1)})


def _parts(content: bytes, fields: Fields) -> Iterator[tuple[int, int, Any]]:
    """Field number, wire type and value: an unsigned number, or bytes."""
    at = 0
    while at < len(content):
        fields.take()
        tag, at = _read_varint(content, at)
        wire_type = tag & 7
        if wire_type == _VARINT:
            value, at = _read_varint(content, at)
            yield tag >> 3, wire_type, value
            continue
        if wire_type == _BYTES:
            size, at = _read_varint(content, at)
        elif wire_type in (_FIXED64, _FIXED32):
            size = 8 if wire_type == _FIXED64 else 4
        else:
            raise WireError(f"wire type {wire_type} is no longer used")
        if at + size > len(content):
            raise WireError("a message ends in the middle of a field")
        yield tag >> 3, wire_type, content[at : at + size]
        at += size


def _packed(content: bytes, fields: Fields) -> Iterator[int]:
    at = 0
    while at < len(content):
        fields.take()
        value, at = _read_varint(content, at)
        yield value


def _read_varint(content: bytes, at: int) -> tuple[int, int]:
    value = 0
    for index in range(_TEN_BYTES):
        if at + index >= len(content):
            raise WireError("a message ends in the middle of a number")
        byte = content[at + index]
        value |= (byte & 0x7F) << 7 * index
        if byte < 0x80:
            return value & 0xFFFF_FFFF_FFFF_FFFF, at + index + 1
    raise WireError("a number has more than ten bytes")

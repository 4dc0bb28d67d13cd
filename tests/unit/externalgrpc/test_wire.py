"""The wire format: what is written is what protobuf's own library reads, and broken bytes are refused."""

from __future__ import annotations

import pytest
from google.protobuf import descriptor_pb2, duration_pb2, struct_pb2, timestamp_pb2
from hypothesis import given
from hypothesis import strategies as st

from autoscaler.externalgrpc.messages import TIMESTAMP
from autoscaler.externalgrpc.wire import (
    MOST_FIELDS,
    Fields,
    Message,
    WireError,
    decode,
    double,
    encode,
    flag,
    integer,
    many,
    mapping,
    one,
    raw,
    text,
)

INNER = Message("Inner", {"text": text(1), "count": integer(2)})
OUTER = Message(
    "Outer",
    {
        "flag": flag(1),
        "ratio": double(2),
        "raw": raw(3),
        "inner": one(INNER, 4),
        "numbers": many(integer(5)),
        "by_name": mapping(one(INNER, 6)),
        "texts": many(text(7)),
    },
)
_INTS = st.integers(-(2**63), 2**63 - 1)
_INNERS = st.fixed_dictionaries({}, optional={"text": st.text(), "count": _INTS})
_OUTERS = st.fixed_dictionaries(
    {},
    optional={
        "flag": st.booleans(),
        "ratio": st.floats(allow_nan=False),
        "raw": st.binary(),
        "inner": _INNERS,
        "numbers": st.lists(_INTS, min_size=1),
        "by_name": st.dictionaries(st.text(), _INNERS, min_size=1),
        "texts": st.lists(st.text(), min_size=1),
    },
)


@given(_OUTERS)
def test_what_is_written_is_read_again(value: dict[str, object]) -> None:
    assert decode(OUTER, encode(OUTER, value)) == value


@given(st.integers(-(2**62), 2**62), st.integers(-(2**31), 2**31 - 1))
def test_protobufs_library_reads_numbers(seconds: int, nanos: int) -> None:
    written = encode(TIMESTAMP, {"seconds": seconds, "nanos": nanos})
    for found in (timestamp_pb2.Timestamp.FromString(written), duration_pb2.Duration.FromString(written)):
        assert (found.seconds, found.nanos) == (seconds, nanos)
        assert decode(TIMESTAMP, found.SerializeToString()) == {
            key: value for key, value in (("seconds", seconds), ("nanos", nanos)) if value
        }


def test_protobufs_library_reads_maps_lists_and_messages() -> None:
    value = Message("Value", {"number_value": double(2), "string_value": text(3), "bool_value": flag(4)})
    struct = Message("Struct", {"fields": mapping(one(value, 1))})
    written = encode(struct, {"fields": {"a": {"number_value": 1.5}, "b": {"bool_value": False}}})
    assert dict(struct_pb2.Struct.FromString(written).items()) == {"a": 1.5, "b": False}
    file = Message("File", {"name": text(1), "dependency": many(text(3)), "public": many(integer(10))})
    written = encode(file, {"name": "a.proto", "dependency": ["b", "c"], "public": [0, 1]})
    read = descriptor_pb2.FileDescriptorProto.FromString(written)
    assert (read.name, list(read.dependency), list(read.public_dependency)) == ("a.proto", ["b", "c"], [0, 1])


def test_packed_numbers_are_read() -> None:
    assert decode(OUTER, b"\x2a\x03\x01\x96\x01") == {"numbers": [1, 150]}


def test_unknown_fields_are_skipped() -> None:
    newer = Message("Newer", {**INNER.fields, "later": text(99), "much": double(98)})
    assert decode(INNER, encode(newer, {"text": "a", "later": "b", "much": 1.0})) == {"text": "a"}


def test_a_field_that_the_table_lacks_is_never_left_out_silently() -> None:
    with pytest.raises(KeyError, match="later"):
        encode(INNER, {"later": 1})


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"\x0a\x05ab", "middle of a field"),
        (b"\x10\x80", "middle of a number"),
        (b"\x10" + b"\x80" * 11, "more than ten bytes"),
        (b"\x0b", "no longer used"),
        (b"\x0a\x01\xff", "no UTF-8"),
        (b"\x08\x01", "wire type 0"),
    ],
)
def test_broken_bytes_are_refused(content: bytes, why: str) -> None:
    with pytest.raises(WireError, match=why):
        decode(INNER, content)


@given(st.binary(max_size=64))
def test_any_bytes_are_read_or_refused(content: bytes) -> None:
    try:
        decode(OUTER, content)
    except WireError:
        return


def test_messages_inside_of_messages_have_an_end() -> None:
    nested = Message("Nested", {})
    object.__setattr__(nested, "fields", {"inner": one(nested, 1)})
    object.__setattr__(nested, "by_number", {1: ("inner", one(nested, 1))})
    content = b""
    for _ in range(40):
        content = b"\x0a" + bytes([len(content)]) + content if len(content) < 120 else content
    with pytest.raises(WireError, match="inside of more than"):
        decode(nested, content)


@pytest.mark.parametrize(
    "content",
    [
        b"\x3a\x00" * 101,  # texts without content
        b"\x22\x00" * 101,  # the same message again and again
        b"\x78\x00" * 101,  # a number that the table does not have
        b"\x2a\x65" + b"\x00" * 101,  # packed numbers
        b"\x32\x00" * 101,  # pairs of a map
        b"\x22\x64" + b"\x10\x00" * 50 + b"\x22\x66" + b"\x10\x00" * 51,  # inside of messages
    ],
)
def test_fields_are_counted_wherever_they_are(content: bytes) -> None:
    assert decode(OUTER, content, fields=Fields(202)) is not None
    with pytest.raises(WireError, match="more than 100 fields: send fewer objects"):
        decode(OUTER, content, fields=Fields(100))


def test_messages_of_one_call_share_their_bound() -> None:
    fields = Fields(3)
    assert decode(INNER, encode(INNER, {"text": "a", "count": 1}), fields=fields) == {"text": "a", "count": 1}
    with pytest.raises(WireError, match="more than 3 fields"):
        decode(INNER, encode(INNER, {"text": "a", "count": 1}), fields=fields)


def test_a_bound_holds_without_being_asked_for() -> None:
    assert len(decode(OUTER, b"\x3a\x00" * MOST_FIELDS)["texts"]) == MOST_FIELDS
    with pytest.raises(WireError, match=f"more than {MOST_FIELDS} fields"):
        decode(OUTER, b"\x3a\x00" * (MOST_FIELDS + 1))

"""Literals: numbers, strings and bytes (cel-go v0.26.0 parser/unescape.go)."""

from __future__ import annotations

import re
from typing import Final

from autoscaler.cel.common.values import INT_MIN, UINT_MAX, UInt

_SIMPLE: Final = {
    "a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v",
    "\\": "\\", "?": "?", '"': '"', "'": "'", "`": "`",
}  # fmt: skip
_ESCAPE: Final = re.compile(
    r"\\(?:([abfnrtv\\?\"'`])|[xX]([0-9a-fA-F]{2})|([0-3][0-7]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|)", re.DOTALL
)


class LiteralError(ValueError):
    """A literal whose value does not exist, such as an integer beyond 64 bits."""


def magnitude(text: str) -> int:
    """The value of INT_LIT without its sign: up to 2**63, which only a minus in front makes an int64."""
    value = _whole(text)
    if value > -INT_MIN:
        raise LiteralError("invalid int literal")
    return value


def unsigned(text: str) -> UInt:
    """The value of UINT_LIT. Raises LiteralError outside uint64."""
    value = _whole(text[:-1])
    if value > UINT_MAX:
        raise LiteralError("invalid uint literal")
    return UInt(value)


def floating(text: str) -> float:
    """The value of FLOAT_LIT. Raises LiteralError if it overflows."""
    value = float(text)
    if value == float("inf"):
        raise LiteralError("invalid double literal")
    return value


def _whole(text: str) -> int:
    digits = text[2:] if text.startswith("0x") else text
    if len(digits.lstrip("0")) > 20:
        raise LiteralError("invalid int literal")
    return int(digits, 16 if text.startswith("0x") else 10)


def string(text: str) -> str:
    """The value of STRING_LIT or MLSTRING_LIT. Raises LiteralError for an escape that does not exist."""
    raw, body = _body(text)
    return body if raw or "\\" not in body else _ESCAPE.sub(_character, body)


def byte_string(text: str) -> bytes:
    """The value of BYTES_LIT: text in UTF-8, \\x and octal escapes as single bytes."""
    raw, body = _body(text.replace("b", "", 1) if "b" in text[:2] else text.replace("B", "", 1))
    if raw or "\\" not in body:
        return body.encode()
    out, last = bytearray(), 0
    for found in _ESCAPE.finditer(body):
        out += body[last : found.start()].encode()
        simple, hexadecimal, octal, short, long = found.groups()
        if (simple is None and hexadecimal is None and octal is None) or short or long:
            raise LiteralError("unable to unescape bytes")
        out += _SIMPLE[simple].encode() if simple else bytes([int(hexadecimal or octal, 16 if hexadecimal else 8)])
        last = found.end()
    return bytes(out + body[last:].encode())


def _body(text: str) -> tuple[bool, str]:
    raw = text[0] in "rR"
    if raw:
        text = text[1:]
    quotes = 3 if text[:3] in ('"""', "'''") and len(text) >= 6 else 1
    # Go's scanner replaces these before it reads escapes.
    return raw, text[quotes:-quotes].replace("\r\n", "\n").replace("\r", "\n")


def _character(found: re.Match[str]) -> str:
    simple, hexadecimal, octal, short, long = found.groups()
    if simple is not None:
        return _SIMPLE[simple]
    code = hexadecimal or short or long
    if code is None and octal is None:
        raise LiteralError("unable to unescape string")
    point = int(octal, 8) if code is None else int(code, 16)
    if 0xD800 <= point <= 0xDFFF or point > 0x10FFFF:
        raise LiteralError("invalid unicode code point")
    return chr(point)

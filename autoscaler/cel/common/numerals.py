"""Numbers as text, as Go's strconv writes and reads them."""

from __future__ import annotations

import math
import re
from decimal import Decimal
from typing import Final

_DECIMAL: Final = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?", re.ASCII)
_HEX: Final = re.compile(r"[+-]?0[xX](?:[0-9a-fA-F]+(?:\.[0-9a-fA-F]*)?|\.[0-9a-fA-F]+)[pP][+-]?[0-9]+", re.ASCII)
_SPECIAL: Final = re.compile(r"([+-]?)(?:inf|infinity)|nan", re.ASCII | re.IGNORECASE)


def shortest(value: float) -> str:
    """FormatFloat(value, 'g', -1, 64): 1, 1.5e+10, 1e-05, +Inf, NaN."""
    special = _special(value)
    if special is not None:
        return special
    sign, digits, point = _digits(value)
    exponent = point - 1
    if -4 <= exponent < 6:
        return sign + _positional(digits, point)
    mantissa = digits[0] + ("." + digits[1:] if len(digits) > 1 else "")
    return f"{sign}{mantissa}e{'-' if exponent < 0 else '+'}{abs(exponent):02d}"


def shortest_fixed(value: float) -> str:
    """FormatFloat(value, 'f', -1, 64): never an exponent."""
    special = _special(value)
    if special is not None:
        return special
    sign, digits, point = _digits(value)
    return sign + _positional(digits, point)


def _special(value: float) -> str | None:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return None


def _digits(value: float) -> tuple[str, str, int]:
    """Sign, shortest digits that identify the double, and the position of the decimal point among them."""
    sign, digits, exponent = Decimal(repr(value)).as_tuple()
    text = "".join(map(str, digits)).lstrip("0")
    assert isinstance(exponent, int)
    point = len(text) + exponent
    text = text.rstrip("0")
    return "-" if sign else "", text or "0", point if text else 1


def _positional(digits: str, point: int) -> str:
    if point <= 0:
        return "0." + "0" * -point + digits
    if point >= len(digits):
        return digits + "0" * (point - len(digits))
    return digits[:point] + "." + digits[point:]


def parse_float(text: str) -> float | None:
    """ParseFloat(text, 64); None if it fails or overflows."""
    plain = text
    if "_" in text:
        if not _underscores_fit(text):
            return None
        plain = text.replace("_", "")
    special = _SPECIAL.fullmatch(plain)
    if special:
        return float(plain)
    if _HEX.fullmatch(plain):
        try:
            return float.fromhex(plain)
        except OverflowError:
            return None
    if not _DECIMAL.fullmatch(plain):
        return None
    value = float(plain)
    return None if math.isinf(value) else value


def _underscores_fit(text: str) -> bool:
    """strconv.underscoreOK: every underscore is between digits, or after the prefix of a hexadecimal number."""
    body = text.lstrip("+-")
    digits = "0-9a-fA-F" if body[:2] in ("0x", "0X") else "0-9"
    body = re.sub(r"^0[xX]", "0", body)
    return re.search(rf"(?:^|[^{digits}])_|_(?:$|[^{digits}])", body) is None

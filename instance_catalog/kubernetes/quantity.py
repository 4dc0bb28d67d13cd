"""Kubernetes quantities, exact (k8s.io/apimachinery pkg/api/resource: quantity.go, amount.go, suffix.go; v0.36.3).

All code that handles memory, cores or counters uses this type. Beside its value a quantity has three visible facts: its
format (the suffixes it prints with), whether it is held as int64 x 10^scale ("fast") or as an arbitrary decimal
("big"), and the text it was written with, if upstream keeps that text instead of printing the value. All operations
return new values. Powers of ten are built only if the result needs them: `1e1000000000` is a legal quantity.
"""

from __future__ import annotations

import re
from fractions import Fraction
from functools import lru_cache
from typing import Final, Literal, TypeAlias

from instance_catalog.dataclass import dataclass, field, replace

Format: TypeAlias = Literal["BinarySI", "DecimalSI", "DecimalExponent"]

_FORMAT_ERROR: Final = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
_NUMERIC_ERROR: Final = "unable to parse numeric part of quantity"
_SUFFIX_ERROR: Final = "unable to parse quantity's suffix"

_SHAPE: Final = re.compile(
    r"(?P<number>(?P<sign>[+-]?)0*(?P<whole>[0-9]*)(?:\.(?P<fraction>[0-9]*))?)"
    r"(?P<suffix>[eEinumkKMGTP]*(?:[+-]?[0-9]*))",
    re.ASCII,
)
_EXPONENT: Final = re.compile(r"[eE]([+-]?[0-9]+)", re.ASCII)
_DECIMAL: Final = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY: Final = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL_SUFFIX: Final = {exponent: suffix for suffix, exponent in _DECIMAL.items()}
_BINARY_SUFFIX: Final = {exponent: suffix for suffix, exponent in _BINARY.items()} | {0: ""}

_INT64_MAX: Final = 2**63 - 1
_MAX_FAST_DIGITS: Final = 18
_NANO: Final = -9
# Python refuses to convert longer texts at once, as a guard against quadratic work.
_CHUNK: Final = 4000
_LONG: Final = 1024  # bits
# Beyond this many digits an operation that would have to write the number out is refused instead.
_MAX_WRITTEN_DIGITS: Final = 20_000


class QuantityError(ValueError):
    """Text that is not a quantity (the message is upstream's), or a number too large to be written out."""


@dataclass(frozen=True, slots=True, eq=False)
class Quantity:
    """value = digits x 10^scale exactly. Equality and order are by value; `same_form` compares representations."""

    digits: int
    scale: int = 0
    format: Format = "DecimalSI"
    big: bool = False
    # The written text, only where upstream prints it again unchanged.
    text: str = field(default="", repr=False)

    @staticmethod
    def parse(text: str) -> Quantity:
        """The quantity written as `text`. Raises QuantityError with the message of upstream's ParseQuantity."""
        return _parse(text)

    @staticmethod
    def stored(text: str) -> Quantity:
        """The quantity that a cluster has for `text`: the API server prints what it parsed, and readers parse that.

        1.5Gi becomes 1536Mi and 80.0 becomes 80, which are integers in CEL. Raises QuantityError.
        """
        return _stored(text)

    @staticmethod
    def of(value: int, format: Format = "DecimalSI") -> Quantity:  # noqa: A002  # the Kubernetes term
        """A whole number, as resource.NewQuantity makes it; big beyond int64."""
        return Quantity(value, 0, format, big=not _fits_int64(value))

    @property
    def value(self) -> Fraction:
        """The exact value. Raises QuantityError for exponents beyond 20,000, whose power would be too large."""
        if self.scale >= 0:
            return Fraction(self.digits * _power_of_ten(self.scale))
        return Fraction(self.digits, _power_of_ten(-self.scale))

    @property
    def is_written_out(self) -> bool:
        """True if sums with it can be written out. An API server stores 1e30000, but no real amount is that large."""
        return abs(self.scale) <= _MAX_WRITTEN_DIGITS

    @property
    def sign(self) -> int:
        """-1, 0 or 1."""
        return (self.digits > 0) - (self.digits < 0)

    def compare(self, other: Quantity) -> int:
        """-1, 0 or 1 by value, without building the power of ten that separates the scales."""
        if self.scale == other.scale:
            return (self.digits > other.digits) - (self.digits < other.digits)
        if self.sign != other.sign or self.sign == 0:
            return (self.sign > other.sign) - (self.sign < other.sign)
        mine, theirs = self.scale + _length(self.digits), other.scale + _length(other.digits)
        if mine != theirs:
            return self.sign if mine > theirs else -self.sign
        low = min(self.scale, other.scale)  # equal magnitudes: the gap is at most the length of the longer number
        left: int = self.digits * 10 ** (self.scale - low)
        right: int = other.digits * 10 ** (other.scale - low)
        return (left > right) - (left < right)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Quantity) and self.compare(other) == 0

    def __lt__(self, other: Quantity) -> bool:
        return self.compare(other) < 0

    def __le__(self, other: Quantity) -> bool:
        return self.compare(other) <= 0

    def __gt__(self, other: Quantity) -> bool:
        return self.compare(other) > 0

    def __ge__(self, other: Quantity) -> bool:
        return self.compare(other) >= 0

    def __hash__(self) -> int:
        return hash(_without_trailing_zeros(self.digits, self.scale))

    def same_form(self, other: Quantity) -> bool:
        """True if Go's `==` on the two structs holds: same digits, scale, format and kept text, neither of them big.

        Upstream compares a requested capacity with a policy's default this way (structured allocator,
        consumable_capacity.go, v0.36.3): 1Gi is not 1024Mi, and a big quantity differs even from itself.
        """
        if self.big or other.big:
            return False
        mine = (self.digits, self.scale, self.format, self.text)
        return mine == (other.digits, other.scale, other.format, other.text)

    @property
    def form(self) -> tuple[int, int, Format, bool, str]:
        """Everything that expressions and policies can observe. Equal quantities, as 1 and 1000m, differ in form."""
        return self.digits, self.scale, self.format, self.big, self.text

    def __add__(self, other: Quantity) -> Quantity:
        """Quantity.Add: a zero receiver takes the other's format; the sum is fast if both are and int64 suffices."""
        quantity_format = other.format if self.digits == 0 else self.format
        if not (self.big or other.big):
            if other.digits == 0:
                return Quantity(self.digits, self.scale, quantity_format)
            if self.digits == 0:
                return Quantity(other.digits, other.scale, quantity_format)
            gap = abs(self.scale - other.scale)
            high = self.digits if self.scale > other.scale else other.digits
            if gap <= _MAX_FAST_DIGITS and _fits_int64(high * 10**gap):
                digits, scale = _sum(self, other)
                if _fits_int64(digits):
                    return Quantity(digits, scale, quantity_format)
        digits, scale = _sum(self, other)
        return Quantity(digits, scale, quantity_format, big=True)

    def __neg__(self) -> Quantity:
        """Quantity.Neg, in which the least int64 stays as it is."""
        if not self.big and self.digits == -_INT64_MAX - 1:
            return self
        return Quantity(-self.digits, self.scale, self.format, self.big)

    def __sub__(self, other: Quantity) -> Quantity:
        """Quantity.Sub: by way of Neg where int64 suffices, else exact."""
        if not (self.big or other.big):
            difference = self + -other
            if not difference.big:
                return difference
        return self + Quantity(-other.digits, other.scale, other.format, big=True)

    def times(self, factor: Quantity) -> Quantity:
        """The exact product, in big form and the format of the first, as NewDecimalQuantity makes one of AsDec."""
        return Quantity(self.digits * factor.digits, self.scale + factor.scale, self.format, big=True)

    def as_big(self) -> Quantity:
        """The same value in big form (ToDec): what comparing with a big quantity does to the receiver upstream."""
        return self if self.big else replace(self, big=True)

    def as_int64(self) -> int | None:
        """AsInt64: the value as int64 if held in fast form with a scale of at least 0, else None."""
        if self.big or self.scale < 0:
            return None
        if self.digits == 0:
            return 0
        if self.scale > _MAX_FAST_DIGITS:
            return None
        value = self.digits * 10**self.scale
        return value if _fits_int64(value) else None

    def ceil(self) -> int:
        """The least whole number that is not less than the value."""
        return self._ceil(0)

    def milli(self) -> int:
        """The least whole number of thousandths that is not less than the value."""
        return self._ceil(3)

    def int64_value(self) -> int:
        """Quantity.Value(): rounded up (away from zero in fast form); beyond int64, 0 in fast form, else wrapped."""
        away = self.digits < 0 and not self.big
        value = -Quantity(-self.digits, self.scale).ceil() if away else self.ceil()
        if not self.big and not _fits_int64(value):
            return 0
        return (value + 2**63) % 2**64 - 2**63

    def as_approximate_float(self) -> float:
        """AsApproximateFloat64, with the rounding of Go's math.Pow10."""
        try:
            base = float(self.digits)
        except OverflowError:
            base = float("inf") * self.sign
        return base if self.scale == 0 else base * _pow10(self.scale)

    def __str__(self) -> str:
        """Canonical text, as the API server prints it: 1.5Gi is 1536Mi, 1000m is 1."""
        if self.text:
            return self.text
        if self.digits == 0:
            return "0"
        if self.format == "BinarySI" and self._prints_binary():
            number, exponent = self.ceil(), 0
            while number % 1024 == 0:
                number, exponent = number // 1024, exponent + 10
            return _digits_text(number) + _BINARY_SUFFIX.get(exponent, "")
        digits, scale = _without_trailing_zeros(self.digits, self.scale)
        number, exponent = digits * 10 ** (scale % 3), scale - scale % 3
        if self.format == "DecimalExponent":
            return _digits_text(number) + (f"e{exponent}" if exponent else "")
        return _digits_text(number) + _DECIMAL_SUFFIX.get(exponent, "")

    def _prints_binary(self) -> bool:
        """Whole and at least 1024 in magnitude; anything else prints with decimal suffixes."""
        if self.scale < 0 and self.digits % _power_of_ten(-self.scale):
            return False
        return abs(self.ceil()) >= 1024

    def _ceil(self, shift: int) -> int:
        scale = self.scale + shift
        if scale >= 0:
            return self.digits * _power_of_ten(scale)
        return -(-self.digits // _power_of_ten(-scale))


@lru_cache(maxsize=4096)
def _stored(text: str) -> Quantity:
    """Quantity.UnmarshalJSON, which trims space, and MarshalJSON."""
    return _parse(str(_parse(text.strip(" "))))


def _parse(text: str) -> Quantity:
    if not text:
        raise QuantityError(_FORMAT_ERROR)
    if text == "0":
        return Quantity(0, text="0")
    shape = _SHAPE.fullmatch(text)
    if shape is None:
        raise QuantityError(_FORMAT_ERROR)
    base, exponent, quantity_format = _interpret(shape["suffix"])
    whole, fraction = shape["whole"] or "0", shape["fraction"] or ""
    negative = shape["sign"] == "-"
    fast = _parse_fast(text, whole, fraction, base=base, exponent=exponent, quantity_format=quantity_format)
    if fast is not None:
        return replace(fast, digits=-fast.digits) if negative else fast
    if not any(character.isdigit() for character in shape["number"]):
        raise QuantityError(_NUMERIC_ERROR)
    digits, scale = _to_int(whole + fraction), -len(fraction)
    if base == 2:
        digits <<= exponent
    else:
        scale += exponent
    digits, scale = _rounded_to_nano(digits, scale)
    if quantity_format == "BinarySI":
        if digits > _INT64_MAX * 10**-scale:
            digits, scale = _INT64_MAX, 0
        elif 0 < digits < 10**-scale:
            quantity_format = "DecimalSI"  # upstream prints such values with decimal suffixes
    return Quantity(-digits if negative else digits, scale, quantity_format, big=True)


def _interpret(suffix: str) -> tuple[int, int, Format]:
    """Base, exponent and format of a suffix; exponents wrap to 32 bits as upstream's conversion does."""
    if suffix in _DECIMAL:
        return 10, _DECIMAL[suffix], "DecimalSI"
    if suffix in _BINARY:
        return 2, _BINARY[suffix], "BinarySI"
    found = _EXPONENT.fullmatch(suffix)
    if found is None or len(found[1]) > _CHUNK or not _fits_int64(int(found[1])):
        raise QuantityError(_SUFFIX_ERROR)
    return 10, (int(found[1]) + 2**31) % 2**32 - 2**31, "DecimalExponent"


def _parse_fast(
    text: str, whole: str, fraction: str, *, base: int, exponent: int, quantity_format: Format
) -> Quantity | None:
    """The int64 form of the magnitude where upstream's precision rule allows it."""
    shifted = whole + fraction
    if base == 2:
        if fraction or 15 - len(whole) - exponent * 3 // 10 - 1 < 0:
            return None
        scale, digits = 0, int(shifted) << exponent
        kept = exponent % 10 == 0 and int(shifted) & 7 != 0
    else:
        scale = exponent - len(fraction)
        if len(shifted) > _MAX_FAST_DIGITS or scale < _NANO:
            return None
        digits = int(shifted)
        kept = scale % 3 == 0 and not shifted.endswith("000") and shifted[0] != "0"
    if not _fits_int64(digits):
        return None
    return Quantity(digits, scale, quantity_format, text=text if kept else "")


def _rounded_to_nano(digits: int, scale: int) -> tuple[int, int]:
    """Nine decimals, away from zero. Exponents beyond any real quantity stay as they are: the power is not needed."""
    if digits == 0 or scale > _MAX_WRITTEN_DIGITS:
        return digits, scale
    if scale >= _NANO:
        return digits * 10 ** (scale - _NANO), _NANO
    drop = _NANO - scale
    if drop > _length(digits):
        return 1, _NANO
    return -(-digits // 10**drop), _NANO


def _sum(left: Quantity, right: Quantity) -> tuple[int, int]:
    low = min(left.scale, right.scale)
    return (
        left.digits * _power_of_ten(left.scale - low) + right.digits * _power_of_ten(right.scale - low),
        low,
    )


def _fits_int64(value: int) -> bool:
    return -_INT64_MAX - 1 <= value <= _INT64_MAX


def _power_of_ten(exponent: int) -> int:
    power: int
    if exponent > _MAX_WRITTEN_DIGITS:
        raise QuantityError(f"quantity with a power of ten of {exponent} is too large to be written out")
    power = 10**exponent
    return power


def _length(number: int) -> int:
    """Decimal digits of a number other than 0."""
    magnitude = abs(number)
    estimate = int((magnitude.bit_length() - 1) * 0.30102999566398120)
    length = max(estimate, 0)
    while 10**length <= magnitude:
        length += 1
    return length


def _without_trailing_zeros(digits: int, scale: int) -> tuple[int, int]:
    if digits == 0:
        return 0, 0
    # One zero at a time would take seconds for 100,000 of them.
    for power in (4096, 256, 16) if digits.bit_length() > _LONG else ():
        unit = 10**power
        while digits % unit == 0:
            digits, scale = digits // unit, scale + power
    while digits % 10 == 0:
        digits, scale = digits // 10, scale + 1
    return digits, scale


def _to_int(text: str) -> int:
    if len(text) <= _CHUNK:
        return int(text)
    middle = len(text) // 2
    shift: int = 10 ** (len(text) - middle)
    return _to_int(text[:middle]) * shift + _to_int(text[middle:])


def _digits_text(number: int) -> str:
    if number < 0:
        return "-" + _digits_text(-number)
    if number < 10**_CHUNK:
        return str(number)
    high, low = divmod(number, 10**_CHUNK)
    return _digits_text(high) + str(low).zfill(_CHUNK)


def _pow10(exponent: int) -> float:
    """Go's math.Pow10, which multiplies two table entries and so may differ from the nearest float."""
    if exponent > 308:
        return float("inf")
    if exponent < -323:
        return 0.0
    high, low = divmod(abs(exponent), 32)
    if exponent >= 0:
        return float(f"1e{32 * high}") * float(f"1e{low}")
    return float(f"1e-{32 * high}") / float(f"1e{low}")

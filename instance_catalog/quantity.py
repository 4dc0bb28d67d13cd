"""Kubernetes quantities, exact (k8s.io/apimachinery pkg/api/resource, v0.36).

A quantity has a value and two further facts that Kubernetes lets people observe: its format (which suffixes it prints
with) and whether it is held as int64 x 10^scale ("fast") or as an arbitrary decimal ("big").
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import total_ordering


class QuantityError(ValueError):
    """Text that is not a quantity; the message is upstream's."""


@total_ordering
@dataclass(frozen=True, slots=True, eq=False)
class Quantity:
    """value = digits x 10^scale exactly. Equality and order are by value; `same_form` compares representations."""

    digits: int
    scale: int
    format: str = "DecimalSI"  # or BinarySI, DecimalExponent
    big: bool = False

    @property
    def value(self) -> Fraction:
        """The exact value."""
        raise QuantityError("filled in by the cel room")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Quantity) and self.value == other.value

    def __lt__(self, other: Quantity) -> bool:
        return self.value < other.value

    def __hash__(self) -> int:
        return hash(self.value)

    def __str__(self) -> str:
        """Canonical text, as the API server prints it."""
        raise QuantityError("filled in by the cel room")

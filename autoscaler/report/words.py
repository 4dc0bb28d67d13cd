"""Numbers, durations and advice as text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import timedelta
from decimal import Decimal
from math import ceil
from typing import Final

from autoscaler.model.provisioned_node import BootTimes

_CENT: Final = Decimal("0.01")
# A label is at most 317 + 1 + 63 characters long; values in a node affinity may be as long as an object.
_LONGEST_WORD: Final = 400
_KEPT: Final = 60
_LONGER_WORD: Final = re.compile(rf"\S{{{_LONGEST_WORD},}}")


def counted(number: int, noun: str) -> str:
    """ "1 pod", "2 pods"."""
    return f"{number} {noun}" + ("" if number == 1 else "s")


def counted_kind(number: int, kind: str) -> str:
    """ "2 ServiceAccounts", "2 NetworkPolicies", "2 Ingresses", "2 Endpoints"."""
    if number == 1 or (kind.endswith("s") and not kind.endswith("ss")):
        return f"{number} {kind}"
    if kind.endswith("ss"):
        return f"{number} {kind}es"
    return f"{number} {kind[:-1]}ies" if re.search("[^aeiou]y$", kind) else f"{number} {kind}s"


def money(amount: Decimal | str | None, otherwise: str = "no price") -> str:
    """Dollars with two digits: people do not compare thousandths of a dollar."""
    if amount is None:
        return otherwise
    exact = Decimal(amount)
    return "<0.01" if 0 < exact < _CENT else f"{exact:.2f}"


def few(names: Sequence[str], most: int = 3) -> str:
    """The first names and the number of the others."""
    rest = len(names) - most
    return ", ".join(names[:most]) + (f" and {rest} more" if rest > 0 else "")


def advised(wrong: str, step: str) -> str:
    """The problem and the next step, in one line without a full stop at the end."""
    wrong, step = wrong.rstrip("."), step.rstrip(".")
    return f"{wrong}{'. ' if step[:1].isupper() else '; '}{step}" if step else wrong


def age_text(span: timedelta) -> str:
    """ "3d4h", "5h7m", "12m5s", "40s": the two largest units, as kubectl shortens ages; "0s" for times in the past."""
    seconds = max(int(span.total_seconds()), 0)
    units: Sequence[tuple[str, int]] = (("d", 86400), ("h", 3600), ("m", 60), ("s", 1))
    parts: list[str] = []
    for unit, size in units:
        amount, seconds = divmod(seconds, size)
        if amount or parts:
            parts.append(f"{amount}{unit}" if amount else "")
        if len(parts) == 2:
            break
    return "".join(parts) or "0s"


def waiting_text(span: timedelta) -> str:
    """The state of a node whose request the provider has held for `span` without starting its machine."""
    return (
        f"requested {age_text(span)} ago; the provider starts it when it has capacity, and charges nothing until then"
    )


def ready_text(times: BootTimes | None) -> str:
    """The time until a new machine is usable, from others of its kind; "" if none was launched yet."""
    if times is None:
        return ""
    slow = "" if times.slow is None else f", 9 in 10 within {_minutes(times.slow)}"
    return f"ready in about {_minutes(times.median)}{slow} ({counted(times.boots, 'boot')} seen)"


def _minutes(span: timedelta) -> str:
    """Minutes, rounded up: a shorter estimate would often be too short."""
    return f"{max(1, ceil(span / timedelta(minutes=1)))} min"


def with_cut_words(text: str) -> str:
    """The text, in which words that are longer than any name or label are cut."""
    if len(text) <= _LONGEST_WORD:
        return text
    return _LONGER_WORD.sub(lambda found: f"{found[0][:_KEPT]}…", text)

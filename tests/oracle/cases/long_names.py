"""Names at their greatest length: what cuts them, or joins them with too little room, takes one thing for another."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from tests.oracle.upstream import Json

_LABEL, _SUBDOMAIN, _IDENTIFIER = 63, 253, 32
# What names look like in cases, and how long they may be. They differ at the end, after the filling.
_NAMES: Sequence[tuple[re.Pattern[str], int]] = (
    (re.compile(r"(?<![\w.-])(?:gpu|nic|mig|tpu)\.example\.(?:com|org)\b"), _LABEL),
    (re.compile(r"\b(?:dev|set)\d+\b(?!-)"), _LABEL),
    (re.compile(r"\bnode-[a-z]\b"), _LABEL),
    (re.compile(r"\b[rsc]\d\b"), _LABEL),  # requests, alternatives and claims
    (re.compile(r"\bp\d\b|\bshared\b"), _SUBDOMAIN - len("-gpu")),  # some pools get the driver behind their name
    (re.compile(r"\bwanted\b"), _SUBDOMAIN),
    (re.compile(r"\b(?:model|gen|numa|ecc|drv|index|rdma|mtu|ratio|bandwidth)\b"), _IDENTIFIER),
)


def lengthened(case: Json) -> Json:
    """The case with every name that occurs in it as long as an API server allows, wherever it is used."""
    found: Json = _renamed(case)
    return found


def _renamed(value: Any) -> Any:
    match value:
        case dict():
            return {_long(key) if isinstance(key, str) else key: _renamed(inner) for key, inner in value.items()}
        case list():
            return [_renamed(inner) for inner in value]
        case str():
            return _long(value)
    return value


def _long(text: str) -> str:
    for pattern, length in _NAMES:
        text = pattern.sub(lambda found, length=length: found[0].rjust(length, "x"), text)  # type: ignore[misc]
    return text

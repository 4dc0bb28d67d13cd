"""The annotation by which a pod asks that no node is bought for it before it has waited for a while.

Cluster Autoscaler 1.34 (core/static_autoscaler.go, filterOutYoungPods) reads it with Go's time.ParseDuration and leaves
a value that it cannot read out of account; here it is also reported.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Final

from autoscaler.kube.fields import Fields
from autoscaler.kube.metadata import Metadata
from instance_catalog.kubernetes.labels import CA_POD_SCALE_UP_DELAY

_UNITS: Final = {
    "ns": Decimal("1e-9"),
    "us": Decimal("1e-6"),
    "µs": Decimal("1e-6"),  # the micro sign
    "μs": Decimal("1e-6"),  # the Greek letter
    "ms": Decimal("1e-3"),
    "s": Decimal(1),
    "m": Decimal(60),
    "h": Decimal(3600),
}
_TERM: Final = re.compile(r"(\d+(?:\.\d*)?|\.\d+)(ns|us|µs|μs|ms|s|m|h)", re.ASCII)
_DURATION: Final = re.compile(rf"\+?(?:0|(?:{_TERM.pattern})+)", re.ASCII)
_LONGEST_TEXT: Final = 64
# What a time.Duration holds, in seconds.
_LONGEST: Final = Decimal(2**63 - 1) * Decimal("1e-9")
# A longer delay waits for so long: the moment of its end could not be written.
_LONGEST_WAIT: Final = Decimal(10 * 365 * 24 * 3600)


def no_node_before(pod: Fields, metadata: Metadata) -> datetime | None:
    """When the delay of the pod is over; None without one, or for a pod that never met an API server."""
    text = metadata.annotations.get(CA_POD_SCALE_UP_DELAY, "")
    if not text:
        return None
    seconds = _seconds(text)
    if seconds is None:
        step = "write it like 30s, 5m or 1h30m"
        message = f"{text[:_LONGEST_TEXT]!r} is not a duration, so the pod does not wait and may get a node at once"
        pod.child("metadata").child("annotations").warn(CA_POD_SCALE_UP_DELAY, message, step)
        return None
    if not metadata.created:
        return None
    return datetime.fromtimestamp(metadata.created, UTC) + timedelta(seconds=float(min(seconds, _LONGEST_WAIT)))


def _seconds(text: str) -> Decimal | None:
    if len(text) > _LONGEST_TEXT or not _DURATION.fullmatch(text):
        return None
    seconds = sum((Decimal(number) * _UNITS[unit] for number, unit in _TERM.findall(text)), Decimal(0))
    return seconds if seconds <= _LONGEST else None

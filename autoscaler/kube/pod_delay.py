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
    "µs": Decimal("1e-6"),
    "ms": Decimal("1e-3"),
    "s": Decimal(1),
    "m": Decimal(60),
    "h": Decimal(3600),
}
_TERM: Final = re.compile(r"(\d{1,9}(?:\.\d{0,9})?|\.\d{1,9})(ns|us|µs|ms|s|m|h)", re.ASCII)
_DURATION: Final = re.compile(rf"(?:{_TERM.pattern})+", re.ASCII)
# No longer wait makes sense, and beyond it a moment cannot be written.
_LONGEST: Final = Decimal(10 * 365 * 24 * 3600)


def no_node_before(pod: Fields, metadata: Metadata) -> datetime | None:
    """When the delay of the pod is over; None without one, or for a pod that never met an API server."""
    text = metadata.annotations.get(CA_POD_SCALE_UP_DELAY, "")
    if not text:
        return None
    seconds = _seconds(text)
    if seconds is None:
        step = "write it like 30s, 5m or 1h30m; until then nothing waits for it"
        pod.child("metadata").child("annotations").warn(CA_POD_SCALE_UP_DELAY, f"{text!r} is not a duration", step)
        return None
    if not metadata.created:
        return None
    return datetime.fromtimestamp(metadata.created, UTC) + timedelta(seconds=float(seconds))


def _seconds(text: str) -> Decimal | None:
    if len(text) > 64 or not _DURATION.fullmatch(text):
        return None
    seconds = sum((Decimal(number) * _UNITS[unit] for number, unit in _TERM.findall(text)), Decimal(0))
    return seconds if seconds <= _LONGEST else None

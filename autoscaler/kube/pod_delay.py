"""Durations in annotations of a pod: the delay before a node is launched for it, the wait for a block, its expected run
time, and the work that a restart loses.

Cluster Autoscaler 1.34 (core/static_autoscaler.go, filterOutYoungPods) reads its own annotation, the first one, with
Go's time.ParseDuration and ignores a value that it cannot read; here it is also reported.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Final

from autoscaler.kube.fields import Fields
from autoscaler.kube.metadata import Metadata
from instance_catalog.kubernetes.labels import (
    CA_POD_SCALE_UP_DELAY,
    CHECKPOINT_INTERVAL,
    EXPECTED_DURATION,
    KUEUE_MAX_EXEC_TIME,
    MAX_WAIT,
)

# Seconds of the units of Go's time.ParseDuration.
DURATION_UNITS: Final = {
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
_WHOLE: Final = re.compile(r"[1-9][0-9]{0,7}", re.ASCII)
_LONGEST_TEXT: Final = 64
# The greatest time.Duration, in seconds.
_LONGEST: Final = Decimal(2**63 - 1) * Decimal("1e-9")
# The upper bound of a delay: a time after it could not be written.
_LONGEST_WAIT: Final = Decimal(10 * 365 * 24 * 3600)


def no_node_before(pod: Fields, metadata: Metadata) -> datetime | None:
    """The end of the pod's delay; None without one, or for a pod that no API server has stored."""
    delay = _duration(pod, metadata, CA_POD_SCALE_UP_DELAY, "so the pod does not wait and may get a node at once")
    return datetime.fromtimestamp(metadata.created, UTC) + delay if delay is not None and metadata.created else None


def checkpoint_interval(pod: Fields, metadata: Metadata) -> timedelta | None:
    """The most work, as time, that the pod loses when it is restarted; None if it has no annotation."""
    return _duration(pod, metadata, CHECKPOINT_INTERVAL, "so the pod is not moved to save money")


def max_wait(pod: Fields, metadata: Metadata) -> timedelta | None:
    """The time after its creation that the pod may wait for a CapacityBlock to begin; None if it has no annotation."""
    return _duration(pod, metadata, MAX_WAIT, "so the pod waits for a CapacityBlock only as long as that says")


def expected_duration(pod: Fields, metadata: Metadata) -> timedelta | None:
    """The expected run time of the pod: its annotation, else Kueue's limit for it; None without both.

    A limit that Kubernetes enforces (activeDeadlineSeconds) is not part of it.
    """
    said = _duration(pod, metadata, EXPECTED_DURATION, "so it is not known how long the pod runs")
    seconds = metadata.labels.get(KUEUE_MAX_EXEC_TIME, "")
    if said is None and _WHOLE.fullmatch(seconds):
        return timedelta(seconds=int(seconds))
    return said


def _duration(pod: Fields, metadata: Metadata, key: str, otherwise: str) -> timedelta | None:
    text = metadata.annotations.get(key, "")
    if not text:
        return None
    seconds = _seconds(text)
    if seconds is None:
        message = f"{text[:_LONGEST_TEXT]!r} is not a duration, {otherwise}"
        pod.child("metadata").child("annotations").warn(key, message, "write it like 30s, 5m or 1h30m")
        return None
    return timedelta(seconds=float(min(seconds, _LONGEST_WAIT)))


def _seconds(text: str) -> Decimal | None:
    if len(text) > _LONGEST_TEXT or not _DURATION.fullmatch(text):
        return None
    seconds = sum((Decimal(number) * DURATION_UNITS[unit] for number, unit in _TERM.findall(text)), Decimal(0))
    return seconds if seconds <= _LONGEST else None

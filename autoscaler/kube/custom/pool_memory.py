"""The state that a pool keeps in its status over a restart: back-offs and quarantines."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from autoscaler.kube.custom.capacity_pool import BackoffStatus, CapacityPoolStatus, QuarantineStatus
from autoscaler.kube.custom.schema import moment, moment_text
from autoscaler.model.snapshot import Backoff, Quarantine
from instance_catalog.types.instance_type import CapacityType

# The time for which a back-off is kept after its end: a failure within it counts as consecutive.
REMEMBERED: Final = timedelta(hours=1)
_MOST_BACKOFFS: Final = 500
_MOST_QUARANTINES: Final = 200
_CAPACITY_TYPES: Final = frozenset(CapacityType)
_NEVER: Final = datetime.min.replace(tzinfo=UTC)


def backoffs_of(status: CapacityPoolStatus, pool: str) -> tuple[Backoff, ...]:
    """The back-offs in a pool's status."""
    return tuple(
        Backoff(
            until=moment(b.until),
            instance_type=b.instance_type,
            zone=b.zone,
            capacity_type=CapacityType(b.capacity_type) if b.capacity_type else None,
            pool=pool,
            reason=b.reason,
            failures=b.failures,
            message=b.message,
            reservation=b.reservation,
        )
        for b in status.backoffs
        if not b.capacity_type or b.capacity_type in _CAPACITY_TYPES  # otherwise written by a later version
    )


def backoff_manifests(backoffs: Iterable[Backoff], *, now: datetime) -> list[dict[str, Any]]:
    """The back-offs for a pool's status: those that still matter, the longest first, as many as fit."""
    live = sorted((b for b in backoffs if b.until + REMEMBERED > now), key=lambda b: b.until, reverse=True)
    return [
        BackoffStatus.model_validate(
            {
                "until": moment_text(b.until),
                "instanceType": b.instance_type,
                "zone": b.zone,
                "capacityType": b.capacity_type.value if b.capacity_type else "",
                "reservation": b.reservation,
                "reason": b.reason,
                "failures": b.failures,
                "message": b.message,
            }
        ).manifest()
        for b in live[:_MOST_BACKOFFS]
    ]


def quarantines_of(status: CapacityPoolStatus, pool: str) -> tuple[Quarantine, ...]:
    """The quarantines in a pool's status."""
    return tuple(
        Quarantine(
            pool=pool,
            instance_type=q.instance_type,
            drivers=q.drivers,
            failed_boots=q.failed_boots,
            mispredictions=q.mispredictions,
            drifts=q.drifts,
            times=q.times,
            until=moment(q.until) if q.until else None,
        )
        for q in status.quarantines
    )


def quarantine_manifests(quarantines: Iterable[Quarantine]) -> list[dict[str, Any]]:
    """The quarantines for a pool's status, those that last longest first, as many as fit."""
    longest = sorted(quarantines, key=lambda q: q.until or _NEVER, reverse=True)
    return [
        QuarantineStatus.model_validate(
            {
                "instanceType": q.instance_type,
                "drivers": list(q.drivers),
                "failedBoots": list(q.failed_boots),
                "mispredictions": list(q.mispredictions),
                "drifts": list(q.drifts),
                "times": q.times,
                "until": moment_text(q.until) if q.until else None,
            }
        ).manifest()
        for q in longest[:_MOST_QUARANTINES]
    ]

"""Back-offs, kept where they survive a restart: in the status of the pool that met them.

They are written before the next attempt is begun, so a crash between the two repeats a question and forgets nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from autoscaler.cluster.api import KubernetesApi, NotFoundError
from autoscaler.cluster.resources import CAPACITY_POOLS
from autoscaler.kube.custom.capacity_pool import backoff_statuses
from autoscaler.model.provisioned_node import OfferingRef
from autoscaler.model.snapshot import Backoff
from providers.errors import BackoffScope, ProviderError


class Backoffs:
    """All back-offs as last read or written."""

    def __init__(self, api: KubernetesApi) -> None:
        self._api = api
        self._known: dict[str, tuple[Backoff, ...]] = {}

    def resume(self, backoffs: Iterable[Backoff]) -> None:
        """Start from what the pools' statuses hold."""
        self._known = {}
        for backoff in backoffs:
            self._known[backoff.pool] = (*self._known.get(backoff.pool, ()), backoff)

    def forbid(self, pool: str, offering: OfferingRef, now: datetime) -> bool:
        """Whether the pool must not ask for this offering now."""
        return any(covers(backoff, offering) and backoff.until > now for backoff in self._known.get(pool, ()))

    def paused(self, pool: str, now: datetime) -> bool:
        """Whether the pool must ask for nothing at all now."""
        return any(_key(backoff) == ("", "", "") and backoff.until > now for backoff in self._known.get(pool, ()))

    def failed(self, pool: str, offering: OfferingRef, error: ProviderError, now: datetime) -> None:
        """Remember that asking for `offering` failed, as widely as the error reaches."""
        added = _backoff(pool, offering, error, now)
        kept = tuple(b for b in self._known.get(pool, ()) if b.until > now and _key(b) != _key(added))
        self._known[pool] = (*kept, added)
        statuses = [status.manifest() for status in backoff_statuses(self._known[pool], now=now)]
        try:
            self._api.patch(CAPACITY_POOLS, pool, {"status": {"backoffs": statuses}}, subresource="status")
        except NotFoundError:
            self._known.pop(pool)  # the pool is gone, and nothing will be asked for it any more


def covers(backoff: Backoff, offering: OfferingRef) -> bool:
    """Whether the back-off is about this offering; its empty fields stand for everything."""
    return (
        backoff.instance_type in ("", offering.instance_type)
        and backoff.zone in ("", offering.zone)
        and backoff.capacity_type in ("", offering.capacity_type)
    )


def _backoff(pool: str, offering: OfferingRef, error: ProviderError, now: datetime) -> Backoff:
    until, reason = now + error.backoff(1), error.kind
    match error.scope:
        case BackoffScope.TYPE_IN_ZONE:
            return Backoff(until, offering.instance_type, offering.zone, pool=pool, reason=reason)
        case BackoffScope.QUOTA:
            return Backoff(until, capacity_type=offering.capacity_type, pool=pool, reason=reason)
        case BackoffScope.API | BackoffScope.TEMPLATE | BackoffScope.PROVIDER:
            return Backoff(until, pool=pool, reason=reason)
        case BackoffScope.OFFERING | BackoffScope.RESERVATION | BackoffScope.OBJECT:
            return Backoff(
                until, offering.instance_type, offering.zone, offering.capacity_type, pool=pool, reason=reason
            )


def _key(backoff: Backoff) -> tuple[str, str, str]:
    return (backoff.instance_type, backoff.zone, backoff.capacity_type)

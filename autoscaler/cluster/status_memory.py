"""State that must survive a restart: the account of the spending guards in an object of its own, back-offs and
quarantines in the status of their pool.

Back-offs are written before the next attempt begins, so a crash between the two repeats a request and forgets nothing.
One that cannot be written is still in force until it is written or the process ends: a failed write must not keep a
launch's answer from being recorded.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import datetime
from functools import partial

from autoscaler.cluster.api import AlreadyExistsError, ConflictError, KubernetesApi, NotFoundError, Object
from autoscaler.cluster.isolation import Isolation, Trouble
from autoscaler.cluster.resources import CAPACITY_POOLS, SPENDINGS
from autoscaler.kube.custom.pool_memory import REMEMBERED, backoff_manifests, quarantine_manifests
from autoscaler.kube.custom.spending import CLUSTER, parse_spending, write_spending
from autoscaler.model.provisioned_node import OfferingRef
from autoscaler.model.snapshot import Backoff, Quarantine
from autoscaler.model.spending import Spending
from autoscaler.report.words import advised
from instance_catalog.dataclass import replace
from instance_catalog.types.instance_type import CapacityType
from providers.errors import BackoffScope, ProviderError


class Account:
    """The account as last read or written, whichever is newer."""

    def __init__(self, api: KubernetesApi) -> None:
        self._api = api
        self._current: Spending | None = None

    @property
    def current(self) -> Spending | None:
        """None before anything was launched."""
        return self._current

    def resume(self, seen: Spending | None) -> None:
        """Accepts the account that was read, unless it lags behind the last write."""
        if seen is not None and (self._current is None or _version(seen) >= _version(self._current)):
            self._current = seen

    def save(self, account: Spending) -> None:
        """Write it if it changed. A write of another client wins; the next reconcile reads it."""
        if account == self._current:
            return
        manifest = write_spending(account)
        if not account.resource_version:
            manifest["metadata"]["resourceVersion"] = self._begun(manifest)["metadata"]["resourceVersion"]
        try:
            self._current = parse_spending(self._api.update(SPENDINGS, manifest, subresource="status"))
        except ConflictError:
            self._current = parse_spending(self._api.get(SPENDINGS, CLUSTER))

    def _begun(self, manifest: Object) -> Object:
        """The object, which may have been created without a status before a restart."""
        try:
            return self._api.create(SPENDINGS, manifest)
        except AlreadyExistsError:
            return self._api.get(SPENDINGS, CLUSTER)


def _version(account: Spending) -> int:
    return int(account.resource_version or 0)


_LONGEST_MESSAGE = 1024
# Scopes of errors that are about a reservation if the request named one.
_OF_RESERVATIONS = frozenset(
    {BackoffScope.TYPE_IN_ZONE, BackoffScope.OFFERING, BackoffScope.RESERVATION, BackoffScope.OBJECT}
)


class Backoffs:
    """All back-offs as last read or written."""

    def __init__(self, api: KubernetesApi) -> None:
        self._api = api
        self._known: dict[str, tuple[Backoff, ...]] = {}
        self._unsaved: dict[str, tuple[Backoff, ...]] = {}
        self._isolation = Isolation(api)
        self._troubles: list[Trouble] = []

    def with_unsaved(self, written: Iterable[Backoff]) -> tuple[Backoff, ...]:
        """The back-offs in the pools' statuses; for a pool whose status could not be written, those that it should
        have."""
        saved = (backoff for backoff in written if backoff.pool not in self._unsaved)
        return (*saved, *(backoff for backoffs in self._unsaved.values() for backoff in backoffs))

    @property
    def current(self) -> tuple[Backoff, ...]:
        """All that are known, those of this reconcile included."""
        return tuple(backoff for backoffs in self._known.values() for backoff in backoffs)

    def resume(self, backoffs: Iterable[Backoff]) -> None:
        """Starts from these: with_unsaved, without those that a clock that was set back has put into the future."""
        self._known = {}
        for backoff in backoffs:
            self._known[backoff.pool] = (*self._known.get(backoff.pool, ()), backoff)
        self._unsaved = {pool: self._known.get(pool, ()) for pool in self._unsaved}
        self._isolation = Isolation(self._api)

    def take_troubles(self) -> tuple[Trouble, ...]:
        """The statuses that could not be written since the last call."""
        taken, self._troubles = tuple(self._troubles), []
        return taken

    def forbid(self, pool: str, offering: OfferingRef, now: datetime) -> bool:
        return any(backoff.covers(offering) and backoff.until > now for backoff in self._known.get(pool, ()))

    def paused(self, pool: str, now: datetime) -> bool:
        return any(backoff.until > now for backoff in self._of_all(pool))

    def failures(self, pool: str) -> int:
        """The number of failures in a row of requests for any offering."""
        return max((backoff.failures for backoff in self._of_all(pool)), default=0)

    def failed(
        self,
        pool: str,
        offering: OfferingRef,
        error: ProviderError,
        now: datetime,
        *,
        also: Iterable[OfferingRef] = (),
    ) -> None:
        """Remember that asking for `offering` failed, as widely as the error reaches; the longer, the more in a row.
        `also` would have failed alike."""
        message = advised(error.message, error.next_step)[:_LONGEST_MESSAGE]
        known = self._known.get(pool, ())
        for one in dict.fromkeys((offering, *also)):
            added = _backoff(pool, one, error, now)
            same = [b for b in known if _key(b) == _key(added) and b.until + REMEMBERED > now]
            # Also of another kind: a provider that fails by turns is not asked more often than one that always fails
            # alike.
            failures = 1 + max((b.failures for b in same), default=0)
            longer = replace(added, until=now + error.backoff(failures), failures=failures, message=message)
            known = (*(b for b in known if _key(b) != _key(added)), longer)
        self._save(pool, known, now)

    def succeeded(self, pool: str, offering: OfferingRef, now: datetime) -> None:
        """Forgets back-offs that are over and were about this offering: the next failure is the first one again."""
        known = self._known.get(pool, ())
        kept = tuple(b for b in known if b.until > now or not b.covers(offering))
        if kept != known:
            self._save(pool, kept, now)

    def _of_all(self, pool: str) -> Iterator[Backoff]:
        """The pool's back-offs that apply to all its requests."""
        return (backoff for backoff in self._known.get(pool, ()) if not any(_key(backoff)))

    def _save(self, pool: str, backoffs: tuple[Backoff, ...], now: datetime) -> None:
        self._known[pool] = self._unsaved[pool] = backoffs
        trouble = self._isolation.attempt(CAPACITY_POOLS.kind, pool, lambda: self._write(pool, backoffs, now))
        if trouble is None:
            self._unsaved.pop(pool)
        else:
            self._troubles.append(trouble)

    def _write(self, pool: str, backoffs: tuple[Backoff, ...], now: datetime) -> None:
        patch = {"status": {"backoffs": backoff_manifests(backoffs, now=now)}}
        try:
            self._api.patch(CAPACITY_POOLS, pool, patch, subresource="status")
        except NotFoundError:
            self._known.pop(pool)  # the pool is gone, and nothing will be asked for it any more


def _backoff(pool: str, offering: OfferingRef, error: ProviderError, now: datetime) -> Backoff:
    until, reason = now, error.kind  # its duration depends on the previous failures
    if offering.reservation and error.scope in _OF_RESERVATIONS:
        # The capacity or refusal of one reservation is no evidence about another, nor about machines without one.
        kind, held = offering.capacity_type, offering.reservation
        return Backoff(until, offering.instance_type, offering.zone, kind, pool, reason, reservation=held)
    match error.scope:
        case BackoffScope.TYPE_IN_ZONE:
            return Backoff(until, offering.instance_type, offering.zone, pool=pool, reason=reason)
        case BackoffScope.ZONE:
            return Backoff(until, zone=offering.zone, pool=pool, reason=reason)
        case BackoffScope.QUOTA:
            return Backoff(until, capacity_type=offering.capacity_type, pool=pool, reason=reason)
        case BackoffScope.API | BackoffScope.TEMPLATE | BackoffScope.PROVIDER:
            return Backoff(until, pool=pool, reason=reason)
        case BackoffScope.OFFERING | BackoffScope.RESERVATION | BackoffScope.OBJECT:
            return Backoff(
                until, offering.instance_type, offering.zone, offering.capacity_type, pool=pool, reason=reason
            )


def _key(backoff: Backoff) -> tuple[str, str, CapacityType | None, str]:
    return (backoff.instance_type, backoff.zone, backoff.capacity_type, backoff.reservation)


def save_quarantines(
    api: KubernetesApi, before: Iterable[Quarantine], after: Iterable[Quarantine]
) -> tuple[Trouble, ...]:
    """Write the pools whose quarantines changed; which could not be written. They are learned again then."""
    old, new = _by_pool(before), _by_pool(after)
    isolation = Isolation(api)
    changed = (pool for pool in sorted(old.keys() | new.keys()) if old.get(pool) != new.get(pool))
    attempts = (
        isolation.attempt(CAPACITY_POOLS.kind, pool, partial(_save, api, pool, new.get(pool, ()))) for pool in changed
    )
    return tuple(trouble for trouble in attempts if trouble is not None)


def _save(api: KubernetesApi, pool: str, quarantines: Iterable[Quarantine]) -> None:
    patch = {"status": {"quarantines": quarantine_manifests(quarantines)}}
    with suppress(NotFoundError):  # the pool is gone, and launches nothing any more
        api.patch(CAPACITY_POOLS, pool, patch, subresource="status")


def _by_pool(quarantines: Iterable[Quarantine]) -> dict[str, list[Quarantine]]:
    found: dict[str, list[Quarantine]] = {}
    for quarantine in quarantines:
        found.setdefault(quarantine.pool, []).append(quarantine)
    return found

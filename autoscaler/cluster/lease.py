"""Elects the replica that acts: a coordination.k8s.io Lease that one of them holds and renews.

The rules are those of k8s.io/client-go tools/leaderelection (v1.36): a candidate takes over only if it has seen no
change of the Lease for the Lease's duration, by its own monotonic clock; the times inside the Lease are for users and
are never compared. The holder may act only until `renew_deadline` after it last *began* a renewal that succeeded, so it
has stopped before another replica can start. The Lease is only for the election: it holds no other state.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final

import structlog

from autoscaler.cluster.api import ApiError, KubernetesApi, NotFoundError, Object
from autoscaler.cluster.resources import LEASES
from autoscaler.errors import ForesliceError
from autoscaler.settings.settings import LeaseSettings
from providers.contract import Clock

_LOG: Final = structlog.get_logger("foreslice.lease")


class LeadershipLostError(ForesliceError):
    """This replica may not act any more; a new process begins as a candidate."""

    reason = "LeadershipLost"

    def __init__(self, message: str) -> None:
        super().__init__(message, next_step="nothing: the process ends, and its successor is a candidate again")


class Election:
    """One candidate. `attempt` every `settings.retry`; `leads` may be asked from any thread, at any time."""

    def __init__(self, api: KubernetesApi, clock: Clock, settings: LeaseSettings, *, identity: str) -> None:
        self.identity = identity
        self._api = api
        self._clock = clock
        self._settings = settings
        self._lease: Object | None = None  # as last seen or written; None: there is none
        self._seen_at = 0.0  # when its spec was first seen as it is
        self._certain = False  # true if `_lease` is the API's state, as far as this replica can know
        self._renewed_at: float | None = None
        self._trouble = ""

    def leads(self) -> bool:
        """True if this replica may act now."""
        renewed_at = self._renewed_at
        if renewed_at is None:
            return False
        return self._clock.monotonic() < renewed_at + self._settings.renew_deadline.total_seconds()

    @property
    def holder(self) -> str:
        """The holder of the Lease that this replica last saw; "" for none."""
        return str(_spec(self._lease).get("holderIdentity") or "")

    def attempt(self) -> bool:
        """Acquires or renews the Lease, once. Returns True if this replica leads afterwards. A refusal is tried
        again."""
        began = self._clock.monotonic()
        try:
            # A leader has its last write, so renewing is one request.
            if not (self._certain and self.leads()):
                self._look()
            if self._may_take():
                self._write()
                self._renewed_at = began
            else:
                self._renewed_at = None
        except Exception as error:  # noqa: BLE001  # a candidate whose thread ends is never elected again
            # It may have been written all the same, so the next attempt looks first.
            self._certain = False
            self._log_once(error.message if isinstance(error, ApiError) else f"{type(error).__name__}: {error}")
        else:
            self._trouble = ""
        return self.leads()

    def release(self) -> None:
        """Stops acting, and lets another replica take over at once."""
        led, self._renewed_at = self.leads(), None
        if not led or self._lease is None:
            return
        given_up = {**_spec(self._lease), "holderIdentity": "", "leaseDurationSeconds": 1}
        try:
            self._lease = self._api.update(LEASES, {**self._lease, "spec": given_up})
        except ApiError as error:
            _LOG.warning("lease_not_released", lease=self._name, error=error.message)

    def _log_once(self, trouble: str) -> None:
        """Once, and not every other second for as long as a right is missing."""
        if trouble != self._trouble:
            self._trouble = trouble
            _LOG.warning("lease_attempt_failed", lease=self._name, error=trouble)

    @property
    def _name(self) -> str:
        return f"{self._settings.namespace}/{self._settings.name}"

    def _look(self) -> None:
        before = _spec(self._lease)
        try:
            self._lease = self._api.get(LEASES, self._settings.name, namespace=self._settings.namespace)
        except NotFoundError:
            self._lease = None
        if _spec(self._lease) != before:
            self._seen_at = self._clock.monotonic()
        self._certain = True

    def _may_take(self) -> bool:
        if self.holder in ("", self.identity):
            return True
        lasts = _spec(self._lease).get("leaseDurationSeconds") or self._settings.duration.total_seconds()
        return self._clock.monotonic() >= self._seen_at + float(lasts)

    def _write(self) -> None:
        """Put this replica's name in. ApiError when another replica was faster, or the outcome is unknown."""
        now = self._clock.now().strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        old = _spec(self._lease)
        mine = self.holder == self.identity
        spec = {
            "holderIdentity": self.identity,
            "leaseDurationSeconds": int(self._settings.duration.total_seconds()),
            "acquireTime": old.get("acquireTime", now) if mine else now,
            "renewTime": now,
            "leaseTransitions": int(old.get("leaseTransitions") or 0) + (not mine and self._lease is not None),
        }
        if self._lease is None:
            metadata = {"name": self._settings.name, "namespace": self._settings.namespace}
            self._lease = self._api.create(LEASES, {"metadata": metadata, "spec": spec})
        else:
            self._lease = self._api.update(LEASES, {**self._lease, "spec": {**old, **spec}})
        self._seen_at = self._clock.monotonic()


def campaign(
    election: Election, settings: LeaseSettings, *, ended: threading.Event, changed: Callable[[], None]
) -> None:
    """Attempt until `ended` is set; `changed` is called whenever this replica begins or ceases to lead."""
    led = False
    while not ended.is_set():
        if (leads := election.attempt()) != led:
            led = leads
            _LOG.info("leading" if led else "not_leading", identity=election.identity, holder=election.holder)
            changed()
        ended.wait(settings.retry.total_seconds())


def _spec(lease: Object | None) -> Object:
    spec: Object = {} if lease is None else lease.get("spec") or {}
    return spec

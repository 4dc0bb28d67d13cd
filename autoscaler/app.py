"""The composition root of the controller: the real client, the providers, the loop, and what makes it tick.

A tick begins when something in the cluster has changed and then been quiet for a moment, or when something falls due.
What goes wrong with the API or a provider is logged and tried again; anything else ends the process, and the next one
goes on from what the API holds.
"""

from __future__ import annotations

import logging
import queue
from collections.abc import Iterator
from datetime import timedelta
from typing import Final, Protocol

from autoscaler.cluster.api import ApiError, KubernetesApi, NotFoundError
from autoscaler.cluster.client import KubernetesClient
from autoscaler.cluster.client_transport import connect
from autoscaler.cluster.provider_objects import ProviderObjects
from autoscaler.cluster.resources import CAPACITY_POOLS, KWOK_NODE_TEMPLATES, NAMESPACES
from autoscaler.errors import ConfigurationError
from autoscaler.execution.launch import Providers
from autoscaler.kwok_machines import KwokMachines
from autoscaler.loop import Loop, Tick
from autoscaler.model.capacity import Mode
from autoscaler.report.events import offering_text
from autoscaler.settings import Settings
from instance_catalog.catalog import Catalog
from instance_catalog.kubernetes_profile import KubernetesProfile
from providers.contract import Clock
from providers.errors import ProviderError
from providers.kwok.provider import KwokProvider

_LOG: Final = logging.getLogger("foreslice")
_FIRST_RETRY: Final = timedelta(seconds=1)


class Bell:
    """Tells one waiting thread that something has happened.

    A queue, because its `put` may interrupt its own `get`: a signal handler rings in the middle of a wait. The lock of
    threading.Event would be held then, now and then.
    """

    def __init__(self) -> None:
        self._rings: queue.SimpleQueue[None] = queue.SimpleQueue()

    def ring(self) -> None:
        """Something has happened. May be called from any thread and from signal handlers."""
        if self._rings.empty():
            self._rings.put(None)

    def wait(self, seconds: float) -> bool:
        """Until it rings, at most so long; whether it rang. Afterwards it is silent again."""
        try:
            self._rings.get(timeout=max(seconds, 0.0))
        except queue.Empty:
            return False
        while not self._rings.empty():  # two threads may have rung at once
            self._rings.get()
        return True


class Ticking(Protocol):
    """What the controller keeps going: autoscaler.loop.Loop."""

    def tick(self) -> Tick:
        """One round."""


class Controller:
    """Ticks until it is stopped."""

    def __init__(self, loop: Ticking, bell: Bell, clock: Clock, settings: Settings) -> None:
        self._loop = loop
        self._bell = bell
        self._clock = clock
        self._settings = settings
        self._stopping = False
        self._failures = 0
        self._told: frozenset[str] = frozenset()

    def stop(self) -> None:
        """End after the tick that is under way; every step of it is written down anyway."""
        self._stopping = True
        self._bell.ring()

    def run(self) -> None:
        """Tick until stopped."""
        while not self._stopping:
            # A tick takes over all changes so far, so only those that come during it call for another.
            self._bell.wait(0)
            if not self._stopping:
                self._rest(self._tick())

    def _tick(self) -> timedelta:
        """One tick; how long to rest when nothing happens."""
        try:
            tick = self._loop.tick()
        except (ApiError, ConfigurationError, ProviderError) as error:
            self._failures += 1
            _LOG.warning("this round was cut short and is repeated: %s", error)
            return min(_FIRST_RETRY * (1 << min(self._failures - 1, 10)), self._settings.loop.resync)
        self._failures = 0
        self._tell(tick)
        due = self._settings.loop.resync
        return due if tick.wake_at is None else min(due, tick.wake_at - self._clock.now())

    def _tell(self, tick: Tick) -> None:
        """Log what the tick before did not say already."""
        lines = tuple(_lines(tick))
        for level, line in lines:
            if line not in self._told:
                _LOG.log(level, "%s", line)
        self._told = frozenset(line for _, line in lines)

    def _rest(self, longest: timedelta) -> None:
        """Until something changes, and then until it has been quiet for a while; or until something falls due."""
        if not self._bell.wait(longest.total_seconds()):
            return
        batch = self._settings.batch
        until = self._clock.monotonic() + batch.longest.total_seconds()
        while not self._stopping and (left := until - self._clock.monotonic()) > 0:
            if not self._bell.wait(min(batch.idle.total_seconds(), left)):
                return


def controller(*, kubeconfig: str, context: str, catalog: Catalog, clock: Clock, settings: Settings) -> Controller:
    """The controller of a cluster. Raises ConfigurationError when the cluster is not prepared, ApiError when unread."""
    bell = Bell()
    client = KubernetesClient(connect(clock, kubeconfig=kubeconfig, context=context), clock, ring=bell.ring)
    profile = client.profile()
    _LOG.info(
        "%s, deciding as Kubernetes %s; feature gates are assumed to be its defaults", client.server, profile.name
    )
    if profile.note:
        _LOG.warning("%s", profile.note)
    _require_crds(client)
    loop = Loop(
        api=client,
        providers=_providers(client, catalog, profile),
        catalog=catalog,
        profile=profile,
        clock=clock,
        settings=settings,
    )
    return Controller(loop, bell, clock, settings)


def _providers(api: KubernetesApi, catalog: Catalog, profile: KubernetesProfile) -> Providers:
    """The providers by the kind of their node templates; the uid of kube-system is what tells clusters apart."""
    objects = ProviderObjects(api)
    kwok = KwokProvider(objects, KwokMachines(objects, catalog, profile))
    cluster = api.get(NAMESPACES, "kube-system")["metadata"]["uid"]
    return Providers({KWOK_NODE_TEMPLATES.kind: kwok}, cluster=str(cluster))


def _require_crds(api: KubernetesApi) -> None:
    try:
        api.list(CAPACITY_POOLS, limit=1)
    except NotFoundError as error:
        raise ConfigurationError(
            "the cluster does not know CapacityPools",
            next_step="install the custom resources first: kubectl apply --server-side -f deploy/crds",
        ) from error


def _lines(tick: Tick) -> Iterator[tuple[int, str]]:
    """What a tick decided and could not do, as lines of the log with their levels."""
    acting = {pool.name for pool in tick.snapshot.pools if pool.acts}
    for launch in tick.plan.launches:
        what = "launch" if launch.pool in acting else "would launch"
        pods = ", ".join(launch.pods) or "its baseline"
        yield logging.INFO, f"{what} {offering_text(launch.offering)} for pool {launch.pool}: {pods}"
    for trouble in tick.troubles:
        yield logging.WARNING, f"{trouble.kind} {trouble.name}: {trouble.error}"

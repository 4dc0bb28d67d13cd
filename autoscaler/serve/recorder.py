"""The counters of the process: the values behind /metrics.

It has its own registry, so that two recorders in one process (tests, simulations) never share a counter. Gauges are
those of the last reconcile as a whole: the series of a deleted pool are removed.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Final

from prometheus_client import CollectorRegistry, Histogram
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric as Family

from autoscaler.catalog_refresh.periodic import SyncOutcome
from autoscaler.cluster.api import ApiError
from autoscaler.cluster.resources import Resource
from autoscaler.lifecycle.spending import hours
from autoscaler.model.plan import Plan
from autoscaler.model.snapshot import Snapshot
from autoscaler.report.metrics.samples import begun, boots_of, gauges_of, increments_of
from autoscaler.report.metrics.table import (
    API_REQUESTS,
    BOOT_SECONDS,
    BUILD,
    CATALOG_AGE,
    CATALOG_CONFLICTS,
    CATALOG_SYNCS,
    EVENTS,
    EVENTS_WAITING,
    EXPANDER_CHOICES,
    GRPC_CALLS,
    INFORMER_AGE,
    LEADER,
    METRICS,
    STAGE_SECONDS,
    TICK_SECONDS,
    TICKS,
    TROUBLES,
    Kind,
    Metric,
    Sample,
)
from providers.contract import Clock

_OUTCOMES: Final = ("ok", "failed")
# The most series of counters, which stay until the process ends: namespaces and pools are created and deleted. A scrape
# of this many takes 50 ms.
_MOST_SERIES: Final = 5_000


class Recorder:
    """Counts and remembers; `registry` renders it. May be used from several threads."""

    def __init__(self, clock: Clock, *, version: str, leads: Callable[[], bool] = lambda: True) -> None:
        self._clock = clock
        self._version = version
        self._leads = leads
        self._lock = threading.Lock()
        self._gauges: tuple[Sample, ...] = ()
        self._totals: dict[tuple[Metric, tuple[str, ...]], float] = {(TICKS, (name,)): 0 for name in _OUTCOMES}
        self._before: tuple[Snapshot, float] | None = None  # and when, by the monotonic clock
        self._catalog_read_at = clock.monotonic()
        self._conflicts: dict[tuple[str, str], int] = {}
        self._fates: Callable[[], Mapping[str, int]] = dict
        self._waiting: Callable[[], int] = int
        self._ages: Callable[[], Mapping[str, float]] = dict
        self.registry = CollectorRegistry()
        self.registry.register(self)
        self._tick_seconds = self._histogram(TICK_SECONDS)
        self._stage_seconds = self._histogram(STAGE_SECONDS)
        self._boot_seconds = self._histogram(BOOT_SECONDS)

    def ticked(self, snapshot: Snapshot, plan: Plan, now: datetime, troubles: Iterable[tuple[str, str]] = ()) -> None:
        """A reconcile succeeded. `troubles` are (kind, reason) of what could not be carried out in it."""
        moment = self._clock.monotonic()
        grown = [Sample(TICKS, ("ok",), 1), *(Sample(TROUBLES, trouble, 1) for trouble in troubles)]
        grown += begun(snapshot.pools)
        if self._before is not None:
            before, since = self._before
            # Not `now` less then: a clock that is set back by hours must not take back what was counted.
            grown += increments_of(before, snapshot, hours(timedelta(seconds=moment - since)))
            for boot in boots_of(before, snapshot):
                self._boot_seconds.labels(*boot.labels).observe(boot.value)
        self._before = (snapshot, moment)
        gauges = gauges_of(snapshot, plan, now)
        with self._lock:
            self._gauges = gauges
            self._add(grown)

    def cut_short(self) -> None:
        """A reconcile ended with an error."""
        with self._lock:
            self._add([Sample(TICKS, ("failed",), 1)])

    def watch_events(self, fates: Callable[[], Mapping[str, int]], waiting: Callable[[], int]) -> None:
        """Sets the sources of the number of events by fate, and of those that wait."""
        self._fates, self._waiting = fates, waiting

    def follows(self, ages: Callable[[], Mapping[str, float]]) -> None:
        """Sets `ages`, which returns for each resource the seconds since its last event."""
        self._ages = ages

    def catalog_read(self) -> None:
        """The catalog was read without an error."""
        self._catalog_read_at = self._clock.monotonic()

    def catalog_synced(self, sync: SyncOutcome) -> None:
        """A cloud's listing was read, or could not be."""
        with self._lock:
            self._add([Sample(CATALOG_SYNCS, (sync.cloud, sync.scope, sync.outcome), 1)])
            if sync.conflicts is not None:
                self._conflicts[sync.cloud, sync.scope] = sync.conflicts

    def grpc_answered(self, method: str, status: str) -> None:
        """A call of Cluster Autoscaler was answered."""
        with self._lock:
            self._add([Sample(GRPC_CALLS, (method, status), 1)])

    def option_chosen(self, why: str) -> None:
        """The expander chose among node groups."""
        with self._lock:
            self._add([Sample(EXPANDER_CHOICES, (why,), 1)])

    @contextmanager
    def timing_tick(self) -> Iterator[None]:
        began = self._clock.monotonic()
        try:
            yield
        finally:
            self._tick_seconds.observe(self._clock.monotonic() - began)

    @contextmanager
    def timing_stage(self, stage: str) -> Iterator[None]:
        began = self._clock.monotonic()
        try:
            yield
        finally:
            self._stage_seconds.labels(stage).observe(self._clock.monotonic() - began)

    @contextmanager
    def counting(self, verb: str, resource: Resource) -> Iterator[None]:
        """An interceptor of cluster/intercepted.py. Reads of a watch are not counted: its connection is opened
        elsewhere."""
        outcome = "ok"
        try:
            yield
        except ApiError as error:
            outcome = error.reason
            raise
        finally:
            if verb != "watch":
                with self._lock:
                    self._add([Sample(API_REQUESTS, (verb, str(resource), outcome), 1)])

    def collect(self) -> Iterator[Family]:
        """For the registry: everything but the histograms, which are collectors of their own."""
        with self._lock:
            samples = [
                *self._gauges,
                *(Sample(metric, labels, value) for (metric, labels), value in self._totals.items()),
                *(Sample(CATALOG_CONFLICTS, where, count) for where, count in self._conflicts.items()),
            ]
        samples += [Sample(EVENTS, (fate,), count) for fate, count in self._fates().items()]
        samples.append(Sample(EVENTS_WAITING, (), self._waiting()))
        samples += [Sample(INFORMER_AGE, (resource,), age) for resource, age in self._ages().items()]
        samples.append(Sample(LEADER, (), self._leads()))
        samples.append(Sample(CATALOG_AGE, (), self._clock.monotonic() - self._catalog_read_at))
        samples.append(Sample(BUILD, (self._version,), 1))
        for metric in METRICS:
            if metric.kind is not Kind.HISTOGRAM:
                yield _family(metric, samples)

    def _add(self, samples: Iterable[Sample]) -> None:
        for sample in samples:
            key = sample.metric, sample.labels
            if key not in self._totals and len(self._totals) >= _MOST_SERIES:
                key = sample.metric, ("",) * len(sample.labels)  # one for all that find no place: sums stay right
            self._totals[key] = self._totals.get(key, 0) + sample.value

    def _histogram(self, metric: Metric) -> Histogram:
        return Histogram(metric.name, metric.help, metric.labels, registry=self.registry, buckets=metric.buckets)


def _family(metric: Metric, samples: Iterable[Sample]) -> Family:
    made: GaugeMetricFamily | CounterMetricFamily
    if metric.kind is Kind.COUNTER:
        made = CounterMetricFamily(metric.name.removesuffix("_total"), metric.help, labels=metric.labels)
    else:
        made = GaugeMetricFamily(metric.name, metric.help, labels=metric.labels)
    for sample in samples:
        if sample.metric == metric:
            made.add_metric(sample.labels, sample.value)
    return made

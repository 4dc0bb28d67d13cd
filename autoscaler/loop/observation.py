"""The input of a reconcile: the cluster and the providers, read once; observations of nodes are saved."""

from __future__ import annotations

from datetime import datetime

from autoscaler.clock import ClockJumps
from autoscaler.cluster.api import KubernetesApi
from autoscaler.cluster.isolation import Trouble
from autoscaler.cluster.journal import Journal
from autoscaler.cluster.status_memory import Account, Backoffs
from autoscaler.cluster.store import Store
from autoscaler.execution.finalizers import stop_while_uninstalling
from autoscaler.execution.launch import Providers
from autoscaler.execution.patience import Patience
from autoscaler.execution.providers_seen import ProvidersSeen, acknowledge, ask
from autoscaler.lifecycle.moments import without_future
from autoscaler.lifecycle.provisioned_node import awaits_node
from autoscaler.lifecycle.reflect import reflect
from autoscaler.loop.catalog import CatalogInForce
from autoscaler.model.capacity import Mode
from autoscaler.model.provisioned_node import ProvisionedNode
from autoscaler.model.snapshot import Snapshot
from autoscaler.planning.supply.drivers import readable
from autoscaler.settings.settings import LoopSettings
from instance_catalog.dataclass import dataclass, replace
from instance_catalog.diagnostic import Diagnostic
from instance_catalog.files.last_good import EffectiveCatalog
from instance_catalog.prediction.predict import predict, unpredictable
from instance_catalog.types.catalog import Catalog
from providers.contract import Clock
from providers.errors import backoff_of


@dataclass(frozen=True, slots=True)
class Observation:
    """`snapshot` has every node in the state that was observed. `troubles` are what could not be read or saved."""

    now: datetime
    snapshot: Snapshot
    catalog: Catalog
    effective: EffectiveCatalog | None  # None if the catalog has no layers
    providers: Providers
    seen: ProvidersSeen
    problems: tuple[tuple[str, str, Diagnostic], ...]  # problems of objects: kind, key, problem
    troubles: tuple[Trouble, ...]

    @property
    def acts(self) -> bool:
        """True if a pool is in mode Act."""
        return any(pool.mode is Mode.ACT for pool in self.snapshot.pools)


class Observer:
    """Reads the cluster and the providers. Everything that it holds in memory is a copy, or saves calls."""

    def __init__(
        self,
        api: KubernetesApi,
        store: Store,
        journal: Journal,
        backoffs: Backoffs,
        account: Account,
        catalog: CatalogInForce,
        clock: Clock,
        settings: LoopSettings,
    ) -> None:
        self._api = api
        self._store = store
        self._journal = journal
        self._backoffs = backoffs
        self._account = account
        self._catalog = catalog
        self._patience = Patience(clock, longest=settings.resync)
        self._clock = clock
        self._jumps = ClockJumps(clock, inherits=True)
        self._followed = False

    def follow(self) -> None:
        """Read what changed in the cluster while another replica acts."""
        self._store.refresh()
        self._followed = True

    def observe(self, now: datetime) -> Observation:
        """Read, move the nodes to the state that was observed, and save that before anything is decided."""
        snapshot, unfinished = self._read(now)
        uncreated = self._catalog.create_providers()
        providers = self._catalog.providers
        seen = ask(providers, snapshot.provisioned, now=now, patience=self._patience, jumps=self._jumps)
        expected = {node.name: self._drivers(node) for node in snapshot.provisioned if awaits_node(node)}
        batches = frozenset(batch.name for batch in self._journal.batches)
        snapshot = reflect(seen.world(snapshot, expected, batches=batches), now)
        observed = Observation(
            now=now,
            snapshot=snapshot,
            catalog=self._catalog.catalog,
            effective=self._catalog.effective,
            providers=providers,
            seen=seen,
            problems=tuple(self._store.problems()),
            troubles=(*unfinished, *uncreated, *seen.silent, *seen.doubts),
        )
        return replace(observed, troubles=(*observed.troubles, *self._save(observed)))

    def _save(self, observed: Observation) -> tuple[Trouble, ...]:
        """Saves the observations of nodes. Only then may providers drop the notices behind them."""
        unsaved = self._journal.note(observed.snapshot.provisioned)
        if observed.acts and all(map(self._is_noted, observed.snapshot.provisioned)):
            return (*unsaved, *acknowledge(observed.providers, observed.seen))
        return unsaved

    def _is_noted(self, node: ProvisionedNode) -> bool:
        """True if the end from a notice about the node is recorded."""
        written = self._journal.node(node.name)
        return written is None or written.noticed_at == node.noticed_at

    def _read(self, now: datetime) -> tuple[Snapshot, tuple[Trouble, ...]]:
        """The cluster, with what this process wrote and did not see again yet; what half-written is not complete."""
        self._store.refresh()
        if self._followed:
            # A watch may lag behind what the leader before wrote last, and nothing may be done twice.
            self._store.reread_own()
            self._jumps = ClockJumps(self._clock, inherits=True)
            self._followed = False
        self._catalog.refresh(self._store.overlays(), now)
        snapshot = self._store.snapshot()
        seen_up_to = self._store.seen_up_to()
        unfinished = self._journal.resume(self._store.batches(), snapshot.provisioned, now, seen_up_to=seen_up_to)
        backoffs = self._backoffs.with_unsaved(snapshot.backoffs)
        snapshot = replace(snapshot, provisioned=self._journal.nodes, backoffs=backoffs)
        stop_while_uninstalling(self._api, snapshot, self._journal.batches)
        snapshot = without_future(snapshot, now, backoff_of)
        self._backoffs.resume(snapshot.backoffs)
        self._account.resume(snapshot.spending)
        return replace(snapshot, spending=self._account.current), unfinished

    def _drivers(self, node: ProvisionedNode) -> frozenset[str]:
        """The drivers that were predicted to publish on a node; none for a type or driver that left the catalog."""
        catalog = self._catalog.catalog
        instance_type = catalog.types.get(node.offering.instance_type)
        drivers = readable(node.prediction.drivers, custom=catalog.drivers)
        if instance_type is None or drivers is None or unpredictable(instance_type, drivers):
            return frozenset()
        return frozenset(p.driver for p in predict(instance_type, drivers, kubernetes=self._store.profile))

"""The catalog that a reconcile plans with, and the providers that are created for it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime

from autoscaler.cluster.isolation import Trouble
from autoscaler.errors import ConfigurationError
from autoscaler.execution.launch import Providers
from instance_catalog.files.last_good import EffectiveCatalog, effective_catalog
from instance_catalog.files.layers import Layer
from instance_catalog.files.quotes import Priced, Quote, priced
from instance_catalog.types.catalog import Catalog


class CatalogInForce:
    """`layers`: the catalog's files now; the cluster's InstanceTypeOverlays lie over them. Without it the catalog stays
    as it is. `quotes`: what providers ask for today. `remake` creates the providers of another catalog."""

    def __init__(
        self,
        catalog: Catalog,
        providers: Providers,
        *,
        layers: Callable[[], Sequence[Layer]] | None,
        quotes: Callable[[], tuple[Quote, ...]],
        remake: Callable[[Catalog], Providers] | None,
    ) -> None:
        self.catalog = catalog
        self.providers = providers
        self._layers = layers
        self._quotes = quotes
        self._remake = remake
        self._priced: Priced | None = None
        self._created_for = catalog.digest

    @property
    def effective(self) -> EffectiveCatalog | None:
        """The layers in force; None if the catalog stays as it is."""
        return None if self._priced is None else self._priced.effective

    def refresh(self, overlays: Iterable[Layer], now: datetime) -> None:
        """Merge the layers again, if any of them changed."""
        if self._layers is None:
            return
        effective = effective_catalog((*self._layers(), *overlays), now=now, before=self.effective)
        self._priced = priced(effective, self._quotes(), before=self._priced)
        self.catalog = self._priced.catalog

    def create_providers(self) -> tuple[Trouble, ...]:
        """Creates the providers for the catalog in force; if that fails, the previous ones stay in use."""
        # Prices that are quoted create no other providers: these are who quotes them.
        catalog = self.catalog if self.effective is None else self.effective.catalog
        if self._remake is None or catalog.digest == self._created_for:
            return ()
        try:
            self.providers = self._remake(catalog)
        except ConfigurationError as error:
            return (Trouble("Provider", "catalog", error),)
        self._created_for = catalog.digest
        return ()

"""Asks providers for their prices while the controller runs, so that plans count what is paid today.

In a thread of its own and with providers of its own: a price list is read type by type, which takes minutes, and no
reconcile waits for it. Until it is read, and while it cannot be, the catalog's prices count.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

import structlog

from autoscaler.errors import ConfigurationError
from instance_catalog.files.quotes import Quote
from instance_catalog.types.catalog import Catalog
from instance_catalog.types.instance_type import CapacityType
from providers.contract import Clock, OfferingKey, Provider
from providers.errors import ProviderError

_LOG: Final = structlog.get_logger("foreslice.prices")
# Providers learn a few prices a look. No region sells so many types that more looks would bring more.
_MOST_LOOKS: Final = 100
# What is reserved is paid already: a plan counts it as nothing more, whatever is said of it here.
_PAID_BY_THE_HOUR: Final = {
    kind.value: kind for kind in (CapacityType.ON_DEMAND, CapacityType.SPOT, CapacityType.FLEX_START)
}


class PriceWatch:
    """Asks the providers that `make` makes of the `catalog` of the time; `changed` hears of other `quotes`.

    They are kept while the catalog stays, because they remember what they have read.
    """

    def __init__(
        self,
        catalog: Callable[[], Catalog],
        make: Callable[[Catalog], Iterable[Provider]],
        clock: Clock,
        *,
        changed: Callable[[], None],
    ) -> None:
        self._catalog = catalog
        self._make = make
        self._made_of = ""
        self._providers: tuple[Provider, ...] = ()
        self._clock = clock
        self._changed = changed
        self._known: dict[str, Mapping[OfferingKey, Quote]] = {}
        self._thread: threading.Thread | None = None
        self.quotes: tuple[Quote, ...] = ()

    def start(self) -> None:
        """Begin, unless the last time is still under way."""
        if self._thread is None or not self._thread.is_alive():
            # It only reads, so it may end wherever it is when the process ends.
            self._thread = threading.Thread(target=self.run, name="prices", daemon=True)
            self._thread.start()

    def run(self) -> None:
        """Ask every provider once. What one said before stays when it does not answer."""
        for provider in self._made():
            try:
                self._known[provider.name] = self._asked(provider)
            except ProviderError as error:
                _LOG.warning("prices_not_read", provider=provider.name, error=error.message, next_step=error.next_step)
        quotes = tuple(quote for known in self._known.values() for quote in known.values())
        if quotes != self.quotes:
            self.quotes = quotes
            _LOG.info("prices_read", prices=len(quotes))
            self._changed()

    def _made(self) -> tuple[Provider, ...]:
        catalog = self._catalog()
        if catalog.digest != self._made_of:
            try:
                self._providers = tuple(self._make(catalog))
            except ConfigurationError as error:
                _LOG.warning("prices_not_read", error=error.message, next_step=error.next_step)
                return ()
            self._made_of = catalog.digest
        return self._providers

    def _asked(self, provider: Provider) -> Mapping[OfferingKey, Quote]:
        """The provider's prices, requested until it returns no more than the time before."""
        quoted: Mapping[OfferingKey, Quote] = {}
        for _ in range(_MOST_LOOKS):
            before, quoted = quoted, dict(self._quotes(provider))
            if len(quoted) == len(before):
                break
        return quoted

    def _quotes(self, provider: Provider) -> Iterator[tuple[OfferingKey, Quote]]:
        today = self._clock.now().date().isoformat()
        for status in provider.offerings():
            key, price = status.offering, status.usd_per_hour
            if price is not None and key.capacity_type in _PAID_BY_THE_HOUR:
                capacity_type, region = _PAID_BY_THE_HOUR[key.capacity_type], status.region or provider.name
                yield key, Quote(key.instance_type, key.zone, capacity_type, price, region=region, date=today)

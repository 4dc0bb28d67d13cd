"""Providers are asked until they know no more, and their last prices stay while they do not answer."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from threading import Event
from typing import cast

from structlog.testing import capture_logs

from autoscaler.catalog_refresh.prices import PriceWatch
from autoscaler.clock import VirtualClock
from autoscaler.errors import ConfigurationError
from instance_catalog.types.catalog import Catalog
from instance_catalog.types.instance_type import ANY_ZONE
from providers.contract import OfferingKey, OfferingStatus, Provider
from providers.errors import PermissionDeniedError, ProviderError
from tests.unit.instance_catalog.prediction.machines import p4d


def status(name: str, dollars: str | None, capacity_type: str = "on-demand", reservation: str = "") -> OfferingStatus:
    price = None if dollars is None else Decimal(dollars)
    return OfferingStatus(OfferingKey(name, ANY_ZONE, capacity_type, reservation), price, region="r1")


class Shop:
    """A provider that tells one price more at each look, up to all it has."""

    name = "shop"

    def __init__(self, *statuses: OfferingStatus) -> None:
        self.statuses: Sequence[OfferingStatus] = statuses
        self.looks = 0
        self.trouble: ProviderError | None = None

    def offerings(self) -> tuple[OfferingStatus, ...]:
        if self.trouble is not None:
            raise self.trouble
        self.looks += 1
        return tuple(self.statuses[: self.looks])


class Watched:
    """A watch over shops, how often they were made, and how often it told of a change."""

    def __init__(self, *shops: Shop) -> None:
        self.catalog = Catalog.of(())
        self.shops = shops
        self.makings = 0
        self.obstacle: ConfigurationError | None = None
        self.changes = 0
        self.told = Event()
        self.watch = PriceWatch(lambda: self.catalog, self.made, VirtualClock(), changed=self.changed)

    def made(self, catalog: Catalog) -> list[Provider]:
        if self.obstacle is not None:
            raise self.obstacle
        self.makings += 1
        return [cast("Provider", shop) for shop in self.shops]

    def changed(self) -> None:
        self.changes += 1
        self.told.set()

    def prices(self) -> dict[str, str]:
        return {quote.instance_type: str(quote.usd_per_hour) for quote in self.watch.quotes}


def test_a_provider_is_asked_until_it_knows_no_more() -> None:
    shop = Shop(status("a", "1"), status("b", "2"), status("c", "3"))
    watched = Watched(shop)
    watched.watch.run()
    assert watched.prices() == {"a": "1", "b": "2", "c": "3"}
    assert shop.looks == 4
    assert {(q.region, q.zone) for q in watched.watch.quotes} == {("r1", ANY_ZONE)}


def test_only_what_is_paid_by_the_hour_is_quoted() -> None:
    shop = Shop(status("a", None), status("b", "0", "reserved", "r-1"), status("c", "0", "capacity-block", "r-2"))
    watched = Watched(shop)
    watched.watch.run()
    assert watched.prices() == {}
    assert watched.changes == 0


def test_a_change_is_told_once() -> None:
    shop = Shop(status("a", "1"))
    watched = Watched(shop)
    watched.watch.run()
    watched.watch.run()
    assert watched.changes == 1
    shop.statuses = (status("a", "1.5"),)
    watched.watch.run()
    assert (watched.changes, watched.prices()) == (2, {"a": "1.5"})


def test_the_last_prices_stay_while_a_provider_does_not_answer() -> None:
    silent, other = Shop(status("a", "1")), Shop(status("b", "2"))
    other.name = "other"
    watched = Watched(silent, other)
    watched.watch.run()
    silent.trouble = PermissionDeniedError("pricing:GetProducts is not allowed", next_step="allow it")
    other.statuses = (status("b", "3"),)
    with capture_logs() as logs:
        watched.watch.run()
    assert watched.prices() == {"a": "1", "b": "3"}
    (warning,) = (entry for entry in logs if entry["event"] == "prices_not_read")
    assert (warning["provider"], warning["next_step"]) == ("shop", "allow it")


def test_providers_are_made_again_for_another_catalog_alone() -> None:
    watched = Watched(Shop(status("a", "1")))
    watched.watch.run()
    watched.watch.run()
    assert watched.makings == 1
    watched.catalog = Catalog.of((p4d(),))
    watched.obstacle = ConfigurationError("no credentials", next_step="give some")
    with capture_logs() as logs:
        watched.watch.run()
    assert [(entry["event"], entry["next_step"]) for entry in logs] == [("prices_not_read", "give some")]
    assert watched.prices() == {"a": "1"}
    watched.obstacle = None
    watched.watch.run()
    assert watched.makings == 2


def test_the_thread_does_what_a_run_does() -> None:
    watched = Watched(Shop(status("a", "1")))
    watched.watch.start()
    assert watched.told.wait(timeout=60)
    assert watched.prices() == {"a": "1"}

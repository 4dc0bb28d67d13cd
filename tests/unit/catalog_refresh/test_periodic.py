"""Listings on a timer: what is written, told and counted, and what stays when a cloud refuses."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from autoscaler.catalog_refresh.periodic import Opened, PeriodicSync, SyncOutcome
from autoscaler.catalog_refresh.reload import ReloadingCatalog
from autoscaler.clock import VirtualClock
from instance_catalog.kubernetes.quantity import Quantity
from instance_catalog.sources.sync import CloudListing, ListedType
from instance_catalog.types.instance_type import CapacityType
from providers.errors import PermissionDeniedError
from providers.listing import Listing, ListingPage, Rows


class Cloud:
    """Lists so many types on one page, or refuses."""

    cloud = "mine"
    steps = ("types",)

    def __init__(self, scope: str, count: int) -> None:
        self.scope = scope
        self.count = count
        self.refuses = False

    def page(self, step: str, token: str, so_far: Rows) -> ListingPage:
        if self.refuses:
            raise PermissionDeniedError("mine:List is not allowed", code="Denied", next_step="allow mine:List")
        return ListingPage(tuple({"name": f"{self.scope}{index}.large"} for index in range(self.count)))

    def interpreted(self, rows: Rows, *, date: str) -> CloudListing:
        types = (
            ListedType(row["name"], "amd64", 8, Quantity.parse("32Gi"), None, (CapacityType.ON_DEMAND,), (self.scope,))
            for row in rows["types"]
        )
        return CloudListing("mine", (self.scope,), "a test", date, tuple(types))


class Controller:
    """What a controller has around a sync of two regions, a and b."""

    def __init__(self, mine: Path, synced: Path) -> None:
        clock = VirtualClock()
        self.shelf = ReloadingCatalog([mine], clock, synced=synced)
        self.clouds = [Cloud("a", 10), Cloud("b", 3)]
        self.outcomes: list[SyncOutcome] = []
        self.sync = PeriodicSync(
            [self._opened(cloud) for cloud in self.clouds],
            clock,
            directory=synced,
            layers=lambda: self.shelf.layers,
            changed=lambda: None if self.shelf.changed() else pytest.fail("told of a change that is none"),
            on_outcome=self.outcomes.append,
        )

    def _opened(self, cloud: Cloud) -> Opened:
        def opened(known: Iterable[str]) -> Listing:
            assert "p5.48xlarge" in known
            return cloud

        return opened

    def run(self) -> list[tuple[str, str, int | None]]:
        self.outcomes.clear()
        self.sync.run()
        return [(found.scope, found.outcome, found.conflicts) for found in self.outcomes]


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    directory = tmp_path / "mine"
    directory.mkdir()
    (directory / "mine.yaml").write_text("reason: measured\ntypes:\n- {name: g6.xlarge, vcpu: 5}\n")
    return directory


@pytest.fixture
def controller(mine: Path, tmp_path: Path) -> Controller:
    return Controller(mine, tmp_path / "synced")


def test_the_catalog_grows_and_then_rests(controller: Controller) -> None:
    assert controller.run() == [("a", "changed", 0), ("b", "changed", 0)]
    assert {"a9.large", "b2.large"} <= controller.shelf.catalog.types.keys()
    assert controller.run() == [("a", "unchanged", 0), ("b", "unchanged", 0)]


def test_a_refusal_keeps_the_last_good_and_names_the_permission(controller: Controller) -> None:
    controller.run()
    controller.clouds[0].refuses = True
    with capture_logs() as logs:
        assert controller.run() == [("a", "failed", None), ("b", "unchanged", 0)]
    assert "a9.large" in controller.shelf.catalog.types
    (line,) = (line for line in logs if line["event"] == "catalog_not_synced")
    assert (line["error"], line["next_step"]) == ("mine:List is not allowed", "allow mine:List")


def test_a_listing_that_shrinks_is_not_believed(controller: Controller) -> None:
    controller.run()
    controller.clouds[0].count = 7
    with capture_logs() as logs:
        assert controller.run()[0] == ("a", "failed", None)
    assert "a9.large" in controller.shelf.catalog.types
    assert "3 of 10 types are no longer listed" in next(iter(logs))["error"]


def test_what_people_say_otherwise_stays_and_is_told(controller: Controller, mine: Path) -> None:
    controller.run()
    (mine / "other.yaml").write_text("types:\n- {name: a1.large, vcpu: 7}\n")
    assert controller.shelf.changed()
    with capture_logs() as logs:
        assert controller.run()[0] == ("a", "unchanged", 1)
    conflict = next(line for line in logs if line["event"] == "catalog_conflict")
    assert [conflict[key] for key in ("type", "field", "cloud_says", "in_force")] == ["a1.large", "vcpu", "8", "7"]
    assert controller.shelf.catalog.get("a1.large").vcpu == 7


def test_a_half_written_file_of_a_person_is_no_obstacle(controller: Controller, mine: Path) -> None:
    (mine / "mine.yaml").write_text("types: [")
    controller.shelf.changed()
    assert controller.run()[0] == ("a", "changed", 0)
    assert controller.shelf.catalog.get("g6.xlarge").vcpu == 5

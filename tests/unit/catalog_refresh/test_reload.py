"""The controller's catalog follows its files; of one that is half written the last good version counts."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from autoscaler.catalog_refresh.reload import ReloadingCatalog
from autoscaler.clock import VirtualClock
from autoscaler.errors import BadInputError
from instance_catalog.types.instance_type import CapacityType

HEAD = "reason: ours\npricesAsOf: {region: r, date: 2026-11-20}\n"


def overlay(price: str, more: str = "") -> str:
    return f"{HEAD}{more}types:\n- {{name: p5.48xlarge, prices: {{on-demand: {price}}}}}\n"


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    directory = tmp_path / "mine"
    directory.mkdir()
    (directory / "price.yaml").write_text(overlay("55.5"))
    return directory


def price_on(shelf: ReloadingCatalog) -> Decimal:
    return shelf.catalog.get("p5.48xlarge").prices[CapacityType.ON_DEMAND].usd_per_hour


HALVES = {
    "in-a-key": overlay("44")[:-20],
    "in-a-number": f"{HEAD}types:\n- name: p5.48xlarge\n  prices:\n    on-demand: 4",  # of 44.5, and still YAML
    "empty": "types:",
    "wrong": overlay("cheap"),
}


@pytest.mark.parametrize("half", HALVES.values(), ids=HALVES.keys())
def test_a_half_written_overlay_never_takes_effect(mine: Path, half: str) -> None:
    shelf = ReloadingCatalog([mine], VirtualClock())
    (mine / "price.yaml").write_text(half)
    (mine / "other.yaml").write_text("types:\n- {name: p5.48xlarge, vcpu: 190}\n")
    with capture_logs() as logs:
        assert shelf.changed()
        assert not shelf.changed()
    assert (price_on(shelf), shelf.catalog.get("p5.48xlarge").vcpu) == (Decimal("55.5"), 190)
    assert not shelf.whole
    assert [(line["file"], line["last_good_counts"]) for line in logs if "refused" in line["event"]] == [
        (str(mine / "price.yaml"), True)
    ]
    (mine / "price.yaml").write_text(overlay("44.5"))
    assert shelf.changed()
    assert (price_on(shelf), shelf.whole) == (Decimal("44.5"), True)


def test_a_controller_starts_without_what_is_broken(mine: Path) -> None:
    (mine / "broken.yaml").write_text("{{")
    shelf = ReloadingCatalog([mine], VirtualClock())
    assert (price_on(shelf), shelf.whole) == (Decimal("55.5"), False)


def test_an_overlay_ends_in_time(mine: Path) -> None:
    clock = VirtualClock()
    until = (clock.now() + timedelta(hours=1)).isoformat()
    (mine / "price.yaml").write_text(overlay("44.5", f"priority: 5\nexpires: {until}\n"))
    shelf = ReloadingCatalog([mine], clock)
    assert price_on(shelf) == Decimal("44.5")
    clock.advance(timedelta(hours=2))
    assert shelf.changed()
    assert price_on(shelf) != Decimal("44.5")


def test_a_directory_that_does_not_exist_is_mistyped(tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match="no such directory"):
        ReloadingCatalog([tmp_path / "typo"], VirtualClock())


def test_the_directory_of_the_sync_may_be_empty_or_missing(mine: Path, tmp_path: Path) -> None:
    synced = tmp_path / "synced"
    shelf = ReloadingCatalog([mine], VirtualClock(), synced=synced)
    assert shelf.whole
    synced.mkdir()
    (synced / "a.yaml").write_text("priority: -20\ntypes:\n- {name: p5.48xlarge, vcpu: 191}\n")
    assert shelf.changed()
    assert shelf.catalog.get("p5.48xlarge").vcpu == 191

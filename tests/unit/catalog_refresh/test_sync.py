"""A sync as a whole: its file, what a person did to that file, what was cut off, what cannot be used."""

from __future__ import annotations

from pathlib import Path

import pytest

from autoscaler.catalog_refresh.sync import Synced, layers_of, synced
from autoscaler.clock import VirtualClock
from autoscaler.errors import BadInputError
from instance_catalog.files.loader import load_catalog
from instance_catalog.kubernetes.quantity import Quantity
from instance_catalog.sources.sync import CloudListing, ListedType
from instance_catalog.types.instance_type import CapacityType
from providers.errors import AmbiguousError, PermissionDeniedError, ProviderError, RefusedError
from providers.listing import ListingPage, Rows


class Cloud:
    """A cloud that lists so many types, three to a page, and fails when told to."""

    cloud = "mine"
    scope = "here-1"
    steps = ("types",)

    def __init__(self, count: int) -> None:
        self.count = count
        self.fails_at: dict[str, ProviderError] = {}
        self.asked: list[str] = []

    def page(self, step: str, token: str, so_far: Rows) -> ListingPage:
        self.asked.append(token)
        if token in self.fails_at:
            raise self.fails_at.pop(token)
        first = int(token or 0)
        last = min(first + 3, self.count)
        return ListingPage(
            tuple({"name": f"x{index}.large"} for index in range(first, last)), str(last) if last < self.count else ""
        )

    def interpreted(self, rows: Rows, *, date: str) -> CloudListing:
        types = tuple(
            ListedType(
                name=row["name"],
                architecture="amd64",
                vcpu=8,
                memory=Quantity.parse("32Gi"),
                accelerator=None,
                capacity_types=(CapacityType.ON_DEMAND,),
                zones=("here-1a",),
            )
            for row in rows["types"]
        )
        return CloudListing("mine", ("here-1",), "a test", date, types)


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


def sync(cloud: Cloud, clock: VirtualClock, directory: Path, *, accept_removals: bool = False) -> Synced:
    found = synced(cloud, clock, directory=directory, layers=layers_of([directory]), accept_removals=accept_removals)
    found.write()
    return found


def test_what_is_written_loads_and_gives_way_to_people(clock: VirtualClock, tmp_path: Path) -> None:
    found = sync(Cloud(4), clock, tmp_path)
    assert found.path == tmp_path / "synced-mine-here-1.yaml"
    assert found.changed
    (tmp_path / "mine.yaml").write_text("types:\n  - {name: x1.large, vcpu: 7}\n")
    catalog = load_catalog(extra_dirs=[tmp_path])
    assert [catalog.get(f"x{index}.large").vcpu for index in range(4)] == [8, 7, 8, 8]

    again = sync(Cloud(4), clock, tmp_path)
    assert not again.changed
    assert [conflict.field for conflict in again.merged.conflicts] == ["vcpu"]


def test_a_file_that_a_person_changed_is_not_overwritten(clock: VirtualClock, tmp_path: Path) -> None:
    path = sync(Cloud(4), clock, tmp_path).path
    mine = path.read_text().replace("vcpu: 8", "vcpu: 9", 1)
    path.write_text(mine)
    with pytest.raises(BadInputError, match="was changed by hand; it is not overwritten") as caught:
        sync(Cloud(5), clock, tmp_path)
    assert "foreslice catalog set" in caught.value.next_step
    assert path.read_text() == mine


def test_a_listing_that_shrinks_needs_consent(clock: VirtualClock, tmp_path: Path) -> None:
    path = sync(Cloud(10), clock, tmp_path).path
    before = path.read_text()
    shrunk = Cloud(7)
    for _ in range(2):
        with pytest.raises(BadInputError, match="3 of 10 types are no longer listed") as caught:
            sync(shrunk, clock, tmp_path)
        assert "--accept-removals" in caught.value.next_step
        assert path.read_text() == before
    assert shrunk.asked == ["", "3", "6"] * 2
    assert sync(Cloud(7), clock, tmp_path, accept_removals=True).merged.gone == ("x7.large", "x8.large", "x9.large")


def test_what_people_wrote_of_a_type_that_is_no_longer_listed_stays(clock: VirtualClock, tmp_path: Path) -> None:
    sync(Cloud(8), clock, tmp_path)
    (tmp_path / "mine.yaml").write_text("types:\n  - {name: x7.large, vcpu: 7}\n")
    for _ in range(2):
        found = sync(Cloud(7), clock, tmp_path)
        assert found.merged.notes == (
            "x7.large is no longer listed; it stays, sold nowhere, because your files name it",
        )
        kept = load_catalog(extra_dirs=[tmp_path]).get("x7.large")
        assert (kept.vcpu, kept.sold_in("here-1a")) == (7, False)
    (tmp_path / "mine.yaml").unlink()
    assert "x7.large" not in sync(Cloud(7), clock, tmp_path).after.types


def test_a_sync_that_was_cut_off_goes_on(clock: VirtualClock, tmp_path: Path) -> None:
    cloud = Cloud(10)
    cloud.fails_at["6"] = PermissionDeniedError("expired")
    with pytest.raises(PermissionDeniedError):
        sync(cloud, clock, tmp_path)
    assert not (tmp_path / "synced-mine-here-1.yaml").exists()

    found = sync(cloud, clock, tmp_path)
    assert cloud.asked == ["", "3", "6", "6", "9"]
    assert len(found.merged.content["types"]) == 10
    assert [path.name for path in tmp_path.iterdir()] == ["synced-mine-here-1.yaml"]


def test_a_page_that_the_cloud_knows_no_longer_is_no_obstacle(clock: VirtualClock, tmp_path: Path) -> None:
    cloud = Cloud(7)
    for error in (PermissionDeniedError("expired"), RefusedError("invalid token")):
        cloud.fails_at["3"] = error
        with pytest.raises(RefusedError):
            sync(cloud, clock, tmp_path)
    assert sync(cloud, clock, tmp_path).changed
    assert cloud.asked == ["", "3", "3", "", "3", "6"]


def test_a_call_without_an_answer_is_repeated(clock: VirtualClock, tmp_path: Path) -> None:
    cloud = Cloud(4)
    cloud.fails_at["3"] = AmbiguousError("no answer")
    sync(cloud, clock, tmp_path)
    assert cloud.asked == ["", "3", "3"]


@pytest.mark.parametrize("content", ["", "{", "[]", '{"cloud": "mine"}', '{"rows": 3}'], ids=repr)
def test_a_damaged_state_file_is_no_obstacle(clock: VirtualClock, tmp_path: Path, content: str) -> None:
    (tmp_path / ".synced-mine-here-1.json").write_text(content)
    assert sync(Cloud(4), clock, tmp_path).changed


def test_an_empty_listing_is_no_listing(clock: VirtualClock, tmp_path: Path) -> None:
    cloud = Cloud(0)
    for _ in range(2):
        with pytest.raises(BadInputError, match="mine lists no type"):
            sync(cloud, clock, tmp_path)
    assert cloud.asked == ["", ""]


def test_defective_files_of_the_directory_are_named(clock: VirtualClock, tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text("types: [")
    with pytest.raises(BadInputError, match=r"mine\.yaml:"):
        sync(Cloud(4), clock, tmp_path)

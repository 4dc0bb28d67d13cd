"""MIG: counters admit exactly the sets of instances that NVIDIA's placements admit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache
from itertools import product

import pytest

from instance_catalog.drivers.facts import MigTable, mig_tables
from instance_catalog.prediction.drivers.nvidia_mig import (
    Placed,
    device_name,
    every_placement,
    layouts,
    place,
    possible_together,
)
from tests.unit.instance_catalog.prediction.counters import fits_counters

EIGHT_SLICES = [name for name, table in mig_tables().items() if table.memory_slices == 8]
# NVIDIA MIG user guide, profiles of A100 and H100: every way to fill the GPU, in compute slices from the left.
FULL_GPUS = """
    7 | 4 3 | 4 2 1 | 4 1 1 1 | 3 3 | 3 2 1 | 3 1 1 1 | 2 2 3 | 2 1 1 3 | 1 1 2 3 | 1 1 1 1 3 | 2 2 2 1 | 2 1 1 2 1
    | 1 1 2 2 1 | 2 2 1 1 1 | 2 1 1 1 1 1 | 1 1 2 1 1 1 | 1 1 1 1 2 1 | 1 1 1 1 1 1 1
"""


def sets_admitted(
    table: MigTable, admits: Callable[[tuple[Placed, ...]], bool], of: Sequence[Placed] = ()
) -> set[frozenset[Placed]]:
    """All sets of placements that `admits` lets pass, found by extending admitted sets (both rules are monotone)."""
    everything = of or every_placement(table)
    found: set[frozenset[Placed]] = set()

    def extend(chosen: tuple[Placed, ...], following: int) -> None:
        found.add(frozenset(chosen))
        for index in range(following, len(everything)):
            more = (*chosen, everything[index])
            if admits(more):
                extend(more, index + 1)

    extend((), 0)
    return found


@cache
def admitted_by_placement(model: str) -> set[frozenset[Placed]]:
    table = mig_tables()[model]
    return sets_admitted(table, lambda chosen: possible_together(table, chosen))


@cache
def admitted_by_counters(model: str) -> set[frozenset[Placed]]:
    table = mig_tables()[model]
    return sets_admitted(table, lambda chosen: fits_counters(table, chosen))


@pytest.mark.slow
def test_counters_admit_what_placements_admit_on_an_a100() -> None:
    by_placement = admitted_by_placement("a100-40gb")
    assert admitted_by_counters("a100-40gb") == by_placement
    assert max(len(chosen) for chosen in by_placement) == 7


def test_counters_admit_what_placements_admit_where_media_engines_are_shared() -> None:
    assert admitted_by_counters("rtx-pro-6000") == admitted_by_placement("rtx-pro-6000")


@pytest.mark.parametrize("name", EIGHT_SLICES)
def test_gpus_are_filled_in_the_ways_that_nvidia_publishes(name: str) -> None:
    table = mig_tables()[name]
    plain = [placed for placed in every_placement(table) if "+" not in placed.profile.kind]
    plain = [placed for placed in plain if placed.profile.kind != "1g-double"]
    sets = sets_admitted(table, lambda chosen: possible_together(table, chosen), plain)
    full = [chosen for chosen in sets if not any(chosen | {one} in sets for one in plain if one not in chosen)]
    found = [" ".join(p.profile.kind[0] for p in sorted(chosen, key=lambda p: p.start)) for chosen in full]
    assert sorted(found) == sorted(" ".join(way.split()) for way in FULL_GPUS.split("|"))


@pytest.mark.slow
def test_profile_counts_can_be_placed_exactly_if_counters_admit_some_placement_of_them() -> None:
    table = mig_tables()["a100-40gb"]
    kinds = [profile.kind for profile in table.profiles]
    admitted = {
        tuple(Counter(placed.profile.kind for placed in chosen)[kind] for kind in kinds)
        for chosen in admitted_by_counters("a100-40gb")
    }
    # One more of each profile than ever fits.
    tried = product(*(range(max(counts[i] for counts in admitted) + 2) for i in range(len(kinds))))
    possible = {counts for counts in tried if place(table, dict(zip(kinds, counts, strict=True))) is not None}
    assert possible == admitted


@pytest.mark.parametrize("name", mig_tables())
def test_pairs_of_instances_agree_between_counters_and_placements(name: str) -> None:
    table = mig_tables()[name]
    everything = every_placement(table)
    for index, first in enumerate(everything):
        for second in everything[index + 1 :]:
            assert fits_counters(table, (first, second)) == possible_together(table, (first, second)), (first, second)


@pytest.mark.parametrize(
    ("counts", "possible"),
    [
        ({"1g": 7}, True),
        ({"1g": 7, "1g+me": 1}, False),
        ({"1g": 6, "1g+me": 1}, True),
        ({"1g+me": 2}, False),
        ({"1g": 2, "2g": 1, "3g": 1}, True),
        ({"3g": 2}, True),
        ({"3g": 2, "1g": 1}, False),
        ({"4g": 1, "3g": 1}, True),
        ({"4g": 1, "2g": 1, "1g": 1}, True),
        ({"4g": 1, "2g": 1, "1g": 2}, False),
        ({"4g": 2}, False),
        ({"7g": 1, "1g": 1}, False),
        ({"1g-double": 4}, True),
        ({"1g-double": 3, "2g": 1}, True),
        ({"2g": 4}, False),
    ],
    ids=str,
)
def test_profile_counts_are_possible_as_on_nvidia_hardware(counts: dict[str, int], possible: bool) -> None:
    table = mig_tables()["h100-80gb"]
    placed = place(table, counts)
    assert (placed is not None) is possible
    if placed is not None:
        assert Counter(p.profile.kind for p in placed) == counts
        assert possible_together(table, placed)


def test_layouts_are_those_of_mig_parted() -> None:
    assert {name: dict(counts) for name, counts in layouts(mig_tables()["h100-80gb"]).items()} == {
        "all-1g.10gb": {"1g": 7},
        "all-1g.10gb.me": {"1g+me": 1},
        "all-1g.20gb": {"1g-double": 4},
        "all-2g.20gb": {"2g": 3},
        "all-3g.40gb": {"3g": 2},
        "all-4g.40gb": {"4g": 1},
        "all-7g.80gb": {"7g": 1},
        "all-balanced": {"1g": 2, "2g": 1, "3g": 1},
    }
    assert dict(layouts(mig_tables()["a30"])["all-2g.12gb"]) == {"2g": 2}
    assert dict(layouts(mig_tables()["a100-40gb"])["all-1g.10gb"]) == {"1g-double": 4}
    assert {name: sum(counts.values()) for name, counts in layouts(mig_tables()["rtx-pro-6000"]).items()} == {
        "all-1g.24gb": 4,
        "all-1g.24gb.me": 1,
        "all-1g.24gb.gfx": 4,
        "all-1g.24gb.me.all": 1,
        "all-1g.24gb-me": 4,
        "all-2g.48gb": 2,
        "all-2g.48gb.gfx": 2,
        "all-2g.48gb.me.all": 1,
        "all-2g.48gb-me": 2,
        "all-4g.96gb": 1,
        "all-4g.96gb.gfx": 1,
        "all-balanced": 3,
    }


@pytest.mark.parametrize("name", mig_tables())
def test_every_profile_says_what_it_takes(name: str) -> None:
    for profile in mig_tables()[name].profiles:
        assert set(profile.takes) <= set(mig_tables()[name].shared)


@pytest.mark.parametrize("table", mig_tables().values(), ids=mig_tables())
def test_every_layout_can_be_made(table: MigTable) -> None:
    for layout, counts in layouts(table).items():
        assert place(table, counts) is not None, layout


@pytest.mark.parametrize(
    ("profile", "expected"),
    [("1g", "gpu-3-mig-1g10gb-19-2"), ("1g+me", "gpu-3-mig-1g10gb-me-20-2")],
)
def test_devices_are_named_after_gpu_profile_and_start(profile: str, expected: str) -> None:
    found = next(p for p in mig_tables()["h100-80gb"].profiles if p.kind == profile)
    assert device_name(3, Placed(found, 2), with_profile=True) == expected


# Total memory in MiB → the part of a profile's name after "g.", for one, two, four and eight eighths of the memory
# (NVIDIA/go-nvlib pkg/nvlib/device/mig_profile.go).
@pytest.mark.parametrize(
    ("name", "total"),
    [
        ("a100-40gb", 40960),
        ("a100-80gb", 81920),
        ("h100-80gb", 81559),
        ("h100-80gb-pcie", 81559),
        ("b200", 183359),
        ("h200", 143771),
        ("gb200", 189471),
        ("b300", 275040),
        ("gb300", 284208),
        ("h100-nvl", 95830),
        ("h20", 97871),
        ("h100-96gb", 97871),
        ("gh200-96gb", 97871),
        ("gh200-144gb", 146944),
        ("rtx-pro-6000", 97887),
        ("a30", 24576),
    ],
)
def test_profile_names_follow_from_memory(name: str, total: int) -> None:
    gibibytes = -(-total // 1024)
    for profile in mig_tables()[name].profiles:
        mebibytes = int(profile.figures["memory"].value) // 2**20
        eighths = -(-mebibytes * 8 // total)
        assert profile.name.partition(".")[2].partition("gb")[0] == str(int(eighths * gibibytes / 8 + 0.5))

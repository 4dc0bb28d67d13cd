"""MIG: counters keep instances apart that would lie on the same memory. test_nvidia_mig.py compares whole GPUs."""

from __future__ import annotations

from itertools import combinations

import pytest

from instance_catalog.drivers.facts import mig_tables
from instance_catalog.prediction.drivers.nvidia_mig import every_placement
from tests.unit.instance_catalog.prediction.counters import fits_counters


@pytest.mark.parametrize("name", mig_tables())
def test_no_two_instances_share_a_slice_of_memory(name: str) -> None:
    table = mig_tables()[name]
    sharing = [pair for pair in combinations(every_placement(table), 2) if {*pair[0].slices} & {*pair[1].slices}]
    assert sharing
    assert [pair for pair in sharing if fits_counters(table, pair)] == []

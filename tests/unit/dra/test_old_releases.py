"""What releases before the reference decide as no other does, and what is left unknown for that."""

from __future__ import annotations

import pytest

from autoscaler.dra.allocation.allocator import Allocated, AllocationOutcome, UnknownAllocation
from autoscaler.model.reason import Code
from autoscaler.model.resource_claim import FirstAvailable
from instance_catalog.dataclass import replace
from instance_catalog.kubernetes.profile import profile_for
from instance_catalog.kubernetes.resource_slice import NodeReach, ResourceSlice
from tests.unit.dra.build import ask, claim, cluster, counter_slice, device, devices, request, slice_of


@pytest.mark.parametrize(
    ("version", "gate", "expected"),
    [("1.34", True, UnknownAllocation), ("1.34", False, Allocated), ("1.35", True, Allocated)],
    ids=["1.34 with counters", "1.34 as it comes", "1.35 with counters"],
)
def test_counters_of_1_34_are_not_guessed_at(version: str, gate: bool, expected: type[AllocationOutcome]) -> None:
    profile = profile_for(version).with_gates(partitionable_devices=gate)
    slices = (counter_slice(("gpu", {"memory": "1"}), pool="cut", count=1), slice_of(devices(1)))
    found = ask([claim()], cluster(*slices, profile=profile))
    assert isinstance(found, expected)
    if isinstance(found, UnknownAllocation):
        assert {reason.code for reason in found.reasons} == {Code.UNSUPPORTED}


@pytest.mark.parametrize(
    ("version", "modes", "expected"),
    [
        ("1.35", ("ExactCount", "All"), UnknownAllocation),
        ("1.35", ("All", "ExactCount"), Allocated),
        ("1.36", ("ExactCount", "All"), Allocated),
    ],
    ids=["a later alternative", "the first alternative", "from 1.36 on"],
)
def test_all_as_a_later_alternative_is_not_guessed_at_before_1_36(
    version: str, modes: tuple[str, str], expected: type[AllocationOutcome]
) -> None:
    alternatives = tuple(request(f"s{index}", allocation_mode=mode) for index, mode in enumerate(modes))
    where = cluster(slice_of(devices(1)), profile=profile_for(version))
    assert isinstance(ask([claim(FirstAvailable("r", alternatives))], where), expected)


_LOCAL = slice_of([device("local")], name="b", count=2)
_SHARED = replace(slice_of([device("shared")], name="c", count=2), reach=NodeReach(all_nodes=True))


@pytest.mark.parametrize(
    ("version", "slices", "first"),
    [
        ("1.34", (_SHARED, _LOCAL), "shared"),
        ("1.34", (_LOCAL, _SHARED), "local"),
        ("1.35", (_SHARED, _LOCAL), "shared"),
        ("1.35", (_LOCAL, _SHARED), "local"),
        ("1.36", (_SHARED, _LOCAL), "local"),
        ("1.36", (replace(_SHARED, name="a"), _LOCAL), "shared"),
    ],
)
def test_slices_of_a_pool_are_taken_as_they_are_listed_up_to_1_35_and_by_name_from_1_36_on(
    version: str, slices: tuple[ResourceSlice, ...], first: str
) -> None:
    found = ask([claim()], cluster(*slices, profile=profile_for(version)))
    assert isinstance(found, Allocated)
    assert [taken.device for taken in found.allocations[0].devices] == [first]

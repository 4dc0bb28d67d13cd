"""Machine types and accelerators that the zone of a group does not have."""

from __future__ import annotations

import pytest

from instance_catalog.dataclass import replace
from providers.finding import Finding
from tests.fakes.gce.state import PROMPT
from tests.gcp import A3, ZONE, Rig


def missing(rig: Rig) -> list[Finding]:
    return [found for found in rig.provider.check() if not found.passed]


def test_all_that_the_zones_have_needs_no_word() -> None:
    rig = Rig()
    assert missing(rig) == []
    assert rig.fake.calls["machineTypes.aggregatedList"] == rig.fake.calls["acceleratorTypes.aggregatedList"] == 1


@pytest.mark.parametrize(("name", "word"), [("a3-highgpu-8g", "machine type"), ("nvidia-h100-80gb", "accelerator")])
def test_what_the_zone_lacks_is_told_with_zones_that_have_it(name: str, word: str) -> None:
    """Those of the same region first. A list of several pages is read whole."""
    rig = Rig(behaviour=replace(PROMPT, page=1))
    rig.fake.sold[name] = ("europe-west4-b", "us-central1-c", "asia-east1-a")
    found = {one.subject: one for one in missing(rig)}
    one = found[f"group {ZONE}/{rig.group(A3).name}"]
    assert f"zone {ZONE} has no {word} {name}" in one.message
    assert one.next_step.endswith("us-central1-c, asia-east1-a, europe-west4-b")
    assert one.required


def test_what_no_zone_has_is_a_name_or_a_matter_of_access() -> None:
    rig = Rig()
    rig.fake.sold["a3-highgpu-8g"] = ()
    assert "no zone shows it to gpu-project" in missing(rig)[0].next_step


def test_custom_machine_types_are_in_no_list() -> None:
    rig = Rig()
    rig.group(A3).machine_type = "n1-custom-8-32768"
    rig.fake.sold["n1-custom-8-32768"] = ()
    assert missing(rig) == []


def test_who_may_not_read_the_lists_gets_a_note() -> None:
    """The controller's role has no permission for them, and needs none."""
    rig = Rig()
    rig.fake.denied |= {"machineTypes.aggregatedList", "acceleratorTypes.aggregatedList"}
    assert [(one.subject, one.required) for one in missing(rig)] == [("machine types", False), ("accelerators", False)]
    assert "compute.machineTypes.list" in missing(rig)[0].next_step

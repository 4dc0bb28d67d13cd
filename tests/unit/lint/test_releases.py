"""Attributes under the name that their driver gave up: what they are called now."""

from __future__ import annotations

import pytest

from autoscaler.lint.published_names import PublishedNames
from autoscaler.lint.releases import names_advice
from autoscaler.model.capacity import CapacityPool
from autoscaler.model.device_class import Selector
from autoscaler.model.resource_claim import DeviceRequest, MatchAttribute
from instance_catalog.dataclass import replace
from instance_catalog.drivers.attribute_names import renamed_attributes
from instance_catalog.drivers.facts import driver_facts
from tests.builders import claim, gpus, pod, snapshot

NEW = 'read device.attributes["gce.dra.net"].networkName'


def test_a_selector_on_it_is_told_the_new_name() -> None:
    known = PublishedNames(frozenset({"dra.net"}), frozenset(), frozenset(), {}, frozenset())
    assert known.judge("attributes", "dra.net", "cloudNetwork") == (
        "dranet v0.5.0 has renamed attribute dra.net/cloudNetwork",
        NEW,
    )


@pytest.mark.parametrize(
    ("expression", "count"),
    [
        ('device.attributes["dra.net"].cloudNetwork == "a"', 1),
        ('device.attributes["dra.net"].alias == "cloudNetwork"', 0),
        ("this does not compile", 0),
    ],
)
def test_a_plan_says_it_once(expression: str, count: int) -> None:
    wanted = DeviceRequest("nic", "nic", selectors=(Selector(expression),))
    pods = [pod("p", "c"), pod("q", "d")]
    found = list(names_advice(snapshot(pods, [claim("c", wanted), claim("d", wanted)])))
    assert [NEW in one.next_step for one in found] == [True] * count


def test_an_attribute_that_needs_a_feature_gate_of_the_driver() -> None:
    """In a constraint as in a selector; `lint` says the same."""
    pair = claim("c", gpus(2), constraints=(MatchAttribute("gpu.nvidia.com/partition2"),))
    (found,) = names_advice(snapshot([pod("p", "c")], [pair]))
    assert "only with its feature gate FabricManagerPartitioning" in found.message
    known = PublishedNames(frozenset({"gpu.nvidia.com"}), frozenset(), frozenset(), {}, frozenset())
    told = known.judge("attributes", "gpu.nvidia.com", "partition2")
    assert told is not None
    assert told[0].endswith("only with its feature gate FabricManagerPartitioning")


OLD = CapacityPool("p", drivers=("nvidia@v25.3.2",))


@pytest.mark.parametrize(
    ("name", "pools", "told"), [("index", (), True), ("index", (OLD,), False), ("uuid", (), False)]
)
def test_an_attribute_that_has_no_successor(name: str, pools: tuple[CapacityPool, ...], told: bool) -> None:
    wanted = gpus(1)
    wanted = replace(wanted, selectors=(Selector(f'device.attributes["gpu.nvidia.com"].{name} == 0'),))
    found = [one.next_step for one in names_advice(snapshot([pod("p", "c")], [claim("c", wanted)], pools=pools))]
    assert ["leave the condition out" in step for step in found] == [True] * told


def test_no_release_that_is_predicted_has_the_old_name() -> None:
    for new in renamed_attributes().values():
        assert new.since not in {release.name for release in driver_facts()[new.profile].releases[1:]}

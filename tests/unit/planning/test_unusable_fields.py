"""What a plan says about the things it rests on."""

from __future__ import annotations

from decimal import Decimal

import pytest

from autoscaler.model.capacity import CapacityPool, Limits
from autoscaler.model.reason import Code
from autoscaler.planning.unusable_fields import unusable_fields
from instance_catalog.dataclass import replace
from instance_catalog.drivers.profile import DriverSet
from instance_catalog.files.loader import load_catalog
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.node_selector import Requirement
from instance_catalog.types.catalog import Catalog
from instance_catalog.types.instance_type import CapacityType, InstanceType, Price
from tests.builders import CATALOG, SMALL, claim, machine, plan, pod, snapshot, types

ON_GKE = Requirement("cloud.google.com/gke-accelerator", "In", ("nvidia-l4",))


@pytest.mark.parametrize("guess", [True, False], ids=["guessed", "quoted"])
def test_a_plan_that_rests_on_a_guessed_price_says_so(guess: bool) -> None:
    prices = FrozenMap({CapacityType.ON_DEMAND: Price(Decimal(2), "here", "2026", guess)})
    only = replace(machine("s1", SMALL, 1, None), prices=prices)
    result = plan(snapshot([pod("p", "c")], [claim("c")]), catalog=Catalog.of([only]))
    assert types(result) == ["s1"]
    told = [(warning.code, dict(warning.detail)) for warning in result.warnings]
    assert told == ([(Code.PRICE_GUESSED, {"types": "s1"})] if guess else [])


@pytest.mark.parametrize(
    ("requirement", "labels", "told"),
    [
        pytest.param(Requirement("foreslice.dev/cloud", "In", ("aws",)), {}, True, id="another cloud"),
        pytest.param(Requirement("foreslice.dev/cloud", "NotIn", ("gcp",)), {}, True, id="all but its cloud"),
        pytest.param(Requirement("topology.kubernetes.io/region", "In", ("us-east-1",)), {}, True, id="a region there"),
        pytest.param(Requirement("foreslice.dev/cloud", "In", ("aws", "gcp")), {}, False, id="its cloud, too"),
        pytest.param(Requirement("foreslice.dev/cloud", "In", ("mine",)), {}, False, id="a cloud without facts"),
        pytest.param(
            Requirement("foreslice.dev/cloud", "In", ("aws",)), {ON_GKE.key: "nvidia-l4"}, False, id="the pool sets it"
        ),
    ],
)
def test_a_label_that_only_another_cloud_has(requirement: Requirement, labels: dict[str, str], told: bool) -> None:
    pool = CapacityPool("gpu", requirements=(ON_GKE, requirement), labels=FrozenMap(labels), limits=Limits(nodes=1))
    found = unusable_fields(snapshot([], pools=(pool,)), load_catalog())
    assert (
        any("so it admits none; drop one of the two" in str(reason.detail.get("problem")) for reason in found) is told
    )


@pytest.mark.parametrize("pools", [1, 12])
def test_what_drivers_cannot_be_predicted_on_is_computed_once_for_a_pool(
    pools: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def why(instance_type: InstanceType, drivers: DriverSet) -> str:
        asked.append(instance_type.name)
        return "no facts"

    monkeypatch.setattr("autoscaler.planning.unusable_fields.unpredictable", why)
    every = tuple(CapacityPool(f"gpu-{n}", drivers=("nvidia",), limits=Limits(nodes=1)) for n in range(pools))
    told = [unusable_fields(snapshot([], pools=every), CATALOG) for _ in range(2)]
    assert told[0] == told[1]
    assert len(asked) == pools * len(set(asked))
    assert len(set(asked)) == told[0][0].detail["types"]
    other = replace(every[0], drivers=("nvidia-no-such",))
    assert unusable_fields(snapshot([], pools=(other, *every[1:])), CATALOG) != told[0]

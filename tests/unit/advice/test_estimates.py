"""A machine that lacks memory by less than a guess of the catalog is named; nothing is bought on it."""

from __future__ import annotations

import pytest

from autoscaler.advice.cheaper_types import IfMeasured, cheaper_if_measured
from autoscaler.model.pod import Container
from autoscaler.model.snapshot import Snapshot
from autoscaler.planning.planner import plan_for
from autoscaler.planning.policy import Policy, Where
from instance_catalog.dataclass import replace
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.quantity import Quantity
from instance_catalog.types.catalog import Catalog
from tests.builders import NOW, claim, gpus, pod, shipped, snapshot, types

# 16Gi, of which 14502092Ki are allocatable with the guess of 7.5 %, and 15730Mi without; 32Gi cost more.
CATALOG = shipped("g4dn.xlarge", "g4dn.2xlarge")


def wanting(memory: str) -> Snapshot:
    asking = Container("main", FrozenMap({"memory": Quantity.parse(memory)}))
    return snapshot([replace(pod("p", "c"), containers=(asking,))], [claim("c", gpus(1))])


def found_for(memory: str, catalog: Catalog = CATALOG, where: Where | None = None) -> IfMeasured | None:
    policy = Policy(where=where or Where())
    given = wanting(memory)
    return cheaper_if_measured(plan_for(given, catalog, policy, NOW), given, catalog, policy, NOW)


def test_a_machine_that_fits_but_for_a_guess_is_named_with_what_it_costs() -> None:
    given = wanting("14800Mi")
    assert types(plan_for(given, CATALOG, Policy(), NOW)) == ["g4dn.2xlarge"]
    found = found_for("14800Mi")
    assert found is not None
    assert found.launches == (("g4dn.xlarge", 1),)
    (one,) = found.types
    assert (one.instance_type, str(one.needed), str(one.assumed)) == ("g4dn.xlarge", "14800Mi", "14502092Ki")


@pytest.mark.parametrize("memory", ["10Gi", "15800Mi", "40Gi"])
def test_what_fits_anyway_or_never_is_not_named(memory: str) -> None:
    assert found_for(memory) is None


def test_a_measured_machine_and_another_cloud_are_not_named() -> None:
    measured = FrozenMap({"memory": Quantity.parse("14700Mi")})
    small, large = (CATALOG.types[name] for name in ("g4dn.xlarge", "g4dn.2xlarge"))
    assert found_for("14800Mi", Catalog.of([replace(small, allocatable=measured), large])) is None
    elsewhere = shipped("g4dn.xlarge", "g2-standard-8")
    assert found_for("14800Mi", elsewhere, Where(clouds=("gcp",))) is None


def test_a_sourced_overhead_is_no_guess() -> None:
    """Of GKE nodes it is known how much memory they show."""
    assert found_for("13300Mi", shipped("g2-standard-4", "g2-standard-8")) is None

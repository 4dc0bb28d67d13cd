"""Objects of the same content are validated once, and everything that is wrong with one is reported each time."""

from __future__ import annotations

from decimal import Decimal

from autoscaler.kube.custom.launch_batch import LaunchBatchStatus
from autoscaler.kube.custom.launch_parts import OfferingSpec
from autoscaler.kube.custom.reading import read
from autoscaler.kube.problem import Problems
from autoscaler.model.provisioned_node import OfferingRef
from instance_catalog.types.instance_type import CapacityType


def _raw(**fields: object) -> dict[str, object]:
    return {"instanceType": "a", "zone": "z", "capacityType": "on-demand"} | fields


def test_equal_content_gives_the_same_object() -> None:
    problems = Problems()
    first, second = (read(OfferingSpec, _raw(), problems, path=()) for _ in range(2))
    assert first is second is not None
    assert not len(problems)


def test_later_changes_of_the_content_are_seen() -> None:
    raw, problems = _raw(), Problems()
    read(OfferingSpec, raw, problems, path=())
    raw["zone"] = "y"
    found = read(OfferingSpec, raw, problems, path=())
    assert found is not None
    assert found.zone == "y"


def test_a_problem_is_reported_each_time() -> None:
    for raw in (_raw(zone=1), _raw(zone="<ZONE>"), _raw(colour="red")):
        counts = []
        for _ in range(2):
            problems = Problems()
            read(OfferingSpec, raw, problems, path=())
            counts.append(len(problems))
        assert counts == [1, 1]


def test_values_that_are_no_json_are_reported() -> None:
    problems = Problems()
    assert read(OfferingSpec, _raw(zone=object()), problems, path=()) is None
    assert len(problems) == 1


def test_true_is_not_one() -> None:
    problems = Problems()
    assert read(LaunchBatchStatus, {"attempt": 1}, problems, path=()) is not None
    assert read(LaunchBatchStatus, {"attempt": True}, problems, path=()) is None


def test_a_price_is_written_as_it_was_read() -> None:
    prices = [OfferingSpec.of(OfferingRef("a", "z", CapacityType.ON_DEMAND, Decimal(p))).usd_per_hour for p in _PRICES]
    assert prices == _PRICES


_PRICES = ["1.5", "1.50"]

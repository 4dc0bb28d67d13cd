"""Types that a plan leaves out because the catalog lacks what a driver publishes there, and what they cost."""

from __future__ import annotations

from decimal import Decimal

import pytest

from autoscaler.lint.devices.unconsidered import unconsidered
from autoscaler.model.capacity import CapacityPool
from autoscaler.model.plan import LeftOut, LeftOutVerdict, NearMiss, Plan
from autoscaler.model.reason import Code, Reason
from autoscaler.planning.planner import plan_for
from autoscaler.planning.policy import Policy
from autoscaler.report.reasons import text_of
from instance_catalog.dataclass import replace
from instance_catalog.files.loader import load_catalog
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.quantity import Quantity
from tests.builders import CATALOG, NOW, claim, pod, snapshot

STATE = snapshot([pod("p", "c")], [claim("c")])
SHIPPED = load_catalog()


def launching(usd_per_hour: str, driver: str) -> Plan:
    """A plan with one g5.48xlarge at this price, whose pod has devices of that driver."""
    plan = plan_for(STATE, CATALOG, Policy(), NOW)
    (node,), (placement,) = plan.launches, plan.placements
    offering = replace(node.offering, instance_type="g5.48xlarge", usd_per_hour=Decimal(usd_per_hour), region="")
    allocations = {
        key: replace(found, devices=tuple(replace(one, driver=driver) for one in found.devices))
        for key, found in placement.allocations.items()
    }
    return replace(
        plan,
        launches=(replace(node, offerings=(offering,), drivers=("nvidia", "dra-cpu")),),
        placements=(replace(placement, allocations=FrozenMap(allocations)),),
    )


@pytest.mark.parametrize(
    ("usd", "driver", "cheaper", "machines"),
    [
        ("16.29", "dra.cpu", True, True),
        ("0.01", "dra.cpu", False, True),
        ("16.29", "gpu.nvidia.com", False, False),  # nothing of dra.cpu: the driver does not choose the machine
    ],
)
def test_types_that_may_fit_are_counted_if_they_cost_less(usd: str, driver: str, cheaper: bool, machines: bool) -> None:
    (found,) = unconsidered(STATE, launching(usd, driver), SHIPPED)
    problem = text_of(found)
    assert "instance types were not considered" in problem
    assert "cpu.numaNodes" in problem
    assert ("may_cost_less" in found.detail) is cheaper
    assert ("all machines of the catalog have accelerators" in problem) is machines


def test_a_cheaper_type_has_room_for_the_pod() -> None:
    def count(cpu: str) -> int:
        (container,) = STATE.pods[0].containers
        asking = replace(container, requests=FrozenMap({"cpu": Quantity.parse(cpu)}))
        state = replace(STATE, pods=(replace(STATE.pods[0], containers=(asking,)),))
        (found,) = unconsidered(state, launching("16.29", "dra.cpu"), SHIPPED)
        return int(str(found.detail.get("may_cost_less", 0)))

    assert count("2") > count("60") > count("2000") == 0


def test_the_cheapest_that_plans_offer_is_the_example() -> None:
    """Not a part of a card (g6f.large), which no plan offers unasked."""
    (found,) = unconsidered(STATE, launching("16.29", "dra.cpu"), SHIPPED)
    (name,) = (one.name for one in SHIPPED if f"for {one.name}:" in str(found.detail["problem"]))
    price = SHIPPED.types[name].price
    assert price is not None
    (same,) = unconsidered(STATE, launching(str(price.usd_per_hour), "dra.cpu"), SHIPPED)
    assert SHIPPED.types[name].share == ""
    assert "may_cost_less" not in same.detail


def test_pools_and_pods_without_a_place() -> None:
    plan = launching("16.29", "dra.cpu")
    assert not list(unconsidered(replace(STATE, pools=(CapacityPool("all"),)), plan, SHIPPED))
    miss = NearMiss(Reason.of(Code.NO_DEVICE_OF_CLASS, device_class="dra.cpu"), 1, "x")
    left = LeftOut("default/p", LeftOutVerdict.DOES_NOT_FIT, (), near_misses=(miss,), types=1)
    (found,) = unconsidered(STATE, Plan(left_out=(left,)), SHIPPED)
    assert "may_cost_less" not in found.detail

"""--why TYPE: the step that decides is named, with its facts."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from autoscaler.advice.type_question import TypeAnswer, ask_type
from autoscaler.model.capacity import CapacityPool, Limits, PodScope, Scope
from autoscaler.model.device_class import Selector
from autoscaler.model.pod import Container
from autoscaler.model.resource_claim import DeviceRequest
from autoscaler.model.snapshot import Snapshot
from autoscaler.planning.planner import plan_for
from autoscaler.planning.policy import Policy, Where
from autoscaler.report.type_answer import type_answer_document, type_answer_lines
from instance_catalog.dataclass import replace
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes import labels
from instance_catalog.kubernetes.node_selector import Requirement
from instance_catalog.kubernetes.quantity import Quantity
from instance_catalog.types.catalog import Catalog
from instance_catalog.types.instance_type import CapacityType
from tests.builders import CATALOG, NAMELESS, NOW, SMALL, claim, gpus, machine, pod, shipped, snapshot

MEMORY = 'device.capacity["gpu.nvidia.com"].memory.compareTo(quantity("40Gi")) >= 0'


def asked(given: Snapshot, name: str, *, catalog: Catalog = CATALOG, policy: Policy | None = None) -> TypeAnswer:
    policy = policy or Policy()
    plan = plan_for(given, catalog, policy, NOW)
    return ask_type(catalog.types[name], given.pods[0], given, catalog, plan, policy, NOW)


def verdict(given: Snapshot, name: str, **more: Any) -> str:
    return str(type_answer_document(asked(given, name, **more))["verdict"])


def text(given: Snapshot, name: str, **more: Any) -> str:
    return "\n".join(type_answer_lines(type_answer_document(asked(given, name, **more))))


def one(*pools: CapacityPool, request: DeviceRequest | None = None, **fields: Any) -> Snapshot:
    return snapshot([pod("p", "c", **fields)], [claim("c", request or gpus())], pools=pools)


def test_the_chosen_type() -> None:
    assert verdict(one(), "s1") == "chosen"


def test_a_dearer_type_says_by_how_much() -> None:
    found = asked(one(), "l1")
    assert found.dearer == Decimal("4.00")
    assert verdict(one(), "l1") == "fits at 5.00 $/h, but 4.00 $/h dearer than s1 (1.00 $/h), which was chosen"


def test_what_the_type_needs_besides_is_a_fact() -> None:
    found = text(one(), "dl1.24xlarge", catalog=shipped("dl1.24xlarge"))
    assert "needs more: the node images of aws have no driver for Habana accelerators; name an image" in found
    assert "(source: https://docs.aws.amazon.com/eks/" in found


def test_a_selector_names_the_value_that_the_devices_have() -> None:
    big = DeviceRequest("gpu", "gpu.nvidia.com", (Selector(f"true && {MEMORY}"),))
    assert verdict(one(request=big), "s4") == (
        f"claim default/c, request gpu: 0 of 4 devices meet {MEMORY} (memory = 16Gi)"
    )


def test_too_few_devices() -> None:
    assert verdict(one(request=gpus(8)), "s4") == "claim default/c, request gpu: 4 of 8 devices"


def test_too_little_cpu() -> None:
    assert verdict(one(cpu="40"), "l8") == "Insufficient cpu: 40 requested, 32 free"


def test_an_unpriced_type() -> None:
    assert verdict(one(), "mystery").startswith("fits, but is not bought: no price is known")
    assert "on-demand price: not in the catalog: never bought so" in text(one(), "mystery")


def test_a_requirement_of_a_pool() -> None:
    pool = CapacityPool("team", requirements=(Requirement(labels.INSTANCE_TYPE, "In", ("l1", "l8")),))
    assert verdict(one(pool), "s1") == "not offered"
    line = "pool team: not admitted by requirement node.kubernetes.io/instance-type In [l1, l8]"
    assert line in text(one(pool), "s1")
    assert "pool team: offered as on-demand" in text(one(pool), "l8")


def test_a_capacity_type_that_the_pool_does_not_buy() -> None:
    pool = CapacityPool("team", capacity_types=(CapacityType.SPOT,))
    assert "pool team: not offered, sold as on-demand only" in text(one(pool), "s1")
    asked_for = Policy(where=Where(capacity_types=(CapacityType.RESERVED,)))
    assert "no CapacityPool: not offered, sold as on-demand only" in text(one(), "s1", policy=asked_for)


def test_drivers_without_devices_there() -> None:
    assert "none of the pool's drivers has devices on s1" not in text(one(CapacityPool("team")), "s1")
    assert "no device of class" in verdict(one(CapacityPool("team", drivers=("tpu",))), "s1")


def test_a_limit_keeps_what_the_plan_knows() -> None:
    pool = CapacityPool("team", limits=Limits(nodes=0))
    assert verdict(one(pool), "s1") == (
        "fits, but is not bought: pool team: the limit of pool team on nodes (0) is reached"
    )


def test_a_value_that_is_not_in_the_catalog() -> None:
    catalog = Catalog.of([machine("n1", NAMELESS, 2, "1.00")])
    found = verdict(one(request=gpus(product="Small S1")), "n1", catalog=catalog)
    assert found.startswith("claim default/c, request gpu: 0 of 2 devices meet")
    assert "unknown for the others (productName = (not known before launch))" in found


def test_every_offering_is_counted_once() -> None:
    found = asked(one(), "l1")
    places = [(e.pool, e.drivers, e.offering) for e in found.considered]
    assert len(places) == len(set(places))
    assert len(asked(replace(one(), pods=one().pods), "s1").considered) == 1


def test_a_type_whose_devices_only_a_vendors_plugin_hands_out_is_offered_without_drivers() -> None:
    wants = FrozenMap({"gpu.intel.com/i915": Quantity.of(1)})
    flex = replace(machine("flex", SMALL, 1, "1"), accelerator=None, extended_resources=wants)
    pool = CapacityPool("team", scope=Scope(pods=PodScope.ALL), limits=Limits(nodes=3))
    state = snapshot([replace(pod("p"), containers=(Container("main", wants),))], pools=(pool,))
    found = text(state, "flex", catalog=Catalog.of([flex]))
    assert "pool team: offered as " in found
    assert "drivers none)" in found

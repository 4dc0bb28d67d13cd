"""What pods leave open about TPUs: the generation, and a machine for each of them or one for all."""

from __future__ import annotations

import pytest

from autoscaler.lint.tpu_advice import hosts_meant, tpu_advice
from autoscaler.model.capacity import CapacityPool, PodScope, Scope
from autoscaler.model.device_class import Selector
from autoscaler.model.pod import Container, Pod, PodClaim
from autoscaler.model.resource_claim import DeviceRequest
from autoscaler.planning.planner import plan_for
from autoscaler.planning.policy import Policy
from instance_catalog.dataclass import replace
from instance_catalog.diagnostic import Diagnostic
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes import labels
from instance_catalog.kubernetes.quantity import Quantity
from tests.builders import NOW, claim, shipped, snapshot

GENERATION = "device.attributes['tpu.google.com'].tpuGen == 'v6e'"
FOUR = {labels.GKE_TPU_ACCELERATOR: "tpu-v6e-slice", labels.GKE_TPU_TOPOLOGY: "4x4"}
TPUS = shipped("ct5lp-hightpu-8t", "ct6e-standard-4t", "ct6e-standard-8t", "ct5p-hightpu-4t")
V6E = {labels.GKE_TPU_ACCELERATOR: "tpu-v6e-slice"}
SLICE = {**V6E, labels.GKE_TPU_TOPOLOGY: "2x4"}
POOL = CapacityPool("tpu", scope=Scope(PodScope.ALL))


def worker(name: str, chips: int, selector: dict[str, str], owner: str = "Job/train") -> Pod:
    asked = FrozenMap({"google.com/tpu": Quantity.of(chips)})
    return Pod(
        "default", name, uid=name, containers=(Container("c", asked),), node_selector=FrozenMap(selector), owner=owner
    )


def told(*pods: Pod, pools: tuple[CapacityPool, ...] = ()) -> list[Diagnostic]:
    given = replace(snapshot(pods), pools=pools)
    return list(tpu_advice(given, plan_for(given, TPUS, Policy(), NOW), TPUS))


def test_a_pod_that_names_no_generation_is_told_how_to() -> None:
    (found,) = told(worker("a", 8, {}), worker("b", 8, {labels.GKE_TPU_TOPOLOGY: "2x4"}))
    assert found.message.startswith("names no TPU generation: ")
    assert found.others == 1
    assert "tpu-v5-lite-podslice, tpu-v5p-slice, tpu-v6e-slice" in found.next_step


@pytest.mark.parametrize("key", [labels.GKE_TPU_ACCELERATOR, labels.INSTANCE_TYPE, labels.ACCELERATOR])
def test_what_names_a_generation(key: str) -> None:
    assert told(worker("a", 8, {key: "any"})) == []


@pytest.mark.parametrize(
    ("pool", "expected"), [("tpu-v6e-pool", 0), ("v5p", 0), ("jax-multihost1", 1), ("tpu-pool-6", 1)]
)
def test_the_name_of_a_node_pool_may_name_a_generation(pool: str, expected: int) -> None:
    assert len(told(worker("a", 8, {labels.GKE_NODE_POOL: pool}))) == expected


def test_a_pool_says_which_generation_it_is() -> None:
    assert told(worker("a", 8, {}), pools=(POOL,)) == []


@pytest.mark.parametrize(("expression", "expected"), [("", 1), (GENERATION, 0)])
def test_a_claim_names_one_by_a_selector(expression: str, expected: int) -> None:
    request = DeviceRequest("chips", "tpu.google.com", (Selector(expression),) if expression else ())
    asking = Pod("default", "a", uid="a", claims=(PodClaim("chips", "chips"),))
    given = snapshot((asking,), claims=(claim("chips", request),))
    assert len(list(tpu_advice(given, plan_for(given, TPUS, Policy(), NOW), TPUS))) == expected


def test_pods_that_are_hosts_of_a_slice_are_seen_on_one_machine() -> None:
    (found,) = told(worker("a", 4, SLICE), worker("b", 4, SLICE), pools=(POOL,))
    assert found.message.endswith("planned as one host with all of them, 1 × ct6e-standard-8t, which costs no more")
    assert found.next_step.endswith("is ct6e-standard-4t")


@pytest.mark.parametrize(
    ("pods", "expected"),
    [
        pytest.param((worker("a", 4, SLICE), worker("b", 4, SLICE)), ("ct6e-standard-4t",), id="two hosts"),
        pytest.param((worker("a", 4, SLICE),), (), id="half a slice"),
        pytest.param((worker("a", 4, SLICE), worker("b", 4, SLICE, owner="Job/x")), (), id="two Jobs"),
        pytest.param((worker("a", 4, V6E), worker("b", 4, V6E)), (), id="no topology"),
        pytest.param(tuple(worker(n, 4, FOUR) for n in "abcd"), (), id="no such machine"),
        pytest.param(
            tuple(worker(n, 4, {**SLICE, labels.INSTANCE_TYPE: "ct6e-standard-8t"}) for n in "ab"), (), id="type named"
        ),
        pytest.param(
            tuple(worker(n, 4, {**SLICE, labels.GKE_TPU_TOPOLOGY: "2xfour"}) for n in "ab"), (), id="no numbers"
        ),
    ],
)
def test_hosts_of_a_slice(pods: tuple[Pod, ...], expected: tuple[str, ...]) -> None:
    assert hosts_meant(pods[0], pods, TPUS) == expected

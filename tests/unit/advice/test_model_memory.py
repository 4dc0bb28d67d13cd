"""Models that do not fit into the GPUs that their pods get: a plan says so, and which GPUs hold them."""

from __future__ import annotations

from typing import Any

import pytest

from autoscaler.advice.advise import advise
from autoscaler.advice.models.memory import Holding, TooOld, TooSmall, placed_models, too_old, too_small
from autoscaler.advice.trial import Budget
from autoscaler.model.capacity import CapacityPool
from autoscaler.model.pod import Container, GangRef, Pod
from autoscaler.model.snapshot import Snapshot
from autoscaler.planning.planner import plan_for
from autoscaler.planning.policy import Policy
from autoscaler.report.advised.model_texts import model_text
from instance_catalog.dataclass import replace
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes import labels
from instance_catalog.kubernetes.node_selector import Requirement
from tests.builders import NOW, claim, gang, gpus, pod, shipped, snapshot
from tests.one_line_advice import advice_lines

CATALOG = shipped("g4dn.xlarge", "g6.xlarge", "g6.12xlarge", "p5.48xlarge")
POLICY = Policy()


def serving(billions: float, name: str = "p", *, server: bool = False, **fields: object) -> Pod:
    found = pod(name, f"c-{name}")
    containers = tuple(
        replace(one, model_billions=billions, serves_model=server, claims=(f"c-{name}",)) for one in found.containers
    )
    return replace(found, containers=containers, **fields)  # type: ignore[arg-type]


def given(*pods: Pod, count: int = 1, pools: tuple[CapacityPool, ...] = ()) -> Snapshot:
    return snapshot(pods, [claim(f"c-{one.name}", gpus(count)) for one in pods], pools=pools)


def told(state: Snapshot) -> TooSmall | None:
    plan = plan_for(state, CATALOG, POLICY, NOW)
    assert not plan.left_out
    return next(too_small(tuple(placed_models(plan, state, CATALOG)), state, CATALOG, POLICY, NOW), None)


def test_a_model_on_a_gpu_that_does_not_hold_it() -> None:
    found = told(given(serving(32)))
    assert found is not None
    assert (found.pod, found.pods, found.billions, found.gpus) == ("default/p", 1, 32, "1 × T4")
    assert (round(found.weights), round(found.have)) == (60, 15)
    assert isinstance(found.instead, Holding)
    assert (found.instead.accelerators, found.instead.launches) == (("nvidia-h100-80gb",), (("p5.48xlarge", 1),))
    assert told(given(serving(32, node_selector=FrozenMap({labels.ACCELERATOR: "nvidia-h100-80gb"})))) is None


@pytest.mark.parametrize(("bits", "small"), [(4, False), (16, True)])
def test_the_bits_with_which_a_model_is_published(bits: int, small: bool) -> None:
    asking = serving(20)
    (container,) = asking.containers
    found = told(given(replace(asking, containers=(replace(container, model_bits=bits),))))
    assert bool(found) is small


@pytest.mark.parametrize(("billions", "bits"), [(30, 16), (60, 8)])
def test_blocks_of_fp8_need_a_gpu_with_fp8(billions: float, bits: int) -> None:
    """Weights of one size: an A100 holds them, and vLLM runs those in FP8 from Ada on."""
    asking = serving(billions)
    (container,) = asking.containers
    catalog = shipped("g4dn.xlarge", "a2-ultragpu-1g", "p5.4xlarge")
    state = given(replace(asking, containers=(replace(container, model_bits=bits, model_latent=bits == 8),)))
    placed = tuple(placed_models(plan_for(state, catalog, POLICY, NOW), state, catalog))
    found = next(too_small(placed, state, catalog, POLICY, NOW))
    assert isinstance(found.instead, Holding)
    assert found.instead.accelerators == (("nvidia-a100-80gb",) if bits == 16 else ("nvidia-h100-80gb",))


@pytest.mark.parametrize(("share", "small"), [(0.0, False), (0.9, False), (0.35, True)])
def test_a_share_of_the_memory_that_an_option_sets(share: float, small: bool) -> None:
    """3.5e9 bytes have room in the 15Gi of a T4, and hardly in a third of it."""
    asking = serving(1.75, server=True)
    (container,) = asking.containers
    found = told(given(replace(asking, containers=(replace(container, memory_share=share),))))
    assert bool(found) is small
    if found is not None:
        text = model_text(found)[0]
        assert "its 1 × T4 has 15Gi, of which its vLLM takes 0.35 (gpu-memory-utilization): that hardly leaves" in text
        assert "by default" not in text


@pytest.mark.parametrize(("bits", "instead"), [(8, "nvidia-a100-40gb"), (16, "nvidia-v100-16gb")])
def test_other_models_in_eight_bits_need_ampere(bits: int, instead: str) -> None:
    asking = serving(16.5 * 8 / bits)
    (container,) = asking.containers
    catalog = shipped("g4dn.xlarge", "p3.2xlarge", "a2-highgpu-1g")
    state = given(replace(asking, containers=(replace(container, model_bits=bits),)))
    placed = tuple(placed_models(plan_for(state, catalog, POLICY, NOW), state, catalog))
    found = next(too_small(placed, state, catalog, POLICY, NOW))
    assert isinstance(found.instead, Holding)
    assert found.instead.accelerators == (instead,)


def test_a_model_in_blocks_of_fp8_keeps_its_context_on_every_gpu() -> None:
    """300e9 bytes leave 6 of 48 GB on each of eight L40S, and the context of DeepSeek-V3 takes 11 more."""
    asking = serving(300, server=True)
    (container,) = asking.containers
    state = given(replace(asking, containers=(replace(container, model_bits=8, model_latent=True),)), count=8)
    catalog = shipped("g4dn.metal", "g6e.48xlarge", "p5.48xlarge")
    placed = tuple(placed_models(plan_for(state, catalog, POLICY, NOW), state, catalog))
    found = next(too_small(placed, state, catalog, POLICY, NOW))
    assert isinstance(found.instead, Holding)
    assert found.instead.accelerators == ("nvidia-h100-80gb",)


def test_a_model_whose_four_bits_are_too_much() -> None:
    asking = serving(120)
    (container,) = asking.containers
    found = told(given(replace(asking, containers=(replace(container, model_bits=4),))))
    assert found is not None
    assert (round(found.weights), found.bits) == (56, 4)
    text = "; ".join(model_text(found))
    assert "about 56Gi in 4 bits" in text
    assert "quantised" not in text
    assert isinstance(found.instead, Holding)


@pytest.mark.parametrize(
    ("billions", "count", "instead"),
    [
        (7, 1, None),
        (8, 1, "nvidia-l4"),  # the context of CUDA leaves less than its 16e9 bytes
        (14, 2, None),  # two of the four L4 in g6.12xlarge
        (32, 2, "nvidia-h100-80gb"),
        (32, 4, None),
        (671, 8, ""),
    ],
)
def test_what_has_room(billions: float, count: int, instead: str | None) -> None:
    found = told(given(serving(billions), count=count))
    assert (found is None) == (instead is None)
    if found is not None:
        assert (found.instead.accelerators[0] if found.instead else "") == instead


@pytest.mark.parametrize(
    ("billions", "count", "surely", "instead"),
    [
        (3, 1, None, None),
        (6.7, 1, False, "nvidia-l4"),
        (7, 1, False, "nvidia-l4"),
        (8, 1, True, "nvidia-l4"),
        (10.5, 1, True, "nvidia-h100-80gb"),  # an L4 would hold its 19.6 GiB, and leave 1.1 GiB of 20.7
        (14, 2, None, None),
        (21, 2, False, "nvidia-h100-80gb"),
        (22, 2, True, "nvidia-h100-80gb"),  # 41.0 GiB of the 41.4 that a server takes, of which 0.5 are no weights
        (32, 4, None, None),
        (70, 8, None, None),
        (310, 8, False, ""),
    ],
)
def test_a_model_server_needs_room_beside_the_weights(
    billions: float, count: int, surely: bool | None, instead: str | None
) -> None:
    found = told(given(serving(billions, server=True), count=count))
    assert (found.surely if found else None) == surely
    if found is not None:
        assert (found.instead.accelerators[0] if found.instead else "") == instead


def test_what_does_not_fit_is_told_before_what_hardly_does() -> None:
    state = given(serving(7, "a", server=True), serving(32, "b"), serving(7, "c"))
    placed = tuple(placed_models(plan_for(state, CATALOG, POLICY, NOW), state, CATALOG))
    found = list(too_small(placed, state, CATALOG, POLICY, NOW))
    assert [(one.pod, one.pods, one.surely) for one in found] == [("default/b", 1, True), ("default/a", 1, False)]


def test_pods_that_divide_a_model_count_together() -> None:
    job = [serving(14, name, owner="Job/train") for name in ("a", "b")]
    assert told(given(*job)) is None
    replicas = [serving(14, name, owner="Deployment/serve") for name in ("a", "b")]
    found = told(given(*replicas))
    assert found is not None
    assert found.pods == 2
    for kind in ("InferenceService", "DynamoGraphDeployment"):
        services = [replace(one, owner=f"{kind}/serve") for one in replicas]
        assert told(given(*services)) == found
    state = given(*(replace(one, gang=GangRef("default", "g")) for one in replicas))
    assert told(replace(state, gangs=gang("g", 2))) is None
    large = told(given(*(serving(70, name, owner="Job/train") for name in ("a", "b"))))
    assert large is not None
    assert large.gpus == "2 × T4 of its group"


@pytest.mark.parametrize(("groups", "small"), [(2, True), (1, False)])
def test_each_group_of_a_leader_worker_set_has_the_whole_model(groups: int, small: bool) -> None:
    """Four T4 hold it, two do not."""
    pods = [
        serving(20, f"s-{n}", owner="LeaderWorkerSet/s", labels=FrozenMap({labels.LWS_GROUP_KEY: f"s-{n % groups}"}))
        for n in range(4)
    ]
    found = told(given(*pods))
    assert ((found.gpus, found.pods) if found else None) == (("2 × T4 of its group", 4) if small else None)


@pytest.mark.parametrize(("spread", "whole"), [(False, True), (True, False)])
def test_replicas_of_a_role_have_the_whole_model_each(spread: bool, whole: bool) -> None:
    pods = [serving(14, name, owner="StormService/s", gang=GangRef("default", "g")) for name in ("a", "b")]
    parts = [tuple(replace(one, model_spread=spread) for one in found.containers) for found in pods]
    pods = [replace(found, containers=part) for found, part in zip(pods, parts, strict=True)]
    found = told(replace(given(*pods), gangs=gang("g", 2)))
    assert (found is not None) is whole


def test_a_part_of_a_model_counts_where_the_other_pods_are_known() -> None:
    def spread(name: str, **fields: Any) -> Pod:
        found = serving(32, name, **fields)
        return replace(found, containers=tuple(replace(one, model_spread=True) for one in found.containers))

    assert told(given(spread("a"))) is None  # the others may be anywhere
    assert told(given(spread("a", owner="Deployment/serve"))) is None
    group = [spread(name, gang=GangRef("default", "g")) for name in ("a", "b")]
    found = told(replace(given(*group), gangs=gang("g", 2)))
    assert found is not None
    assert (found.gpus, found.surely) == ("2 × T4 of its group", True)


def test_a_worker_without_the_name_of_the_model_needs_the_gpus_of_its_leader() -> None:
    """Each GPU holds an equal part: one that is large helps nothing beside one that is small."""
    leader, worker = (replace(serving(32, name), gang=GangRef("default", "g")) for name in ("a", "b"))
    worker = replace(worker, containers=tuple(replace(one, model_billions=None) for one in worker.containers))
    parted = tuple(replace(one, model_spread=True) for one in leader.containers)
    large = replace(leader, containers=parted, node_selector=FrozenMap({labels.ACCELERATOR: "nvidia-h100-80gb"}))
    small = replace(worker, node_selector=FrozenMap({labels.ACCELERATOR: "nvidia-t4"}))
    for pods, launched in (((leader, worker), ["p5.48xlarge"]), ((large, small), None)):
        found = told(replace(given(*pods), gangs=gang("g", 2)))
        assert found is not None
        assert (found.pod, found.gpus, found.every) == ("default/a", "2 × T4 of its group", ("default/a", "default/b"))
        assert (found.instead and [name for name, _ in found.instead.launches]) == launched


@pytest.mark.parametrize(
    ("server", "client", "warned"),
    [
        pytest.param({}, {"model_beside": True}, True, id="the server loads what its client asks for"),
        pytest.param({"quantized": True}, {"model_beside": True}, False, id="in fewer bits"),
        pytest.param({"model_spread": True, "model_billions": 70}, {"model_beside": True}, False, id="a part of it"),
        pytest.param({}, {}, False, id="a client of a server elsewhere"),
        pytest.param({}, {"model_beside": True, "model_bits": 2}, False, id="in the bits of its model"),
    ],
)
def test_a_client_in_the_pod_says_which_model_the_server_has(
    server: dict[str, Any], client: dict[str, Any], warned: bool
) -> None:
    one = pod("p", "c-p")
    containers = (
        replace(one.containers[0], claims=("c-p",), **server),
        Container("client", model_billions=32, **client),
    )
    found = told(given(replace(one, containers=containers)))
    assert (found is not None and found.surely) == warned


def test_a_pool_that_has_no_such_gpu() -> None:
    small = CapacityPool("gpu", requirements=(Requirement(labels.ACCELERATOR, "In", ("nvidia-t4",)),))
    found = told(given(serving(32), pools=(small,)))
    assert found is not None
    assert found.instead is None


def of_vllm(billions: float, card: str) -> Pod:
    found = serving(billions, server=True, node_selector=FrozenMap({labels.ACCELERATOR: card}))
    return replace(found, containers=tuple(replace(one, vllm_bfloat16=True) for one in found.containers))


@pytest.mark.parametrize(
    ("card", "expected"),
    [
        ("nvidia-t4", TooOld("default/p", 1, "T4", "7.5", runs=True, instead=("nvidia-l4",))),
        ("nvidia-v100-32gb", TooOld("default/p", 1, "V100", "7.0", runs=True, instead=("nvidia-a100-40gb",))),
        ("nvidia-p100", TooOld("default/p", 1, "P100", "6.0", runs=False, instead=("nvidia-l4",))),
        ("nvidia-l4", None),
    ],
)
def test_vllm_on_a_gpu_without_bfloat16(card: str, expected: TooOld | None) -> None:
    """As much memory as that GPU has: an L4 is none for a V100 with 32Gi."""
    names = ("g4dn.xlarge", "g6.xlarge", "n1-standard-4+1xnvidia-tesla-p100", "p3dn.24xlarge", "a2-highgpu-1g")
    catalog = shipped(*names)
    state = given(of_vllm(3, card))
    plan = plan_for(state, catalog, POLICY, NOW)
    assert not plan.left_out
    assert too_old(tuple(placed_models(plan, state, catalog)), catalog) == expected
    other = given(serving(3, server=True, node_selector=FrozenMap({labels.ACCELERATOR: card})))
    plan = plan_for(other, catalog, POLICY, NOW)
    assert too_old(tuple(placed_models(plan, other, catalog)), catalog) is None


@pytest.mark.parametrize(("bfloat16", "launched"), [(False, "p3.2xlarge"), (True, "p5.48xlarge")])
def test_vllm_that_lacks_room_is_sent_to_a_gpu_with_bfloat16(bfloat16: bool, launched: str) -> None:
    catalog = shipped("g4dn.xlarge", "p3.2xlarge", "p5.48xlarge")
    found = replace(of_vllm(6.5, ""), node_selector=FrozenMap({}))
    state = given(replace(found, containers=tuple(replace(one, vllm_bfloat16=bfloat16) for one in found.containers)))
    plan = plan_for(state, catalog, POLICY, NOW)
    placed = tuple(placed_models(plan, state, catalog))
    assert too_old(placed, catalog) is None
    (told,) = too_small(placed, state, catalog, POLICY, NOW)
    assert told.instead is not None
    assert told.instead.launches == ((launched, 1),)


@pytest.mark.parametrize(
    ("billions", "bfloat16", "told"),
    [
        (6.7, False, "hardly leaves room for activations"),
        (3, True, "gets T4, whose compute capability is 7.5"),
        (3, False, ""),
    ],
)
def test_a_machine_in_an_advice_has_to_have_room_for_the_model_too(billions: float, bfloat16: bool, told: str) -> None:
    found = serving(billions, server=True, node_selector=FrozenMap({"team": "a"}))
    state = given(replace(found, containers=tuple(replace(one, vllm_bfloat16=bfloat16) for one in found.containers)))
    plan = plan_for(state, CATALOG, Policy(considered=1000), NOW)
    (line,) = advice_lines(advise(state.pods[0], state, CATALOG, plan, POLICY, NOW, most=1))
    assert "1 × g4dn.xlarge" in line
    assert told in line
    assert ("; default/p: " in line) is bool(told)


def advised(labels_of: dict[str, str], *, plans: int = 12) -> str:
    """The advice for a pod with a model of 32 billion parameters."""
    state = given(serving(32, server=True, node_selector=FrozenMap(labels_of)))
    plan, budget = plan_for(state, CATALOG, Policy(considered=1000), NOW), Budget(plans)
    (line,) = advice_lines(advise(state.pods[0], state, CATALOG, plan, POLICY, NOW, most=1, budget=budget))
    return line


def test_an_advice_leads_with_gpus_that_hold_the_model() -> None:
    line = advised({"team": "a"})
    assert "(1) pod default/p: select foreslice.dev/accelerator: nvidia-h100-80gb (the weights of its model" in line
    assert (
        "take about 60Gi in 16 bits unless they are quantised; 1 × T4, which it would get, has 15Gi); (2) create"
        in line
    )
    assert "→ 1 × p5.48xlarge" in line
    assert "does not load" not in line


def test_the_gpus_that_a_pod_names_stay_and_a_machine_without_a_second_plan_as_well() -> None:
    for line in (advised({"team": "a", labels.ACCELERATOR: "nvidia-t4"}), advised({"team": "a"}, plans=2)):
        assert "→ 1 × g4dn.xlarge" in line
        assert "and unless they are quantised the model does not load" in line
        assert line.endswith(
            "or select GPUs that hold it, by foreslice.dev/accelerator: nvidia-h100-80gb (from 55.04 $/h)"
        )


@pytest.mark.parametrize(("server", "surely"), [(True, True), (False, False)])
def test_weights_above_what_a_server_takes_of_the_memory_do_not_load(server: bool, surely: bool) -> None:
    """13.97Gi of the 15Gi of a T4, of which vLLM takes 0.92."""
    found = told(given(serving(7.5, server=server)))
    assert (found is not None and found.surely) is surely


@pytest.mark.parametrize(("asked", "told_of"), [(True, 1), (False, 0)])
def test_a_gpu_that_is_too_small_may_lack_bfloat16_as_well(asked: bool, told_of: int) -> None:
    """Who quantises the weights to fit meets that next."""
    (container,) = serving(32, server=True).containers
    found = told(given(replace(serving(32), containers=(replace(container, vllm_bfloat16=asked),))))
    assert found is not None
    assert model_text(found)[0].count("; besides, bfloat16 needs compute capability 8.0") == told_of

"""What a plan without pools takes for granted: simulated devices, types that were left aside, images without driver."""

from __future__ import annotations

import pytest

from autoscaler.lint.pods.disk_space import advised_disk
from autoscaler.lint.supply_advice import advised_assumptions, advised_gpu, supply_advice
from autoscaler.model.capacity import CapacityBlock, CapacityPool, NodeTemplateRef
from autoscaler.model.node import Node
from autoscaler.model.plan import HandedOut, Plan
from autoscaler.model.pod import Container, Pod
from autoscaler.planning.planner import plan_for
from autoscaler.planning.policy import Policy
from instance_catalog.dataclass import replace
from instance_catalog.diagnostic import Diagnostic
from instance_catalog.files.loader import load_catalog
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes import labels
from instance_catalog.kubernetes.node_selector import Requirement
from instance_catalog.kubernetes.quantity import Quantity
from instance_catalog.types.catalog import Catalog
from instance_catalog.types.node_allocatable import assumes_root_disk
from tests.builders import CATALOG, GPU, NOW, claim, gpus, pod, shipped, snapshot

STATE = snapshot([pod("p", "c")], [claim("c")])
SHIPPED = load_catalog()


def launching(instance_type: str, *drivers: str) -> Plan:
    """A plan with one node of that type, running these drivers."""
    plan = plan_for(STATE, CATALOG, Policy(), NOW)
    (node,) = plan.launches
    offering = replace(node.offering, instance_type=instance_type)
    return replace(plan, launches=(replace(node, offerings=(offering,), drivers=drivers),))


def told(plan: Plan, *pools: CapacityPool) -> list[str]:
    found = [f"{one.subject}: {one.message}" for one in supply_advice(replace(STATE, pools=pools), plan, SHIPPED)]
    return [text for text in found if "names no GPU" not in text]


@pytest.mark.parametrize(
    ("instance_type", "drivers", "expected"),
    [
        ("g6.xlarge", ("nvidia", "compute-domain"), []),
        ("g6.xlarge", ("nvidia", "example"), ["driver gpu.example.com: makes up its devices"]),
        ("g4ad.xlarge", ("amd",), ["instance type g4ad.xlarge: the node images of aws have no driver for AMD"]),
        ("dl1.24xlarge", ("gaudi",), ["instance type dl1.24xlarge: the node images of aws have no driver for Habana"]),
        (
            "ct6e-standard-4t",
            ("tpu",),
            ["Pod default/p: does not tolerate google.com/tpu=present:NoSchedule, the taint"],
        ),
        ("g6.xlarge", ("nvidia:feature-discovery",), ["instance type g6.xlarge: pods select it by labels of NVIDIA"]),
    ],
)
def test_what_only_a_person_can_know(instance_type: str, drivers: tuple[str, ...], expected: list[str]) -> None:
    found = told(launching(instance_type, *drivers))
    assert len(found) == len(expected)
    assert all(text.startswith(start) for text, start in zip(found, expected, strict=True))


@pytest.mark.parametrize(
    ("pool", "expected"),
    [
        (CapacityPool("team"), ["instance type g4ad.xlarge: the node images of aws have no driver for AMD"]),
        (CapacityPool("team", drivers=("amd",)), []),
        (CapacityPool("team", node_template=NodeTemplateRef("AWSNodeTemplate", "rocm")), []),
    ],
)
def test_pools_say_what_the_nodes_are(pool: CapacityPool, expected: list[str]) -> None:
    plan = launching("g4ad.xlarge", "amd", "example")
    found = told(replace(plan, launches=tuple(replace(node, pool="team") for node in plan.launches)), pool)
    assert [text[: len(start)] for text, start in zip(found, expected, strict=True)] == expected


@pytest.mark.parametrize(
    ("instance_type", "drivers", "resource", "expected"),
    [
        ("dl1.24xlarge", (), "habana.ai/gaudi", "no driver for Habana accelerators"),
        ("g4ad.xlarge", (), "amd.com/gpu", "no driver for AMD accelerators"),
        ("inf1.xlarge", (), "aws.amazon.com/neuron", "NeuronCores are of the first version"),
        ("inf1.xlarge", (), "aws.amazon.com/neuroncore", "NeuronCores are of the first version"),
        ("inf2.xlarge", (), "aws.amazon.com/neuron", ""),
        ("inf1.xlarge", ("example",), "", ""),  # makes up its devices
        ("dl1.24xlarge", ("dranet",), "vpc.amazonaws.com/efa", ""),  # only network cards
    ],
)
def test_what_a_device_plugin_hands_out_needs_the_same(
    instance_type: str, drivers: tuple[str, ...], resource: str, expected: str
) -> None:
    plan = launching(instance_type, *drivers)
    plugged = (HandedOut(resource, 1, 0),) if resource else ()
    plan = replace(plan, launches=tuple(replace(node, handed_out=plugged) for node in plan.launches))
    found = [one for one in told(plan) if one.startswith("instance type") and "source:" in one]
    assert [expected in one for one in found] == ([True] if expected else [])


@pytest.mark.parametrize(
    ("instance_type", "asking", "told"),
    [("g6.xlarge", True, True), ("g6.xlarge", False, False), ("a3-highgpu-8g", True, False)],
)
@pytest.mark.parametrize("pooled", [False, True])
def test_the_root_disk_on_which_a_pod_relies(instance_type: str, asking: bool, told: bool, pooled: bool) -> None:
    wants = {"ephemeral-storage": Quantity.parse("1Gi")} if asking else {"cpu": Quantity.of(1)}
    waiting = replace(pod("p", "c"), containers=(Container("main", FrozenMap(wants)),))
    state = snapshot([waiting], [claim("c")], pools=[CapacityPool("all")] if pooled else [])
    plan = plan_for(state, shipped(instance_type), Policy(), NOW)
    assert [node.offering.instance_type for node in plan.launches] == [instance_type]
    found = [one.message for one in supply_advice(state, plan, SHIPPED) if "root disk" in one.message]
    assert found == (["pods request ephemeral-storage, and its root disk is assumed to have 20Gi"] if told else [])


def test_a_root_disk_that_somebody_stated() -> None:
    known = SHIPPED.types["g6.xlarge"]
    assert assumes_root_disk(known)
    assert not assumes_root_disk(replace(known, allocatable=FrozenMap({"ephemeral-storage": Quantity.parse("90Gi")})))


def selecting(key: str, value: str) -> Pod:
    return pod(key.rpartition("/")[2], "c" if value == "linux" else "d", node_selector=FrozenMap({key: value}))


ANY = "names no GPU model or memory, so it gets whole GPUs of the cheapest kind: L4 with 23034Mi"


@pytest.mark.parametrize(
    ("first", "second", "required", "expected"),
    [
        (pod("p", "c"), pod("q", "d"), None, [ANY]),
        (pod("p", "c"), pod("q", "big"), None, [ANY]),
        (pod("p", "big"), pod("q", "big2"), None, []),
        (pod("p", "c"), pod("q", "d"), (), [ANY]),
        (pod("p", "c"), pod("q", "d"), ("karpenter.sh/capacity-type",), [ANY]),
        (pod("p", "c"), pod("q", "d"), ("node.kubernetes.io/instance-type",), []),
        (selecting("team", "ml"), pod("q", "d"), (), [ANY]),
        (selecting("kubernetes.io/os", "linux"), selecting("nvidia.com/gpu.present", "true"), None, [ANY]),
        (pod("p", "c"), selecting("karpenter.k8s.aws/instance-gpu-manufacturer", "nvidia"), None, [ANY]),
        (pod("p", "c"), selecting("feature.node.kubernetes.io/pci-10de.present", "true"), None, [ANY]),
        (pod("p", "big"), selecting("karpenter.k8s.aws/instance-gpu-manufacturer", "nvidia"), None, [ANY]),
        (selecting("node.kubernetes.io/instance-type", "g6.xlarge"), pod("q", "big"), None, []),
    ],
)
def test_the_gpu_that_a_pod_gets_which_says_nothing_of_it(
    first: Pod, second: Pod, required: tuple[str, ...] | None, expected: list[str]
) -> None:
    big = gpus(product="NVIDIA L4")
    claims = [claim("c"), claim("d"), claim("big", big), claim("big2", big)]
    values = {"karpenter.sh/capacity-type": "on-demand", "node.kubernetes.io/instance-type": "g6.xlarge"}
    wanted = tuple(Requirement(key, "In", (values[key],)) for key in required or ())
    team = FrozenMap({"team": "ml"})
    pools = [] if required is None else [CapacityPool("all", requirements=wanted, labels=team)]
    state = snapshot([first, second], claims, pools=pools)
    plan = plan_for(state, shipped("g6.xlarge"), Policy(), NOW)
    assert len(plan.placements) == 2
    assert [one.message for one in supply_advice(state, plan, SHIPPED) if "names no" in one.message] == expected
    dear = [one.message for one in supply_advice(state, plan, SHIPPED, dear_disks=True) if "names no" in one.message]
    assert dear == [text.replace("kind:", "kind with the root disks that are assumed:") for text in expected]


def replica(index: int, *, owner: str, claims: tuple[str, ...] = (), namespace: str = "default") -> Pod:
    gpu = FrozenMap({} if claims else {"nvidia.com/gpu": Quantity.of(1)})
    found = replace(pod(f"p{index}", *claims), owner=owner, namespace=namespace)
    return replace(found, containers=(Container("c", gpu),))


def hints(*pods: Pod, catalog: Catalog = CATALOG) -> list[Diagnostic]:
    served = replace(GPU, extended_resource_name="nvidia.com/gpu")
    given = snapshot(pods, [replace(claim(n), namespace=pods[0].namespace) for n in ("a", "b")], classes=(served,))
    found = supply_advice(given, plan_for(given, catalog, Policy(), NOW), catalog)
    return [one for one in found if "share a GPU" in one.message]


@pytest.mark.parametrize(
    ("owner", "namespace", "expected"),
    [
        ("Deployment/time-slicing-test", "default", 1),
        ("Deployment/web", "gpu-share-unlimited", 1),
        ("Deployment/shared-gpu", "default", 1),
        ("Deployment/gpu-slices-demo", "default", 1),
        ("Deployment/fractional-gpu", "default", 1),
        ("Deployment/gpu-sliced-bread", "default", 0),
        ("Deployment/web", "shared", 0),
        ("Deployment/trainer", "default", 0),
    ],
)
def test_names_that_say_that_gpus_are_shared(owner: str, namespace: str, expected: int) -> None:
    assert len(hints(*(replica(n, owner=owner, namespace=namespace) for n in (1, 2)))) == expected


def test_who_shares_already_or_has_nobody_to_share_with_is_told_nothing() -> None:
    owner = "Deployment/gpu-sharing"
    assert hints(replica(1, owner=owner)) == []
    assert hints(replica(1, owner=owner, claims=("a",)), replica(2, owner=owner, claims=("a",))) == []
    sliced = replace(CATALOG.get("s1"), allocatable=FrozenMap({"nvidia.com/gpu": Quantity.of(4)}))
    assert hints(*(replica(n, owner=owner) for n in (1, 2)), catalog=Catalog.of([sliced])) == []


def test_how_to_say_that_gpus_are_shared() -> None:
    owner = "Deployment/gpu-sharing"
    (claimed,) = hints(replica(1, owner=owner, claims=("a",)), replica(2, owner=owner, claims=("b",)))
    assert "consumable-shares=unlimited" in claimed.next_step
    (counted,) = hints(replica(1, owner=owner), replica(2, owner=owner))
    assert "foreslice catalog set TYPE allocatable.nvidia.com/gpu=…" in counted.next_step


@pytest.mark.parametrize("selected", [FrozenMap({labels.INSTANCE_TYPE: "g6.xlarge"}), FrozenMap[str, str]()])
def test_a_change_that_buys_any_gpu_says_so(selected: FrozenMap[str, str]) -> None:
    state = snapshot([pod("p", "c", node_selector=selected)], [claim("c")])
    text = advised_gpu(state, plan_for(state, SHIPPED, Policy(), NOW), SHIPPED)
    assert bool(text) is not bool(selected)
    assert not text or text.startswith("names no GPU model or memory, so it gets the cheapest whole GPUs: ")


def test_what_the_weights_of_the_named_model_take_is_told() -> None:
    asking = pod("p", "c")
    (container,) = asking.containers
    asking = replace(asking, containers=(replace(container, model_billions=32),))
    state = snapshot([asking], [claim("c")])
    text = advised_gpu(state, plan_for(state, SHIPPED, Policy(), NOW), SHIPPED)
    assert (
        "the weights of its model with 32 billion parameters alone take about 60Gi in 16 bits; if it needs another one"
        in text
    )


@pytest.mark.parametrize(("product", "expected"), [("Tesla-T4-SHARED", 1), ("Tesla-T4", 0)])
def test_a_product_that_its_nodes_share(product: str, expected: int) -> None:
    asking = pod("p", "c", node_selector=FrozenMap({labels.NVIDIA_GPU_PRODUCT: product}))
    state = snapshot([asking], [claim("c")], pools=(CapacityPool("gpu"),))
    found = list(supply_advice(state, plan_for(state, CATALOG, Policy(), NOW), CATALOG))
    assert ["each GPU among pods" in one.message for one in found] == [True] * expected
    assert all("select Tesla-T4 for a whole GPU each, or, if" in one.next_step for one in found)
    label = FrozenMap({labels.NVIDIA_GPU_PRODUCT: product})
    shared = replace(state, pools=(CapacityPool("gpu", labels=label),))
    more = supply_advice(shared, plan_for(shared, CATALOG, Policy(), NOW), CATALOG)
    assert not any("each GPU among pods" in one.message for one in more)
    there = replace(state, nodes=(Node("n", labels=label),))
    assert not list(supply_advice(there, plan_for(there, CATALOG, Policy(), NOW), CATALOG))


COMPUTE_CLASS = "cloud.google.com/compute-class"


@pytest.mark.parametrize(
    ("name", "of_pool", "told"),
    [
        ("Accelerator", "", True),
        ("autopilot-spot", "", True),
        ("Accelerator", "Balanced", True),
        ("Accelerator", "Accelerator", False),
        ("small-gpus", "", False),
    ],
)
def test_classes_of_autopilot_are_no_labels_of_your_own(name: str, of_pool: str, told: bool) -> None:
    asking = pod("p", "c", node_selector=FrozenMap({COMPUTE_CLASS: name}))
    pools = (CapacityPool("gpu", labels=FrozenMap({COMPUTE_CLASS: of_pool})),) if of_pool else ()
    state = snapshot([asking], [claim("c")], pools=pools)
    found = [one.message for one in supply_advice(state, plan_for(state, CATALOG, Policy(), NOW), CATALOG)]
    assert any(f"selects {COMPUTE_CLASS}={name}, a class that GKE Autopilot" in text for text in found) is told


def told_of(*pods: Pod, catalog: Catalog = CATALOG, **fields: object) -> list[str]:
    state = snapshot(pods, [claim("c")], **fields)
    return [one.message for one in supply_advice(state, plan_for(state, catalog, Policy(), NOW), catalog)]


RESERVED, SHARED = "cloud.google.com/reservation-name", "cloud.google.com/gke-gpu-sharing-strategy"


def test_a_reservation_is_known_by_its_block() -> None:
    asking = [pod(name, "c", node_selector=FrozenMap({RESERVED: "march"})) for name in ("p", "q")]
    (text,) = [one for one in told_of(*asking) if "reservation" in one]
    assert text.startswith(f"selects {RESERVED}=march, machines of a reservation")
    held = CapacityBlock("march", "p5.48xlarge", "z", 1, NOW, NOW)
    assert not [one for one in told_of(*asking, blocks=(held,)) if "reservation" in one]


def test_pools_that_hand_out_parts_of_gpus() -> None:
    """What a node hands out is known where the catalog says it."""
    asking = pod("p", "c", node_selector=FrozenMap({SHARED: "time-sharing"}))
    (text,) = [one for one in told_of(asking) if "parts of its GPUs" in one]
    assert text.startswith(f"selects {SHARED}=time-sharing, by which a node pool hands out")
    ((name, machine), *rest) = CATALOG.types.items()
    known = replace(machine, allocatable=FrozenMap({"nvidia.com/gpu": Quantity.of(4)}))
    catalog = replace(CATALOG, types=FrozenMap({name: known, **dict(rest)}))
    assert not [one for one in told_of(asking, catalog=catalog) if "parts of its GPUs" in one]


@pytest.mark.parametrize(
    ("name", "disk", "told"),
    [
        ("g2-standard-24", "30Gi", True),
        ("g2-standard-24", "5Gi", False),
        ("g2-standard-24", "", False),
        ("a3-highgpu-8g", "2Ti", False),  # local disks
    ],
)
def test_a_change_that_buys_a_machine_says_how_large_its_disk_is_assumed_to_be(
    name: str, disk: str, told: bool
) -> None:
    asked = FrozenMap({"ephemeral-storage": Quantity.parse(disk)} if disk else {})
    asking = replace(pod("p", "c"), containers=(Container("main", asked),))
    text = advised_disk({asking.key: SHIPPED.types[name]}, snapshot([asking], [claim("c")]))
    assert bool(text) is told
    expected = (
        "default/p: requests ephemeral-storage, of which g2-standard-24 has 43.8Gi for pods if its root disk has "
        "100Gi, as is assumed; if yours differ (--disk-size of the GKE node pool), say so: `foreslice catalog set "
        "g2-standard-24 "
    )
    assert text.startswith(expected) or not told


@pytest.mark.parametrize(
    ("instance_type", "driver", "expected"),
    [
        ("p5en.48xlarge", "nvidia", ["7 of 8 H200 of each p5en.48xlarge stay free, and are paid for"]),
        ("p5en.48xlarge", "nvidia:mig=all-1g.18gb", []),  # its devices are parts
        ("g6.xlarge", "nvidia", []),
        (
            "g6.xlarge",
            "nvidia:feature-discovery",
            ["instance type g6.xlarge: pods select it by labels of NVIDIA GPU fea"],
        ),
    ],
)
def test_what_a_plan_with_a_change_assumes_and_leaves_unused(
    instance_type: str, driver: str, expected: list[str]
) -> None:
    found = advised_assumptions(STATE, launching(instance_type, driver), SHIPPED, idle=True)
    assert [text[: len(start)] for text, start in zip(found, expected, strict=True)] == expected


def test_the_drivers_beside_feature_discovery_are_listed_with_it() -> None:
    """A pool with nvidia:feature-discovery alone would have nodes without the other drivers."""
    running = launching("g6.xlarge", "nvidia:feature-discovery", "compute-domain", "dranet")
    (found,) = advised_assumptions(STATE, running, SHIPPED, idle=False)
    assert "spec.drivers.profiles: [nvidia:feature-discovery, compute-domain, dranet]" in found


def test_a_plan_with_a_change_relies_on_a_device_plugin() -> None:
    plan = launching("g6.8xlarge", "nvidia")
    handed = (HandedOut("vpc.amazonaws.com/efa", 1, 0),)
    plan = replace(plan, launches=tuple(replace(node, handed_out=handed) for node in plan.launches))
    (found,) = advised_assumptions(STATE, plan, SHIPPED, idle=False)
    assert found.startswith("resource vpc.amazonaws.com/efa: no DeviceClass serves it, so its device plugin is assumed")

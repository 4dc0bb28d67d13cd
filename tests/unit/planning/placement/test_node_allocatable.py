"""Plans where devices take of their node's own amounts (KEP-5517): CPUs as devices, and memory beside accelerators."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Any

import pytest

from autoscaler.model.capacity import CapacityPool
from autoscaler.model.device_class import DeviceClass, Selector
from autoscaler.model.node import Node
from autoscaler.model.plan import Plan
from autoscaler.model.pod import Container, Pod, PodClaim
from autoscaler.model.reason import Code
from autoscaler.model.resource_claim import DeviceRequest, ResourceClaim
from autoscaler.model.snapshot import Snapshot
from autoscaler.planning.demand.bundles import bundles_of, classes_of
from autoscaler.planning.memory import PlanMemory
from autoscaler.planning.placement.device_states import claims_apart
from autoscaler.planning.placement.replay import replay
from autoscaler.report.tables.failures import failure_text
from autoscaler.scheduling.schedule import adversarial, first
from autoscaler.scheduling.world import World
from instance_catalog.dataclass import replace
from instance_catalog.drivers.custom import CustomDriver, DeviceTemplate
from instance_catalog.drivers.profile import parse_driver_set
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.profile import KubernetesProfile, profile_for
from instance_catalog.kubernetes.quantity import Quantity
from instance_catalog.kubernetes.resource_slice import NodeAllocatable, NodeMapping, NodeOverhead
from instance_catalog.prediction.drivers import custom
from instance_catalog.prediction.predict import predict
from instance_catalog.types.catalog import Catalog
from tests.builders import LARGE, SMALL, machine, places, plan, types, why_left

ON = profile_for("1.37.1").with_gates(node_allocatable_resources=True)
OFF = profile_for("1.37.1")


def amount(text: str) -> Quantity:
    return Quantity.parse(text)


CORES = CustomDriver(
    "cores",
    "cpu.acme.com",
    "v1",
    (
        DeviceTemplate(
            "node",
            "cores",
            capacity=FrozenMap({"cores": "{vcpu}"}),
            allow_multiple_allocations=True,
            node_allocatable=FrozenMap({"cpu": NodeAllocatable(NodeMapping("cores", amount("1")))}),
        ),
    ),
)
CARDS = CustomDriver(
    "cards",
    "card.acme.com",
    "v1",
    (
        DeviceTemplate(
            "accelerator",
            "card-{index}",
            node_allocatable=FrozenMap(
                {"memory": NodeAllocatable(overhead=NodeOverhead(amount("70Gi"), amount("1Gi")))}
            ),
        ),
    ),
)
CATALOG = Catalog.of(
    [machine("s1", SMALL, 1, "1.00"), machine("s4", SMALL, 4, "3.60"), machine("l8", LARGE, 8, "40.00", vcpu=192)],
    drivers=(CORES, CARDS),
)
CLASSES = (
    DeviceClass("cores", (Selector("device.driver == 'cpu.acme.com'"),)),
    DeviceClass("cards", (Selector("device.driver == 'card.acme.com'"),)),
)
POOLS = (CapacityPool("team", drivers=("cores", "cards")),)


def cores(name: str, count: str) -> ResourceClaim:
    wanted = DeviceRequest("r", "cores", capacity=FrozenMap({"cores": amount(count)}))
    return ResourceClaim("default", name, (wanted,), uid=f"uid-{name}")


def cards(name: str, count: int = 1) -> ResourceClaim:
    return ResourceClaim("default", name, (DeviceRequest("r", "cards", count=count),), uid=f"uid-{name}")


def user(name: str, *claims: str, cpu: str = "1", references: int = 1, **fields: Any) -> Pod:
    box = Container("main", FrozenMap({"cpu": amount(cpu)}), claims=claims * references)
    entries = tuple(PodClaim(one, one) for one in claims)
    return replace(Pod("default", name, f"uid-{name}", containers=(box,), claims=entries), **fields)


def state(pods: list[Pod], claims: list[ResourceClaim], profile: KubernetesProfile = ON, **fields: Any) -> Snapshot:
    scene: dict[str, Any] = {"pools": POOLS, **fields}
    found = FrozenMap({one.key: one for one in claims})
    return Snapshot(profile=profile, pods=tuple(pods), claims=found, classes=CLASSES, **scene)


def planned(snapshot: Snapshot) -> Plan:
    found = plan(snapshot, catalog=CATALOG)
    for choose in (first, adversarial):
        assert replay(found, snapshot, CATALOG, choose).holds
    return found


def three_of_ten(profile: KubernetesProfile = ON) -> Snapshot:
    return state([user(f"p{i}", f"c{i}") for i in range(3)], [cores(f"c{i}", "10") for i in range(3)], profile)


def test_cpus_of_claims_are_cpus_of_the_node() -> None:
    """Each pod takes eleven of 32 cores, ten of them as a device."""
    assert types(planned(three_of_ten())) == ["s1", "s1"]


def test_without_the_gate_they_are_not() -> None:
    assert types(planned(three_of_ten(OFF))) == ["s1"]
    (slice_,) = (s for node in planned(three_of_ten(OFF)).launches for s in node.slices if s.driver == CORES.driver)
    assert all(not device.node_allocatable for device in slice_.devices)


def test_the_slices_of_planned_nodes_say_what_devices_take() -> None:
    for node in planned(three_of_ten()).launches:
        (device,) = (d for s in node.slices if s.driver == CORES.driver for d in s.devices)
        assert device.node_allocatable == {"cpu": NodeAllocatable(NodeMapping("cores", amount("1")))}


def test_memory_beside_accelerators_fills_a_node_before_its_devices_do() -> None:
    """Three pods of 71Gi fit 256Gi, so that four small machines cost less than one with four cards and another one."""
    pods, claims = [user(f"p{i}", f"c{i}") for i in range(4)], [cards(f"c{i}") for i in range(4)]
    assert types(planned(state(pods, claims))) == ["s1"] * 4
    assert types(planned(state(pods, claims, OFF))) == ["s4"]


@pytest.mark.parametrize(("references", "placed"), [(1, True), (40, False)])
def test_each_container_that_names_the_claim_costs(references: int, *, placed: bool) -> None:
    """70Gi for each of three cards, and 1Gi for each of them and each container, of 256Gi."""
    wide = user("p0", "c0", references=references)
    found = planned(state([wide], [cards("c0", 3)], pools=(CapacityPool("team", drivers=("cards",)),)))
    assert (places(found) != {}) is placed


def test_pods_that_differ_in_who_uses_the_claim_are_not_equal() -> None:
    pods = [user("p0", "c0"), user("p1", "c1", references=2)]
    claims = [cards("c0"), cards("c1")]
    for profile, kinds in ((ON, 2), (OFF, 1)):
        found = state(pods, claims, profile)
        assert len(classes_of(bundles_of(found.pods, found.claims), found)) == kinds


def test_what_claims_and_pod_ask_for_together_may_fit_nowhere() -> None:
    found = planned(state([user("p0", "c0", cpu="180")], [cores("c0", "30")]))
    assert Code.NO_CANDIDATE in why_left(found, "p0") or Code.INSUFFICIENT_WITH_CLAIMS in why_left(found, "p0")
    (left,) = found.left_out
    said = {miss.reason.code: failure_text(miss.reason) for miss in left.near_misses}
    assert said[Code.INSUFFICIENT_WITH_CLAIMS].startswith("Insufficient cpu (210 requested, 30 of it by claims, ")


def test_a_mapped_claim_serves_one_pod() -> None:
    """kube-scheduler binds the first and refuses to share with the others."""
    pods = [user(name, "shared") for name in ("a", "b")]
    found = plan(state(pods, [cores("shared", "2")]), catalog=CATALOG)
    assert len(places(found)) == 1
    assert len(found.launches) == 1
    assert why_left(found, "b") == [Code.CLAIM_NOT_SHAREABLE, Code.BUNDLE_SPLIT]
    assert len(plan(state(pods, [cores("shared", "2")], OFF), catalog=CATALOG).placements) == 2


def test_claims_that_may_take_amounts_are_not_decided_apart_from_them() -> None:
    for profile, apart in ((ON, False), (OFF, True)):
        found = three_of_ten(profile)
        (bundle, *_) = bundles_of(found.pods, found.claims)
        world = World.of(found, CATALOG.drivers.values())
        assert (claims_apart(bundle, world, {}) is not None) is apart
    # Where no driver has such devices, the gate changes nothing.
    assert claims_apart(bundle, World.of(three_of_ten()), {}) is not None


@pytest.mark.parametrize("seed", range(3))
def test_no_planned_node_holds_more_than_it_has(seed: int) -> None:
    """Added up by hand: cores of pods and claims, and the memory beside cards."""
    draw = Random(seed)
    pods, claims, cpu, memory = [], [], dict[str, float](), dict[str, int]()
    for i in range(8):
        own, count, card = draw.choice([1, 2, 3, 7]), draw.choice([0, 2, 5, 9]), draw.choice([0, 0, 1])
        wanted = [*([cores(f"k{i}", str(count))] if count else []), *([cards(f"g{i}")] if card else [])]
        if not wanted:
            continue
        pods.append(user(f"p{i}", *(one.name for one in wanted), cpu=str(own)))
        claims += wanted
        cpu[f"default/p{i}"], memory[f"default/p{i}"] = own + count, 71 * card
    found = plan(state(pods, claims), catalog=CATALOG)
    assert found.left_out == ()
    for node in found.launches:
        assert sum(cpu[key] for key in node.pods) <= node.node.allocatable["cpu"].value
        assert sum(memory[key] for key in node.pods) <= node.node.allocatable["memory"].value / 2**30


def test_only_described_drivers_have_devices_that_take_amounts() -> None:
    """`World.claims_take_amounts` asks the descriptions of drivers: it has to ask a shipped one that begins to."""
    drivers = Path(custom.__file__).parent
    assert [path.name for path in drivers.glob("*.py") if "node_allocatable" in path.read_text()] == ["custom.py"]


def existing(name: str = "n1", cpu: str = "32") -> tuple[Node, tuple[Any, ...]]:
    amounts = FrozenMap({"cpu": amount(cpu), "memory": amount("250Gi"), "pods": amount("100")})
    node = Node(name, labels=FrozenMap({"kubernetes.io/hostname": name}), allocatable=amounts)
    drivers = parse_driver_set("cores", custom=CATALOG.drivers)
    return node, predict(CATALOG.types["s1"], drivers, kubernetes=ON, node_name=name)


def taken(found: Plan) -> Mapping[str, str]:
    return {pod: node for pod, node in places(found).items() if node == "n1"}


def test_present_nodes_take_as_many_pods_as_their_cpus_allow() -> None:
    node, slices = existing()
    found = planned(
        state(list(three_of_ten().pods), list(three_of_ten().claims.values()), nodes=(node,), slices=slices)
    )
    assert len(taken(found)) == 2
    assert types(found) == ["s1"]


def test_what_claims_of_running_pods_take_is_taken() -> None:
    node, slices = existing()
    there = user("old", cpu="1", node_name="n1", phase="Running", claim_amounts=FrozenMap({"cpu": amount("20")}))
    claims = list(three_of_ten().claims.values())
    scene: dict[str, Any] = {"nodes": (node,), "slices": slices}
    found = planned(state([there, *three_of_ten().pods], claims, **scene))
    assert len(taken(found)) == 1
    memory = PlanMemory()
    snapshot = state([there, *three_of_ten().pods], claims, **scene)
    assert plan(snapshot, catalog=CATALOG, memory=memory) == plan(snapshot, catalog=CATALOG, memory=memory) == found

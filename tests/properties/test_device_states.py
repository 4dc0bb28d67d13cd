"""Claims decided apart from amounts give the answers of the direct way, on random pods and nodes.

The oracle of the packing remembers what equal claims take of equal devices. Told not to, it decides every pod as a
whole: that is the direct way.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from autoscaler.model.capacity import CapacityPool
from autoscaler.model.device_class import DeviceClass, Selector
from autoscaler.model.labels import LabelSelector
from autoscaler.model.pod import Container, HostPort, Pod, PodAffinityTerm, PodClaim
from autoscaler.model.resource_claim import (
    AllocatedDevice,
    Allocation,
    DeviceRequest,
    FirstAvailable,
    MatchAttribute,
    ResourceClaim,
)
from autoscaler.model.snapshot import DaemonSet, Snapshot
from autoscaler.model.verdict import DoesNotFit, Fits
from autoscaler.planning.demand.bundles import bundles_of, classes_of
from autoscaler.planning.demand.demand import pending_pods
from autoscaler.planning.demand.scope import Scopes
from autoscaler.planning.placement.device_states import Filled, claims_apart
from autoscaler.planning.placement.equal_nodes import EqualNodes
from autoscaler.planning.placement.packing_input import PackingInput, build_packing_input
from autoscaler.planning.placement.trial import PackingOracle
from autoscaler.planning.planner import plan_for
from autoscaler.planning.policy import Policy
from autoscaler.planning.work import Ledger
from autoscaler.scheduling.node_state import NodeState
from autoscaler.scheduling.world import World
from instance_catalog.dataclass import replace
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.node_selector import Requirement
from instance_catalog.kubernetes.quantity import Quantity
from instance_catalog.kubernetes.resource_slice import NodeReach
from instance_catalog.types.catalog import Catalog
from tests.builders import GPU, NOW, shipped, snapshot
from tests.properties.equal_nodes import scheduled_once

CATALOG = shipped("g6.12xlarge", "p4d.24xlarge")
# Types of which some publish devices that differ in names of unknown values only.
ALIKE = shipped("g5.12xlarge", "g5.24xlarge", "p3.8xlarge", "n1-standard-16+4xnvidia-tesla-v100")
DRIVERS = ("nvidia", "nvidia@v0.5.0:ConsumableShares=true:consumable-shares=4", "nvidia:DynamicMIG=true")
SERVED = DeviceClass(
    "whole", (Selector("device.driver == 'gpu.nvidia.com'"),), extended_resource_name="example.com/whole"
)
MIG = DeviceClass(
    "mig.nvidia.com",
    (Selector("device.driver == 'gpu.nvidia.com' && device.attributes['gpu.nvidia.com'].type == 'mig'"),),
)


@st.composite
def requests(draw: st.DrawFn, name: str) -> DeviceRequest:
    """Whole GPUs, parts of them, or a share of memory."""
    memory = draw(st.sampled_from([None, None, None, "4Gi", "10Gi", "4096Mi"]))
    least = draw(st.sampled_from(["", "", "", "20Gi", "30Gi"]))
    selector = f"device.capacity['gpu.nvidia.com'].memory.compareTo(quantity('{least}')) >= 0"
    return DeviceRequest(
        name,
        draw(st.sampled_from(["gpu.nvidia.com"] * 5 + ["mig.nvidia.com"] * 3 + ["missing"])),
        (Selector(selector),) if least else (),
        count=draw(st.integers(1, 3)),
        admin_access=draw(st.sampled_from([None, None, None, True])),
        capacity=FrozenMap({"memory": Quantity.parse(memory)}) if memory else None,
    )


@st.composite
def claims(draw: st.DrawFn, name: str) -> ResourceClaim:
    first = draw(requests("first"))
    second = FirstAvailable("second", (draw(requests("a")), draw(requests("b"))))
    wanted = draw(st.sampled_from([(first,), (first,), (second,), (first, second)]))
    matched = draw(st.sampled_from(["", "", "gpu.nvidia.com/productName", "resource.kubernetes.io/pcieRoot"]))
    constraints = (MatchAttribute(matched),) if matched else ()
    return ResourceClaim("default", name, wanted, constraints, uid=f"uid-{name}")


@st.composite
def worlds(draw: st.DrawFn) -> Snapshot:
    """Pods whose claims are often equal under other names, with little that is equal besides."""
    kinds = [draw(claims(f"kind{i}")) for i in range(draw(st.integers(1, 3)))]
    made: list[ResourceClaim] = []
    pods: list[Pod] = []
    for number in range(draw(st.integers(1, 8))):
        names: list[str] = []
        for kind in draw(st.lists(st.sampled_from(kinds), max_size=2)):
            names.append(f"c{len(made)}")
            made.append(ResourceClaim("default", names[-1], kind.requests, kind.constraints, uid=f"uid-{names[-1]}"))
            if draw(st.integers(0, 9)) == 0:
                made[-1] = replace(made[-1], allocation=Allocation((), None))
        shared = draw(st.sampled_from([None] * 6 + [claim.name for claim in made]))
        amounts = {
            "cpu": draw(st.sampled_from(["100m", "7", "7001m", "24", "40"])),
            **draw(st.sampled_from([{}, {}, {"memory": "15Gi"}, {"example.com/whole": "1"}])),
        }
        port = draw(st.sampled_from([(), (), (), (HostPort(8080, "TCP"),)]))
        pods.append(
            Pod(
                "default",
                f"p{number}",
                uid=f"uid-p{number}",
                containers=(
                    Container("main", FrozenMap({k: Quantity.parse(v) for k, v in amounts.items()}), host_ports=port),
                ),
                claims=tuple(PodClaim(name, name) for name in dict.fromkeys([*names, *([shared] if shared else [])])),
                node_selector=FrozenMap(draw(st.sampled_from([{}, {}, {"kubernetes.io/arch": "arm64"}]))),
            )
        )
    pools = tuple(CapacityPool(f"team-{number}", drivers=(driver,)) for number, driver in enumerate(DRIVERS))
    return snapshot(pods, made, classes=(GPU, MIG, SERVED), pools=pools)


def packing_of(state: Snapshot, catalog: Catalog = CATALOG) -> PackingInput:
    world = World.of(state, catalog.drivers.values())
    classes = classes_of(bundles_of(state.pods, state.claims), state)
    return build_packing_input(
        classes,
        world,
        state,
        catalog,
        scopes=Scopes.of(state, pending_pods(state), world.extended_resources),
        policy=Policy(),
        now=NOW,
        ledger=Ledger.of(classes, Policy()),
    )


def directly(packing: PackingInput, state: Snapshot) -> PackingOracle:
    ledger = Ledger.of(packing.classes, Policy())
    return PackingOracle(
        World.of(state, CATALOG.drivers.values()), packing.shapes, packing.classes, ledger, apart=False
    )


def filled(oracle: PackingOracle, shape: int, items: Sequence[int]) -> Iterator[Filled | None]:
    """The node after each of the items, None for one that it does not take."""
    state = oracle.empty(shape)
    for item in items:
        larger = oracle.put(state, item)
        assert larger is None or oracle.has_room(state, item)
        state = larger or state
        yield larger


def devices_in_use(state: Filled) -> dict[tuple[str, str], tuple[object, ...]]:
    return {
        pool: (use.exclusive, sorted(device for device, _ in use.shares), use.consumed)
        for pool, use in state.world.allocated.pools.items()
    }


def some(*counts: int, driver: str = "nvidia") -> PackingInput:
    """Pods that differ in CPU, each with a claim for so many GPUs."""
    made = [
        ResourceClaim("default", f"c{i}", (DeviceRequest("gpu", "gpu.nvidia.com", count=count),), uid=f"uid-c{i}")
        for i, count in enumerate(counts)
    ]
    pods = [
        Pod(
            "default",
            f"p{i}",
            uid=f"uid-p{i}",
            containers=(Container("main", FrozenMap({"cpu": Quantity.parse(f"{i + 1}00m")})),),
            claims=(PodClaim(f"c{i}", f"c{i}"),),
        )
        for i in range(len(counts))
    ]
    packing = packing_of(snapshot(pods, made, pools=(CapacityPool("team", drivers=(driver,)),)))
    assert len(packing.classes) == len(pods)
    return packing


def test_equal_nodes_are_scheduled_once_and_as_if_each_were(monkeypatch: pytest.MonkeyPatch) -> None:
    """24 pods of two kinds on nodes of four GPUs: the plan is that of scheduling every pod on its own."""
    counts = [1, 1, 2] * 8
    made = [
        ResourceClaim("default", f"c{i}", (DeviceRequest("gpu", "gpu.nvidia.com", count=count),), uid=f"uid-c{i}")
        for i, count in enumerate(counts)
    ]
    box = Container("main", FrozenMap({"cpu": Quantity.parse("7")}))
    pods = [
        Pod("default", f"p{i}", uid=f"p{i}", containers=(box,), claims=(PodClaim("gpu", f"c{i}"),)) for i in range(24)
    ]
    pools = (CapacityPool("team", drivers=("nvidia",)),)
    state = snapshot(pods, made, classes=(GPU,), pools=pools)
    once, repeats = scheduled_once(state, CATALOG, monkeypatch)
    assert sum(repeats) >= 3
    assert len(once.placements) == 24


def test_devices_that_several_nodes_reach_are_given_out_once() -> None:
    packing = some(1, 1)
    first = claims_apart(packing.classes[0].members[0], packing.trials.empty(0).world, {})
    assert first is not None
    candidate = packing.candidates[0]
    for pool, count in (("node-1", 1), ("rack", 0)):
        got = Allocation((AllocatedDevice("gpu", "gpu.nvidia.com", pool, "gpu-0"),))
        one = EqualNodes(packing.trials.empty(0).world)
        fresh = packing.shapes[0].node
        one.remember(
            candidate,
            (first,),
            NodeState.of(replace(fresh, name="node-1")),
            [Fits(FrozenMap({first.claims[0].key: got}))],
        )
        again = one.repeated(candidate, (first,), "node-2")
        assert len(again or []) == count


def test_pods_that_differ_in_amounts_repeat_each_other_where_a_node_has_them() -> None:
    packing = some(1, 1)
    world = packing.trials.empty(0).world
    fresh = NodeState.of(replace(packing.shapes[0].node, name="node-1"))
    numbers = EqualNodes(world)
    small, large = (numbers.apart(found.members) for found in packing.classes)
    assert small is not None
    assert large is not None
    assert small[0].amounts != large[0].amounts
    got = Allocation((AllocatedDevice("gpu", "gpu.nvidia.com", "node-1", "gpu-0"),))
    numbers.remember(packing.candidates[0], small, fresh, [Fits(FrozenMap({small[0].claims[0].key: got}))])
    (repeated,) = numbers.repeated(packing.candidates[0], large, "node-2") or ()
    (device,) = repeated.allocations[large[0].claims[0].key].devices
    assert (device.pool, device.device) == ("node-2", "gpu-0")
    too_large = replace(large[0], amounts={**large[0].amounts, "cpu": fresh.free("cpu") + 1})
    assert numbers.repeated(packing.candidates[0], (too_large,), "node-2") is None


def test_devices_beside_a_fresh_node_count_as_well() -> None:
    """Four GPUs of its own and one that every node reaches: five are not too many."""
    state = some(5).snapshot
    own = packing_of(state).shapes[0].sample.slices[0]
    pool, one = replace(own.pool, name="rack"), own.devices[:1]
    anywhere = replace(own, name="rack", pool=pool, reach=NodeReach(all_nodes=True), devices=one)
    packing = packing_of(replace(state, slices=(anywhere,)))
    assert packing_of(state).trials.takes(0, 0) is False
    assert packing.trials.takes(0, 0) is True
    assert packing.trials.has_room(packing.trials.empty(0), 0)


def test_devices_that_are_only_watched_are_not_counted() -> None:
    whole = DeviceRequest("a", "gpu.nvidia.com", count=2)
    watched = DeviceRequest("b", "gpu.nvidia.com", admin_access=True)
    either = FirstAvailable("c", (replace(whole, name="d", count=3), replace(whole, name="e", count=1)))
    claim = ResourceClaim("default", "c0", (whole, watched, either), uid="uid-c0")
    pod = Pod("default", "p0", uid="p0", claims=(PodClaim("c0", "c0"),))
    state = snapshot([pod], [claim], classes=(GPU,))
    bundle = bundles_of(state.pods, state.claims)[0]
    found = claims_apart(bundle, World.of(state, CATALOG.drivers.values()), {})
    assert found is not None
    assert found.devices == 2 + 0 + 1


def test_equal_claims_under_other_names_are_asked_once() -> None:
    packing = some(1, 1, 1)
    empty = packing.trials.empty(0)
    assert list(filled(packing.trials, 0, [0, 1])).count(None) == 0
    assert empty.devices is not None
    assert len(empty.devices.steps) == 1
    verdict = packing.trials.explained(0, 2)
    assert isinstance(verdict, Fits)
    assert list(verdict.allocations) == ["default/c2"]


def test_shares_are_named_after_their_own_claim() -> None:
    packing = some(1, 1, driver=DRIVERS[1])
    for item in range(2):
        verdict = packing.trials.explained(0, item)
        assert isinstance(verdict, Fits)
        (device,) = verdict.allocations[f"default/c{item}"].devices
        assert device.share_id == f"uid-c{item}/0"


def test_devices_used_otherwise_are_another_state() -> None:
    """Four GPUs: three more fit beside one, and not beside two."""
    packing = some(1, 2, 3)
    assert [state is not None for state in filled(packing.trials, 0, [0, 2])] == [True, True]
    assert [state is not None for state in filled(packing.trials, 0, [1, 2])] == [True, False]


@pytest.mark.parametrize("cpu", ["100m", "200m"])
def test_a_daemon_may_keep_a_pod_away_whose_equals_it_lets_in(cpu: str) -> None:
    """What selects a node is equal, the labels are not; with equal CPU the two would even be one class."""
    state = some(1, 1).snapshot
    pods = [
        replace(
            pod,
            containers=(Container("main", FrozenMap({"cpu": Quantity.parse(amount)})),),
            labels=FrozenMap(labels),
        )
        for pod, amount, labels in zip(state.pods, ("100m", cpu), ({}, {"app": "noisy"}), strict=True)
    ]
    away = PodAffinityTerm(
        LabelSelector((Requirement("app", "In", ("noisy",)),)), "kubernetes.io/hostname", ("default",)
    )
    guard = Pod("default", "guard", uid="uid-guard", pod_anti_affinity=(away,))
    packing = packing_of(replace(state, pods=tuple(pods), daemon_sets=(DaemonSet("default", "guard", guard),)))
    assert [type(packing.trials.verdict(0, item)) for item in range(len(packing.classes))] == [Fits, DoesNotFit]


def test_what_selects_nodes_is_asked_on_a_node_that_is_filled() -> None:
    """The search puts classes on filled nodes that it never tried on an empty one."""
    state = some(1, 1).snapshot
    elsewhere = replace(state.pods[1], node_selector=FrozenMap({"kubernetes.io/arch": "arm64"}))
    packing = packing_of(replace(state, pods=(state.pods[0], elsewhere)))
    assert [found is not None for found in filled(packing.trials, 0, [0, 1])] == [True, False]


def test_amounts_are_asked_for_every_pod() -> None:
    """Equal claims, of which the second one fits only where the CPU suffices."""
    state = some(1, 1)
    pods = [replace(c.sample.pods[0], containers=()) for c in state.classes]
    greedy = replace(pods[0], containers=(Container("main", FrozenMap({"cpu": Quantity.parse("30")})),))
    other = replace(pods[1], containers=(Container("main", FrozenMap({"cpu": Quantity.parse("30001m")})),))
    packing = packing_of(replace(state.snapshot, pods=(greedy, other)))
    assert [found is not None for found in filled(packing.trials, 0, [0, 1])] == [True, False]
    assert [found is not None for found in filled(packing.trials, 0, [1])] == [True]


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(worlds(), st.data())
def test_remembered_answers_are_those_of_the_direct_way(state: Snapshot, data: st.DataObject) -> None:
    packing = packing_of(state)
    assert len(packing.shapes) >= len(DRIVERS)
    compare_ways(packing, state, data)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(worlds(), st.data())
def test_machines_with_like_devices_give_the_answers_of_each(state: Snapshot, data: st.DataObject) -> None:
    """Of the direct way every type is asked with its own devices."""
    packing = packing_of(state, ALIKE)
    plain = [shape for shape in packing.shapes if shape.candidate.profiles == ("nvidia",)]
    assert len({id(shape.signature) for shape in plain}) < len(plain)
    compare_ways(packing, state, data)


def compare_ways(packing: PackingInput, state: Snapshot, data: st.DataObject) -> None:
    """What is known of shapes and filled nodes is what the direct way says."""
    direct = directly(packing, state)
    for shape in range(len(packing.shapes)):
        for item in range(len(packing.classes)):
            assert packing.trials.takes(shape, item) == isinstance(direct.verdict(shape, item), Fits)
            assert packing.trials.explained(shape, item) == direct.explained(shape, item)
        left = [item for item, found in enumerate(packing.classes) for _ in found.members]
        for order in (data.draw(st.permutations(left)) for _ in range(3)):
            assert packing.trials.holds(shape, order[:3]) == (None not in list(filled(direct, shape, order[:3])))
            for apart, whole in zip(filled(packing.trials, shape, order), filled(direct, shape, order), strict=True):
                assert (apart is None) == (whole is None)
                if apart is None or whole is None:
                    continue
                assert apart.preference == whole.preference
                assert apart.units == whole.units
                assert packing.trials.full(apart) == direct.full(whole)
                name = packing.shapes[shape].node.name
                assert apart.world.nodes[name].used == whole.world.nodes[name].used
                assert devices_in_use(apart) == devices_in_use(whole)


@given(worlds())
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_a_pod_whose_halves_depend_on_each_other_is_not_divided(state: Snapshot) -> None:
    world = World.of(state)
    for bundle in bundles_of(state.pods, state.claims):
        apart = claims_apart(bundle, world, {})
        coupled = (
            len(bundle.pods) > 1
            or any(world.claims[f"default/{entry.claim}"].allocation for entry in bundle.pods[0].claims)
            or any(container.host_ports for container in bundle.pods[0].containers)
            or any("example.com/whole" in container.requests for container in bundle.pods[0].containers)
        )
        assert apart is None or not coupled


@settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(state=worlds())
def test_plans_are_those_of_scheduling_every_node(state: Snapshot) -> None:
    with pytest.MonkeyPatch.context() as patch:
        once = plan_for(state, CATALOG, Policy(), NOW)
        patch.setattr(EqualNodes, "repeated", lambda *_: None)
        assert plan_for(state, CATALOG, Policy(), NOW) == once

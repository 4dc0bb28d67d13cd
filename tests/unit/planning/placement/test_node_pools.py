"""Gangs that ask for a node pool of GKE of their own: a TPU slice of several hosts is one, whoever serves its chips."""

from __future__ import annotations

import pytest

from autoscaler.model.capacity import CapacityPool, Mode, NodeTemplateRef, PodScope, Scope
from autoscaler.model.gang import Gang
from autoscaler.model.labels import LabelSelector
from autoscaler.model.node import Node
from autoscaler.model.pod import Container, GangRef, Pod, PodAffinityTerm
from autoscaler.model.reason import Code
from autoscaler.model.snapshot import DaemonSet, Snapshot
from instance_catalog.dataclass import replace
from instance_catalog.drivers.profile import parse_driver_set
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes import labels
from instance_catalog.kubernetes.node_selector import Requirement
from instance_catalog.kubernetes.quantity import Quantity
from tests.builders import TEAM, claim, gang, gpus, pairs, plan, pod, shipped, snapshot, types, why_left

SLICE = FrozenMap({labels.GKE_TPU_ACCELERATOR: "tpu-v6e-slice", labels.GKE_TPU_TOPOLOGY: "4x4"})
CHIPS = Container("main", FrozenMap({"google.com/tpu": Quantity.of(4)}))
CATALOG = shipped("ct6e-standard-4t", "ct6e-standard-8t", "a2-highgpu-1g")
TEN = Quantity.of(10)
ALL = Scope(pods=PodScope.ALL)
OBSERVING = CapacityPool("tpu", scope=ALL)
ACTING = CapacityPool("tpu", Mode.ACT, scope=ALL)


def jobs(*sizes: int, key: str | None = labels.GKE_NODE_POOL) -> tuple[list[Pod], FrozenMap[str, Gang]]:
    """The pods of child Jobs, each Job a gang in a topology domain; each pod takes a host."""
    pods = [
        replace(pod(f"j{job}-{i}", node_selector=SLICE), containers=(CHIPS,), gang=GangRef("default", f"j{job}"))
        for job, size in enumerate(sizes)
        for i in range(size)
    ]
    gangs = {f"default/j{job}": Gang("default", f"j{job}", "Job", size, key) for job, size in enumerate(sizes)}
    return pods, FrozenMap(gangs)


def state(*sizes: int, pool: CapacityPool = OBSERVING, key: str | None = labels.GKE_NODE_POOL) -> Snapshot:
    pods, gangs = jobs(*sizes, key=key)
    return snapshot(pods, gangs=gangs, pools=(pool,))


@pytest.mark.parametrize("sizes", [(4,), (4, 4), (2, 4, 3)])
def test_each_job_gets_a_slice_of_its_own(sizes: tuple[int, ...]) -> None:
    found = plan(state(*sizes), catalog=CATALOG)
    assert types(found) == ["ct6e-standard-4t"] * (4 * len(sizes))
    nodes = {place.pod: place.node for place in found.placements}
    assert len(nodes) == sum(sizes) == len({*nodes.values()})


def test_a_job_that_is_larger_than_a_slice_does_not_fit_and_needs_no_capacity_block() -> None:
    found = plan(state(5), catalog=CATALOG)
    assert found.launches == ()
    assert why_left(found, "j0-0") == [Code.GANG_INCOMPLETE, Code.GANG_TOPOLOGY]


@pytest.mark.parametrize(("implicit", "placed"), [(True, 2), (False, 0)])
def test_a_new_node_pool_is_promised_only_where_somebody_has_yet_to_make_one(*, implicit: bool, placed: int) -> None:
    """A pool that is there decides itself which node pool its nodes join: by spec.labels."""
    wanted = [replace(one, node_selector=FrozenMap({}), containers=(Container("c"),)) for one in jobs(2)[0]]
    given = snapshot(wanted, gangs=jobs(2)[1], pools=(replace(OBSERVING, implicit=implicit),))
    assert len(plan(given, catalog=shipped("a2-highgpu-1g")).placements) == placed


@pytest.mark.parametrize(
    ("pool", "nodes"),
    [
        (OBSERVING, 4),
        (ACTING, 0),  # no provider makes all hosts or none
        (replace(ACTING, node_template=NodeTemplateRef("KwokNodeTemplate", "k")), 4),
        (replace(ACTING, node_template=NodeTemplateRef("GCPNodeTemplate", "g")), 4),
    ],
)
def test_a_pool_that_launches_gets_no_slices_unasked(pool: CapacityPool, nodes: int) -> None:
    found = plan(state(4, pool=pool, key=None), catalog=CATALOG)
    assert len(found.launches) == nodes
    if not nodes:
        assert Code.SLICE_NOT_LAUNCHED in why_left(found, "j0-0")


@pytest.mark.parametrize("plugin", [True, False])
def test_a_device_plugin_beside_the_driver_of_other_machines(*, plugin: bool) -> None:
    """The DRA driver that runs has nothing on TPU machines; a plugin that runs does."""
    driver = DaemonSet("gpu", "driver", pod("driver"), drivers=parse_driver_set("nvidia"))
    chips = DaemonSet("kube-system", "plugin", pod("plugin"), device_plugin="tpu.google.com")
    given = replace(state(4, key=None), daemon_sets=(driver, *([chips] if plugin else [])))
    assert len(plan(given, catalog=CATALOG).launches) == (4 if plugin else 0)


@pytest.mark.parametrize("home", ["us-east-1a", "us-east-1c"])
def test_a_retry_does_not_take_a_gang_out_of_its_zone(home: str) -> None:
    """A pod of more importance goes to the zone in which the gang runs, and the other members keep away from it."""
    away = PodAffinityTerm(LabelSelector((Requirement("app", "In", ("y",)),)), labels.ZONE, ("default",))
    pods, claims = pairs(4, gpus(), gang="train", pod_anti_affinity=(away,))
    running = pod("running", gang="train", node_name="n1", phase="Running")
    here = FrozenMap({labels.ZONE: home})
    other = pod("y", "y-c", priority=10, node_selector=here, labels=FrozenMap({"app": "y"}))
    zones = Requirement(labels.ZONE, "In", ("us-east-1a", "us-east-1b", "us-east-1c"))
    found = plan(
        snapshot(
            [*pods, running, other],
            [*claims, claim("y-c")],
            gangs=gang("train", 5, labels.ZONE),
            nodes=(Node("n1", labels=here),),
            pools=(replace(TEAM, requirements=(zones,)),),
        )
    )
    assert {node.offering.zone for node in found.launches} == {home}


def exclusive(*names: str, key: str, cpu: str = "1") -> tuple[list[Pod], FrozenMap[str, Gang]]:
    """Gangs of one pod that keep each other out of their domain, as child Jobs of a JobSet with exclusive topology."""
    pods = []
    for name in names:
        others = LabelSelector((Requirement("job", "Exists"), Requirement("job", "NotIn", (name,))))
        away = PodAffinityTerm(others, key, ("default",))
        pods.append(pod(name, cpu=cpu, gang=name, labels=FrozenMap({"job": name}), pod_anti_affinity=(away,)))
    return pods, FrozenMap({f"default/{name}": Gang("default", name, "Job", 1, key) for name in names})


def of_group(name: str, key: str) -> CapacityPool:
    return CapacityPool(name, scope=ALL, labels=FrozenMap({key: name}))


@pytest.mark.parametrize("key", [labels.GKE_NODE_POOL, "pool"])
@pytest.mark.parametrize("repels", [("x", "y"), ("x",), ("y",)])
def test_gangs_that_keep_out_of_each_others_group_get_one_each(key: str, repels: tuple[str, ...]) -> None:
    """Also where only the one of them, placed first or second, says so."""
    pods, gangs = exclusive("x", "y", key=key)
    pods = [one if one.name in repels else replace(one, pod_anti_affinity=()) for one in pods]
    given = snapshot(pods, gangs=gangs, pools=(of_group("a", key), of_group("b", key)))
    found = plan(given, catalog=shipped("a2-highgpu-1g"))
    assert {node.pool for node in found.launches} == {"a", "b"}
    assert len(found.placements) == 2


def test_gangs_that_may_share_a_group_share_it() -> None:
    pods, gangs = exclusive("x", "y", key="pool")
    pods = [replace(one, pod_anti_affinity=()) for one in pods]
    given = snapshot(pods, gangs=gangs, pools=(of_group("a", "pool"), of_group("b", "pool")))
    assert {node.pool for node in plan(given, catalog=shipped("a2-highgpu-1g")).launches} == {"a"}


def test_a_gang_without_a_group_for_itself_has_the_reason() -> None:
    pods, gangs = exclusive("x", "y", key="pool")
    found = plan(snapshot(pods, gangs=gangs, pools=(of_group("a", "pool"),)), catalog=shipped("a2-highgpu-1g"))
    assert len(found.launches) == 1
    assert Code.POD_ANTI_AFFINITY in why_left(found, "y")


def test_a_gang_keeps_out_of_a_group_where_another_gets_a_node_that_is_there() -> None:
    """The node that is there has room for one of them."""
    pods, gangs = exclusive("x", "y", key="pool", cpu="3")
    there = Node("n", labels=FrozenMap({"pool": "a"}), allocatable=FrozenMap({"cpu": Quantity.of(4), "pods": TEN}))
    given = snapshot(pods, gangs=gangs, nodes=(there,), pools=(of_group("a", "pool"), of_group("b", "pool")))
    found = plan(given, catalog=shipped("a2-highgpu-1g"))
    assert [node.pool for node in found.launches] == ["b"]
    assert len(found.placements) == 2

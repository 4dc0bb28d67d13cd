"""Before buying: each check finds what is wrong, says it of the right object, and holds the pool back."""

from __future__ import annotations

from typing import Any

import pytest

from autoscaler.checks.check import held_back, pool_conditions
from autoscaler.checks.drivers import missing_drivers
from autoscaler.checks.nodes import NodeToBe
from autoscaler.checks.pool_condition import ConditionType, PoolCondition
from autoscaler.model.capacity import CapacityPool, Mode, NodeTemplateRef, PodScope, Scope
from autoscaler.model.node import Node
from autoscaler.model.other_autoscalers import Autoscaler, AutoscalerKind, Quota
from autoscaler.model.plan import Plan
from autoscaler.model.provisioned_node import ProvisionedNode
from autoscaler.model.reason import Code
from autoscaler.model.snapshot import DaemonSet, Snapshot
from autoscaler.planning.policy import Policy
from autoscaler.report.checks_text import verdict_of
from instance_catalog.dataclass import replace
from instance_catalog.drivers.profile import DriverSet, parse_driver_set
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes import labels
from instance_catalog.kubernetes.resource_slice import Device, NodeReach, Pool, ResourceSlice
from instance_catalog.kubernetes.taint import Taint, Toleration
from tests.builders import CATALOG, NOW, claim, ours, plan, pod, snapshot

KWOK = NodeTemplateRef("KwokNodeTemplate", "k")
POOL = CapacityPool("team", mode=Mode.ACT, node_template=NodeTemplateRef("AwsNodeTemplate", "a"), drivers=("nvidia",))
GPU_TAINT = Taint("nvidia.com/gpu", "", "NoSchedule")
TOLERATES_GPU = (Toleration("nvidia.com/gpu", "Exists"),)
PRESENT = FrozenMap({labels.NVIDIA_GPU_PRESENT: "true"})
GKE = Node("system-1", labels=FrozenMap({labels.GKE_NODE_POOL: "default"}))
CRITICAL = 2_000_001_000


def driver(profiles: str = "nvidia", *, namespace: str = "dra", **template: Any) -> DaemonSet:
    fields = {"node_selector": PRESENT, "tolerations": TOLERATES_GPU} | template
    return DaemonSet(namespace, "plugin", pod("plugin", **fields), drivers=parse_driver_set(profiles))


def device_plugin(**template: Any) -> DaemonSet:
    return DaemonSet("kube-system", "plugin", pod("plugin", **template), device_plugin="gpu.nvidia.com")


def checked(state: Snapshot, condition: ConditionType) -> PoolCondition:
    """The finding about pool "team"."""
    decided = plan(state)
    found = pool_conditions(state, decided, CATALOG, policy=Policy(), now=NOW)
    return next(f for f in found if (f.pool, f.type) == ("team", condition))


def state(*daemon_sets: DaemonSet, pool: CapacityPool = POOL, demand: bool = True, **fields: Any) -> Snapshot:
    """A pod that wants a GPU, and the pool; the DaemonSets by key as in a snapshot."""
    pods, claims = ([pod("p", "c", tolerations=TOLERATES_GPU)], [claim("c")]) if demand else ([], [])
    return snapshot(pods, claims, pools=(pool,), daemon_sets=daemon_sets, **fields)


def codes(finding: PoolCondition) -> list[Code]:
    return [reason.code for reason in finding.reasons]


@pytest.mark.parametrize("demand", [True, False], ids=["planned", "nothing-planned"])
@pytest.mark.parametrize(
    ("daemon_sets", "pool", "found"),
    [
        pytest.param((driver(),), POOL, [], id="it-runs"),
        pytest.param((), POOL, [Code.NO_DRIVER], id="no-daemon-set"),
        pytest.param((driver("dranet"),), POOL, [Code.NO_DRIVER], id="another-driver"),
        pytest.param((), replace(POOL, drivers=()), [Code.NO_DRIVER, Code.NO_DRIVER], id="auto-and-nothing-runs"),
        pytest.param((), replace(POOL, node_template=KWOK), [], id="kwok-publishes-itself"),
        pytest.param(
            (driver(node_selector=FrozenMap({"gpu": "yes"})),), POOL, [Code.DRIVER_NEEDS_LABEL], id="label-missing"
        ),
        pytest.param(
            (driver(node_selector=FrozenMap({"gpu": "yes"})),),
            replace(POOL, labels=FrozenMap({"gpu": "yes"})),
            [],
            id="label-of-the-pool",
        ),
        pytest.param((driver(),), replace(POOL, taints=(GPU_TAINT,)), [], id="taint-tolerated"),
        pytest.param(
            (driver(tolerations=()),), replace(POOL, taints=(GPU_TAINT,)), [Code.DRIVER_REFUSES_TAINT], id="taint"
        ),
        pytest.param(
            (driver(),),
            replace(POOL, startup_taints=(Taint("warming", "", "NoSchedule"),)),
            [Code.DRIVER_REFUSES_STARTUP_TAINT],
            id="startup-taint",
        ),
        pytest.param((driver(),), replace(POOL, startup_taints=(GPU_TAINT,)), [], id="startup-taint-tolerated"),
    ],
)
def test_drivers_will_run(
    daemon_sets: tuple[DaemonSet, ...], pool: CapacityPool, found: list[Code], demand: bool
) -> None:
    finding = checked(state(*daemon_sets, pool=pool, demand=demand), ConditionType.DRIVERS_WILL_RUN)
    assert codes(finding) == found
    assert finding.status == str(not found)


@pytest.mark.parametrize(
    ("namespace", "quotas", "node", "good"),
    [
        pytest.param("dra", (), GKE, False, id="gke-without-quota"),
        pytest.param("dra", (Quota("dra", "q", ("system-node-critical",)),), GKE, True, id="gke-with-quota"),
        pytest.param("dra", (Quota("dra", "q", ("system-node-critical",), 0),), GKE, False, id="quota-of-nothing"),
        pytest.param("dra", (Quota("dra", "q", ("web",)),), GKE, False, id="quota-of-another-class"),
        pytest.param("dra", (Quota("web", "q", ("system-node-critical",)),), GKE, False, id="quota-elsewhere"),
        pytest.param("kube-system", (), GKE, True, id="kube-system-needs-none"),
        pytest.param("dra", (), Node("n"), True, id="other-clouds-need-none"),
    ],
)
def test_gke_wants_a_quota_for_critical_pods(namespace: str, quotas: tuple[Quota, ...], node: Node, good: bool) -> None:
    there = driver(namespace=namespace, priority=CRITICAL)
    finding = checked(state(there, quotas=quotas, nodes=(node,)), ConditionType.DRIVERS_WILL_RUN)
    assert codes(finding) == ([] if good else [Code.NO_QUOTA])


OPERATOR_LABEL = f"{labels.NVIDIA_DEPLOY_PREFIX}device-plugin"


@pytest.mark.parametrize(
    ("plugin", "pool", "conflict"),
    [
        pytest.param(device_plugin(), POOL, True, id="it-runs-everywhere"),
        pytest.param(device_plugin(node_selector=FrozenMap({"old": "yes"})), POOL, False, id="kept-off-by-a-label"),
        pytest.param(
            device_plugin(node_selector=FrozenMap({OPERATOR_LABEL: "true"})), POOL, True, id="the-operator-labels-nodes"
        ),
        pytest.param(
            device_plugin(node_selector=FrozenMap({OPERATOR_LABEL: "true"})),
            replace(POOL, labels=FrozenMap({OPERATOR_LABEL: "false"})),
            False,
            id="the-pool-forbids-it",
        ),
        pytest.param(replace(device_plugin(), device_plugin="gpu.amd.com"), POOL, False, id="of-another-driver"),
    ],
)
def test_device_plugin_conflict(plugin: DaemonSet, pool: CapacityPool, conflict: bool) -> None:
    finding = checked(state(driver(), plugin, pool=pool), ConditionType.DEVICE_PLUGIN_CONFLICT)
    assert finding.status == str(conflict)
    assert codes(finding) == ([Code.DEVICE_PLUGIN_RUNS] if conflict else [])


KARPENTER = Autoscaler(AutoscalerKind.KARPENTER, "karpenter", "karpenter", claims=True)
CA = Autoscaler(AutoscalerKind.CLUSTER_AUTOSCALER, "kube-system", "ca", claims=True)
GPU_NODE = Node("gpu-1")
SLICES = (ResourceSlice("s", "d", Pool("gpu-1"), (Device("gpu-0"),), NodeReach(node_name="gpu-1")),)
EVERY_POD = replace(POOL, scope=Scope(PodScope.ALL))


@pytest.mark.parametrize(
    ("other", "pool", "fields", "alone"),
    [
        pytest.param(replace(KARPENTER, claims=False), POOL, {}, True, id="karpenter-ignores-claims"),
        pytest.param(KARPENTER, POOL, {}, False, id="karpenter-with-dra"),
        pytest.param(replace(KARPENTER, claims=False), EVERY_POD, {}, False, id="every-pod-and-karpenter"),
        pytest.param(CA, POOL, {}, True, id="ca-that-never-saw-a-device"),
        pytest.param(CA, POOL, {"nodes": (GPU_NODE,), "slices": SLICES}, False, id="ca-with-a-group-of-gpu-nodes"),
        pytest.param(
            CA,
            POOL,
            {"nodes": (GPU_NODE,), "slices": SLICES, "provisioned": (ours("gpu-1"),)},
            True,
            id="those-nodes-are-ours",
        ),
        pytest.param(replace(KARPENTER, schedulers=("web",)), POOL, {}, True, id="limited-to-another-scheduler"),
    ],
)
def test_coexistence(other: Autoscaler, pool: CapacityPool, fields: dict[str, Any], alone: bool) -> None:
    finding = checked(state(driver(), pool=pool, autoscalers=(other,), **fields), ConditionType.COEXISTENCE)
    assert finding.status == str(alone)
    assert codes(finding) == ([] if alone else [Code.OTHER_AUTOSCALER])


OLD = Node("n", labels=FrozenMap({labels.POOL: "team"}), provider_id="cloud://1", created=NOW.timestamp() - 3600)


@pytest.mark.parametrize(
    ("node", "provisioned", "told"),
    [
        pytest.param(OLD, (), True, id="of-somebody"),
        pytest.param(OLD, (ours("n"),), False, id="ours-by-name"),
        pytest.param(OLD, (replace(ours("m"), provider_id="cloud://1"),), False, id="ours-by-machine"),
        pytest.param(replace(OLD, created=NOW.timestamp() - 60), (), False, id="perhaps-ours"),
        pytest.param(replace(OLD, deleting=True), (), False, id="on-its-way-out"),
        pytest.param(replace(OLD, labels=FrozenMap({labels.POOL: "other"})), (), False, id="of-another-pool"),
        pytest.param(replace(OLD, labels=FrozenMap()), (), False, id="of-no-pool"),
        pytest.param(replace(OLD, provider_id=""), (ours("m"),), True, id="without-a-machine"),
    ],
)
def test_nodes_of_a_pool_that_others_started_are_told_and_the_pool_acts(
    node: Node, provisioned: tuple[ProvisionedNode, ...], told: bool
) -> None:
    before = state(driver(), nodes=(node,), provisioned=provisioned)
    finding = checked(before, ConditionType.COEXISTENCE)
    assert codes(finding) == ([Code.FOREIGN_NODES] if told else [])
    assert all(pool.acts for pool in held_back(before, (finding,)).pools)
    if told:
        assert verdict_of(finding)[2].startswith(
            "nodes with the pool's label that Foreslice has not started: 1, such as n"
        )


def test_a_pool_with_a_bad_finding_only_proposes_and_others_act() -> None:
    other = replace(POOL, name="other", node_template=KWOK)
    before = replace(state(), pools=(other, POOL))
    found = pool_conditions(before, Plan(), CATALOG, policy=Policy(), now=NOW)
    after = held_back(before, found)
    assert {pool.name: pool.acts for pool in after.pools} == {"other": True, "team": False}
    assert all(pool.mode is Mode.ACT for pool in after.pools)
    # What was put right lets it act again.
    assert [pool.acts for pool in held_back(after, ()).pools] == [True, True]


def test_without_pools_there_is_nothing_to_check() -> None:
    assert pool_conditions(snapshot([]), Plan(), CATALOG, policy=Policy(), now=NOW) == ()


def test_a_condition_says_what_to_change() -> None:
    finding = checked(state(), ConditionType.DRIVERS_WILL_RUN)
    status, reason, message = verdict_of(finding)
    assert (status, reason) == ("False", "NoDriver")
    assert "install the driver" in message
    assert "example s1" in message
    good = checked(state(driver()), ConditionType.DEVICE_PLUGIN_CONFLICT)
    assert verdict_of(good) == ("False", "NoDevicePlugin", "no device plugin will run beside the drivers")


def test_a_driver_that_nobody_can_recognise_is_not_held_against_a_pool() -> None:
    known = parse_driver_set("nvidia").profiles[0]
    described = DriverSet((replace(known, name="ours", driver="gpu.ours.example"),))
    to_be = NodeToBe("s1", Node("n"), described)
    assert list(missing_drivers(POOL, to_be, snapshot([]))) == []

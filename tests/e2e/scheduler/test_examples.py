"""Each example from Pending to Running: with the planned nodes, the real kube-scheduler does what the plan says.

Same nodes, same devices, counted at the end of the run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import Final, TypeAlias

import pytest

from autoscaler.clock import SystemClock
from autoscaler.manifests.corrections import corrections_of
from autoscaler.manifests.load import Loaded, load
from autoscaler.manifests.plan_context import GATES
from autoscaler.model.plan import Placement, Plan, PlannedNode
from autoscaler.model.pod import Pod
from autoscaler.planning.planner import plan_for
from autoscaler.planning.policy import Policy
from instance_catalog.dataclass import fields
from instance_catalog.files.loader import load_catalog
from instance_catalog.kubernetes.profile import REFERENCE, KubernetesProfile
from tests.e2e.harness.cluster import Cluster, Devices, workload_of
from tests.e2e.harness.control_plane import ControlPlane, Json
from tests.e2e.harness.machines import machine
from tests.e2e.harness.toolbox import Kwok

EXAMPLES: Final = sorted((Path(__file__).parents[3] / "docs/examples").glob("*.yaml"))
# One asks for what no type has, the others for a block that ends too soon and one that begins later: no matters of the
# scheduler.
IN_VAIN: Final = ("unsatisfiable", "block-too-short", "block-soon")
LATER: Final = ("cpu-devices",)  # for Kubernetes 1.37; the control plane here is 1.36
UNSATISFIABLE: Final = next(path for path in EXAMPLES if path.stem == "unsatisfiable")
MISSING_ATTRIBUTE: Final = Path(__file__).parent / "manifests/missing-attribute.yaml"
# Types and driver sets (see `machine`): whole GPUs of three makes, parts of them, TPUs, Trainium.
REPRESENTATIVES: Final = (
    ("p5.48xlarge", 0),
    ("p4d.24xlarge", 0),
    ("g6.12xlarge", 0),
    ("p5.48xlarge", -1),
    ("ct6e-standard-4t", 0),
    ("trn1.32xlarge", 0),
)
# What is unknown of a node before it is launched is decided once it is there.
REASONS: Final = {"does-not-fit": "Unschedulable", "unknown": "Unschedulable", "fatal": "SchedulerError"}
# The gang APIs are served behind a gate.
BEHIND_GATES: Final = {"GenericWorkload": "scheduling.k8s.io/v1alpha2"}

Shape: TypeAlias = tuple[str, tuple[str, ...]]  # instance type and driver profiles
Landing: TypeAlias = tuple[str, tuple[tuple[str, str, str], ...]]  # workload and devices of a pod
Outcome: TypeAlias = Counter[tuple[Shape, tuple[Landing, ...]]]  # nodes with what landed on them


@cache
def planned(path: Path) -> tuple[Loaded, Plan]:
    """What `foreslice plan` decides."""
    loaded = load([str(path)])
    assert loaded.ok, loaded.problems
    now = loaded.context.now or SystemClock().now()
    catalog = load_catalog(corrections=corrections_of(loaded.overlays, now))
    return loaded, plan_for(loaded.snapshot, catalog, Policy(), now)


def gates_of(profile: KubernetesProfile) -> frozenset[tuple[str, bool]]:
    """The gates that the example sets otherwise than Kubernetes does, by their Kubernetes names."""
    ours = {field.name: getattr(profile.gates, field.name) for field in fields(profile.gates)}
    usual = {field.name: getattr(REFERENCE.gates, field.name) for field in fields(REFERENCE.gates)}
    return frozenset((name, ours[switch]) for name, switch in GATES.items() if ours[switch] != usual[switch])


@pytest.fixture(scope="module")
def cluster_with(control_plane: ControlPlane) -> Iterator[Callable[[KubernetesProfile], Cluster]]:
    """Clusters by gates; each is started once."""
    with ExitStack() as stack:
        running: dict[frozenset[tuple[str, bool]], Cluster] = {}

        def cluster(profile: KubernetesProfile) -> Cluster:
            gates = gates_of(profile)
            if gates not in running:
                served = {BEHIND_GATES[name]: True for name, on in gates if on and name in BEHIND_GATES}
                fresh = ControlPlane(gates=dict(gates), served=served)
                running[gates] = Cluster(stack.enter_context(fresh) if gates else control_plane)
            running[gates].install_classes(profile)
            return running[gates]

        yield cluster


def documents_of(loaded: Loaded) -> list[Json]:
    return [document.value for document in loaded.documents]


def shape_of(node: PlannedNode) -> Shape:
    return node.offering.instance_type, node.drivers


def plan_outcome(loaded: Loaded, plan: Plan) -> Outcome:
    """What the plan expects, with interchangeable pods and interchangeable nodes made equal."""
    pods = {pod.key: pod for pod in loaded.snapshot.pods}
    on_node: dict[str, list[Landing]] = {node.name: [] for node in plan.launches}
    for placement in plan.placements:
        on_node[placement.node].append(landing(_workload(pods[placement.pod]), devices_in(placement)))
    return Counter((shape_of(node), tuple(sorted(on_node[node.name]))) for node in plan.launches)


def real_outcome(cluster: Cluster, plan: Plan, pods: list[Json]) -> Outcome:
    """The same for what the scheduler did."""
    on_node: dict[str, list[Landing]] = {node.name: [] for node in plan.launches}
    for pod in pods:
        on_node[pod["spec"]["nodeName"]].append(landing(workload_of(pod), cluster.devices_of(pod)))
    return Counter((shape_of(node), tuple(sorted(on_node[node.name]))) for node in plan.launches)


def landing(workload: str, devices: Devices) -> Landing:
    return workload, tuple(sorted(devices.elements()))


def devices_in(placement: Placement) -> Devices:
    return Counter(
        (device.request, device.driver, device.device)
        for allocation in placement.allocations.values()
        for device in allocation.devices
    )


def _workload(pod: Pod) -> str:
    return pod.owner or pod.name


def nominate(cluster: Cluster, loaded: Loaded, plan: Plan, pods: list[Json]) -> None:
    """Tell each pod's node; of pods of one workload it does not matter which is which."""
    owners = {pod.key: _workload(pod) for pod in loaded.snapshot.pods}
    waiting: dict[str, list[Json]] = {}
    for pod in pods:
        waiting.setdefault(workload_of(pod), []).append(pod)
    for placement in plan.placements:
        cluster.nominate(waiting[owners[placement.pod]].pop(), placement.node)


def agreeing(ours: Outcome, real: Outcome) -> Counter[str]:
    """How many pods landed on a node of the planned shape, and with the planned devices."""

    def pods_of(outcome: Outcome) -> Counter[tuple[Shape, Landing]]:
        return Counter((shape, pod) for (shape, landed), many in outcome.items() for pod in landed * many)

    def shapes(outcome: Outcome) -> Counter[tuple[Shape, str]]:
        return Counter((shape, workload) for shape, (workload, _) in pods_of(outcome).elements())

    return Counter(
        pods=pods_of(ours).total(),
        shape=(shapes(ours) & shapes(real)).total(),
        devices=(pods_of(ours) & pods_of(real)).total(),
    )


@pytest.mark.parametrize(
    "path", [path for path in EXAMPLES if path.stem not in (*IN_VAIN, *LATER)], ids=lambda path: path.stem
)
def test_the_scheduler_does_what_was_planned(
    path: Path, cluster_with: Callable[[KubernetesProfile], Cluster], agreement: Counter[str], tmp_path: Path
) -> None:
    loaded, plan = planned(path)
    assert plan.left_out == ()
    cluster = cluster_with(loaded.snapshot.profile)
    try:
        for document in documents_of(loaded):
            cluster.apply(document)
        nominate(cluster, loaded, plan, cluster.wait_for_pods(len(plan.placements)))
        for node in plan.launches:
            cluster.add_node(node.node, node.slices)
        ours, real = (
            plan_outcome(loaded, plan),
            real_outcome(cluster, plan, cluster.wait_until_bound(len(plan.placements))),
        )
        # Only now, so that nodes become ready when everything is published and not before.
        with Kwok(
            cluster.control_plane.identity("kwok", "system:masters"), tmp_path / "kwok.log", jobs_end=False
        ) as kwok:
            cluster.wait_until_running(kwok)
    finally:
        cluster.clear()
    agreement.update(agreeing(ours, real))
    assert real == ours


@pytest.mark.parametrize("path", [UNSATISFIABLE, MISSING_ATTRIBUTE], ids=lambda path: path.stem)
def test_the_scheduler_refuses_what_was_left_out(
    path: Path, cluster_with: Callable[[KubernetesProfile], Cluster]
) -> None:
    """With nodes of every kind there, the pods stay pending, for a reason of the class that the plan says."""
    loaded, plan = planned(path)
    assert plan.placements == ()
    cluster = cluster_with(loaded.snapshot.profile)
    machines = [machine(kind, f"node-{i}", variant=variant) for i, (kind, variant) in enumerate(REPRESENTATIVES)]
    try:
        for each in machines:
            cluster.add_node(each.node, each.slices)
        cluster.wait_until_ready(len(machines))
        for document in documents_of(loaded):
            cluster.apply(document)
        refused = cluster.wait_until_refused(len(plan.left_out))
    finally:
        cluster.clear()
    reasons = {f"default/{pod}": reason for pod, (reason, _) in refused.items()}
    assert reasons == {left.pod: REASONS[left.verdict] for left in plan.left_out}

"""Pods that wait for somebody else's capacity or scheduler: what lets a plan serve them."""

from __future__ import annotations

import pytest

from autoscaler.advice.advise import advise
from autoscaler.advice.change import ChangeKind
from autoscaler.advice.pool_opening import openings
from autoscaler.advice.situation import Situation
from autoscaler.advice.trial import Advice
from autoscaler.model.capacity import CapacityPool
from autoscaler.model.node import Node
from autoscaler.model.pod import Container, Pod
from autoscaler.model.requested_capacity import Condition, PodSet, ProvisioningRequest
from autoscaler.planning.planner import plan_for
from autoscaler.planning.policy import Policy
from autoscaler.report.tables.plan_summary import left_out_table
from instance_catalog.dataclass import replace
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes import labels
from instance_catalog.kubernetes.quantity import Quantity
from tests.builders import CATALOG, NOW, claim, gang, gpus, pod, shipped, snapshot
from tests.one_line_advice import advice_lines, change_text

CONSUMES = "cluster-autoscaler.kubernetes.io/consume-provisioning-request"


def changes(*pods: Pod) -> tuple[Advice, ...]:
    given, policy = snapshot(list(pods), [claim("c", gpus())]), Policy(considered=100)
    catalog = shipped("g6.xlarge", "g5.xlarge")
    return advise(given.pods[0], given, catalog, plan_for(given, catalog, policy, NOW), policy, NOW)


def test_a_pod_of_a_provisioning_request_is_planned_without_its_annotation() -> None:
    found = changes(pod("p", "c", annotations=FrozenMap({CONSUMES: "batch"})))
    assert [entry.change.kind for entry in found] == [ChangeKind.DROP_ANNOTATION]
    assert f"remove the annotation {CONSUMES}, so that a node is planned" in advice_lines(found)[0]


def test_nobody_is_told_to_leave_a_request_that_is_open() -> None:
    """Another autoscaler may bring its nodes at any moment."""
    waiting = pod("p", "c", annotations=FrozenMap({CONSUMES: "batch"}))
    request = ProvisioningRequest("default", "batch", "queued-provisioning.gke.io", pod_sets=(PodSet("t", 1),))
    given = replace(snapshot([waiting], [claim("c", gpus())]), provisioning_requests=(request,))
    catalog = shipped("g6.xlarge")
    plan = plan_for(given, catalog, Policy(), NOW)
    assert advise(given.pods[0], given, catalog, plan, Policy(), NOW) == ()
    over = replace(request, conditions=(Condition("Failed", "True", message="no capacity"),))
    given = replace(given, provisioning_requests=(over,))
    plan = plan_for(given, catalog, Policy(), NOW)
    found = advise(given.pods[0], given, catalog, plan, Policy(), NOW)
    assert [entry.change.kind for entry in found] == [ChangeKind.DROP_ANNOTATION]


CLASS = "autoscaling.x-k8s.io/provisioning-class-name"
OF_GKE = "queued-provisioning.gke.io"


@pytest.mark.parametrize(
    ("annotations", "there", "says"),
    [
        (
            {CLASS: OF_GKE},
            False,
            f"names ProvisioningRequest batch of class {OF_GKE}, which is not known: create it and",
        ),
        ({}, False, "names ProvisioningRequest batch, which is not known: create it, or remove the annotation"),
        (
            {CLASS: "check-capacity.autoscaling.x-k8s.io"},
            True,
            f"the class check-capacity.autoscaling.x-k8s.io, and the request is of class {OF_GKE}: correct",
        ),
        ({CLASS: OF_GKE}, True, "another autoscaler serves and has not answered yet"),
    ],
)
def test_what_is_said_of_the_request(annotations: dict[str, str], there: bool, says: str) -> None:
    waiting = pod("p", "c", annotations=FrozenMap({CONSUMES: "batch", **annotations}))
    request = ProvisioningRequest("default", "batch", OF_GKE, pod_sets=(PodSet("t", 1),))
    given = snapshot([waiting], [claim("c", gpus())])
    given = replace(given, provisioning_requests=(request,) if there else ())
    table = left_out_table(plan_for(given, CATALOG, Policy(), NOW))
    assert table is not None
    assert says in " ".join(" ".join(table.notes).split())


def test_what_it_selects_besides_shows_only_then() -> None:
    selector = FrozenMap({"resource-model": "l4", labels.ACCELERATOR: "nvidia-l4"})
    (found,) = changes(pod("p", "c", annotations=FrozenMap({CONSUMES: "batch"}), node_selector=selector))
    assert [part.kind for part in found.change.parts] == [ChangeKind.DROP_ANNOTATION, ChangeKind.ADD_LABELS]
    (line,) = advice_lines([found])
    assert "resource-model=l4 in spec.labels → 1 × g6.xlarge" in line
    assert "do not say which machines they mean" not in line, "its other label does"


def test_it_reads_as_waiting_not_as_one_that_fits_nowhere() -> None:
    given = snapshot([pod("p", "c", annotations=FrozenMap({CONSUMES: "batch"}))], [claim("c", gpus())])
    table = left_out_table(plan_for(given, CATALOG, Policy(), NOW))
    assert table is not None
    assert table.notes[0] == "default/p: waits (no node was tried)"


def test_the_device_plugin_is_that_of_all_pods_of_a_workload() -> None:
    """The first pod of an MPI job asks for no GPU; its workers do."""
    asking = (Container("main", FrozenMap({"nvidia.com/gpu": Quantity.parse("1"), "cpu": Quantity.parse("1")})),)
    master = pod("job-master", scheduler_name="volcano", owner="Job/train")
    worker = replace(pod("job-worker", scheduler_name="volcano", owner="Job/train"), containers=asking)
    given, catalog = snapshot([master, worker], []), shipped("g6.xlarge")
    asked = Situation.of(master, given, catalog, plan_for(given, catalog, Policy(), NOW))
    assert asked is not None
    first = change_text(next(openings(asked)))
    assert "volcano in spec.scope.schedulerNames" in first
    assert "run the device plugin of nvidia.com/gpu" in first


def test_a_gang_starts_with_those_of_its_pods_that_any_node_runs() -> None:
    """Left out of the trial, a leader that asks for no device would keep its workers from starting."""
    asking = (Container("main", FrozenMap({"google.com/tpu": Quantity.of(4)})),)
    leader = pod("w-0", gang="g", owner="LeaderWorkerSet/w")
    worker = replace(pod("w-0-1", gang="g", owner="LeaderWorkerSet/w"), containers=asking)
    given, catalog = snapshot([leader, worker], gangs=gang("g", 2)), shipped("ct6e-standard-4t")
    plan = plan_for(given, catalog, Policy(), NOW)
    (line,) = advice_lines(advise(worker, given, catalog, plan, Policy(), NOW, most=1))
    assert line.endswith("→ 1 × ct6e-standard-4t (on-demand), 10.80 $/h")


@pytest.mark.parametrize(
    ("resource", "type_name", "expected"),
    [
        (
            "google.com/tpu",
            "ct5lp-hightpu-1t",
            "spec.scope.pods All; (2) pod default/p: drop nodeSelector kubernetes.io/hostname=gpu-7 → 1 × ct5lp",
        ),
        ("aws.amazon.com/neuron", "inf2.xlarge", "foreslice.dev/accelerator In [aws-inferentia2"),
    ],
)
def test_the_name_of_a_node_that_is_not_there_is_dropped_with_what_opens_a_pool(
    resource: str, type_name: str, expected: str
) -> None:
    asking = (Container("main", FrozenMap({resource: Quantity.of(1)})),)
    one = replace(pod("p", node_selector=FrozenMap({labels.HOSTNAME: "gpu-7"})), containers=asking)
    given, catalog = snapshot([one], []), shipped(type_name)
    (line,) = advice_lines(advise(one, given, catalog, plan_for(given, catalog, Policy(), NOW), Policy(), NOW, most=1))
    assert expected in line
    assert "drop nodeSelector kubernetes.io/hostname=gpu-7" in line
    assert "hostPath" not in line


@pytest.mark.parametrize("there", [False, True])
def test_what_a_pod_mounts_of_its_node_is_missing_on_a_new_one(there: bool) -> None:
    """The change says so; the name of a node that is given is not dropped, because the data is there."""
    selector = FrozenMap({labels.HOSTNAME: "gpu-7"})
    one = pod("p", "c", node_selector=selector, host_paths=("/dev/shm", "/data"))
    nodes = (Node("gpu-7", labels=selector),) if there else ()
    given, catalog = replace(snapshot([one], [claim("c", gpus())]), nodes=nodes), shipped("g4dn.xlarge")
    found = advice_lines(advise(one, given, catalog, plan_for(given, catalog, Policy(), NOW), Policy(), NOW, most=1))
    assert len(found) == (0 if there else 1)
    for line in found:
        assert "drop nodeSelector kubernetes.io/hostname=gpu-7 → 1 × g4dn.xlarge" in line
        assert "; a new node does not have what is in /data (hostPath): put it on a file system that all nodes" in line


COMPUTE_CLASS = "cloud.google.com/compute-class"


@pytest.mark.parametrize(
    ("selected", "dropped"), [({COMPUTE_CLASS: "Accelerator"}, True), ({COMPUTE_CLASS: "small-gpus"}, False)]
)
@pytest.mark.parametrize("chips", [False, True])
def test_no_pool_of_your_own_has_a_class_that_gke_makes(selected: dict[str, str], dropped: bool, chips: bool) -> None:
    """Autopilot makes the nodes of these classes itself, so no group of yours has their label."""
    asked, catalog = pod("p", "c", node_selector=FrozenMap(selected)), shipped("g2-standard-4")
    if chips:
        asking = (Container("main", FrozenMap({"google.com/tpu": Quantity.of(4)})),)
        asked, catalog = replace(asked, containers=asking, claims=()), shipped("ct6e-standard-4t")
    given = snapshot([asked], () if chips else [claim("c", gpus())])
    plan = plan_for(given, catalog, Policy(), NOW)
    (line,) = advice_lines(advise(asked, given, catalog, plan, Policy(), NOW, most=1))
    ((key, name),) = selected.items()
    assert (f"drop nodeSelector {key}={name}" in line) is dropped
    assert (f"{key}={name} in spec.labels" in line) is not dropped


def test_a_pool_that_has_taken_the_name_keeps_it() -> None:
    asked = pod("p", "c", node_selector=FrozenMap({COMPUTE_CLASS: "Accelerator", "team": "a"}))
    pools = (CapacityPool("gpu", labels=FrozenMap({COMPUTE_CLASS: "Accelerator"})),)
    given, catalog = snapshot([asked], [claim("c", gpus())], pools=pools), shipped("g2-standard-4")
    plan = plan_for(given, catalog, Policy(), NOW)
    (line,) = advice_lines(advise(asked, given, catalog, plan, Policy(), NOW, most=1))
    assert line.startswith("pool gpu: add team=a to spec.labels")

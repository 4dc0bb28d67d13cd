"""Pods of Kueue's queues: what they get of a ResourceFlavor when they are admitted, and what is said where it is not
known."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
import yaml

from autoscaler.lint.meant_advice import meant_advice
from autoscaler.lint.other_systems import foreign_advice
from autoscaler.lint.supply_advice import supply_advice
from autoscaler.manifests.load import Loaded, load
from autoscaler.model.capacity import CapacityPool, PodScope, Scope
from autoscaler.planning.planner import plan_for
from autoscaler.planning.policy import Policy
from instance_catalog.dataclass import replace
from instance_catalog.diagnostic import Diagnostic
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes import labels
from tests.builders import CATALOG, NOW, shipped

V1 = "kueue.x-k8s.io/v1beta2"
TOLERATION = {"key": "team", "operator": "Exists", "effect": "NoSchedule"}


def flavor(name: str, **node_labels: str) -> dict[str, Any]:
    spec = {"nodeLabels": node_labels, "tolerations": [TOLERATION]}
    return {"apiVersion": V1, "kind": "ResourceFlavor", "metadata": {"name": name}, "spec": spec}


def queues(*groups: tuple[list[str], list[str]]) -> list[dict[str, Any]]:
    listed = [{"coveredResources": r, "flavors": [{"name": name} for name in names]} for r, names in groups]
    return [
        {"apiVersion": V1, "kind": "ClusterQueue", "metadata": {"name": "all"}, "spec": {"resourceGroups": listed}},
        {"apiVersion": V1, "kind": "LocalQueue", "metadata": {"name": "team"}, "spec": {"clusterQueue": "all"}},
    ]


def job(queue: str = "team", **spec: Any) -> dict[str, Any]:
    container = {"name": "main", "image": "registry.example/a:1", "resources": {"limits": {"nvidia.com/gpu": 1}}}
    template = {"spec": {"containers": [container], "restartPolicy": "Never", **spec}}
    metadata = {"name": "train", "labels": {labels.KUEUE_QUEUE: queue}}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": {"template": template}}


def read(tmp_path: Path, *objects: dict[str, Any]) -> Loaded:
    path = tmp_path / "all.yaml"
    path.write_text(yaml.safe_dump_all(objects), encoding="utf-8")
    return load([str(path)])


GPUS = (["nvidia.com/gpu"], ["a", "b"])


@pytest.mark.parametrize(
    ("groups", "selected", "expected"),
    [
        ([GPUS], {}, {"kind": "a"}),
        ([GPUS], {"kind": "b"}, {"kind": "b"}),  # the first contradicts what the pod selects
        ([GPUS], {"disk": "large"}, {"kind": "a", "disk": "large"}),
        ([(["cpu"], ["a"]), (["nvidia.com/gpu"], ["b"])], {}, {"kind": "b"}),
        ([(["cpu"], ["a"])], {}, {}),
        ([(["nvidia.com/gpu"], ["unknown"])], {}, {}),
    ],
)
def test_pods_select_the_labels_of_the_flavor(
    groups: list[tuple[list[str], list[str]]], selected: dict[str, str], expected: dict[str, str], tmp_path: Path
) -> None:
    flavors = (flavor("a", kind="a", of="a"), flavor("b", kind="b", of="b"))
    found = read(tmp_path, job(nodeSelector=selected), *queues(*groups), *flavors)
    (pod,) = found.snapshot.pods
    assert dict(pod.node_selector.items()) == expected | ({"of": expected["kind"]} if "kind" in expected else {})
    assert len(pod.tolerations) == (1 if "kind" in expected else 0)
    assert not [one for one in found.problems if "which is not given" in one.message]


def test_a_queue_that_is_not_given_is_named_once(tmp_path: Path) -> None:
    second = job()
    second["metadata"] = {**second["metadata"], "name": "again"}
    found = read(tmp_path, job(), second)
    assert len(found.snapshot.pods) == 2
    (warning,) = [one for one in found.problems if "which is not given" in one.message]
    assert "queue team" in warning.message
    assert found.ok


def test_a_flavor_that_is_not_given_is_named_once(tmp_path: Path) -> None:
    second = job()
    second["metadata"] = {**second["metadata"], "name": "again"}
    found = read(tmp_path, job(), second, *queues(GPUS), flavor("a", kind="a"))
    (warning,) = [one for one in found.problems if "is not given" in one.message]
    assert "waits in Kueue's queue team, of which ResourceFlavor b is not given" in warning.message
    found = read(tmp_path, job(), *queues(GPUS), flavor("a", kind="a"), flavor("b", kind="b"))
    assert not [one for one in found.problems if "is not given" in one.message]


def needing(**requests: str) -> dict[str, Any]:
    resources = {"requests": requests, "limits": {"nvidia.com/gpu": 1, "example.com/none": 0}}
    return job(containers=[{"name": "main", "image": "registry.example/a:1", "resources": resources}])


def test_resources_that_no_group_of_the_queue_covers_are_named_once(tmp_path: Path) -> None:
    def uncovered(*objects: dict[str, Any]) -> list[Diagnostic]:
        return [one for one in read(tmp_path, *objects, flavor("a")).problems if "does not admit" in one.message]

    other = needing(cpu="1", memory="1Gi")
    other["metadata"] = {**other["metadata"], "name": "again"}
    every = (["cpu", "memory"], ["a"]), (["nvidia.com/gpu"], ["a"])
    assert not uncovered(needing(cpu="1", memory="1Gi"), *queues(*every))
    (warning,) = uncovered(needing(cpu="1", memory="1Gi"), other, *queues((["nvidia.com/vgpu-number", "cpu"], ["a"])))
    assert "no resourceGroup of ClusterQueue all covers memory, nvidia.com/gpu (resource memory" in warning.message
    assert "add memory, nvidia.com/gpu to coveredResources" in warning.next_step
    ordinary = job(
        containers=[{"name": "main", "image": "registry.example/a:1", "resources": {"requests": {"cpu": 1}}}]
    )
    assert not uncovered(ordinary, *queues(GPUS))


@pytest.mark.parametrize(
    ("pool_labels", "flavor_labels", "warned"),
    [
        ({}, {"kind": "a"}, True),
        ({"kind": "b"}, {"kind": "a"}, True),
        ({"kind": "a"}, {"kind": "a"}, False),
        ({}, {"node.kubernetes.io/instance-type": "g6.48xlarge"}, False),  # its own warning
        # that of the other cloud speaks of all labels
        ({}, {"node.kubernetes.io/instance-type": "BM.GPU.GB300.4", "kind": "a"}, False),
    ],
)
def test_a_label_of_a_flavor_that_no_node_has_is_named(
    pool_labels: dict[str, str], flavor_labels: dict[str, str], warned: bool, tmp_path: Path
) -> None:
    second = job()
    second["metadata"] = {**second["metadata"], "name": "again"}
    alone = (["nvidia.com/gpu"], ["a"])
    given = read(tmp_path, job(), second, *queues(alone), flavor("a", **flavor_labels)).snapshot
    pool = CapacityPool("gpu", labels=FrozenMap(pool_labels), scope=Scope(pods=PodScope.ALL))
    given, catalog = replace(given, pools=(pool,)), shipped("g6.xlarge")
    plan = plan_for(given, catalog, Policy(considered=100), NOW)
    found = [one for one in supply_advice(given, plan, catalog) if "ResourceFlavor" in one.message]
    assert [one.about for one in found] == (["Pod default/again-0 and 1 more"] if warned else [])
    assert all("kind=a from spec.nodeLabels of ResourceFlavor a when Kueue" in one.message for one in found)


def test_a_flavor_of_an_ordinary_pod_is_no_news(tmp_path: Path) -> None:
    plain = job()
    del plain["spec"]["template"]["spec"]["containers"][0]["resources"]
    assert not [one for one in read(tmp_path, plain).problems if "which is not given" in one.message]


def test_a_pod_names_its_queue_itself(tmp_path: Path) -> None:
    pod = job()["spec"]["template"] | {"apiVersion": "v1", "kind": "Pod"}
    pod["metadata"] = {"name": "one", "labels": {labels.KUEUE_QUEUE: "team"}}
    found = read(tmp_path, pod, *queues(GPUS), flavor("a", kind="a"))
    assert dict(found.snapshot.pods[0].node_selector.items()) == {"kind": "a"}
    assert dict(found.snapshot.pods[0].flavor_labels.items()) == {"kind": "a"}  # the name of the flavor


def test_one_domain_of_a_topology_is_not_promised(tmp_path: Path) -> None:
    asked = job()
    asked["spec"]["template"]["metadata"] = {
        "annotations": {labels.KUEUE_ONE_DOMAIN: "cloud.google.com/gce-topology-block"}
    }
    found = read(tmp_path, asked)
    _, warning = meant_advice(found.snapshot, CATALOG)
    assert "share one cloud.google.com/gce-topology-block have room for all" in warning.message
    assert "nodes of a3-highgpu-8g, " in warning.message


def checked(controller: str, **spec: Any) -> list[dict[str, Any]]:
    """A cluster queue with a check of this controller, and the check."""
    cluster_queue, local_queue = queues(GPUS)
    cluster_queue["spec"] |= spec
    check = {"apiVersion": V1, "kind": "AdmissionCheck", "metadata": {"name": "dws"}}
    return [cluster_queue, local_queue, check | {"spec": {"controllerName": f"kueue.x-k8s.io/{controller}"}}]


STRATEGY = {"admissionChecksStrategy": {"admissionChecks": [{"name": "quick"}, {"name": "dws"}]}}
PARAMETER = {f"{labels.PROVREQ_PREFIX}maxRunDurationSeconds": "3600"}
BY_HAND = "`foreslice gcp provisioning-request` writes the request"
BY_KUEUE = "write no request: Kueue does by itself"


@pytest.mark.parametrize(
    ("queue", "annotations", "given", "expected"),
    [
        pytest.param("team", PARAMETER, [], BY_KUEUE, id="a parameter of the request"),
        pytest.param("team", {}, checked("provisioning-request", **STRATEGY), BY_KUEUE, id="a check of the queue"),
        pytest.param(
            "team", {}, checked("provisioning-request", admissionChecks=["dws"]), BY_KUEUE, id="a check of v1beta1"
        ),
        pytest.param("team", {}, checked("multikueue", **STRATEGY), BY_HAND, id="a check of something else"),
        pytest.param("team", {}, checked("provisioning-request"), BY_HAND, id="a check of another queue"),
        pytest.param("team", {"example.com/owner": "a"}, [], BY_HAND, id="a queue alone"),
        pytest.param("", PARAMETER, [], BY_HAND, id="no queue"),
    ],
)
def test_who_asks_for_nodes_with_queued_provisioning(
    queue: str, annotations: dict[str, str], given: list[dict[str, Any]], expected: str, tmp_path: Path
) -> None:
    waiting = job(queue, nodeSelector={"cloud.google.com/gke-queued": "true"})
    waiting["metadata"]["annotations"] = annotations
    found = read(tmp_path, waiting, *given)
    assert found.ok
    (advice,) = [one for one in foreign_advice(found.snapshot, shipped("g2-standard-4")) if "queued" in one.message]
    assert advice.next_step.startswith(expected)


def asking(class_name: str) -> list[dict[str, Any]]:
    """The queue with a check whose requests are of this class."""
    cluster_queue, local_queue, check = checked("provisioning-request", **STRATEGY)
    check["spec"]["parameters"] = {"apiGroup": "kueue.x-k8s.io", "kind": "ProvisioningRequestConfig", "name": "c"}
    spec = {"provisioningClassName": class_name, "managedResources": []}
    config = {"apiVersion": V1, "kind": "ProvisioningRequestConfig", "metadata": {"name": "c"}, "spec": spec}
    return [check, cluster_queue, local_queue, config]


@pytest.mark.parametrize(
    ("annotations", "given", "told"),
    [
        pytest.param(PARAMETER, [], True, id="a parameter of the request"),
        pytest.param({}, asking("queued-provisioning.gke.io"), True, id="a check for GKE"),
        pytest.param(PARAMETER, asking("atomic.foreslice.dev"), False, id="a check for Foreslice"),
        pytest.param({}, [], False, id="no check"),
    ],
)
def test_machines_that_kueue_requests_of_others_are_told(
    annotations: dict[str, str], given: list[dict[str, Any]], told: bool, tmp_path: Path
) -> None:
    waiting = job()
    waiting["metadata"]["annotations"] = annotations
    found = read(tmp_path, waiting, *given)
    assert found.ok
    advice = [one.next_step for one in foreign_advice(found.snapshot, shipped("g2-standard-4"))]
    assert any("has to name the class atomic.foreslice.dev" in step for step in advice) is told
    assert any("`foreslice gcp provisioning-request` shows" in step for step in advice) is told


def suspended(**labels_of: str) -> dict[str, Any]:
    found = job()
    found["metadata"] = {"name": "train", "labels": labels_of}
    found["spec"]["suspend"] = True
    return found


def test_a_job_that_waits_suspended_for_kueue_is_planned_as_admitted(tmp_path: Path) -> None:
    found = read(tmp_path, suspended(**{labels.KUEUE_QUEUE: "team"}), *queues(GPUS), flavor("a", kind="a"))
    (pod,) = found.snapshot.pods
    assert pod.node_selector["kind"] == "a"
    assert not [one for one in found.problems if "suspended" in one.message]


def test_a_job_that_somebody_suspended_has_no_pods(tmp_path: Path) -> None:
    found = read(tmp_path, suspended(), *queues(GPUS), flavor("a", kind="a"))
    assert found.snapshot.pods == ()
    assert [one for one in found.problems if "suspended: it has no pods now" in one.message]


@pytest.mark.parametrize(
    ("kind", "version", "named", "expected"),
    [
        ("Job", "batch/v1", "", {"kind": "a"}),
        ("Job", "batch/v1", "other", {}),  # waits for a queue that is not given
        ("Deployment", "apps/v1", "", {}),  # Kueue leaves it alone unless it names a queue
    ],
)
def test_jobs_that_name_no_queue_wait_in_the_default_one(
    kind: str, version: str, named: str, expected: dict[str, str], tmp_path: Path
) -> None:
    one = job()
    one |= {"kind": kind, "apiVersion": version}
    one["metadata"]["labels"] = {labels.KUEUE_QUEUE: named} if named else {}
    if kind == "Deployment":
        one["spec"]["selector"] = {"matchLabels": {"app": "x"}}
        one["spec"]["template"] = {
            "metadata": {"labels": {"app": "x"}},
            "spec": {**one["spec"]["template"]["spec"], "restartPolicy": "Always"},
        }
    every, local = queues(GPUS)
    local["metadata"]["name"] = "default"
    found = read(tmp_path, one, every, local, flavor("a", kind="a"))
    (pod,) = found.snapshot.pods
    assert dict(pod.node_selector.items()) == expected


def wrapper(queue: str, *, suspend: bool, own: dict[str, str] | None = None) -> dict[str, Any]:
    inner = job()
    inner["metadata"] = {"name": "train", **({"labels": own} if own else {})}
    return {
        "apiVersion": "workload.codeflare.dev/v1beta2",
        "kind": "AppWrapper",
        "metadata": {"name": "all", "labels": {labels.KUEUE_QUEUE: queue} if queue else {}},
        "spec": {"suspend": suspend, "components": [{"template": inner}]},
    }


@pytest.mark.parametrize("suspend", [True, False])
@pytest.mark.parametrize("own", [None, {"app": "x"}])
def test_what_an_app_wrapper_makes_waits_in_its_queue(
    suspend: bool, own: dict[str, str] | None, tmp_path: Path
) -> None:
    found = read(tmp_path, wrapper("team", suspend=suspend, own=own), *queues(GPUS), flavor("a", kind="a"))
    (pod,) = found.snapshot.pods
    assert pod.node_selector["kind"] == "a"


def test_a_missing_queue_is_told_of_the_app_wrapper_that_names_it(tmp_path: Path) -> None:
    told = [one.statement.partition(": ")[2] for one in read(tmp_path, wrapper("team", suspend=False)).problems]
    assert len(told) == 1
    assert told[0].startswith("AppWrapper all: metadata.labels['kueue.x-k8s.io/queue-name']: waits in Kueue's queue")


def test_a_suspended_app_wrapper_without_a_queue_says_that_it_has_no_pods(tmp_path: Path) -> None:
    found = read(tmp_path, wrapper("", suspend=True))
    assert found.snapshot.pods == ()
    assert found.suspended == 1
    assert [one.statement.partition(": ")[2] for one in found.problems] == [
        "AppWrapper all: spec.suspend: suspended: it has no pods now"
    ]


def test_a_suspended_group_is_no_suspended_object() -> None:
    container = "{spec: {containers: [{name: c, image: i}]}}"
    cluster = f"""
apiVersion: ray.io/v1
kind: RayCluster
metadata: {{name: r}}
spec:
  headGroupSpec: {{template: {container}}}
  workerGroupSpecs: [{{groupName: g, replicas: 1, suspend: true, template: {container}}}]
"""
    found = load(["-"], stdin=io.StringIO(cluster))
    assert [one.field for one in found.problems] == ["spec.workerGroupSpecs[0].suspend"]
    assert found.suspended == 0

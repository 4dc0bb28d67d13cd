"""Pods: what decides where they run, with the defaults an API server and admission would have set."""

from __future__ import annotations

from typing import Any

import pytest

from autoscaler.kube.pod import parse_pod, uid_of
from autoscaler.kube.priority import PriorityClass
from autoscaler.kube.problem import Problems
from autoscaler.model.labels import LabelSelector
from autoscaler.model.pod import GangRef, HostPort, Pod, PodClaim
from instance_catalog.diagnostic import Severity
from instance_catalog.kubernetes.node_selector import Requirement
from instance_catalog.kubernetes.quantity import Quantity
from instance_catalog.kubernetes.taint import Toleration


def pod(*, metadata: dict[str, Any] | None = None, status: object = None, **spec: Any) -> dict[str, Any]:
    spec = {"containers": [{"name": "c"}], **spec}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "ns", **(metadata or {})},
        "spec": spec,
        "status": status,
    }


def parsed(raw: object, **options: Any) -> tuple[Pod, list[str]]:
    problems = Problems()
    found = parse_pod(raw, problems, **options)
    return found, [f"{problem.field}: {problem.message}" for problem in problems]


def container(**fields: Any) -> dict[str, Any]:
    return {"name": "c", "image": "i", **fields}


def test_a_plain_pod() -> None:
    found, problems = parsed(pod())
    assert problems == []
    assert (found.key, found.phase, found.node_name, found.priority) == ("ns/p", "Pending", None, 0)
    assert found.uid == uid_of("Pod", "ns", "p")
    assert found.unsupported == ()


def test_limits_count_as_requests_where_there_are_none() -> None:
    resources = {"limits": {"cpu": "2", "nvidia.com/gpu": 1}, "requests": {"cpu": "500m"}}
    found, problems = parsed(pod(containers=[container(resources=resources)]))
    assert problems == []
    assert found.containers[0].requests == {"cpu": Quantity.parse("500m"), "nvidia.com/gpu": Quantity.of(1)}


def test_a_request_above_its_limit() -> None:
    resources = {"limits": {"cpu": "1"}, "requests": {"cpu": "2"}}
    _, problems = parsed(pod(containers=[container(resources=resources)]))
    assert problems == ["spec.containers[0].resources.requests: request 2 of cpu is above its limit 1"]


@pytest.mark.parametrize(
    ("resources", "expected"),
    [
        ({"requests": {"memory": -5}}, ["-5 of memory is negative"]),
        ({"limits": {"nvidia.com/gpu": "500m"}}, ["500m of nvidia.com/gpu is not a whole number"]),
        ({"requests": {"nvidia.com/gpu": 1}}, ["nvidia.com/gpu has a request and no limit"]),
        ({"requests": {"hugepages-2Mi": "4Mi"}}, ["hugepages-2Mi has a request and no limit"]),
        (
            {"requests": {"nvidia.com/gpu": 1}, "limits": {"nvidia.com/gpu": 2}},
            ["request 1 of nvidia.com/gpu is not its limit 2"],
        ),
        ({"requests": {"deviceclass.resource.kubernetes.io/gpu": 1}}, []),
        ({"requests": {"cpu": "1500m"}, "limits": {"cpu": "1500m"}}, []),
    ],
    ids=["negative", "half a device", "no limit", "no limit of pages", "another limit", "a class by name", "equal"],
)
def test_amounts_that_the_api_server_refuses(resources: object, expected: list[str]) -> None:
    _, problems = parsed(pod(containers=[container(resources=resources)]))
    assert [problem.partition(": ")[2] for problem in problems] == expected


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (
            {"nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "Near", "values": ["b"]}]}]},
            "operator: 'Near' is not one of In, NotIn, Exists, DoesNotExist, Gt, Lt",
        ),
        (
            {"nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "In"}]}]},
            "values: In needs at least one value",
        ),
        (
            {"nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "Exists", "values": ["b"]}]}]},
            "values: Exists takes no values",
        ),
        (
            {"nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "Gt", "values": ["1", "2"]}]}]},
            "values: Gt compares with one number",
        ),
    ],
    ids=["no such operator", "In nothing", "Exists with values", "greater than two numbers"],
)
def test_node_affinity_that_the_api_server_refuses(spec: object, expected: str) -> None:
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": spec}}
    _, (problem,) = parsed(pod(affinity=affinity))
    assert problem.endswith(expected)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"maxSkew": 0}, "maxSkew: is 0"),
        ({"maxSkew": None}, "maxSkew: is required"),
        ({"minDomains": 0}, "minDomains: is 0"),
        ({"whenUnsatisfiable": None}, "whenUnsatisfiable: is required"),
        ({"nodeTaintsPolicy": "Maybe"}, "nodeTaintsPolicy: 'Maybe' is not one of Honor, Ignore"),
        (
            {"whenUnsatisfiable": "ScheduleAnyway", "minDomains": 2},
            "minDomains: is allowed only with whenUnsatisfiable: DoNotSchedule",
        ),
    ],
    ids=["no skew", "skew missing", "no domains", "no consequence", "no such policy", "domains of a wish"],
)
def test_topology_spread_that_the_api_server_refuses(fields: dict[str, object], expected: str) -> None:
    constraint = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", **fields}
    _, (problem,) = parsed(pod(topologySpreadConstraints=[constraint]))
    assert problem == f"spec.topologySpreadConstraints[0].{expected}"


def test_tolerations_that_compare_are_not_supported_and_others_are_refused() -> None:
    found, (problem,) = parsed(pod(tolerations=[{"key": "a", "operator": "Gt", "value": "5"}]))
    assert found.unsupported == ("Gt in a toleration",)
    assert problem == "spec.tolerations[0].operator: Gt is not supported"
    _, (problem,) = parsed(pod(tolerations=[{"key": "a", "operator": "Near"}]))
    assert problem == "spec.tolerations[0].operator: 'Near' is not one of Equal, Exists"


def test_sidecars_are_init_containers_that_always_restart() -> None:
    inits = [container(name="a", restartPolicy="Always"), container(name="b")]
    found, problems = parsed(pod(initContainers=inits))
    assert problems == []
    assert [(one.name, one.sidecar) for one in found.init_containers] == [("a", True), ("b", False)]


@pytest.mark.parametrize(
    ("resources", "expected"),
    [
        (None, None),
        ({"requests": {"cpu": "3"}}, {"cpu": Quantity.of(3)}),
        ({"limits": {"cpu": "3", "memory": "1Gi"}}, {"cpu": Quantity.of(1), "memory": Quantity.parse("1Gi")}),
    ],
    ids=["absent", "requests", "limits stand in where no container asks"],
)
def test_pod_level_resources(resources: object, expected: object) -> None:
    containers = [container(resources={"requests": {"cpu": "1"}})]
    found, _ = parsed(pod(containers=containers, resources=resources))
    assert found.pod_requests == expected


SMALL, LARGE = {"requests": {"cpu": "1"}}, {"requests": {"cpu": "3"}}


@pytest.mark.parametrize(
    ("status", "cpu"),
    [
        ({}, 2),
        ({"allocatedResources": {"cpu": "3"}}, 2),
        ({"resources": LARGE}, 3),
        ({"resources": SMALL}, 2),
        ({"resources": SMALL, "allocatedResources": {"cpu": "3"}}, 3),
    ],
    ids=["no word of it", "allocated alone", "to become smaller", "to become larger", "allocated, not yet in force"],
)
def test_the_most_counts_while_a_container_is_resized(status: dict[str, object], cpu: int) -> None:
    wanted = [container(name="a", resources={"requests": {"cpu": "2"}})]
    reported = {"containerStatuses": [{"name": "a", **status}]}
    found, _ = parsed(pod(containers=wanted) | {"status": reported})
    assert found.containers[0].requests == {"cpu": Quantity.of(cpu)}


def test_a_resize_that_the_node_cannot_do_does_not_count() -> None:
    wanted = [container(name="a", resources={"requests": {"cpu": "2"}})]
    refused = [{"type": "PodResizePending", "status": "True", "reason": "Infeasible"}]
    status = {"containerStatuses": [{"name": "a", "resources": SMALL}], "conditions": refused}
    found, _ = parsed(pod(containers=wanted) | {"status": status})
    assert found.containers[0].requests == {"cpu": Quantity.of(1)}


def test_init_containers_hold_what_they_ask_for_unless_they_are_sidecars() -> None:
    inits = [
        container(name=name, resources={"requests": {"cpu": "2"}}, **more)
        for name, more in (("a", {}), ("b", {"restartPolicy": "Always"}))
    ]
    statuses = [{"name": name, "resources": LARGE} for name in ("a", "b")]
    found, _ = parsed(pod(initContainers=inits) | {"status": {"initContainerStatuses": statuses}})
    assert [one.requests["cpu"] for one in found.init_containers] == [Quantity.of(2), Quantity.of(3)]


def test_pod_level_requests_while_the_pod_is_resized() -> None:
    raw = pod(resources={"requests": {"cpu": "2", "memory": "1Gi"}})
    found, _ = parsed(raw | {"status": {"resources": LARGE, "allocatedResources": {"cpu": "1"}}})
    assert found.pod_requests == {"cpu": Quantity.of(3), "memory": Quantity.parse("1Gi")}
    refused = {"resources": SMALL, "conditions": [{"type": "PodResizePending", "reason": "Infeasible"}]}
    found, _ = parsed(raw | {"status": refused})
    assert found.pod_requests == {"cpu": Quantity.of(1), "memory": Quantity.of(0)}


@pytest.mark.parametrize(
    ("host_network", "ports", "expected"),
    [
        (False, [{"containerPort": 80}], ()),
        (False, [{"containerPort": 80, "hostPort": 8080, "protocol": "UDP"}], (HostPort(8080, "UDP"),)),
        (True, [{"containerPort": 80}], (HostPort(80),)),
    ],
    ids=["no host port", "a host port", "host network uses the container port"],
)
def test_host_ports(host_network: bool, ports: object, expected: object) -> None:
    found, problems = parsed(pod(hostNetwork=host_network, containers=[container(ports=ports)]))
    assert problems == []
    assert found.containers[0].host_ports == expected


@pytest.mark.parametrize(
    ("entry", "status", "expected"),
    [
        ({"resourceClaimName": "x"}, [], PodClaim("gpu", "x")),
        ({"resourceClaimTemplateName": "t"}, [], PodClaim("gpu", None, "t")),
        (
            {"resourceClaimTemplateName": "t"},
            [{"name": "gpu", "resourceClaimName": "p-gpu-abc"}],
            PodClaim("gpu", "p-gpu-abc", "t"),
        ),
        ({"resourceClaimTemplateName": "t"}, [{"name": "gpu"}], PodClaim("gpu", "", "t")),
    ],
    ids=["a claim by name", "not created yet", "generated", "intentionally none"],
)
def test_claims(entry: dict[str, str], status: object, expected: PodClaim) -> None:
    raw = pod(resourceClaims=[{"name": "gpu", **entry}], status={"resourceClaimStatuses": status})
    found, problems = parsed(raw)
    assert problems == []
    assert found.claims == (expected,)


@pytest.mark.parametrize(
    ("entries", "problem"),
    [
        ([{"name": "g"}], "spec.resourceClaims[0].resourceClaimName: a claim of a pod needs one source"),
        (
            [{"name": "g", "source": {"resourceClaimName": "x"}}],
            "spec.resourceClaims[0].source: `source` was removed with Kubernetes 1.31",
        ),
        (
            [{"name": "g", "resourceClaimName": "x"}, {"name": "g", "resourceClaimName": "y"}],
            "spec.resourceClaims[1].name: duplicate claim name 'g'",
        ),
    ],
    ids=["no source", "the old form", "twice the same name"],
)
def test_mistakes_in_claims(entries: object, problem: str) -> None:
    _, problems = parsed(pod(resourceClaims=entries))
    assert problems == [problem]


CLASSES = {found.name: found for found in (PriorityClass("high", 1000), PriorityClass("base", 5, global_default=True))}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"priorityClassName": "high", "preemptionPolicy": "Never"}, 1000),
        ({}, 5),
        ({"priority": 7, "priorityClassName": "high"}, 7),
        ({"priorityClassName": "system-node-critical"}, 2_000_001_000),
    ],
    ids=["by class", "global default", "already admitted", "built in"],
)
def test_priority(spec: dict[str, Any], expected: int) -> None:
    found, problems = parsed(pod(**spec), priorities=CLASSES)
    assert problems == []
    assert found.priority == expected


def test_an_unknown_priority_class() -> None:
    problems = Problems()
    parse_pod(pod(priorityClassName="hihg"), problems, priorities=CLASSES)
    (problem,) = problems
    assert (problem.field, problem.next_step) == ("spec.priorityClassName", "did you mean 'high'?")
    assert problem.severity is Severity.WARNING
    assert "the API server refuses the pod without it; planned with priority 0" in problem.message


def test_match_label_keys_are_merged_into_selectors() -> None:
    spread = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"a": "b"}}, "matchLabelKeys": ["rev", "gone"]}
    term = {"topologyKey": "zone", "labelSelector": {}, "mismatchLabelKeys": ["rev"]}
    raw = pod(
        metadata={"labels": {"rev": "1"}},
        topologySpreadConstraints=[{**spread, "maxSkew": 2, "whenUnsatisfiable": "DoNotSchedule"}],
        affinity={"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}},
    )
    found, problems = parsed(raw)
    assert problems == []
    (constraint,) = found.topology_spread
    assert constraint.selector == LabelSelector((Requirement("a", "In", ("b",)), Requirement("rev", "In", ("1",))))
    assert (constraint.max_skew, constraint.node_taints_policy) == (2, "Ignore")
    (anti,) = found.pod_anti_affinity
    assert anti.selector == LabelSelector((Requirement("rev", "NotIn", ("1",)),))
    assert anti.namespaces == ("ns",)


@pytest.mark.parametrize(
    ("metadata", "spec", "gang"),
    [
        ({}, {}, None),
        ({}, {"schedulingGroup": {"podGroupName": "g"}}, "g"),
        ({}, {"workloadRef": {"name": "w", "podGroup": "g", "podGroupReplicaKey": "0"}}, "w/g/0"),
        ({"labels": {"scheduling.x-k8s.io/pod-group": "g"}}, {}, "g"),
        ({"annotations": {"scheduling.k8s.io/group-name": "g"}}, {}, "g"),
        ({"annotations": {"pod-group-name": "g"}}, {}, "g"),
    ],
    ids=["none", "scheduling.k8s.io", "workload", "coscheduling", "volcano", "kai"],
)
def test_gangs(metadata: dict[str, Any], spec: dict[str, Any], gang: str | None) -> None:
    found, problems = parsed(pod(metadata=metadata, **spec))
    assert problems == []
    assert found.gang == (None if gang is None else GangRef("ns", gang))


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"nodeSelectr": {}}, "nodeSelectr"),
        ({"containers": [container(resource={})]}, "resource"),
        ({"affinity": {"gpuAffinity": {}}}, "gpuAffinity"),
    ],
)
def test_what_is_not_understood_makes_the_pod_unsupported(spec: dict[str, Any], field: str) -> None:
    found, problems = parsed(pod(**spec))
    assert found.unsupported == (field,)
    assert any(f"unknown field {field!r}" in problem for problem in problems)


def test_the_rest_of_a_running_pod() -> None:
    raw = pod(
        metadata={"uid": "u", "ownerReferences": [{"kind": "Job", "name": "j", "uid": "x", "controller": True}]},
        nodeName="n",
        tolerations=[{"key": "a", "operator": "Exists"}],
        volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "pvc"}}, {"name": "e", "ephemeral": {}}],
        schedulingGates=[{"name": "gate"}],
        status={"phase": "Running", "nominatedNodeName": "m", "conditions": []},
    )
    found, problems = parsed(raw)
    assert problems == []
    assert (found.node_name, found.nominated_node, found.phase, found.uid) == ("n", "m", "Running", "u")
    assert found.owner == "Job/j"
    assert found.volumes == ("pvc", "p-e")
    assert found.scheduling_gates == ("gate",)
    assert found.tolerations == (Toleration("a", "Exists"),)


@pytest.mark.parametrize(
    ("conditions", "said"),
    [
        pytest.param([], ("", ""), id="none-yet"),
        pytest.param([{"type": "PodScheduled", "status": "True"}], ("", ""), id="scheduled"),
        pytest.param(
            [{"type": "PodScheduled", "status": "False", "reason": "SchedulerError", "message": "no such key"}],
            ("SchedulerError", "no such key"),
            id="error",
        ),
    ],
)
def test_what_the_scheduler_said_last(conditions: list[dict[str, str]], said: tuple[str, str]) -> None:
    found, problems = parsed(pod(status={"conditions": conditions}))
    assert (found.unscheduled, found.unscheduled_why) == said
    assert problems == []


def test_a_pod_without_containers() -> None:
    _, problems = parsed(pod(containers=[]))
    assert problems == ["spec.containers: a pod needs at least one container"]


@pytest.mark.parametrize(
    ("name", "field", "said", "errors"),
    [
        ("nvidia.com/gpu", "['nvidia.com/gpu']", "has no value", True),
        ("memory", ".memory", "has no value and counts as 0", False),
    ],
)
def test_an_amount_without_a_value_is_named(name: str, field: str, said: str, errors: bool) -> None:
    """`nvidia.com/gpu:` in a manifest: an API server takes it as 0, which nobody means who writes it."""
    problems = Problems()
    found = parse_pod(pod(containers=[container(resources={"limits": {name: None, "cpu": "1"}})]), problems)
    (one,) = problems
    assert (one.field, one.message, problems.errors) == (f"spec.containers[0].resources.limits{field}", said, errors)
    assert dict(found.containers[0].requests) == {"cpu": Quantity.parse("1")}

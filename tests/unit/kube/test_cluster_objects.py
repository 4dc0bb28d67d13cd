"""Nodes, volumes, gangs and priorities."""

from __future__ import annotations

from typing import Any

import pytest

from autoscaler.kube.node import parse_node
from autoscaler.kube.pod import uid_of
from autoscaler.kube.priority import PriorityClass, parse_priority_class
from autoscaler.kube.problem import Problems
from autoscaler.kube.storage import parse_persistent_volume, parse_persistent_volume_claim, parse_storage_class
from autoscaler.kube.workloads.gang import parse_pod_group, parse_workload
from autoscaler.model.gang import Gang
from autoscaler.model.pod import PodClaim
from instance_catalog.kubernetes.node_selector import NodeSelector, NodeSelectorTerm, Requirement
from instance_catalog.kubernetes.quantity import Quantity


def messages(problems: Problems) -> list[str]:
    return [f"{problem.field}: {problem.message}" for problem in problems]


@pytest.mark.parametrize(
    ("status", "ready"),
    [
        ({}, True),
        ({"conditions": [{"type": "Ready", "status": "True"}]}, True),
        ({"conditions": [{"type": "Ready", "status": "Unknown"}]}, False),
        ({"conditions": [{"type": "DiskPressure", "status": "False"}]}, False),
    ],
    ids=["a manifest", "ready", "lost", "not reported"],
)
def test_nodes(status: dict[str, Any], ready: bool) -> None:
    problems = Problems()
    raw = {"metadata": {"name": "n"}, "spec": {}, "status": {"capacity": {"cpu": 8}, **status}}
    found = parse_node(raw, problems)
    assert messages(problems) == []
    assert (found.ready, found.allocatable) == (ready, {"cpu": Quantity.of(8)})


def test_a_node_without_resources_is_worth_a_word() -> None:
    problems = Problems()
    parse_node({"metadata": {"name": "n"}}, problems)
    assert messages(problems) == ["status.allocatable: a node without allocatable resources takes no pods"]


def gang(api: str, spec: object) -> dict[str, Any]:
    return {"apiVersion": api, "kind": "PodGroup", "metadata": {"name": "g", "namespace": "ns"}, "spec": spec}


KUBERNETES, KAI, VOLCANO = "scheduling.k8s.io/v1alpha2", "scheduling.run.ai/v2alpha2", "scheduling.volcano.sh/v1beta1"


@pytest.mark.parametrize(
    ("raw", "count", "topology", "unsupported"),
    [
        (gang("scheduling.x-k8s.io/v1alpha1", {"minMember": 3, "scheduleTimeoutSeconds": 9}), 3, None, ()),
        (gang(VOLCANO, {"minMember": 3, "queue": "q"}), 3, None, ()),
        (gang(VOLCANO, {"minMember": 3, "minTaskMember": {"a": 1}}), 3, None, ("minTaskMember",)),
        (gang(KAI, {"minMember": 2, "topologyConstraint": {"requiredTopologyLevel": "rack"}}), 2, "rack", ()),
        (gang(KUBERNETES, {"schedulingPolicy": {"gang": {"minCount": 4}}}), 4, None, ()),
        (gang(KUBERNETES, {"schedulingPolicy": {"basic": {}}}), 1, None, ()),
        (gang(KUBERNETES, {"schedulingConstraints": {"topology": [{"key": "rack"}]}}), 1, "rack", ()),
        (gang(KAI, {"minMember": 2, "resourceClaims": [{}]}), 2, None, ("resourceClaims",)),
    ],
    ids=["coscheduling", "volcano", "volcano tasks", "kai", "gang policy", "basic policy", "topology", "kai's claims"],
)
def test_pod_groups(raw: dict[str, Any], count: int, topology: str | None, unsupported: tuple[str, ...]) -> None:
    found = parse_pod_group(raw)
    kind = f"PodGroup {raw['apiVersion']}"
    uid = uid_of("PodGroup", "ns", "g") if raw["apiVersion"] == KUBERNETES else ""
    assert found == Gang("ns", "g", kind, count, topology, unsupported, uid)


@pytest.mark.parametrize(
    ("groups", "count", "unsupported"),
    [
        ([{"name": "workers", "minMember": 4}], 4, ()),
        ([{"name": "workers"}], 2, ()),
        ([{"name": "workers", "minMember": 2, "parent": "all"}], 2, ("subGroups[0].parent",)),
        ([{"name": "a", "minMember": 1}, {"name": "b", "minMember": 3}], 4, ()),
        ([{"name": "a", "minMember": 1}, {"name": "b", "minMember": 3, "parent": "a"}], 4, ("subGroups[1].parent",)),
        ([], 2, ()),
    ],
    ids=["all-members", "as-many", "below-another", "several", "one-below-another", "none"],
)
def test_plain_subgroups_of_kai_are_the_gang_together(
    groups: list[dict[str, Any]], count: int, unsupported: tuple[str, ...]
) -> None:
    found = parse_pod_group(gang("scheduling.run.ai/v2alpha2", {"minMember": 2, "subGroups": groups}))
    assert (found.min_count, found.unsupported) == (count, unsupported)


def test_pod_groups_share_claims_by_name_and_source() -> None:
    entries = [{"name": "a", "resourceClaimName": "a"}, {"name": "b", "resourceClaimTemplateName": "t"}]
    found = parse_pod_group(gang(KUBERNETES, {"resourceClaims": entries}))
    assert found.shares(PodClaim("a", "a"))
    assert found.shares(PodClaim("b", "generated", template="t"))
    assert not found.shares(PodClaim("a", "b"))
    assert not found.shares(PodClaim("b", "generated", template="another"))
    assert not found.shares(PodClaim("c", "a"))


@pytest.mark.parametrize(
    ("raw", "problem"),
    [
        (
            gang(KUBERNETES, {"schedulingPolicy": {"gang": {}}}),
            "spec.schedulingPolicy.gang.minCount: must be at least 1",
        ),
        (
            gang(KUBERNETES, {"resourceClaims": [{"name": "a"}]}),
            "spec.resourceClaims[0].resourceClaimName: a claim of a PodGroup needs one source",
        ),
        (gang(VOLCANO, {}), "spec.minMember: is missing: 1 is assumed"),
        (gang(VOLCANO, {"minMember": 1, "minMembers": 2}), "spec.minMembers: unknown field 'minMembers'"),
    ],
)
def test_mistakes_in_pod_groups(raw: object, problem: str) -> None:
    problems = Problems()
    parse_pod_group(raw, problems)
    assert messages(problems) == [problem]


def test_workloads_of_the_first_version_declare_gangs() -> None:
    raw = {
        "apiVersion": "scheduling.k8s.io/v1alpha1",
        "metadata": {"name": "w", "namespace": "ns"},
        "spec": {"podGroups": [{"name": "a", "policy": {"gang": {"minCount": 2}}}, {"name": "b", "policy": {}}]},
    }
    assert {found.key: found.min_count for found in parse_workload(raw)} == {"ns/w/a": 2, "ns/w/b": 1}


def test_later_workloads_are_templates() -> None:
    problems = Problems()
    raw = {"apiVersion": KUBERNETES, "metadata": {"name": "w"}, "spec": {"podGroupTemplates": [{"name": "a"}]}}
    assert parse_workload(raw, problems) == ()
    assert messages(problems) == []


def test_volumes() -> None:
    terms = [{"matchExpressions": [{"key": "z", "operator": "In", "values": ["a"]}]}]
    volume = parse_persistent_volume(
        {
            "metadata": {"name": "v", "labels": {"topology.kubernetes.io/zone": "a__b"}},
            "spec": {"nodeAffinity": {"required": {"nodeSelectorTerms": terms}}},
        }
    )
    assert volume.topology == {"topology.kubernetes.io/zone": ("a", "b")}
    assert volume.node_affinity == NodeSelector((NodeSelectorTerm((Requirement("z", "In", ("a",)),)),))
    claim = parse_persistent_volume_claim(
        {"metadata": {"name": "c"}, "spec": {"storageClassName": "", "volumeName": "v"}}
    )
    assert (claim.key, claim.storage_class, claim.volume) == ("default/c", "", "v")


def test_storage_classes() -> None:
    raw = {
        "metadata": {"name": "s", "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
        "provisioner": "ebs.csi.aws.com",
        "volumeBindingMode": "WaitForFirstConsumer",
        "allowedTopologies": [{"matchLabelExpressions": [{"key": "z", "values": ["a"]}]}],
    }
    found = parse_storage_class(raw)
    assert (found.default, found.binding_mode.value, found.provisioner) == (
        True,
        "WaitForFirstConsumer",
        "ebs.csi.aws.com",
    )
    assert found.topologies == NodeSelector((NodeSelectorTerm((Requirement("z", "In", ("a",)),)),))


@pytest.mark.parametrize(
    ("parse", "raw", "problem"),
    [
        (parse_storage_class, {"provisioner": "x", "reclaim": "y"}, "reclaim: unknown field 'reclaim'"),
        (
            parse_persistent_volume_claim,
            {"spec": {"storageClass": "x"}},
            "spec.storageClass: unknown field 'storageClass'",
        ),
    ],
)
def test_misspelled_fields_of_storage(parse: Any, raw: dict[str, Any], problem: str) -> None:
    problems = Problems()
    parse({"metadata": {"name": "x"}, **raw}, problems)
    assert messages(problems) == [problem]


@pytest.mark.parametrize(
    ("raw", "problem"),
    [
        ({}, "provisioner: is required"),
        ({"provisioner": ""}, "provisioner: is required"),
        ({"provisioner": 1}, "provisioner: expected a string, found the number 1"),
        (
            {"provisioner": "x", "volumeBindingMode": "Wait"},
            "volumeBindingMode: 'Wait' is not one of Immediate, WaitForFirstConsumer",
        ),
    ],
)
def test_storage_classes_that_an_api_server_refuses(raw: dict[str, Any], problem: str) -> None:
    problems = Problems()
    parse_storage_class({"metadata": {"name": "x"}, **raw}, problems)
    assert messages(problems) == [problem]
    assert problems.errors


@pytest.mark.parametrize("zone", ["${ZONE}", "<zone>", "YOUR_ZONE"])
def test_placeholders_in_the_zones_of_storage(zone: str) -> None:
    """Those of handles decide nothing about nodes."""
    wanted = {"key": "topology.kubernetes.io/zone", "operator": "In", "values": [zone]}
    affinity = {"required": {"nodeSelectorTerms": [{"matchExpressions": [wanted]}]}}
    csi = {"driver": "efs.csi.aws.com", "volumeHandle": "<FILESYSTEM_ID>"}
    problems = Problems()
    parse_persistent_volume({"metadata": {"name": "v"}, "spec": {"nodeAffinity": affinity, "csi": csi}}, problems)
    topology = {"matchLabelExpressions": [{"key": "topology.kubernetes.io/zone", "values": [zone]}]}
    raw = {"metadata": {"name": "s"}, "provisioner": "x", "allowedTopologies": [topology]}
    parse_storage_class(raw, problems)
    said = f"no node has {zone!r} for topology.kubernetes.io/zone"
    affinities = "spec.nodeAffinity.required.nodeSelectorTerms[0].matchExpressions[0]"
    places = (affinities, "allowedTopologies[0].matchLabelExpressions[0]")
    assert messages(problems) == [f"{place}.values: {said}" for place in places]
    assert not problems.errors


def test_priority_classes() -> None:
    problems = Problems()
    raw = {"metadata": {"name": "p"}, "value": 7, "preemptionPolicy": "Never", "globalDefault": True}
    assert parse_priority_class(raw, problems) == PriorityClass("p", 7, True)
    parse_priority_class({"metadata": {"name": "q"}}, problems)
    assert messages(problems) == ["value: is required"]

"""What only scores and a few filters read: preferences, images, node features, selections, volumes in detail."""

from __future__ import annotations

from typing import Any

import pytest

from autoscaler.kube.node import parse_node
from autoscaler.kube.pod import parse_pod
from autoscaler.kube.problem import Problems
from autoscaler.kube.selectors import parse_selection
from autoscaler.kube.storage import parse_persistent_volume, parse_persistent_volume_claim, parse_volume_limits
from autoscaler.model.labels import LabelSelector, Selection
from autoscaler.model.pod import Pod, PodAffinityTerm, PreferredPodTerm
from instance_catalog.kubernetes.node_selector import Requirement
from instance_catalog.kubernetes.quantity import Quantity


def pod(**spec: Any) -> Pod:
    problems = Problems()
    raw = {"metadata": {"name": "p", "labels": {"version": "1"}}, "spec": {"containers": [{"name": "c"}], **spec}}
    found = parse_pod(raw, problems)
    assert not problems.errors
    return found


def test_preferences_between_pods_are_kept_with_their_label_keys_merged() -> None:
    term = {"topologyKey": "zone", "labelSelector": {}, "matchLabelKeys": ["version", "absent"]}
    preferred = [{"weight": 7, "podAffinityTerm": term}]
    found = pod(affinity={"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}})
    selector = LabelSelector((Requirement("version", "In", ("1",)),))
    expected = PreferredPodTerm(7, PodAffinityTerm(selector, "zone", ("default",)))
    assert found.preferred_pod_anti_affinity == (expected,)
    assert found.preferred_pod_affinity == ()


def test_images_of_containers_and_volumes_and_nodes() -> None:
    found = pod(
        containers=[{"name": "c", "image": "a:1"}],
        volumes=[{"name": "v", "image": {"reference": "data:2"}}, {"name": "w", "emptyDir": {}}],
    )
    assert (found.containers[0].image, found.image_volumes) == ("a:1", ("data:2",))
    images = [{"names": ["a:1", "a@sha256:0"], "sizeBytes": 5}]
    node = parse_node({"metadata": {"name": "n"}, "status": {"images": images, "declaredFeatures": ["F"]}})
    assert node.images == {"a:1": 5, "a@sha256:0": 5}
    assert (node.declared_features, node.volume_limits) == (("F",), None)


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({}, (), id="nothing special"),
        pytest.param(
            {"containers": [{"name": "c", "restartPolicyRules": [{"action": "RestartAllContainers"}]}]},
            ("RestartAllContainersOnContainerExits",),
            id="one restarts all",
        ),
        pytest.param(
            {"containers": [{"name": "c", "restartPolicyRules": [{"action": "Restart"}]}]}, (), id="one restarts itself"
        ),
        pytest.param(
            {"hostNetwork": True, "hostUsers": False},
            ("UserNamespacesHostNetworkSupport",),
            id="own users, host network",
        ),
        pytest.param({"hostUsers": False}, (), id="own users alone"),
    ],
)
def test_features_that_the_node_must_declare(spec: dict[str, Any], expected: tuple[str, ...]) -> None:
    assert pod(**spec).node_features == expected


def test_disks_of_old_plugins_inside_a_pod_are_not_understood() -> None:
    found = pod(volumes=[{"name": "v", "gcePersistentDisk": {"pdName": "d"}}])
    assert found.unsupported == ("gcePersistentDisk",)


def test_amounts_are_rounded_up_as_the_api_server_does() -> None:
    resources = {"requests": {"cpu": "100500u", "memory": "1Gi"}}
    found = pod(containers=[{"name": "c", "resources": resources}], overhead={"cpu": "1u"})
    assert found.containers[0].requests == {"cpu": Quantity.parse("101m"), "memory": Quantity.parse("1Gi")}
    assert found.overhead == {"cpu": Quantity.parse("1m")}


@pytest.mark.parametrize(
    ("kind", "spec", "expected"),
    [
        pytest.param("Service", {"selector": {"app": "x"}}, (Requirement("app", "In", ("x",)),), id="a Service"),
        pytest.param("Service", {}, None, id="a Service that selects nothing"),
        pytest.param(
            "ReplicaSet",
            {"selector": {"matchExpressions": [{"key": "app", "operator": "Exists"}]}},
            (Requirement("app", "Exists"),),
            id="a ReplicaSet",
        ),
    ],
)
def test_selections(kind: str, spec: dict[str, Any], expected: tuple[Requirement, ...] | None) -> None:
    found = parse_selection({"metadata": {"name": "s", "namespace": "ns"}, "spec": spec}, kind)
    assert found == (None if expected is None else Selection(kind, "ns", "s", LabelSelector(expected)))


def test_volume_limits_of_a_node() -> None:
    drivers = [{"name": "ebs", "allocatable": {"count": 25}}, {"name": "efs"}, {"name": "none", "allocatable": {}}]
    name, limits = parse_volume_limits({"metadata": {"name": "n"}, "spec": {"drivers": drivers}})
    assert (name, dict(limits)) == ("n", {"ebs": 25})


def test_volumes_and_claims_in_detail() -> None:
    volume = parse_persistent_volume(
        {
            "metadata": {"name": "v", "labels": {"disk": "fast"}},
            "spec": {
                "capacity": {"storage": "5Gi"},
                "csi": {"driver": "ebs", "volumeHandle": "vol-1"},
                "claimRef": {"namespace": "ns", "name": "c"},
                "storageClassName": "s",
                "volumeMode": "Block",
            },
            "status": {"phase": "Available"},
        }
    )
    assert (volume.driver, volume.handle, volume.claim, volume.storage_class) == ("ebs", "vol-1", "ns/c", "s")
    assert (volume.capacity, volume.block, volume.available) == (Quantity.parse("5Gi"), True, True)
    assert parse_persistent_volume({"metadata": {"name": "v"}, "spec": {"azureDisk": {}}}).in_tree
    claim = parse_persistent_volume_claim(
        {
            "metadata": {"name": "c", "annotations": {"volume.kubernetes.io/selected-node": "n"}},
            "spec": {"resources": {"requests": {"storage": "1Gi"}}, "selector": {"matchLabels": {"disk": "fast"}}},
            "status": {"phase": "Lost"},
        }
    )
    assert (claim.selected_node, claim.lost, claim.capacity) == ("n", True, Quantity.parse("1Gi"))
    assert claim.selector == LabelSelector((Requirement("disk", "In", ("fast",)),))

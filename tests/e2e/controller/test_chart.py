"""The chart: what it renders, what it refuses, and that the plain manifests are the same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.e2e.harness.binary import version
from tests.e2e.harness.control_plane import ControlPlane
from tests.e2e.harness.manifests import IMAGE, ROOT, rendered
from tests.e2e.harness.toolbox import helm

CHART = ROOT / "deploy/charts/foreslice"


def documents(folder: Path, **values: Any) -> list[dict[str, Any]]:
    """What the chart renders with these values."""
    file = folder / "values.json"
    file.write_text(json.dumps({"image": {"repository": IMAGE}, **values}), encoding="utf-8")
    text = helm("template", "mine", str(CHART), "-n", "here", "--kube-version", version(), "--values", str(file))
    return [document for document in yaml.safe_load_all(text) if document]


def of_kind(found: list[dict[str, Any]], kind: str) -> list[str]:
    return [document["metadata"]["name"] for document in found if document["kind"] == kind]


@pytest.mark.parametrize("path", rendered(), ids=str)
def test_the_plain_manifests_are_what_the_chart_renders(path: Path) -> None:
    assert (ROOT / path).read_text(encoding="utf-8") == rendered()[path], "run `make manifests`"


@pytest.mark.parametrize("chart", ["foreslice", "foreslice-crds"])
def test_helm_finds_nothing_wrong(chart: str) -> None:
    assert "0 chart(s) failed" in helm("lint", "--strict", str(CHART.parent / chart))


def test_the_image_is_for_the_installer_to_name(tmp_path: Path) -> None:
    """A default would be a name that somebody else may own one day, with the rights of the controller."""
    with pytest.raises(AssertionError, match=r"(?s)image\.repository.*docs/install\.md"):
        documents(tmp_path, image={})
    image = {"repository": "r.example.com/f", "tag": "2"}
    (deployment,) = (d for d in documents(tmp_path, image=image) if d["kind"] == "Deployment")
    assert deployment["spec"]["template"]["spec"]["containers"][0]["image"] == "r.example.com/f:2"


def test_without_the_right_to_act_only_observing_is_granted(tmp_path: Path) -> None:
    found = documents(tmp_path, rbac={"act": False})
    assert of_kind(found, "ClusterRoleBinding") == ["mine-observe", "mine-auth"]


def test_the_admission_policies_concern_the_account_of_the_release(tmp_path: Path) -> None:
    found = [d for d in documents(tmp_path) if d["kind"] == "ValidatingAdmissionPolicy"]
    assert {d["metadata"]["name"] for d in found} == {"mine-pods", "mine-nodes", "mine-slices", "mine-pools"}
    for policy in found:
        (condition,) = policy["spec"]["matchConditions"]
        assert condition["expression"] == "request.userInfo.username == 'system:serviceaccount:here:mine'"
        assert policy["spec"]["failurePolicy"] == "Fail"
    bindings = [d for d in documents(tmp_path) if d["kind"] == "ValidatingAdmissionPolicyBinding"]
    assert {b["spec"]["policyName"] for b in bindings} == {d["metadata"]["name"] for d in found}
    assert all(binding["spec"]["validationActions"] == ["Deny"] for binding in bindings)
    off = documents(tmp_path, admissionPolicy={"enabled": False})
    assert not any(d["kind"].startswith("ValidatingAdmission") for d in off)


def test_the_network_is_closed_but_for_what_is_named(tmp_path: Path) -> None:
    peers = [{"ipBlock": {"cidr": "10.0.0.0/8"}}]
    (policy,) = (d for d in documents(tmp_path) if d["kind"] == "NetworkPolicy")
    assert policy["spec"]["policyTypes"] == ["Ingress", "Egress"]
    assert policy["spec"]["ingress"] == []
    assert [sorted({port["port"] for port in rule["ports"]}) for rule in policy["spec"]["egress"]] == [
        [53],
        [443, 6443],
        [80, 987, 988, 8080],
    ]
    googles = {"ipBlock": {"cidr": "169.254.169.252/32"}}  # without Dataplane V2 (GKE, Workload Identity Federation)
    assert googles in policy["spec"]["egress"][-1]["to"]
    named = {"metricsFrom": peers, "dnsTo": peers, "httpsTo": peers, "metadataTo": [], "apiServerPorts": [8443]}
    extra = {"ports": [{"port": 4318}], "to": peers}
    found = documents(tmp_path, networkPolicy={**named, "extraEgress": [extra]})
    (policy,) = (d for d in found if d["kind"] == "NetworkPolicy")
    assert policy["spec"]["ingress"] == [{"ports": [{"port": "metrics"}], "from": peers}]
    assert policy["spec"]["egress"] == [
        {"ports": [{"port": 53, "protocol": "UDP"}, {"port": 53, "protocol": "TCP"}], "to": peers},
        {"ports": [{"port": 8443, "protocol": "TCP"}], "to": peers},
        extra,
    ]
    assert "NetworkPolicy" not in {d["kind"] for d in documents(tmp_path, networkPolicy={"enabled": False})}


def test_gke_admits_pods_of_a_system_priority_class(tmp_path: Path) -> None:
    """It refuses them in every namespace but kube-system that has no quota for the class."""
    found = documents(tmp_path)
    (deployment,) = (d for d in found if d["kind"] == "Deployment")
    (quota,) = (d for d in found if d["kind"] == "ResourceQuota")
    (scope,) = quota["spec"]["scopeSelector"]["matchExpressions"]
    assert scope == {
        "scopeName": "PriorityClass",
        "operator": "In",
        "values": [deployment["spec"]["template"]["spec"]["priorityClassName"]],
    }
    assert quota["spec"]["hard"] == {"pods": "1G"}
    assert not [d for d in documents(tmp_path, priorityClassName="own") if d["kind"] == "ResourceQuota"]


def test_replicas_prefer_different_nodes_and_zones(tmp_path: Path) -> None:
    def spread(**values: Any) -> list[dict[str, Any]]:
        (found,) = (d for d in documents(tmp_path, **values) if d["kind"] == "Deployment")
        constraints: list[dict[str, Any]] = found["spec"]["template"]["spec"]["topologySpreadConstraints"]
        labels = found["spec"]["template"]["metadata"]["labels"]
        assert all(labels.items() >= c["labelSelector"]["matchLabels"].items() for c in constraints)
        return constraints

    assert [(c["topologyKey"], c["whenUnsatisfiable"]) for c in spread()] == [
        ("kubernetes.io/hostname", "ScheduleAnyway"),
        ("topology.kubernetes.io/zone", "ScheduleAnyway"),
    ]
    selector = {"matchLabels": {"app.kubernetes.io/instance": "mine"}}
    own = {"maxSkew": 1, "topologyKey": "rack", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": selector}
    assert spread(topologySpreadConstraints=[own]) == [own]


def test_the_role_of_a_provider_is_granted_on_request(tmp_path: Path) -> None:
    assert "mine-aws" in of_kind(documents(tmp_path, rbac={"aws": True}), "ClusterRole")
    assert "mine-aws" not in of_kind(documents(tmp_path), "ClusterRole")


def test_exemplars_need_rights_that_only_their_setting_grants(tmp_path: Path) -> None:
    def roles(**settings: Any) -> list[str]:
        return of_kind(documents(tmp_path, settings=settings), "ClusterRole")

    assert "mine-exemplars" not in roles()
    assert "mine-exemplars" not in roles(grpc={"exemplars": False})
    assert "mine-exemplars" in roles(grpc={"exemplars": True})


def test_the_lease_is_where_the_settings_have_it(tmp_path: Path) -> None:
    found = documents(tmp_path, settings={"lease": {"namespace": "other", "name": "one"}})
    (role,) = (d for d in found if d["kind"] == "Role")
    (binding,) = (d for d in found if d["kind"] == "RoleBinding")
    assert [d["metadata"]["namespace"] for d in (role, binding)] == ["other", "other"]
    assert role["rules"][1]["resourceNames"] == ["one"]
    assert binding["subjects"][0]["namespace"] == "here"


def test_settings_and_catalogs_reach_the_controller(tmp_path: Path) -> None:
    values = {"settings": {"spending": {"maxUsdPerHour": 250}}, "catalogConfigMaps": ["corrections"]}
    found = documents(tmp_path, **values)
    (configuration,) = (document for document in found if document["kind"] == "ConfigMap")
    settings = yaml.safe_load(configuration["data"]["settings.yaml"])
    assert settings["spending"] == {"maxUsdPerHour": 250}
    assert settings["cluster"]["catalog"] == ["/etc/foreslice/catalog/corrections"]
    assert settings["lease"] == {"name": "mine", "namespace": "here"}
    (deployment,) = (document for document in found if document["kind"] == "Deployment")
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    assert "/etc/foreslice/catalog/corrections" in {mount["mountPath"] for mount in container["volumeMounts"]}


def test_the_ports_are_those_of_the_settings(tmp_path: Path) -> None:
    """What listens elsewhere than the Service points to is not scraped, and nobody says so."""

    def ports(**values: Any) -> dict[str, dict[str, int]]:
        found = documents(tmp_path, **values)
        services = [port for d in found if d["kind"] == "Service" for port in d["spec"]["ports"]]
        (deployment,) = (d for d in found if d["kind"] == "Deployment")
        (container,) = deployment["spec"]["template"]["spec"]["containers"]
        container["ports"] = container["ports"] or []
        assert all(port["targetPort"] == port["name"] for port in services)
        assert ("livenessProbe" in container) == ("health" in {port["name"] for port in container["ports"]})
        return {
            "container": {port["name"]: port["containerPort"] for port in container["ports"]},
            "service": {port["name"]: port["port"] for port in services},
        }

    assert ports() == {"container": {"metrics": 8080, "health": 8081}, "service": {"metrics": 8080}}
    given = {"metricsAddress": ":9090", "healthAddress": "0.0.0.0:9091", "externalGrpc": "[::]:9086"}
    caller = {"enabled": True, "certificateSecret": "grpc"}
    assert ports(settings={"serve": given}, clusterAutoscaler=caller) == {
        "container": {"metrics": 9090, "health": 9091, "grpc": 9086, "grpc-expander": 8087},
        "service": {"metrics": 9090, "grpc": 9086, "grpc-expander": 8087},
    }
    off = {"metricsAddress": "off", "healthAddress": "127.0.0.1:0"}
    assert ports(settings={"serve": off}) == {"container": {}, "service": {}}


def test_a_sync_gets_a_place_to_write_to(tmp_path: Path) -> None:
    found = documents(tmp_path, settings={"sync": {"aws": ["us-east-1"]}})
    (configuration,) = (document for document in found if document["kind"] == "ConfigMap")
    settings = yaml.safe_load(configuration["data"]["settings.yaml"])
    (deployment,) = (document for document in found if document["kind"] == "Deployment")
    pod = deployment["spec"]["template"]["spec"]
    mounts = {mount["mountPath"]: mount for mount in pod["containers"][0]["volumeMounts"]}
    assert settings["sync"] == {"aws": ["us-east-1"], "directory": "/var/lib/foreslice/synced"}
    volume = mounts[settings["sync"]["directory"]]["name"]
    assert next(found for found in pod["volumes"] if found["name"] == volume)["emptyDir"]


@pytest.mark.parametrize(
    ("values", "complaint"),
    [
        pytest.param({"replica": 2}, "replica", id="unknown-value"),
        pytest.param({"replicas": 0}, "replicas", id="no-replica"),
        pytest.param({"image": {"digest": "latest"}}, "digest", id="no-digest"),
        pytest.param({"settings": {"cluster": "prod"}}, "cluster", id="setting-without-group"),
        pytest.param({"settings": {"loop": {"retry": "5"}}}, "retry", id="duration-without-unit"),
        pytest.param({"settings": {"work": {"perRound": -5}}}, "perRound", id="negative-number"),
        pytest.param({"settings": {"cluster": {"providers": ["aws"]}}}, r"rbac\.aws=true", id="no-rights"),
    ],
)
def test_a_wrong_value_is_refused_with_its_name(tmp_path: Path, values: dict[str, Any], complaint: str) -> None:
    with pytest.raises(AssertionError, match=complaint):
        documents(tmp_path, **values)


def test_everything_the_chart_can_render_is_accepted(tmp_path: Path, control_plane: ControlPlane) -> None:
    """Except kinds of operators that are not there."""
    switches = {"networkPolicy": {"enabled": True}, "dashboards": {"enabled": True}}
    control_plane.call("POST", "/api/v1/namespaces", {"metadata": {"name": "here"}})
    for document in documents(tmp_path, **switches):
        plural = _PLURALS[document["kind"]]
        root = f"/apis/{document['apiVersion']}" if "/" in document["apiVersion"] else "/api/v1"
        inside = "/namespaces/here" if document["metadata"].get("namespace") else ""
        path = f"{root}{inside}/{plural}?dryRun=All&fieldValidation=Strict"
        assert control_plane.call("POST", path, document)["metadata"]["name"]


_PLURALS = {
    "ClusterRole": "clusterroles",
    "ClusterRoleBinding": "clusterrolebindings",
    "ConfigMap": "configmaps",
    "Deployment": "deployments",
    "NetworkPolicy": "networkpolicies",
    "PodDisruptionBudget": "poddisruptionbudgets",
    "ResourceQuota": "resourcequotas",
    "Role": "roles",
    "RoleBinding": "rolebindings",
    "Service": "services",
    "ServiceAccount": "serviceaccounts",
    "ValidatingAdmissionPolicy": "validatingadmissionpolicies",
    "ValidatingAdmissionPolicyBinding": "validatingadmissionpolicybindings",
}

"""`gcp provisioning-request` and what is there already: objects in files and in a cluster, and what pods were given."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from autoscaler.cli.gcp.provisioning_request import provisioning_request
from autoscaler.cluster.api import ForbiddenError
from autoscaler.cluster.resources import POD_TEMPLATES, PROVISIONING_REQUESTS
from autoscaler.errors import BadInputError
from tests.fakes.http_api import HttpApi, serving

CONTAINER = {"name": "main", "image": "r.example.com/t:1"}
JOB: dict[str, Any] = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "metadata": {"name": "train"},
    "spec": {
        "parallelism": 2,
        "completions": 2,
        "template": {
            "spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "r.example.com/t:1"}]}
        },
    },
}
TEMPLATE = {
    "apiVersion": "v1",
    "kind": "PodTemplate",
    "metadata": {"name": "train", "namespace": "research"},
    "template": {"spec": {"containers": [{"name": "main", "image": "r.example.com/other:1"}]}},
}
REQUEST = {
    "apiVersion": "autoscaling.x-k8s.io/v1",
    "kind": "ProvisioningRequest",
    "metadata": {"name": "train", "namespace": "research"},
    "spec": {
        "provisioningClassName": "queued-provisioning.gke.io",
        "podSets": [{"count": 1, "podTemplateRef": {"name": "train"}}],
    },
}


def run(*objects: dict[str, Any], arguments: tuple[str, ...] = ()) -> Result:
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)})
    return CliRunner().invoke(provisioning_request, ["-f", "-", "-o", "json", *arguments], input=text)


def printed(*objects: dict[str, Any], arguments: tuple[str, ...] = ()) -> list[dict[str, Any]]:
    result = run(*objects, arguments=arguments)
    assert result.exit_code == 0, f"{result.output}{result.exception}"
    items: list[dict[str, Any]] = json.loads(result.stdout)["items"]
    return items


def refused(*objects: dict[str, Any], arguments: tuple[str, ...] = ()) -> str:
    result = run(*objects, arguments=arguments)
    assert isinstance(result.exception, BadInputError), result.output
    return str(result.exception)


def job(**metadata: Any) -> dict[str, Any]:
    return {**JOB, "metadata": {**JOB["metadata"], **metadata}}


class TestInFiles:
    def test_a_request_of_that_name_is_used_already(self) -> None:
        said = refused(job(namespace="research"), TEMPLATE, REQUEST)
        assert "ProvisioningRequest train is in the files already: it is used once" in said
        assert "--name train-2" in said

    def test_a_template_of_that_name_may_be_that_of_another_request(self) -> None:
        said = refused(job(namespace="research"), TEMPLATE)
        assert "PodTemplate train is in the files already, and other requests may name it" in said

    def test_other_names_and_namespaces_are_no_matter(self) -> None:
        assert printed(job(namespace="other"), TEMPLATE, REQUEST)
        assert printed(job(namespace="research"), TEMPLATE, REQUEST, arguments=("--name", "train-2"))

    def test_a_job_without_a_namespace_may_get_the_same_one(self) -> None:
        assert "in the files already" in refused(job(), TEMPLATE)


class TestInACluster:
    @pytest.fixture
    def api(self, tmp_path: Path) -> Iterator[HttpApi]:
        with serving(tmp_path) as found:
            yield found

    def live(self, api: HttpApi) -> tuple[str, ...]:
        return ("--live", "--kubeconfig", api.kubeconfig)

    def test_nothing_of_the_name_is_there(self, api: HttpApi) -> None:
        assert [one["kind"] for one in printed(job(), arguments=self.live(api))] == [
            "PodTemplate",
            "ProvisioningRequest",
        ]
        assert {line.split()[0] for line in api.requests} == {"GET"}

    @pytest.mark.parametrize(
        ("resource", "existing", "said"),
        [
            (PROVISIONING_REQUESTS, REQUEST, "ProvisioningRequest train is in the cluster already"),
            (POD_TEMPLATES, TEMPLATE, "PodTemplate train is in the cluster already"),
        ],
    )
    def test_what_exists_is_an_error_in_its_namespace_only(
        self, resource: Any, existing: dict[str, Any], said: str, api: HttpApi
    ) -> None:
        api.objects.create(resource, existing)
        assert said in refused(job(namespace="research"), arguments=self.live(api))
        assert printed(job(namespace="other"), arguments=self.live(api))
        assert printed(job(namespace="research"), arguments=(*self.live(api), "--name", "train-2"))

    @pytest.mark.parametrize(("namespace", "taken"), [("research", True), ("other", False)])
    def test_a_job_without_a_namespace_is_looked_for_where_kubectl_puts_it(
        self, namespace: str, taken: bool, api: HttpApi
    ) -> None:
        api.objects.create(PROVISIONING_REQUESTS, REQUEST)
        path = Path(api.kubeconfig)
        config = json.loads(path.read_text())
        config["contexts"][0]["context"]["namespace"] = namespace
        path.write_text(json.dumps(config))
        if taken:
            assert "in the cluster already" in refused(job(), arguments=self.live(api))
        else:
            assert printed(job(), arguments=self.live(api))

    def test_a_cluster_without_such_requests_is_named(self, api: HttpApi) -> None:
        api.missing = (PROVISIONING_REQUESTS.plural,)
        result = run(job(), arguments=self.live(api))
        assert result.exit_code == 0
        assert "has no ProvisioningRequest of autoscaling.x-k8s.io/v1: is it the GKE cluster?" in result.stderr

    def test_who_may_not_look_is_not_told_that_nothing_is_there(self, api: HttpApi) -> None:
        api.denied = (("list", PROVISIONING_REQUESTS.plural),)
        assert isinstance(run(job(), arguments=self.live(api)).exception, ForbiddenError)

    def test_a_kubeconfig_alone_would_not_be_read(self, api: HttpApi) -> None:
        result = run(job(), arguments=("--kubeconfig", api.kubeconfig))
        assert result.exit_code == 2
        assert "give --live with them" in result.output


def pod(name: str, **spec: Any) -> dict[str, Any]:
    """As an API server and webhooks leave it: with a token volume, a host name and variables of its own."""
    token = f"kube-api-access-{name}7xq"
    labels = {"scheduling.x-k8s.io/pod-group": "ring", "apps.kubernetes.io/pod-index": name[-1]}
    applied = {"kubectl.kubernetes.io/last-applied-configuration": f'{{"metadata": {{"name": "{name}"}}}}'}
    container = {
        **CONTAINER,
        "env": [{"name": "RANK", "value": name[-1]}],
        "volumeMounts": [
            {"name": token, "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount", "readOnly": True}
        ],
    }
    sources = [{"serviceAccountToken": {"path": "token", "expirationSeconds": 3607}}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "uid": f"uid-{name}", "labels": labels, "annotations": applied},
        "spec": {
            "hostname": name,
            "containers": [{**container, **spec}],
            "volumes": [{"name": token, "projected": {"sources": sources}}],
        },
    }


GROUP = {
    "apiVersion": "scheduling.x-k8s.io/v1alpha1",
    "kind": "PodGroup",
    "metadata": {"name": "ring"},
    "spec": {"minMember": 2},
}


class TestPodsThatExist:
    def test_what_each_pod_was_given_makes_no_second_template(self) -> None:
        template, request = printed(GROUP, pod("rank-0"), pod("rank-1"))
        assert request["spec"]["podSets"] == [{"count": 2, "podTemplateRef": {"name": "ring"}}]
        spec = template["template"]["spec"]
        assert "volumes" not in spec
        assert "volumeMounts" not in spec["containers"][0]
        assert "annotations" not in template["template"]["metadata"]

    def test_what_they_ask_of_a_node_does(self) -> None:
        *_, request = printed(GROUP, pod("rank-0"), pod("rank-1", resources={"requests": {"cpu": "2"}}))
        assert [one["count"] for one in request["spec"]["podSets"]] == [1, 1]

    def test_a_volume_that_only_some_nodes_mount_does(self) -> None:
        bound = pod("rank-1")
        bound["spec"]["volumes"].append({"name": "data", "hostPath": {"path": "/data"}})
        template, _, request = printed(GROUP, bound, pod("rank-0"))
        assert [one["count"] for one in request["spec"]["podSets"]] == [1, 1]
        assert [one["name"] for one in template["template"]["spec"]["volumes"]] == ["data"]


def test_workloads_that_name_no_namespace_get_objects_that_name_none() -> None:
    """kubectl puts all of them into the namespace of --namespace."""
    assert [one["metadata"].get("namespace") for one in printed(job())] == [None, None]
    assert [one["metadata"].get("namespace") for one in printed(job(namespace="research"))] == ["research"] * 2


def test_kueue_may_write_the_request_itself() -> None:
    result = run(job(labels={"kueue.x-k8s.io/queue-name": "gpus"}))
    assert "Kueue admits Job train. If its queue has an admission check" in result.stderr
    assert "Kueue" not in run(job()).stderr

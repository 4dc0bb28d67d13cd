"""status, explain, nodes, blocks and doctor on a cluster behind HTTP, with Foreslice installed and without."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from autoscaler.cli.blocks.group import blocks
from autoscaler.cli.doctor import doctor
from autoscaler.cli.explain import explain
from autoscaler.cli.nodes import nodes
from autoscaler.cli.plan import plan
from autoscaler.cli.status import status
from autoscaler.cluster.resources import (
    CAPACITY_BLOCKS,
    CAPACITY_POOLS,
    DAEMON_SETS,
    DEPLOYMENTS,
    DEVICE_CLASSES,
    INSTANCE_TYPE_OVERLAYS,
    NODES,
    PODS,
    PROVISIONED_NODES,
    RESOURCE_CLAIMS,
)
from autoscaler.errors import BadInputError
from tests.fakes.http_api import HttpApi, serving

GPU_CLASS = {
    "metadata": {"name": "gpu.nvidia.com"},
    "spec": {"selectors": [{"cel": {"expression": "device.driver == 'gpu.nvidia.com'"}}]},
}
DRIVER_IMAGE = "registry.k8s.io/dra-driver-nvidia/dra-driver-nvidia-gpu:v0.4.1"
OURS = ("capacitypools", "capacityblocks", "provisionednodes", "launchbatches", "spendings", "instancetypeoverlays")


def claim(name: str, product: str = "H100") -> dict[str, Any]:
    wanted = f"device.attributes['gpu.nvidia.com'].productName.contains('{product}')"
    exactly = {"deviceClassName": "gpu.nvidia.com", "selectors": [{"cel": {"expression": wanted}}]}
    return {
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}},
    }


def pod(name: str) -> dict[str, Any]:
    spec = {"containers": [{"name": "main"}], "resourceClaims": [{"name": "gpu", "resourceClaimName": name}]}
    return {"metadata": {"name": name, "namespace": "default"}, "spec": spec}


def workload(name: str, image: str, *args: str) -> dict[str, Any]:
    container = {"name": "main", "image": image, "args": list(args)}
    spec = {"nodeSelector": {"nvidia.com/gpu.present": "true"}, "containers": [container]}
    return {"metadata": {"name": name, "namespace": "dra"}, "spec": {"template": {"spec": spec}}}


def pool(**spec: Any) -> dict[str, Any]:
    aws = {"kind": "AwsNodeTemplate", "name": "a"}
    fields = {
        "mode": "Act",
        "nodeTemplateRef": aws,
        "limits": {"nodes": 4},
        "drivers": {"profiles": ["nvidia"]},
        **spec,
    }
    return {"metadata": {"name": "team"}, "spec": fields}


@pytest.fixture
def api(tmp_path: Path) -> Iterator[HttpApi]:
    """A cluster in which nobody wants anything yet."""
    with serving(tmp_path) as found:
        found.objects.create(DEVICE_CLASSES, GPU_CLASS)
        yield found


def demand(api: HttpApi, name: str = "train", product: str = "H100") -> None:
    """A pod that wants one GPU of a product."""
    api.objects.create(RESOURCE_CLAIMS, claim(name, product))
    api.objects.create(PODS, pod(name))


def run(api: HttpApi, command: Any, *arguments: str) -> Result:
    return CliRunner().invoke(command, [*arguments, "--kubeconfig", api.kubeconfig])


def data(api: HttpApi, command: Any, *arguments: str) -> Any:
    return json.loads(run(api, command, *arguments, "-o", "json").stdout)


class TestWithoutAnInstallation:
    @pytest.fixture(autouse=True)
    def nothing_of_ours(self, api: HttpApi) -> None:
        api.missing = OURS

    def test_status_says_where_to_look(self, api: HttpApi) -> None:
        assert "foreslice plan --live" in run(api, status).output

    def test_explain_plans_for_the_pod(self, api: HttpApi) -> None:
        demand(api)
        found = data(api, explain, "train")
        assert found["waitsFor"][0]["code"] == "NotTried"
        assert found["claims"] == [{"entry": "gpu", "claim": "train", "state": "pending", "devices": []}]
        assert found["decision"]["outcome"] == "new"
        chosen = [entry for entry in found["offerings"] if entry["outcome"] == "chosen"]
        assert [entry["offerings"] for entry in chosen] == [1]
        barred = [entry["reason"] for entry in found["offerings"] if entry["codes"] == ["NeedsReservation"]]
        assert len(barred) == 2, "capacity-block and reserved, not each type on a line of its own"

    @pytest.mark.slow
    def test_explain_counts_what_was_rejected_by_reason(self, api: HttpApi) -> None:
        demand(api, "dream", "Z9000")
        found = data(api, explain, "default/dream")
        assert found["decision"]["outcome"] in ("does-not-fit", "unknown")
        assert sum(entry["offerings"] for entry in found["offerings"]) > 300
        assert found["nearestMisses"]
        text = run(api, explain, "dream").output
        assert "Offerings considered:" in text
        assert "Nearest misses:" in text
        assert "Z9000" in text
        assert "pod default/dream:" not in text, "the whole page is about that pod"

    def test_explain_counts_what_is_too_small_once_for_each_resource(self, api: HttpApi) -> None:
        greedy = pod("greedy")
        greedy["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "100", "memory": "10Ti"}}
        api.objects.create(RESOURCE_CLAIMS, claim("greedy"))
        api.objects.create(PODS, greedy)
        short = [e for e in data(api, explain, "greedy")["offerings"] if e["codes"] == ["InsufficientResource"]]
        assert sorted(entry["reason"].split()[1] for entry in short) == ["cpu:", "memory:"]

    def test_explain_says_that_a_pool_is_needed(self, api: HttpApi) -> None:
        demand(api)
        assert "nothing: create a CapacityPool" in run(api, explain, "train").output

    def test_doctor_says_that_nothing_is_installed_and_no_driver_runs(self, api: HttpApi) -> None:
        result = run(api, doctor)
        assert result.exit_code == 3
        assert "not installed" in result.output
        assert "install a driver" in result.output

    def test_nothing_is_written(self, api: HttpApi) -> None:
        before = api.objects.writes
        for command, arguments in ((status, ()), (explain, ("train",)), (nodes, ()), (blocks, ("list",)), (doctor, ())):
            run(api, command, *arguments)
        assert api.objects.writes == before


def test_explain_knows_near_names(api: HttpApi) -> None:
    api.objects.create(CAPACITY_POOLS, pool())
    demand(api)
    error = run(api, explain, "trian").exception
    assert isinstance(error, BadInputError)
    assert "did you mean 'default/train'?" in str(error)


@pytest.mark.parametrize(
    ("mode", "driver", "said"),
    [
        ("Observe", True, "nothing: pool team observes; to let it launch: kubectl patch capacitypool team"),
        ("Act", False, "nothing: pool team is held back, see `foreslice doctor`\n  DriversWillRun: "),
        ("Act", True, "nothing yet; a pool in mode Act launches"),
    ],
    ids=["observing", "held back", "acting"],
)
def test_explain_says_what_is_to_be_done(api: HttpApi, mode: str, driver: bool, said: str) -> None:
    api.objects.create(CAPACITY_POOLS, pool(mode=mode))
    if driver:
        api.objects.create(DAEMON_SETS, workload("plugin", DRIVER_IMAGE, "gpu-kubelet-plugin"))
    demand(api)
    assert said in run(api, explain, "train").output


def test_status_shows_what_is_to_be_put_right(api: HttpApi) -> None:
    api.objects.create(CAPACITY_POOLS, pool())
    demand(api)
    found = data(api, status)
    (shown,) = found["pools"]
    assert (shown["mode"], shown["acts"], shown["conditions"][0]["condition"]) == ("Act", False, "DriversWillRun")
    assert [entry["pods"] for entry in shown["proposed"]] == [["default/train"]]
    assert "held back" in run(api, status).output
    api.objects.create(DAEMON_SETS, workload("plugin", DRIVER_IMAGE, "gpu-kubelet-plugin"))
    (shown,) = data(api, status)["pools"]
    assert (shown["acts"], shown["conditions"]) == (True, [])


def test_overlays_of_the_cluster_lie_over_the_catalog(api: HttpApi) -> None:
    api.objects.create(CAPACITY_POOLS, pool())
    before = data(api, plan, "--live")["catalogDigest"]
    spec = {"cloud": "aws", "instanceType": "p5.4xlarge", "source": "measured", "entry": {"vcpu": 15}}
    api.objects.create(INSTANCE_TYPE_OVERLAYS, {"metadata": {"name": "ours"}, "spec": spec})
    assert data(api, plan, "--live")["catalogDigest"] != before
    wrong = {**spec, "entry": {"vcpu": "many"}}
    api.objects.create(INSTANCE_TYPE_OVERLAYS, {"metadata": {"name": "wrong"}, "spec": wrong})
    assert "InstanceTypeOverlay wrong: nothing of it counts" in run(api, plan, "--live").output


def ordered(name: str) -> dict[str, Any]:
    """A ProvisionedNode, asked for pod train."""
    offering = {"instanceType": "p5.4xlarge", "zone": "us-east-1a", "capacityType": "on-demand", "usdPerHour": "6.88"}
    spec = {"pool": "team", "nodeName": name, "batch": "b", "offerings": [offering], "pods": ["default/train"]}
    spec["prediction"] = {
        "instanceType": "p5.4xlarge",
        "drivers": ["nvidia"],
        "catalogDigest": "c",
        "slicesDigest": "s",
    }
    return {"metadata": {"name": name}, "spec": spec}


def test_nodes_and_what_was_done_for_a_pod(api: HttpApi) -> None:
    api.objects.create(CAPACITY_POOLS, pool())
    demand(api)
    api.objects.create(PROVISIONED_NODES, ordered("team-1"))
    result = run(api, nodes)
    assert "p5.4xlarge" in result.output, result.output
    assert "Intended" in result.output
    assert [entry["provisionedNode"] for entry in data(api, explain, "train")["done"]] == ["team-1"]


def block(name: str) -> dict[str, Any]:
    spec = {
        "pool": "team",
        "reservation": "cr-1",
        "instanceType": "p5.48xlarge",
        "zone": "us-east-1a",
        "count": 2,
        "startsAt": "2026-01-01T00:00:00Z",
        "endsAt": "2036-01-01T00:00:00Z",
    }
    return {"metadata": {"name": name}, "spec": spec}


@pytest.mark.parametrize("command", [(), ("list",)], ids=["alone", "list"])
def test_blocks_are_listed(api: HttpApi, command: tuple[str, ...]) -> None:
    assert "no CapacityBlocks" in run(api, blocks, *command).output
    api.objects.create(CAPACITY_BLOCKS, block("november"))
    assert data(api, blocks, *command)[0]["name"] == "november"


def documented(command: str) -> set[str]:
    """The keys that docs/cli.md names for a command."""
    page = (Path(__file__).parents[3] / "docs/cli.md").read_text(encoding="utf-8")
    (row,) = [line for line in page.splitlines() if line.startswith(f"| `{command}` |")]
    return {word.removesuffix("[]") for word in re.findall(r"`([^`]*)`", row)} - {command}


def test_the_keys_of_the_output_are_documented(api: HttpApi) -> None:
    api.objects.create(CAPACITY_POOLS, pool())
    demand(api)
    api.objects.create(PROVISIONED_NODES, ordered("team-1"))
    api.objects.create(CAPACITY_BLOCKS, block("november"))
    found = data(api, status)
    (shown,) = found.pop("pools")
    inner = shown["proposed"] + shown["conditions"]
    assert {"pools", *found, *shown, *(key for entry in inner for key in entry)} <= documented("status")
    assert set(data(api, nodes)[0]) <= documented("nodes")
    assert set(data(api, blocks)[0]) <= documented("blocks list")


class TestDoctor:
    def areas(self, api: HttpApi, *arguments: str) -> dict[tuple[str, str], str]:
        return {(item["area"], item["level"]): item["message"] for item in data(api, doctor, *arguments)}

    def test_a_healthy_cluster(self, api: HttpApi) -> None:
        api.objects.create(DAEMON_SETS, workload("plugin", DRIVER_IMAGE, "gpu-kubelet-plugin"))
        api.objects.create(CAPACITY_POOLS, pool())
        result = run(api, doctor)
        assert result.exit_code == 0, result.output
        assert "runs nvidia" in result.output
        assert "all" in self.areas(api)["rights", "ok"]

    def test_missing_rights_are_listed(self, api: HttpApi) -> None:
        api.denied = {("create", "events")}
        assert "create events" in self.areas(api)["rights", "error"]

    def test_the_rights_of_a_service_account(self, api: HttpApi) -> None:
        self.areas(api, "--service-account", "foreslice/foreslice")
        assert any("subjectaccessreviews" in request for request in api.requests)

    def test_a_service_account_has_a_namespace(self, api: HttpApi) -> None:
        assert run(api, doctor, "--service-account", "foreslice").exit_code == 2

    @pytest.mark.parametrize("named", ["leases", "customresourcedefinitions", "tokenreviews"])
    def test_rights_on_single_objects_and_namespaces_are_asked_for(self, api: HttpApi, named: str) -> None:
        api.objects.create(CAPACITY_POOLS, pool())
        api.denied = {("get", "leases"), ("get", "customresourcedefinitions"), ("create", "tokenreviews")}
        assert named in self.areas(api)["rights", "error"]

    def test_providers_that_publish_need_no_driver(self, api: HttpApi) -> None:
        api.objects.create(CAPACITY_POOLS, pool(nodeTemplateRef={"kind": "KwokNodeTemplate", "name": "default"}))
        assert "none is needed" in self.areas(api)["drivers", "ok"]
        assert run(api, doctor).exit_code == 0
        api.objects.create(CAPACITY_POOLS, {**pool(), "metadata": {"name": "rented"}})
        assert "install a driver" in self.areas(api)["drivers", "error"]

    def test_other_autoscalers_are_named(self, api: HttpApi) -> None:
        karpenter = workload("karpenter", "public.ecr.aws/karpenter/controller:1.15.0", "--ignore-dra-requests=false")
        api.objects.create(DEPLOYMENTS, karpenter)
        api.objects.create(CAPACITY_POOLS, pool())
        found = self.areas(api)
        assert "Karpenter 1.15.0 (dra/karpenter) launches for pods with claims, too" in found["autoscalers", "warning"]
        errors = [item["message"] for item in data(api, doctor) if item["level"] == "error"]
        assert any(message.startswith("Coexistence (OtherAutoscaler)") for message in errors)

    def test_nodes_that_others_have_started_are_a_warning(self, api: HttpApi) -> None:
        kwok = pool(nodeTemplateRef={"kind": "KwokNodeTemplate", "name": "default"})
        api.objects.create(CAPACITY_POOLS, kwok)
        ready = {"allocatable": {"cpu": "8"}, "conditions": [{"type": "Ready", "status": "True"}]}
        named = {"name": "n1", "labels": {"foreslice.dev/pool": kwok["metadata"]["name"]}}
        api.objects.create(NODES, {"metadata": named, "status": ready})
        found = [item for item in data(api, doctor) if "ForeignNodes" in item["message"]]
        assert [(item["level"], "such as n1" in item["message"]) for item in found] == [("warning", True)]
        assert run(api, doctor).exit_code == 0

    def test_a_driver_that_is_silent_and_devices_that_are_handed_out_twice(self, api: HttpApi) -> None:
        api.objects.create(DAEMON_SETS, workload("plugin", DRIVER_IMAGE, "gpu-kubelet-plugin"))
        ready = {"allocatable": {"nvidia.com/gpu": "8"}, "conditions": [{"type": "Ready", "status": "True"}]}
        labels = {"nvidia.com/gpu.present": "true"}
        api.objects.create(NODES, {"metadata": {"name": "n1", "labels": labels}, "status": ready})
        assert "has published nothing" in self.areas(api)["drivers", "error"]

    def test_gates_that_cannot_be_read(self, api: HttpApi) -> None:
        error = run(api, doctor, "--feature-gates", "GenericWorkload").exception
        assert "write GenericWorkload=true" in str(error)

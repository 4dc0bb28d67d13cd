"""Kueue's queued jobs with claims: its ProvisioningRequests, our nodes, running pods. Both are real processes.

Steps and objects are those of docs/kueue.md.
"""

from __future__ import annotations

import random
import signal
from collections.abc import Iterator
from datetime import timedelta
from functools import partial
from typing import Any, Final

import pytest
import yaml

from autoscaler.clock import SystemClock
from autoscaler.cluster.api import Object
from autoscaler.cluster.resources import (
    CAPACITY_BUFFERS,
    CAPACITY_POOLS,
    EVENTS,
    NODES,
    POD_TEMPLATES,
    PROVISIONED_NODES,
    PROVISIONING_REQUESTS,
)
from instance_catalog.kubernetes import labels
from tests.e2e.harness.gpu_pods import pool
from tests.e2e.harness.installation import ROOT, Installation
from tests.e2e.harness.queue_transcript import held, told
from tests.e2e.harness.queueing import JOBS, WORKLOADS, Kueue
from tests.e2e.harness.steered import SteeredClock

EXAMPLES: Final = ROOT / "docs/examples/kueue"
LIMIT: Final = 12  # nodes
POOL: Final = pool(
    "g6.xlarge",
    mode="Act",
    taints=[{"key": "example.com/queued", "value": "true", "effect": "NoSchedule"}],
    limits={"nodes": LIMIT},
)
ALONE: Final = {"FORESLICE_LEASE_ELECT": "false"}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    configuration = yaml.safe_load(_example("configuration"))
    installed = Installation(tmp_path_factory.mktemp("kueue"), jobs_end=False)
    with installed, Kueue(installed, configuration) as kueue:
        installed.apply(POOL)
        for name in ("queue", "cluster-queue", "device-class"):
            kueue.apply(_example(name))
        installed.apply(yaml.safe_dump(_claims("one-gpu")))
        yield installed


@pytest.fixture(scope="module")
def foreslice(cluster: Installation) -> Iterator[SteeredClock]:
    """One controller for several tests, since starting takes seconds; its clock."""
    clock = SteeredClock(cluster.folder / "clock")
    with cluster.controller("foreslice.log", clock=clock, **ALONE) as controller:
        yield clock
        assert "orbidden" not in controller.log


def test_a_gang_gets_its_nodes_once_although_the_controller_dies(cluster: Installation) -> None:
    cluster.api.create(JOBS, _job("gang", 4, template="one-l4"))
    with cluster.controller("gang.log", **ALONE) as controller:
        cluster.wait_until(lambda: _written(cluster) == 4, "a launch that is written down")
        controller.stop(signal.SIGKILL)
    with cluster.controller("successor.log", **ALONE):
        cluster.wait_until(lambda: _running(cluster, "gang") == 4, "four running pods")
        assert len(_nodes(cluster, _request(cluster, "gang"))) == 4
        assert _written(cluster) == len(cluster.api.list(NODES).items) == 4


@pytest.mark.usefixtures("foreslice")
def test_a_queued_job_runs_on_nodes_that_were_bought_for_it(cluster: Installation) -> None:
    cluster.api.create(JOBS, _job("train", 2))
    cluster.wait_until(lambda: _running(cluster, "train") == 2, "two running pods")
    request = _request(cluster, "train")
    uid = request["metadata"]["uid"]
    pods, nodes = _pods(cluster, "train"), _nodes(cluster, request)
    assert len(nodes) == 2
    assert {pod["spec"]["nodeName"] for pod in pods} == nodes
    assert {pod["spec"]["nodeSelector"][labels.PROVISIONING_REQUEST] for pod in pods} == {uid}
    cluster.wait_until(
        lambda: _reason(_request(cluster, "train"), "BookingExpired") == "CapacityBookingConsumed",
        "the end of the booking",
    )
    assert _reason(_request(cluster, "train"), "Provisioned") == "CapacityIsProvisioned"
    held(told(cluster, _request(cluster, "train")))


@pytest.mark.usefixtures("foreslice")
def test_a_gang_beyond_the_limits_buys_nothing_and_kueue_shows_why(cluster: Installation) -> None:
    before = _written(cluster)
    cluster.api.create(JOBS, _job("large", LIMIT - 3))
    cluster.wait_until(lambda: "limit" in _check(cluster, "large").get("message", ""), "a message of the check")
    assert _check(cluster, "large")["state"] == "Pending"
    assert _written(cluster) == before
    cluster.api.delete(JOBS, "large", namespace="default")


@pytest.mark.usefixtures("foreslice")
def test_a_buffer_behind_the_queue_has_its_node_and_says_so(cluster: Installation) -> None:
    """The definition is Karpenter's, which admits what is written into the status."""
    template, buffer = _buffer()
    cluster.api.create(POD_TEMPLATES, template)
    cluster.api.create(CAPACITY_BUFFERS, buffer)

    def status() -> Object:
        found: Object = cluster.api.get(CAPACITY_BUFFERS, "warm-gpu", namespace="default").get("status", {})
        return found

    cluster.wait_until(lambda: _reason({"status": status()}, "Provisioning") == "FitsExistingCapacity", "its node")
    assert (status()["replicas"], status()["podTemplateRef"]["name"]) == (1, template["metadata"]["name"])
    assert _reason({"status": status()}, "ReadyForProvisioning")
    cluster.api.delete(CAPACITY_BUFFERS, "warm-gpu", namespace="default")


@pytest.mark.usefixtures("foreslice")
def test_ten_gangs_that_do_not_fit_at_once_all_run_whole(cluster: Installation) -> None:
    for name in ("gang", "train"):
        cluster.api.delete(JOBS, name, namespace="default")
    chance = random.Random(17)
    sizes = {f"random-{number}": chance.randint(1, 4) for number in range(10)}
    assert sum(sizes.values()) > LIMIT
    for name, size in sizes.items():
        cluster.api.create(JOBS, _job(name, size, template=chance.choice(("one-gpu", "one-l4"))))
    waiting = dict(sizes)

    def over() -> bool:
        """Ends jobs that run whole. A pod that waits while its siblings run would keep its job from ever ending."""
        assert _written(cluster) <= LIMIT
        for name in [name for name, size in waiting.items() if _running(cluster, name) == size]:
            assert len(_nodes(cluster, _request(cluster, name))) == waiting.pop(name)
            cluster.api.delete(JOBS, name, namespace="default")
        return not waiting

    cluster.wait_until(over, "that every gang runs whole")
    told = [
        event
        for event in cluster.api.list(EVENTS, namespace="default").items
        if "random" in str(event["involvedObject"])
    ]
    assert sum(event["reason"] == "Admitted" for event in told) == len(sizes)
    assert not [event for event in told if "Evicted" in event["reason"]]


@pytest.mark.usefixtures("foreslice")
def test_a_node_that_is_gone_before_its_pod_comes_ends_the_workload(cluster: Installation) -> None:
    job = _job("held", 1)
    job["spec"]["template"]["spec"]["schedulingGates"] = [{"name": "example.com/hold"}]
    cluster.api.create(JOBS, job)
    cluster.wait_until(lambda: len(_pods(cluster, "held")) == 1, "a pod that waits")
    (node,) = _nodes(cluster, _request(cluster, "held"))
    cluster.api.delete(NODES, node)
    cluster.wait_until(lambda: not _workload(cluster, "held")["spec"].get("active", True), "that Kueue gives it up")
    assert any(node in text and "ends or is gone" in text for text in _events(cluster, "held"))
    cluster.api.delete(JOBS, "held", namespace="default")


def test_claims_that_nothing_meets_fail_with_the_nearest_miss(cluster: Installation, foreslice: SteeredClock) -> None:
    before = _written(cluster)
    cluster.apply(yaml.safe_dump(_claims("two-gpus", count=2)))
    cluster.api.create(JOBS, _job("hopeless", 1, template="two-gpus"))
    cluster.wait_until(lambda: "nearest" in _check(cluster, "hopeless").get("message", ""), "the nearest miss")
    foreslice.move_to(SystemClock().now() + timedelta(minutes=1))
    # What wakes it by itself goes by the time that nobody moves.
    cluster.api.patch(CAPACITY_POOLS, "gpu", {"metadata": {"annotations": {"example.com/look": "again"}}})
    cluster.wait_until(partial(_retried, cluster, "hopeless"), "that Kueue tries again later")
    assert _written(cluster) <= before  # the buffer's may go meanwhile
    cluster.api.delete(JOBS, "hopeless", namespace="default")


def test_kueue_refuses_a_claim_with_a_selector_before_there_are_such_devices(cluster: Installation) -> None:
    """A selector that no device of the cluster meets; docs/kueue.md says what to do instead, and `gang` does it."""
    selectors = [{"cel": {"expression": "device.attributes['gpu.nvidia.com'].productName == 'NVIDIA T4'"}}]
    cluster.apply(yaml.safe_dump(_claims("selected", selectors=selectors)))
    cluster.api.create(JOBS, _job("selected", 1, template="selected"))

    def refused() -> bool:
        conditions = _workload(cluster, "selected").get("status", {}).get("conditions", [])
        return any("insufficient matching devices" in entry["message"] for entry in conditions)

    cluster.wait_until(refused, "Kueue's refusal")
    assert not _request(cluster, "selected")
    cluster.api.delete(JOBS, "selected", namespace="default")


@pytest.mark.usefixtures("foreslice")
def test_nothing_is_left_when_the_jobs_are_gone(cluster: Installation) -> None:
    for job in cluster.api.list(JOBS, namespace="default").items:
        cluster.api.delete(JOBS, job["metadata"]["name"], namespace="default")
    cluster.wait_until(cluster.is_empty, "no node")
    cluster.wait_until(lambda: not cluster.api.list(PROVISIONING_REQUESTS, namespace="default").items, "no request")


def _claims(name: str, **exactly: Any) -> Object:
    """The template of the example under another name, with other fields of its request."""
    template: Object = yaml.safe_load(_example("job").split("---")[0])
    template["metadata"]["name"] = name
    template["spec"]["spec"]["devices"]["requests"][0]["exactly"].update(exactly)
    return template


def _example(name: str) -> str:
    return (EXAMPLES / f"{name}.yaml").read_text(encoding="utf-8")


def _job(name: str, pods: int, *, template: str = "one-gpu") -> Object:
    """The job of the example under another name, with so many pods."""
    job: Object = yaml.safe_load(_example("job").split("---")[1])
    job["metadata"]["name"] = name
    job["spec"].update(parallelism=pods, completions=pods)
    job["spec"]["template"]["spec"]["resourceClaims"][0]["resourceClaimTemplateName"] = template
    return job


def _buffer() -> tuple[Object, Object]:
    """The PodTemplate and the CapacityBuffer of the example."""
    documents = {found["kind"]: found for found in yaml.safe_load_all(_example("request"))}
    template, buffer = documents["PodTemplate"], documents["CapacityBuffer"]
    for found in (template, buffer):
        found["metadata"]["namespace"] = "default"
    return template, buffer


def _pods(cluster: Installation, job: str) -> list[Object]:
    return [pod for pod in cluster.pods().values() if pod["metadata"]["labels"].get("job-name") == job]


def _running(cluster: Installation, job: str) -> int:
    return sum(pod["status"]["phase"] == "Running" for pod in _pods(cluster, job))


def _written(cluster: Installation) -> int:
    """How many nodes were launched, or are about to be."""
    return len(cluster.api.list(PROVISIONED_NODES).items)


def _workload(cluster: Installation, job: str) -> Object:
    """What Kueue made of a job; {} before it has."""
    found = cluster.api.list(WORKLOADS, namespace="default").items
    return next((work for work in found if _owner(work) == job), {})


def _request(cluster: Installation, job: str) -> Object:
    """The ProvisioningRequest of a job; {} if there is none."""
    workload = _workload(cluster, job)["metadata"]["name"]
    found = cluster.api.list(PROVISIONING_REQUESTS, namespace="default").items
    return next((request for request in found if _owner(request) == workload), {})


def _owner(found: Object) -> str:
    return str(found["metadata"]["ownerReferences"][0]["name"])


def _nodes(cluster: Installation, request: Object) -> set[str]:
    """The names of the nodes that carry the label of a request."""
    label = {labels.PROVISIONING_REQUEST: request["metadata"]["uid"]}
    return {found["metadata"]["name"] for found in cluster.api.list(NODES, labels=label).items}


def _check(cluster: Installation, job: str) -> Object:
    """The state of the admission check of a job; {} before there is one."""
    checks = _workload(cluster, job).get("status", {}).get("admissionChecks", [])
    return next(iter(checks), {})


def _reason(request: Object, kind: str) -> str:
    """The reason of a condition that is True; "" if it is not."""
    conditions = request.get("status", {}).get("conditions", [])
    return next((c["reason"] for c in conditions if c["type"] == kind and c["status"] == "True"), "")


def _retried(cluster: Installation, job: str) -> bool:
    """Whether Kueue has told why the request failed, and waits before the next one."""
    return any("Retrying after failure" in text and "nearest" in text for text in _events(cluster, job))


def _events(cluster: Installation, job: str) -> list[str]:
    """What was said of a job's Workload."""
    workload = _workload(cluster, job)["metadata"]["name"]
    events = cluster.api.list(EVENTS, namespace="default").items
    return [event["message"] for event in events if event["involvedObject"]["name"] == workload]

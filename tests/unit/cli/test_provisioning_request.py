"""`gcp provisioning-request`: what it prints is read again, and what no request can say is an error."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from autoscaler.cli.gcp.provisioning_request import provisioning_request
from autoscaler.errors import BadInputError
from autoscaler.manifests.load import load
from autoscaler.model.requested_capacity import consumed_request, named_class

CLAIM = """\
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: one-gpu}
spec: {spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu.nvidia.com}}]}}}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: both}
spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu.nvidia.com}}]}}
---
"""
POD = """\
metadata:
        labels: {app: train}
        annotations: {foreslice.dev/expected-duration: 6h}
      spec:
        restartPolicy: Never
        nodeSelector: {cloud.google.com/gke-nodepool: queued}
        resourceClaims: [{name: gpu, resourceClaimTemplateName: one-gpu}]
        containers:
        - name: main
          image: registry.example.com/train:1
          resources: {claims: [{name: gpu}], requests: {cpu: "2", memory: 8Gi}}
"""
JOB = f"""\
apiVersion: batch/v1
kind: Job
metadata: {{name: train}}
spec:
    parallelism: 2
    completions: 2
    template:
      {POD}
"""
JOB_SET = f"""\
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {{name: large}}
spec:
  replicatedJobs:
  - name: leader
    template:
     spec:
      template:
       spec:
         restartPolicy: Never
         containers: [{{name: main, image: registry.example.com/lead:1}}]
  - name: worker
    replicas: 2
    template:
     spec:
      parallelism: 3
      completions: 3
      template:
       {POD.replace(chr(10) + " ", chr(10) + "  ")}
"""
LWS = f"""\
apiVersion: leaderworkerset.x-k8s.io/v1
kind: LeaderWorkerSet
metadata: {{name: served}}
spec:
  replicas: 2
  leaderWorkerTemplate:
    size: 4
    leaderTemplate:
     spec:
       containers: [{{name: main, image: registry.example.com/lead:1}}]
    workerTemplate:
      {POD}
"""


def run(*arguments: str, stdin: str) -> Result:
    return CliRunner().invoke(provisioning_request, ["-f", "-", *arguments], input=CLAIM + stdin)


def refused(*arguments: str, stdin: str) -> str:
    result = run(*arguments, stdin=stdin)
    assert isinstance(result.exception, BadInputError), result.output
    return f"{result.exception} {result.exception.next_step}"


def printed(*arguments: str, stdin: str) -> list[dict[str, object]]:
    result = run("-o", "json", *arguments, stdin=stdin)
    assert result.exit_code == 0, result.output
    items: list[dict[str, object]] = json.loads(result.stdout)["items"]
    return items


def test_what_is_printed_is_read_again(tmp_path: Path) -> None:
    result = run(stdin=JOB)
    assert result.exit_code == 0, result.output
    (tmp_path / "all.yaml").write_text(f"{CLAIM}{result.stdout}", encoding="utf-8")
    loaded = load([str(tmp_path)], strict=True)
    assert [str(problem) for problem in loaded.errors] == []
    (request,) = loaded.snapshot.provisioning_requests
    assert (request.key, request.class_name, request.pods) == ("default/train", "queued-provisioning.gke.io", 2)
    assert dict(request.parameters) == {"maxRunDurationSeconds": str(6 * 3600 + 1800)}
    template, _ = yaml.safe_load_all(result.stdout)
    assert template["template"] == yaml.safe_load(JOB)["spec"]["template"]


def test_annotated_pods_use_the_request(tmp_path: Path) -> None:
    """The comment is what the pod template needs, word for word."""
    out = run(stdin=JOB).stdout
    said = dict(line[4:].split(": ") for line in out.splitlines() if line.startswith("#   "))
    job = yaml.safe_load(JOB)
    job["spec"]["template"]["metadata"]["annotations"] |= said
    (tmp_path / "all.yaml").write_text(f"{CLAIM}{out}---\n{yaml.safe_dump(job)}", encoding="utf-8")
    snapshot = load([str(tmp_path)]).snapshot
    (request,) = snapshot.provisioning_requests
    pods = [pod for pod in snapshot.pods if pod.owner == "Job/train"]
    assert [(request.consumed_by(pod), named_class(pod)) for pod in pods] == [(True, request.class_name)] * 2
    assert {consumed_request(pod) for pod in pods} == {"train"}


def test_pods_that_have_no_place_are_named_and_no_node_pool_is_in_the_way() -> None:
    assert "no place" not in run(stdin=JOB).stderr
    assert "pod default/train-1 has no place" in run(stdin=JOB.replace("memory: 8Gi", "memory: 90Ti")).stderr
    assert "whether GKE's autoscaler serves pods with ResourceClaims is not known" in run(stdin=JOB).stderr


@pytest.mark.parametrize(
    ("workload", "counts"),
    [(JOB, [("train", 2)]), (JOB_SET, [("large-0", 1), ("large-1", 6)])],
)
def test_each_template_has_the_pods_that_are_made_of_it(workload: str, counts: list[tuple[str, int]]) -> None:
    *templates, request = printed(stdin=workload)
    spec = request["spec"]
    assert isinstance(spec, dict)
    assert [(one["podTemplateRef"]["name"], one["count"]) for one in spec["podSets"]] == counts
    assert [one["metadata"]["name"] for one in templates] == [name for name, _ in counts]  # type: ignore[index]


def test_each_workload_has_a_request_and_pods_of_a_gang_have_one() -> None:
    second = JOB.replace("name: train}", "name: eval}", 1)
    names = [one["metadata"]["name"] for one in printed(stdin=f"{JOB}---\n{second}")]  # type: ignore[index]
    assert names == ["train", "train", "eval", "eval"]
    group = """\
apiVersion: scheduling.x-k8s.io/v1alpha1
kind: PodGroup
metadata: {name: ring}
spec: {minMember: 2}
"""
    pod = """\
apiVersion: v1
kind: Pod
metadata: {name: NAME, labels: {scheduling.x-k8s.io/pod-group: ring}}
spec: {containers: [{name: main, image: registry.example.com/train:1}]}
"""
    pods = "---\n".join([group, *(pod.replace("NAME", name) for name in ("a", "b"))])
    _, request = printed(stdin=pods)
    assert request["spec"] == {
        "provisioningClassName": "queued-provisioning.gke.io",
        "podSets": [{"count": 2, "podTemplateRef": {"name": "ring"}}],
    }


def test_a_job_whose_pods_follow_each_other_says_no_duration() -> None:
    *_, request = printed(stdin=JOB.replace("completions: 2", "completions: 8"))
    assert "parameters" not in request["spec"]  # type: ignore[operator]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("resourceClaimTemplateName: one-gpu", "resourceClaimName: both"), "claim both is shared"),
        (("restartPolicy: Never", "nodeName: n1"), "on node n1 already"),
        (("duration: 6h", "duration: 200h"), "Google ends the machines after 7 days"),
        (("kind: Job", "kind: Deployment"), "no request is written for a Deployment"),
        (("completions: 2", "suspend: true"), "no pods to request capacity for"),
        (
            ("duration: 6h", "duration: 6h, autoscaling.x-k8s.io/consume-provisioning-request: other"),
            "use ProvisioningRequest other already",
        ),
    ],
)
def test_what_no_request_can_say(change: tuple[str, str], said: str) -> None:
    text = JOB.replace(*change)
    if "kind: Deployment" in change:
        text = (
            text.replace("batch/v1", "apps/v1")
            .replace("completions: 2", "selector: {matchLabels: {app: train}}")
            .replace("parallelism", "replicas")
        )
    assert said in refused(stdin=text)


def test_several_node_pools_and_one_name_for_several_requests() -> None:
    other = JOB_SET.replace(
        "restartPolicy: Never\n         containers",
        "restartPolicy: Never\n         nodeSelector: {cloud.google.com/gke-nodepool: small}\n         containers",
    )
    assert "several node pools (queued, small)" in refused(stdin=other)
    second = JOB.replace("name: train}", "name: eval}", 1)
    assert "two ProvisioningRequests run-1" in refused("--name", "run-1", stdin=f"{JOB}---\n{second}")


def test_a_leader_worker_set_needs_capacity_again_after_a_restart() -> None:
    said = refused(stdin=LWS)
    assert "makes its pods anew when one fails" in said
    assert "or one with flex-start and without queued provisioning" in said


def test_files_without_workloads() -> None:
    assert "no workload to request capacity for" in refused(stdin="")


def test_two_templates_of_one_name_are_no_request() -> None:
    """The later PodTemplate would replace the earlier one, and a request would ask for machines of the other's pods."""
    second = JOB.replace("name: train}", "name: large-1}", 1)
    assert "two PodTemplates large-1" in refused(stdin=f"{JOB_SET}---\n{second}")


@pytest.mark.parametrize(("hours", "fits"), [("167h", True), ("168h", False)])
def test_starting_belongs_to_the_seven_days(hours: str, fits: bool) -> None:
    text = JOB.replace("duration: 6h", f"duration: {hours}")
    if not fits:
        assert "30 minutes for starting included" in refused(stdin=text)
        return
    *_, request = printed(stdin=text)
    assert request["spec"]["parameters"] == {"maxRunDurationSeconds": str(167 * 3600 + 1800)}  # type: ignore[index]


def test_what_is_only_reserved_elsewhere_may_come_by_such_a_request() -> None:
    """B200 machines are not sold on demand; flex-start, which this class buys, has them."""
    selected = "nodeSelector: {cloud.google.com/gke-nodepool: queued, cloud.google.com/gke-accelerator: nvidia-b200}"
    text = JOB.replace("nodeSelector: {cloud.google.com/gke-nodepool: queued}", selected)
    assert "no place" not in run(stdin=text).stderr


def test_a_node_pool_that_is_required_by_affinity_is_in_nobodys_way() -> None:
    required = (
        "affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: "
        "[{matchExpressions: [{key: cloud.google.com/gke-nodepool, operator: In, values: [queued]}]}]}}}"
    )
    text = JOB.replace("nodeSelector: {cloud.google.com/gke-nodepool: queued}", required)
    assert "no place" not in run(stdin=text).stderr


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("Train_2", "the API server refuses the name 'Train_2'"),
        ("train-", "the API server refuses the name 'train-'"),
        ("a/b", "the API server refuses the name 'a/b'"),
        ("x" * 60, "has 60 characters"),
        ("x" * 254, "has 254 characters; the API server takes 253"),
    ],
)
def test_a_name_that_no_object_can_have_is_refused(name: str, said: str) -> None:
    message = refused("--name", name, stdin=JOB)
    assert said in message
    assert f"--name {name}" in message


def test_a_name_at_its_longest_is_taken_whole() -> None:
    *_, made = printed("--name", "x" * 59, stdin=JOB)
    assert made["metadata"] == {"name": "x" * 59}


VOLUMES = """---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: fast}
provisioner: PROVISIONER
volumeBindingMode: WaitForFirstConsumer
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data}
spec: {storageClassName: fast, accessModes: [ReadWriteOnce], resources: {requests: {storage: 10Gi}}}
"""
MOUNTED = JOB.replace(
    "restartPolicy: Never",
    "restartPolicy: Never\n        volumes: [{name: d, persistentVolumeClaim: {claimName: data}}]",
)


def test_volumes_of_another_cloud_are_refused() -> None:
    said = refused(stdin=MOUNTED + VOLUMES.replace("PROVISIONER", "ebs.csi.aws.com"))
    assert "pod default/train-0 mounts a volume that only machines of aws can mount (ebs.csi.aws.com)" in said
    assert "pd.csi.storage.gke.io" in said


@pytest.mark.parametrize("provisioner", ["pd.csi.storage.gke.io", "nfs.csi.k8s.io"])
def test_volumes_that_google_cloud_mounts_are_no_problem(provisioner: str) -> None:
    assert run(stdin=MOUNTED + VOLUMES.replace("PROVISIONER", provisioner)).exit_code == 0

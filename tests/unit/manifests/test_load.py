"""From files to a Snapshot: what is read, what is made of it, and every mistake with its place."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from autoscaler.kube.problem import Severity
from autoscaler.manifests.load import Loaded, load
from autoscaler.model.pod import PodClaim
from instance_catalog.kubernetes_profile import profile_for

CLAIM = """
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: gpu}
spec:
  devices:
    requests:
      - name: gpu
        exactly: {deviceClassName: gpu.nvidia.com}
"""
TEMPLATE = """
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: gpu}
spec:
  spec:
    devices:
      requests:
        - name: gpu
          exactly: {deviceClassName: gpu.nvidia.com}
"""
POD = """
apiVersion: v1
kind: Pod
metadata: {name: main}
spec:
  resourceClaims: [{name: gpu, resourceClaimName: gpu}]
  containers: [{name: main, image: i}]
"""
JOB = """
apiVersion: batch/v1
kind: Job
metadata: {name: train}
spec:
  parallelism: 2
  template:
    spec:
      resourceClaims: [{name: gpu, resourceClaimTemplateName: gpu}]
      containers: [{name: main, image: i}]
"""


def loaded(*texts: str, strict: bool = False) -> Loaded:
    return load(["-"], stdin=io.StringIO("\n---\n".join(texts)), strict=strict)


def messages(found: Loaded) -> list[str]:
    return [str(problem) for problem in found.problems]


def test_a_pod_and_its_claim() -> None:
    found = loaded(POD, CLAIM)
    assert messages(found) == []
    assert found.ok
    (pod,) = found.snapshot.pods
    assert (pod.key, pod.claims) == ("default/main", (PodClaim("gpu", "gpu"),))
    assert list(found.snapshot.claims) == ["default/gpu"]
    assert found.snapshot.namespaces["default"] == {"kubernetes.io/metadata.name": "default"}
    assert str(pod.origin) == "-:2"


def test_templates_become_claims_of_each_pod() -> None:
    found = loaded(JOB, TEMPLATE)
    assert messages(found) == []
    assert [pod.claims for pod in found.snapshot.pods] == [
        (PodClaim("gpu", "train-0-gpu", "gpu"),),
        (PodClaim("gpu", "train-1-gpu", "gpu"),),
    ]
    first, second = found.snapshot.claims.values()
    assert first.spec_key() == second.spec_key()
    assert [claim.controller for claim in (first, second)] == [pod.uid for pod in found.snapshot.pods]
    assert found.snapshot.pods[0].origin.owner == "Job default/train"


def test_a_generated_claim_leaves_existing_names_alone() -> None:
    found = loaded(JOB, TEMPLATE, CLAIM.replace("name: gpu}", "name: train-0-gpu}"))
    assert found.snapshot.pods[0].claims[0].claim == "train-0-gpu-2"


def test_the_same_files_give_the_same_snapshot() -> None:
    assert loaded(JOB, TEMPLATE).snapshot == loaded(JOB, TEMPLATE).snapshot


def test_workloads_may_invent_the_same_pod_name() -> None:
    job = "apiVersion: batch/v1\nkind: Job\nmetadata: {name: w}\nspec: {template: {spec: {containers: [{name: c}]}}}"
    found = loaded(job, job.replace("batch/v1", "apps/v1").replace("kind: Job", "kind: Deployment"))
    assert messages(found) == []
    assert [pod.name for pod in found.snapshot.pods] == ["w-0", "w-0-job"]


def test_device_classes_of_driver_charts_are_there_and_can_be_replaced() -> None:
    own = "apiVersion: resource.k8s.io/v1\nkind: DeviceClass\nmetadata: {name: gpu.nvidia.com}\nspec: {selectors: []}"
    built_in = {found.name: found for found in loaded(POD, CLAIM).snapshot.classes}
    replaced = {found.name: found for found in loaded(own, POD, CLAIM).snapshot.classes}
    assert built_in["gpu.nvidia.com"].selectors
    assert replaced["gpu.nvidia.com"].selectors == ()
    assert built_in.keys() == replaced.keys()


LIVE = {
    "apiVersion": "v1",
    "kind": "List",
    "items": [
        {
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "metadata": {"name": "web-1", "ownerReferences": [
                {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "1", "controller": True}]},
            "spec": {"replicas": 1, "template": {"spec": {"containers": [{"name": "c"}]}}},
        },
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "web", "uid": "1"},
            "spec": {"replicas": 1, "template": {"spec": {"containers": [{"name": "c"}]}}},
        },
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "web-1-abc", "uid": "3", "ownerReferences": [
                {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-1", "uid": "2", "controller": True}]},
            "spec": {"nodeName": "n", "containers": [{"name": "c"}]},
            "status": {"phase": "Running"},
        },
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "done"},
            "spec": {"containers": [{"name": "c"}]},
            "status": {"phase": "Succeeded"},
        },
    ],
}  # fmt: skip


@pytest.mark.parametrize("indent", [None, 2], ids=["one line", "as kubectl prints it"])
def test_the_output_of_kubectl_counts_pods_once(indent: int | None) -> None:
    found = loaded(json.dumps(LIVE, indent=indent))
    assert messages(found) == []
    assert [(pod.name, pod.node_name) for pod in found.snapshot.pods] == [("web-1-abc", "n")]
    assert len(found.documents) == 4


def test_the_template_of_a_generated_claim_is_not_needed() -> None:
    status = "status: {resourceClaimStatuses: [{name: gpu, resourceClaimName: gpu}]}\n"
    found = loaded(changed(POD, "resourceClaimName", "resourceClaimTemplateName") + status, CLAIM)
    assert messages(found) == []
    assert found.snapshot.pods[0].claims == (PodClaim("gpu", "gpu", "gpu"),)


def test_lines_of_items_of_a_json_list() -> None:
    found = loaded(json.dumps({**LIVE, "items": [*LIVE["items"], {"apiVersion": "v1", "kind": "Pdo"}]}, indent=2))  # type: ignore[misc]
    (problem,) = found.problems
    assert (problem.line, problem.field, problem.next_step) == (
        json.dumps(LIVE, indent=2).count("\n") + 2,
        "kind",
        "did you mean 'Pod'?",
    )


def test_a_plan_context_sets_the_version_and_gates() -> None:
    context = """
apiVersion: foreslice.dev/v1alpha1
kind: PlanContext
metadata: {name: c}
spec: {kubernetesVersion: "1.35", featureGates: {DRADeviceTaints: true}, now: "2027-01-01T00:00:00Z"}
"""
    found = loaded(context, POD, CLAIM)
    assert messages(found) == []
    assert found.snapshot.profile == profile_for("1.35").with_gates(device_taints=True)
    assert found.context.now is not None
    chosen = load(["-"], stdin=io.StringIO(context), profile=profile_for("1.37"))
    assert chosen.snapshot.profile == profile_for("1.37").with_gates(device_taints=True)


POD_GROUP = """
apiVersion: scheduling.x-k8s.io/v1alpha1
kind: PodGroup
metadata: {name: g}
spec: {minMember: 2}
"""
GANG_POD = POD.replace("{name: main}", "{name: main, labels: {scheduling.x-k8s.io/pod-group: g}}", 1)
WORKLOAD = """
apiVersion: scheduling.k8s.io/v1alpha1
kind: Workload
metadata: {name: w}
spec: {podGroups: [{name: g, policy: {gang: {minCount: 2}}}]}
"""
GATES = """
apiVersion: foreslice.dev/v1alpha1
kind: PlanContext
metadata: {name: c}
spec: {featureGates: {GenericWorkload: true, GangScheduling: true}}
"""
MEMBER = POD.replace("spec:", "spec:\n  workloadRef: {name: w, podGroup: g, podGroupReplicaKey: '1'}", 1)


def test_gangs() -> None:
    found = loaded(POD_GROUP, GANG_POD, CLAIM)
    assert messages(found) == []
    assert {key: gang.min_count for key, gang in found.snapshot.gangs.items()} == {"default/g": 2}


def test_each_replica_of_a_workloads_pod_group_is_a_gang() -> None:
    found = loaded(GATES, WORKLOAD, MEMBER, CLAIM)
    assert messages(found) == []
    assert set(found.snapshot.gangs) == {"default/w/g", "default/w/g/1"}


def changed(text: str, old: str, new: str) -> str:
    assert old in text
    return text.replace(old, new)


MISTAKES = {
    "not YAML": ("a: [", "-:2: invalid YAML (line 2, column 1): while parsing a flow node"),
    "a Helm template": ("{{ .Values.x }}: 1", "give the output of `helm template`"),
    "a tab": ("a:\n\t- b", "use spaces"),
    "a field twice": ("kind: Pod\nkind: Pod", "field 'kind' is given twice"),
    "not an object": ("- a", "-:1: is not a Kubernetes object\n  an object has apiVersion, kind and metadata"),
    "no kind": ("apiVersion: v1", "is not a Kubernetes object: kind is missing"),
    "nothing at all": ("# empty", "-: no Kubernetes objects found"),
    "a misspelled kind": (
        changed(POD, "kind: Pod", "kind: Pood"),
        "-:3: Pood main: kind: unknown kind 'Pood'\n  did you mean 'Pod'?",
    ),
    "a kind of nobody": (
        "apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nmetadata: {name: x}",
        "its pods cannot be known\n  if it makes pods, give the pods instead",
    ),
    "a kind of nobody with a known name": (
        "apiVersion: batch.volcano.sh/v1alpha1\nkind: Job\nmetadata: {name: x}",
        "unknown kind 'Job' of batch.volcano.sh/v1alpha1: its pods cannot be known",
    ),
    "a group of the past": (
        "apiVersion: extensions/v1beta1\nkind: Deployment\nmetadata: {name: x}",
        "Deployment is not a kind of extensions/v1beta1\n  write apiVersion: apps/v1",
    ),
    "a kind of another group": (
        changed(JOB, "batch/v1", "apps/v1"),
        "apiVersion: Job is not a kind of apps/v1\n  write apiVersion: batch/v1",
    ),
    "a version of the past": (
        changed(JOB, "batch/v1", "batch/v2"),
        "apiVersion: Job of batch/v2 is not known\n  write apiVersion: batch/v1",
    ),
    "no name": (
        changed(
            POD,
            "{name: main}",
            "{}",
        ),
        "-:4: Pod: metadata.name: is required",
    ),
    "a claim nobody made": (
        POD,
        "-:6: Pod main: spec.resourceClaims[0].resourceClaimName: there is no ResourceClaim 'gpu'\n  add the",
    ),
    "a misspelled template": (
        JOB + "---" + changed(TEMPLATE, "{name: gpu}", "{name: gpus}"),
        "there is no ResourceClaimTemplate 'gpu'\n  did you mean 'gpus'?",
    ),
    "a claim of another namespace": (
        POD + "---" + changed(CLAIM, "{name: gpu}", "{name: gpu, namespace: other}"),
        "other/gpu exists in another namespace",
    ),
    "a misspelled class": (
        POD + "---" + changed(CLAIM, "gpu.nvidia.com", "gpu.nvida.com"),
        "-:16: ResourceClaim gpu: spec.devices.requests[0].exactly.deviceClassName: "
        "there is no DeviceClass 'gpu.nvida.com'\n  did you mean 'gpu.nvidia.com'?",
    ),
    "a claim that the container names wrongly": (
        changed(POD, "image: i", "resources: {claims: [{name: gpus}]}") + "---" + CLAIM,
        "spec.containers[0].resources.claims[0].name: the pod has no resource claim 'gpus'\n  did you mean 'gpu'?",
    ),
    "the same name twice": (
        POD + "---" + CLAIM + "---" + POD,
        "Pod main: metadata.name: is already defined at -:2\n  remove one of the two",
    ),
    "the v1beta1 form in v1": (
        changed(CLAIM, "exactly: {deviceClassName: gpu.nvidia.com}", "deviceClassName: gpu.nvidia.com") + "---" + POD,
        "  - name: gpu\n    exactly:\n      deviceClassName: gpu.nvidia.com",
    ),
    "the alpha API": (
        "apiVersion: resource.k8s.io/v1alpha2\nkind: ResourceClass\nmetadata: {name: c}\ndriverName: d.example",
        'expression: device.driver == "d.example"',
    ),
    "an alpha claim template": (
        "apiVersion: resource.k8s.io/v1alpha2\nkind: ResourceClaimTemplate\nmetadata: {name: c}\n"
        "spec: {spec: {resourceClassName: k}}",
        "deviceClassName: k",
    ),
    "an old version": (changed(CLAIM, "k8s.io/v1", "k8s.io/v1alpha3"), "write apiVersion: resource.k8s.io/v1beta1"),
    "a version of the future": (
        changed(CLAIM, "k8s.io/v1", "k8s.io/v2"),
        "ResourceClaim of resource.k8s.io/v2 is not known\n  write apiVersion: resource.k8s.io/v1",
    ),
    "a gang nobody declared": (
        GANG_POD + "---" + CLAIM,
        "metadata.labels['scheduling.x-k8s.io/pod-group']: there is no PodGroup 'g'",
    ),
    "a pod group of a workload nobody declared": (
        MEMBER + "---" + CLAIM,
        "spec.workloadRef.podGroup: there is no pod group in that Workload 'g'",
    ),
    "a generated claim that is not there": (
        POD.replace("resourceClaimName", "resourceClaimTemplateName")
        + "status: {resourceClaimStatuses: [{name: gpu, resourceClaimName: main-gpu-x}]}",
        "status.resourceClaimStatuses[0].resourceClaimName: there is no ResourceClaim 'main-gpu-x'",
    ),
    "gangs without their gates": (
        WORKLOAD,
        "needs the feature gates GenericWorkload and GangScheduling, which are off in v1.36.3",
    ),
    "an unknown gate": (
        changed(GATES, "GenericWorkload", "GenericWorkloads"),
        "unknown feature gate 'GenericWorkloads'\n  did you mean 'GenericWorkload'?",
    ),
    "two contexts": (
        GATES + "---" + GATES.replace("{name: c}", "{name: d}").replace("true", "false"),
        "contradicts an earlier PlanContext",
    ),
    "an old Kubernetes": (
        "apiVersion: foreslice.dev/v1alpha1\nkind: PlanContext\nmetadata: {name: c}\nspec: {kubernetesVersion: '1.20'}",
        "is older than v1.34.0",
    ),
    "a pool that makes no sense": (
        "apiVersion: foreslice.dev/v1alpha1\nkind: CapacityPool\nmetadata: {name: p}\nspec: {limits: 3}",
        "CapacityPool p: spec.limits",
    ),
    "a provisioned node that is none": (
        "apiVersion: foreslice.dev/v1alpha1\nkind: ProvisionedNode\nmetadata: {name: p}\nspec: {}",
        "-:1: ProvisionedNode p",
    ),
}


@pytest.mark.parametrize(("text", "expected"), MISTAKES.values(), ids=MISTAKES)
def test_mistakes_are_errors_with_place_reason_and_next_step(text: str, expected: str) -> None:
    found = loaded(text)
    assert not found.ok
    everything = "\n".join(messages(found))
    assert expected in everything


def test_every_error_of_ours_says_what_to_do_next() -> None:
    ours = [text for name, (text, _) in MISTAKES.items() if name != "a pool that makes no sense"]
    assert [str(problem) for text in ours for problem in loaded(text).errors if not problem.next_step] == []


def with_selector(expression: str) -> str:
    selectors = f"selectors: [{{cel: {{expression: {expression}}}}}]"
    exactly = f"exactly:\n          deviceClassName: gpu.nvidia.com\n          {selectors}"
    return changed(CLAIM, "exactly: {deviceClassName: gpu.nvidia.com}", exactly)


@pytest.mark.parametrize(
    ("expression", "message", "next_step"),
    [
        (
            """'device.capacity["gpu.nvidia.com"].memory >= quantity("40Gi")'""",
            "does not compile at column 35: found no matching overload",
            'write device.capacity["gpu.nvidia.com"].memory.compareTo(quantity("40Gi")) >= 0',
        ),
        ("device.driver =", "does not compile at column 15: Syntax error", "Write == to compare"),
        ('"true &&\\n foo"', "does not compile at line 2, column 2: undeclared reference", ""),
    ],
    ids=["quantities have no >=", "unfinished", "on its second line"],
)
def test_selectors_that_do_not_compile(expression: str, message: str, next_step: str) -> None:
    found = loaded(with_selector(expression), POD)
    (problem,) = found.problems
    assert (problem.line, problem.field) == (11, "spec.devices.requests[0].exactly.selectors[0].cel.expression")
    assert message in problem.message
    assert next_step in problem.next_step


def test_all_mistakes_are_found_at_once() -> None:
    bad_pod, bad_job = changed(POD, "containers", "container"), changed(JOB, "parallelism: 2", "parallelism: two")
    found = loaded(bad_pod, "kind: [", bad_job, "kind: }")
    assert [(problem.line, problem.field) for problem in found.errors] == [
        (5, "spec.containers"),
        (11, ""),
        (17, "spec.parallelism"),
        (24, ""),
    ]


WARNINGS = {
    "an ignored kind": (
        "apiVersion: v1\nkind: Service\nmetadata: {name: s}",
        "-:1: Service s: ignored: it has no influence on where pods fit",
    ),
    "an ignored group": (
        "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: s}",
        "-:1: Role s: ignored",
    ),
    "a claim nobody uses": (CLAIM, "ResourceClaim gpu: no pod uses this claim, so nothing is planned for it"),
    "a volume claim that is not there": (
        POD + "  volumes: [{name: v, persistentVolumeClaim: {claimName: data}}]\n---" + CLAIM,
        "there is no PersistentVolumeClaim 'data' in the files",
    ),
    "a suspended job": (
        changed(JOB, "spec:\n  parallelism", "spec:\n  suspend: true\n  parallelism") + "---" + TEMPLATE,
        "Job train: spec.suspend: suspended",
    ),
}


@pytest.mark.parametrize(("text", "expected"), WARNINGS.values(), ids=WARNINGS)
def test_what_is_only_worth_knowing_is_a_warning(text: str, expected: str) -> None:
    found = loaded(text)
    assert found.ok
    (problem,) = found.problems
    assert problem.severity is Severity.WARNING
    assert expected in str(problem)


@pytest.mark.parametrize("strict", [False, True])
def test_unknown_fields_warn_and_fail_when_strict(strict: bool) -> None:
    found = loaded(changed(POD, "  containers", "  nodeSelecter: {a: b}\n  containers"), CLAIM, strict=strict)
    (problem,) = found.problems
    assert str(problem) == (
        "-:7: Pod main: spec.nodeSelecter: unknown field 'nodeSelecter'\n  did you mean 'nodeSelector'?"
    )
    assert found.ok is not strict
    assert found.snapshot.pods[0].unsupported == ("nodeSelecter",)


def test_directories_are_read_recursively(tmp_path: Path) -> None:
    (tmp_path / "deep" / "deeper").mkdir(parents=True)
    (tmp_path / "deep" / "deeper" / "pod.yml").write_text(POD)
    (tmp_path / "claim.json").write_text(
        json.dumps({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": "gpu"},
                    "spec": {"devices": {"requests": []}}})
    )  # fmt: skip
    (tmp_path / "README.md").write_text("not: [a manifest")
    (tmp_path / ".hidden.yaml").write_text("not: [a manifest")
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "config.yaml").write_text("not: [a manifest")
    found = load([str(tmp_path), str(tmp_path / "claim.json")])
    assert messages(found) == []
    assert [pod.name for pod in found.snapshot.pods] == ["main"]
    assert found.snapshot.pods[0].origin.path.endswith("pod.yml")


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("missing.yaml", None, "cannot be read: No such file or directory"),
        ("binary.yaml", b"\xff\xfe\x00", "is not text"),
        ("empty", "directory", "no manifests in this directory"),
        ("broken.json", b'{"a": 1,}', "invalid JSON (line 1"),
    ],
)
def test_files_that_cannot_be_used(tmp_path: Path, name: str, content: object, expected: str) -> None:
    path = tmp_path / name
    if isinstance(content, bytes):
        path.write_bytes(content)
    elif content:
        path.mkdir()
    found = load([str(path)])
    assert not found.ok
    (text,) = messages(found)
    assert text.startswith(str(path))
    assert expected in text


def test_overlays_and_node_templates_are_handed_on() -> None:
    head = "apiVersion: foreslice.dev/v1alpha1\nkind: {}\nmetadata: {{name: x}}\nspec: {}"
    overlay = "{cloud: aws, instanceType: p5.48xlarge, source: contract 7}"
    found = loaded(head.format("InstanceTypeOverlay", overlay), head.format("SimulatedNodeTemplate", "{}"))
    assert messages(found) == []
    assert [document.name for document in (*found.overlays, *found.node_templates)] == [
        "InstanceTypeOverlay x",
        "SimulatedNodeTemplate x",
    ]


def test_an_overlay_that_says_too_little_is_not_handed_on() -> None:
    found = loaded("apiVersion: foreslice.dev/v1alpha1\nkind: InstanceTypeOverlay\nmetadata: {name: x}\nspec: {}")
    assert not found.ok
    assert found.overlays == ()

"""From files to a Snapshot: what is read and what is made of it."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from autoscaler.manifests.load import load
from autoscaler.model.pod import PodClaim
from instance_catalog.kubernetes.profile import profile_for
from tests.unit.manifests.texts import (
    CLAIM,
    GANG_POD,
    GATES,
    JOB,
    MEMBER,
    POD,
    POD_GROUP,
    SHARING_GROUP,
    TEMPLATE,
    WORKLOAD,
    changed,
    loaded,
    messages,
)


def test_a_pod_and_its_claim() -> None:
    found = loaded(POD, CLAIM)
    assert messages(found) == []
    assert found.ok
    (pod,) = found.snapshot.pods
    assert (pod.key, pod.claims) == ("default/main", (PodClaim("gpu", "gpu"),))
    assert list(found.snapshot.claims) == ["default/gpu"]
    assert found.snapshot.namespaces["default"] == {"kubernetes.io/metadata.name": "default"}
    assert str(pod.origin) == "-:2"


def test_a_pod_that_has_its_node_needs_no_group() -> None:
    bound = changed(GANG_POD, "spec:", "spec:\n  nodeName: n")
    assert any("there is no PodGroup" in text for text in messages(loaded(GANG_POD, CLAIM)))
    assert not any("there is no PodGroup" in text for text in messages(loaded(bound, CLAIM)))


def test_a_missing_group_of_a_pod_that_no_pool_is_for_hides_nothing_else() -> None:
    """Its scheduler may use the name alone; in the scope of a pool it is planned as a part of the group."""
    other = changed(GANG_POD, "spec:", "spec:\n  schedulerName: own")
    found = loaded(other, CLAIM)
    assert found.ok
    (text,) = (one for one in messages(found) if "there is no PodGroup" in one)
    assert "or correct the name; leave it if own needs no such object, until a pool serves its pods" in text
    pool = "apiVersion: foreslice.dev/v1alpha1\nkind: CapacityPool\nmetadata: {name: gpu}\n"
    planned = loaded(other, CLAIM, f"{pool}spec: {{limits: {{nodes: 1}}, scope: {{schedulerNames: [own]}}}}")
    assert not planned.ok
    assert any("if own needs no such object, write one for the plan alone" in one for one in messages(planned))


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
    pods = "{template: {spec: {containers: [{name: c, image: i}]}}}"
    job = f"apiVersion: batch/v1\nkind: Job\nmetadata: {{name: w}}\nspec: {pods}"
    deployment = job.replace("batch/v1", "apps/v1").replace("kind: Job", "kind: Deployment")
    found = loaded(job, deployment.replace("{template", "{selector: {matchLabels: {a: b}}, template"))
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
            "spec": {"replicas": 1, "template": {"spec": {"containers": [{"name": "c", "image": "i"}]}}},
        },
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "web", "uid": "1"},
            "spec": {"replicas": 1, "template": {"spec": {"containers": [{"name": "c", "image": "i"}]}}},
        },
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "web-1-abc", "uid": "3", "ownerReferences": [
                {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-1", "uid": "2", "controller": True}]},
            "spec": {"nodeName": "n", "containers": [{"name": "c", "image": "i"}]},
            "status": {"phase": "Running"},
        },
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "done"},
            "spec": {"containers": [{"name": "c", "image": "i"}]},
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


def test_gangs() -> None:
    found = loaded(POD_GROUP, GANG_POD, CLAIM)
    assert messages(found) == []
    assert {key: gang.min_count for key, gang in found.snapshot.gangs.items()} == {"default/g": 2}


def test_a_pod_group_has_one_claim_for_all_of_its_pods() -> None:
    job = changed(JOB, "    spec:\n", "    spec:\n      schedulingGroup: {podGroupName: g}\n")
    files = (job, SHARING_GROUP, TEMPLATE)
    found = loaded(changed(GATES, "{Gen", "{DRAWorkloadResourceClaims: true, Gen"), *files)
    assert messages(found) == []
    assert {pod.claims for pod in found.snapshot.pods} == {(PodClaim("gpu", "g-gpu", "gpu"),)}
    (claim,) = found.snapshot.claims.values()
    group = found.snapshot.gangs["default/g"]
    assert (claim.pod_group, claim.controller) == ("g", group.uid)
    without = loaded(GATES, *files)
    assert messages(without) == [
        "-:25: PodGroup g: spec.resourceClaims: needs the feature gate DRAWorkloadResourceClaims, which is off in "
        "v1.36.3\n  every pod gets claims of its own now; if your cluster has the gate, say so in a PlanContext"
    ]
    assert list(without.snapshot.claims) == ["default/train-0-gpu", "default/train-1-gpu"]


def test_each_replica_of_a_workloads_pod_group_is_a_gang() -> None:
    found = loaded(GATES, WORKLOAD, MEMBER, CLAIM)
    assert messages(found) == []
    assert set(found.snapshot.gangs) == {"default/w/g", "default/w/g/1"}


@pytest.mark.parametrize("strict", [False, True])
def test_unknown_fields_warn_and_fail_when_strict(strict: bool) -> None:
    found = loaded(changed(POD, "  containers", "  nodeSelecter: {a: b}\n  containers"), CLAIM, strict=strict)
    (problem,) = found.problems
    assert problem.block == (
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
        ("in a directory", "device", "in a directory/endless.yaml: is not a file"),
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
        if content == "device":
            (path / "endless.yaml").symlink_to("/dev/null")
    found = load([str(path)])
    assert not found.ok
    (text,) = messages(found)
    assert text.startswith(str(path))
    assert expected in text


def test_addresses_are_not_fetched() -> None:
    (found,) = messages(load(["https://example.com/pods.yaml"]))
    assert found.endswith("nothing is fetched here: download it first, or pipe it to `-f -`")


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


VOLUME_LIMITS = """
apiVersion: v1
kind: Node
metadata: {name: node}
status: {allocatable: {cpu: "1"}}
---
apiVersion: storage.k8s.io/v1
kind: CSINode
metadata: {name: node}
spec: {drivers: [{name: ebs.csi.aws.com, nodeID: i-1, allocatable: {count: 25}}]}
---
apiVersion: storage.k8s.io/v1
kind: CSIDriver
metadata: {name: local.example.com}
spec: {storageCapacity: true}
---
apiVersion: storage.k8s.io/v1
kind: CSIStorageCapacity
metadata: {name: n-local}
storageClassName: local
nodeTopology: {matchLabels: {a: b}}
capacity: 3Gi
---
apiVersion: storage.k8s.io/v1
kind: VolumeAttachment
metadata: {name: csi-1}
spec: {attacher: ebs.csi.aws.com, nodeName: node, source: {persistentVolumeName: v}}
"""
SPREAD = """
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: c, image: i, resources: {requests: {cpu: "1"}}}]}
"""


def test_storage_objects_say_what_nodes_attach_and_what_can_be_made_there() -> None:
    found = loaded(VOLUME_LIMITS)
    assert messages(found) == []
    (node,) = found.snapshot.nodes
    assert node.volume_limits == {"ebs.csi.aws.com": 25}
    assert [(one.node, one.volume) for one in found.snapshot.attachments] == [("node", "v")]
    assert found.snapshot.capacity_trackers == {"local.example.com"}
    assert [str(one.largest) for one in found.snapshot.storage_capacities] == ["3Gi"]


def test_services_and_controllers_are_kept_as_what_they_select() -> None:
    found = loaded(SPREAD)
    assert messages(found) == []
    assert [(entry.kind, entry.name) for entry in found.snapshot.selections] == [
        ("Service", "web"),
        ("Deployment", "web"),
    ]
    (pod,) = found.snapshot.pods
    assert pod.owner == "Deployment/web"
    assert all(entry.selector.matches(pod.labels) for entry in found.snapshot.selections)


@pytest.mark.parametrize(
    ("spec", "known"),
    [
        ("cluster: {name: c1, location: us-central1}, nodePools: [h100]", {"cloud.google.com/gke-nodepool": "h100"}),
        ("cluster: {name: c1, location: us-central1}, nodePools: [h100, h200]", None),
        ("instanceGroups: [{name: a, zone: us-central1-a}]", None),
        ("nodePools: [h100]", None),  # it lacks its cluster
    ],
)
def test_the_nodes_of_an_only_node_pool_have_its_name(spec: str, known: dict[str, str] | None) -> None:
    pool = """
apiVersion: foreslice.dev/v1alpha1
kind: CapacityPool
metadata: {name: gpu}
spec: {nodeTemplateRef: {kind: GCPNodeTemplate, name: gpu}, limits: {nodes: 1}}
"""
    template = f"""
apiVersion: foreslice.dev/v1alpha1
kind: GCPNodeTemplate
metadata: {{name: gpu}}
spec: {{{spec}}}
"""
    for files in ((pool, template), (template, pool)):
        (found,) = loaded(*files).snapshot.pools
        assert [nodes.labels for nodes in found.registers] == ([] if known is None else [known])

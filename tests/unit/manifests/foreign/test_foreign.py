"""Foreign input: what is left out with a reason, and what an API server refuses."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest

from autoscaler.manifests.load import Loaded, load
from instance_catalog.diagnostic import Severity

POD = "apiVersion: v1\nkind: Pod\nmetadata: {name: %s}\nspec: {containers: [{name: c, image: i}]}\n"


def read(text: str, *, skip: bool = False) -> Loaded:
    return load(["-"], stdin=io.StringIO(text), skip_unknown=skip)


def problems(found: Loaded) -> str:
    return "\n".join(f"{one.severity.value}: {one.block}" for one in found.problems)


UNKNOWN = "apiVersion: x.example.com/v1\nkind: Thing\nmetadata: {name: x}\n---\n"


@pytest.mark.parametrize("text", [UNKNOWN, "metadata: {name: a}\n---\n", "- a\n---\n"])
def test_unknown_objects_are_left_out_on_request(text: str) -> None:
    assert not read(text + POD % "p").ok
    found = read(text + POD % "p", skip=True)
    assert found.ok
    assert [pod.name for pod in found.snapshot.pods] == ["p"]
    assert [one.severity for one in found.problems] == [Severity.WARNING]


@pytest.mark.parametrize(
    ("version", "kind"),
    [
        ("cloud.google.com/v1", "BackendConfig"),
        ("sriovnetwork.openshift.io/v1", "SriovNetworkNodePolicy"),
        ("kind.x-k8s.io/v1alpha4", "Cluster"),
        ("kueue.x-k8s.io/v1beta1", "Cohort"),
        ("config.kueue.x-k8s.io/v1beta1", "Configuration"),
        ("nvidia.com/v1", "ClusterPolicy"),
        ("inference.networking.k8s.io/v1", "InferencePool"),
        ("trainer.kubeflow.org/v1alpha1", "TrainingRuntime"),
        ("trainer.kubeflow.org/v1alpha1", "ClusterTrainingRuntime"),
    ],
)
def test_kinds_that_make_no_pods_are_left_out(version: str, kind: str) -> None:
    found = read(f"apiVersion: {version}\nkind: {kind}\nmetadata: {{name: x}}\n---\n" + POD % "p")
    assert found.ok, problems(found)
    assert "ignored: " in problems(found)


@pytest.mark.parametrize("name", ["values.yaml", "values-prod.yaml", "Chart.yaml", "kustomization.yaml"])
def test_files_of_helm_and_kustomize_beside_manifests_are_left_out(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("image: {tag: v1}\nresources: [a.yaml]\n", encoding="utf-8")
    (tmp_path / "pod.yaml").write_text(POD % "p", encoding="utf-8")
    found = load([str(tmp_path)])
    assert found.ok, problems(found)
    assert [pod.name for pod in found.snapshot.pods] == ["p"]


def test_an_equal_duplicate_counts_once_and_a_different_one_is_a_mistake() -> None:
    found = read(f"{POD % 'p'}---\n{POD % 'p'}")
    assert found.ok
    assert len(found.snapshot.pods) == 1
    assert "the same object is in -:1; it counts once" in problems(found)
    assert not read(f"{POD % 'p'}---\n{(POD % 'p').replace('name: c', 'name: d')}").ok


@pytest.mark.parametrize(
    "text",
    [
        '{"apiVersion": "v1", "kind": "List", "items": []}',
        "apiVersion: v1\nkind: PodList\nitems: []\n",
        "apiVersion: v1\nkind: List\nitems:\n",
    ],
)
def test_an_empty_list_is_an_answer(text: str) -> None:
    found = read(text)
    assert found.ok, problems(found)
    assert found.snapshot.pods == ()


def test_objects_in_a_json_array_are_read() -> None:
    box = '{"containers": [{"name": "c", "image": "i"}]}'
    one = '{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "%s"}, "spec": ' + box + "}"
    found = read(f"[{one % 'a'},\n {one % 'b'}]")
    assert [pod.name for pod in found.snapshot.pods] == ["a", "b"]
    assert [document.line for document in found.documents] == [1, 2]


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("GPU_1", "refuses the name 'GPU_1'"),
        ("Über_Pod", "refuses the name 'Über_Pod'"),
        ("a" * 254, "has 254 characters; the API server takes 253"),
        ("-a", "refuses the name '-a'"),
    ],
)
def test_names_that_the_api_server_refuses(name: str, told: str) -> None:
    assert told in problems(read(POD % name))


@pytest.mark.parametrize("name", ["a", "a" * 253, "a.b-1"])
def test_names_that_the_api_server_takes(name: str) -> None:
    assert read(POD % name).ok


def test_names_inside_of_objects() -> None:
    told = problems(
        read(
            "apiVersion: v1\nkind: Pod\nmetadata: {name: p, namespace: My_Team}\nspec:\n"
            "  containers: [{name: C}]\n  resourceClaims: [{name: g_1, resourceClaimName: r}]\n---\n"
            "apiVersion: resource.k8s.io/v1\nkind: ResourceClaim\nmetadata: {name: r}\n"
            "spec: {devices: {requests: [{name: G, exactly: {deviceClassName: gpu.nvidia.com}}]}}\n"
        )
    )
    for field in (
        "metadata.namespace",
        "spec.containers[0].name",
        "spec.resourceClaims[0].name",
        "spec.devices.requests[0].name",
    ):
        assert f"{field}: the API server refuses" in told


def test_names_that_a_pod_refers_to() -> None:
    told = problems(
        read(
            "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d}\nspec:\n  selector: {matchLabels: {a: b}}\n"
            "  template:\n    metadata: {labels: {a: b}}\n    spec:\n      serviceAccountName: $SA\n"
            "      priorityClassName: High\n      runtimeClassName: N_1\n      nodeName: Node_1\n"
            "      hostname: a.b\n      subdomain: a.b\n      schedulerName: My_Own\n"
            "      imagePullSecrets: [{name: REG_CRED}]\n      containers:\n      - name: c\n        image: i\n"
            "        envFrom: [{configMapRef: {name: M_1}}, {secretRef: {name: S_1}}]\n"
            "        env: [{name: X, valueFrom: {secretKeyRef: {name: HF_SECRET, key: t}}}]\n"
            "      resourceClaims: [{name: g, resourceClaimTemplateName: My_Template}]\n"
            "      volumes: [{name: V, secret: {secretName: S_2}}, {name: w, configMap: {name: M_2}}]\n"
        )
    )
    spec = "spec.template.spec"
    refused = re.findall(rf"{re.escape(spec)}\.(\S+): the API server refuses the name '(\S+)'", told)
    assert dict(refused) == {
        "serviceAccountName": "$SA",
        "priorityClassName": "High",
        "runtimeClassName": "N_1",
        "nodeName": "Node_1",
        "hostname": "a.b",
        "subdomain": "a.b",
        "containers[0].envFrom[0].configMapRef.name": "M_1",
        "containers[0].envFrom[1].secretRef.name": "S_1",
        "containers[0].env[0].valueFrom.secretKeyRef.name": "HF_SECRET",
        "resourceClaims[0].resourceClaimTemplateName": "My_Template",
        "volumes[0].name": "V",
    }


@pytest.mark.parametrize(
    ("name", "step"),
    [
        ("$SA_NAME", "variable"),
        ("${SA}-x", "variable"),
        ("KSA_NAME", "variable"),
        ("FILLED BY THE OPERATOR", "placeholder"),
        ("YOUR_ACCOUNT", "placeholder"),
        ("CHANGEME", "placeholder"),
        ("REPLACE_WITH_NAME", "placeholder"),
        ("<account>", "placeholder"),
        ('"{account}"', "placeholder"),
        ("{account}", "placeholder"),
        ("GPU_1", "such as gpu-1"),
        ("Trainer", "such as trainer"),
    ],
)
def test_a_name_that_was_left_to_be_filled_in_is_told_apart_from_a_mistake(name: str, step: str) -> None:
    found = read(f"apiVersion: v1\nkind: Pod\nmetadata:\n  name: {name}\nspec: {{containers: [{{name: c}}]}}\n")
    steps = [problem.next_step for problem in found.errors]
    assert any(step in one for one in steps)
    assert any("kubectl get" in one for one in steps) is (name == "FILLED BY THE OPERATOR")


@pytest.mark.parametrize("word", ["{user}", "[user]"])
def test_a_placeholder_that_breaks_the_document_is_named(word: str) -> None:
    (found,) = read(
        f"apiVersion: v1\nkind: Pod\nspec:\n  containers:\n  - image: {word}/serve:latest\n    name: c\n"
    ).problems
    assert found.next_step.startswith(f"{word} looks like a placeholder")
    (found,) = read("apiVersion: v1\nkind: Pod\nspec:\n  containers:\n  - args: [a]\n   name: c\n").problems
    assert "indentation" in found.next_step


@pytest.mark.parametrize(
    ("text", "step"),
    [
        ("apiVersion: batch/v1\nkind: Job\nmetadata: {name: j}\nspec: {parallelism: $NUM_NODES}", "was not replaced"),
        ("apiVersion: v1\nkind: Pod\nmetadata: {name: stress-__INDEX__}\nspec: {containers: []}", "was not replaced"),
        ("kind: Pod\nmetadata: {name: p}\nspec: {containers: []}", "add apiVersion: v1"),
    ],
)
def test_what_a_template_left_over_is_named(text: str, step: str) -> None:
    assert any(step in problem.next_step for problem in read(text).problems)


def test_a_name_cannot_begin_a_line_of_a_log() -> None:
    found = read('apiVersion: v1\nkind: Pod\nmetadata: {name: "p\\n::error::x"}\nspec: {containers: []}')
    assert found.problems
    assert all("\n::error" not in problem.block for problem in found.problems)


@pytest.mark.parametrize(
    ("version", "kind"),
    [
        ("disaggregatedset.x-k8s.io/v1", "DisaggregatedSet"),
        ("nvidia.com/v1alpha1", "DynamoComponentDeployment"),
        ("apps.nvidia.com/v1alpha1", "NemoCustomizer"),
        ("ome.io/v1beta1", "InferenceService"),
        ("extensions.agents.x-k8s.io/v1beta1", "SandboxWarmPool"),
        ("workloads.x-k8s.io/v1alpha2", "RoleInstanceSet"),
    ],
)
def test_kinds_that_make_pods_are_never_ignored(version: str, kind: str) -> None:
    text = f"apiVersion: {version}\nkind: {kind}\nmetadata: {{name: x}}\n"
    assert "makes pods by rules of its own" in problems(read(text))
    assert problems(read(text, skip=True)).startswith("warning")
    assert "--skip-unknown" not in problems(read(text))  # nothing else has pods
    assert "or pass --skip-unknown" in problems(read(f"{text}---\n{POD % 'p'}"))


def test_objects_that_configure_kai_scheduler_are_harmless() -> None:
    text = "apiVersion: kai.scheduler/v1alpha1\nkind: Topology\nmetadata: {name: x}\n---\n" + POD % "p"
    assert "warning" in problems(read(text))
    assert len(read(text).snapshot.pods) == 1


@pytest.mark.parametrize(("scheduler", "priority"), [("kai-scheduler", 75), ("default-scheduler", 0)])
def test_priority_classes_that_kai_scheduler_installs(scheduler: str, priority: int) -> None:
    spec = f"schedulerName: {scheduler}, priorityClassName: build-preemptible, containers: [{{name: c, image: i}}]"
    found = read(f"apiVersion: v1\nkind: Pod\nmetadata: {{name: p}}\nspec: {{{spec}}}\n")
    assert [pod.priority for pod in found.snapshot.pods] == [priority]
    step = "add it to the files (`kubectl get priorityclass build-preemptible -o yaml`)"
    assert (step in problems(found)) is (priority == 0)
    assert found.ok


def test_what_has_no_field_of_an_object_is_left_out_whatever_its_file_is_called() -> None:
    loaded = read("replicas: 3\nimage: {tag: v1}\n---\n" + POD % "p")
    assert loaded.ok
    assert [pod.name for pod in loaded.snapshot.pods] == ["p"]
    assert any("values of a Helm chart" in str(found.message) for found in loaded.problems)


def test_variables_in_what_is_left_out_are_named() -> None:
    spec = "spec: {mlPolicy: {numNodes: '${NODES}'}, template: {spec: {args: ['echo ${HOME}', '${GPUS}']}}}"
    text = f"apiVersion: trainer.kubeflow.org/v1alpha1\nkind: TrainingRuntime\nmetadata: {{name: x}}\n{spec}\n"
    assert "has ${GPUS}, ${NODES} as values" in problems(read(text))


@pytest.mark.parametrize(
    ("field", "value", "step"),
    [
        ("metadata.labels.model", "$MODEL", "variable"),
        ("metadata.labels.model", "google/gemma", "at most 63 letters"),
        ("spec.nodeSelector.pool", "'${POOL}'", "variable"),
        ("spec.nodeSelector.pool", "<pool>", "placeholder"),
    ],
)
def test_values_of_labels_that_the_api_server_refuses(field: str, value: str, step: str) -> None:
    part, name, key = field.split(".")
    given = {"metadata.labels": "{}", "spec.nodeSelector": "{}", f"{part}.{name}": f"{{{key}: {value}}}"}
    (found,) = read(
        f"apiVersion: v1\nkind: Pod\nmetadata:\n  name: p\n  labels: {given['metadata.labels']}\n"
        f"spec:\n  nodeSelector: {given['spec.nodeSelector']}\n  containers: [{{name: c, image: i}}]\n"
    ).errors
    assert found.field == field
    assert "the API server refuses the label value" in found.message
    assert step in found.next_step


def test_a_blueprint_of_cluster_toolkit_is_no_chart() -> None:
    (found,) = read("blueprint_name: gke\nvars: {region: x}\ndeployment_groups: []\n").problems
    assert found.message == "ignored: a blueprint of Cluster Toolkit; give the manifests that it applies"


def test_names_in_commands_are_quoted() -> None:
    """Whoever copies the command runs nothing else."""
    text = "apiVersion: trainer.kubeflow.org/v1alpha1\nkind: TrainJob\nmetadata: {name: x}\n"
    said = problems(read(text + "spec: {runtimeRef: {name: 'x;touch P'}}\n"))
    assert "`kubectl get clustertrainingruntime 'x;touch P' -o yaml`" in said

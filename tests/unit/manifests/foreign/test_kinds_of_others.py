"""Objects of other projects: workloads that are their pods, and kinds beside them that stop no plan."""

from __future__ import annotations

import io

import pytest

from autoscaler.manifests.load import Loaded, load

POD = "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: c, image: i}]}\n"


def read(text: str) -> Loaded:
    return load(["-"], stdin=io.StringIO(text))


def problems(found: Loaded) -> str:
    return "\n".join(f"{one.severity.value}: {one.block}" for one in found.problems)


@pytest.mark.parametrize(
    ("version", "kind", "spec", "pods"),
    [
        ("argoproj.io/v1alpha1", "Rollout", "replicas: 2, template: {spec: %s}", 2),
        ("agones.dev/v1", "Fleet", "replicas: 1, template: {spec: {template: {spec: %s}}}", 1),
        ("agones.dev/v1", "GameServer", "template: {spec: %s}", 1),
        ("apps.kruise.io/v1alpha1", "CloneSet", "replicas: 2, template: {spec: %s}", 2),
        ("serving.knative.dev/v1", "Service", "template: {spec: %s}", 1),
        ("kubeflow.org/v1", "Notebook", "template: {spec: %s}", 1),
        ("kubeflow.org/v1", "MXJob", "mxReplicaSpecs: {Worker: {replicas: 2, template: {spec: %s}}}", 2),
        ("kubeflow.org/v1beta1", "MXJob", "mxReplicaSpecs: {Worker: {replicas: 2, template: {spec: %s}}}", 2),
        ("apps.kruise.io/v1beta1", "StatefulSet", "replicas: 2, template: {spec: %s}", 2),
        ("nvidia.com/v1beta1", "DynamoGraphDeployment", "components: [{name: a, podTemplate: {spec: %s}}]", 1),
        ("grove.io/v1alpha1", "PodCliqueSet", "replicas: 1, template: {cliques: [{name: a, spec: {podSpec: %s}}]}", 1),
        ("serving.kubeflow.org/v1beta1", "InferenceService", "predictor: %s", 1),
        (
            "workload.serving.volcano.sh/v1alpha1",
            "ModelServing",
            "template: {roles: [{name: a, entryTemplate: {spec: %s}, workerReplicas: 0}]}",
            1,
        ),
        (
            "sagemaker.amazonaws.com/v1",
            "HyperPodPyTorchJob",
            "replicaSpecs: [{name: a, replicas: 2, template: {spec: %s}}]",
            2,
        ),
    ],
)
def test_workloads_of_other_projects_are_their_pods(version: str, kind: str, spec: str, pods: int) -> None:
    inner = spec % "{containers: [{name: c, image: i}]}"
    found = read(f"apiVersion: {version}\nkind: {kind}\nmetadata: {{name: x}}\nspec: {{{inner}}}\n")
    assert len(found.snapshot.pods) == pods


def test_what_kfserving_had_is_written_for_kserve() -> None:
    text = "apiVersion: serving.kubeflow.org/v1alpha2\nkind: InferenceService\nmetadata: {name: x}\n"
    (found,) = read(text).problems
    assert "KServe has apiVersion: serving.kserve.io/v1beta1, where spec.default.predictor is" in found.next_step
    assert "serving.kubeflow.org/v1beta1" not in found.next_step


@pytest.mark.parametrize(
    ("version", "kind"),
    [
        ("apps.kruise.io/v1alpha1", "DaemonSet"),
        ("kubeflow.org/v1beta1", "Experiment"),
        ("mlops.seldon.io/v1alpha1", "Server"),
    ],
)
def test_a_kind_with_the_name_of_another_group_is_not_taken_for_a_mistake(version: str, kind: str) -> None:
    text = f"apiVersion: {version}\nkind: {kind}\nmetadata: {{name: x}}\n"
    assert f"{kind} of {version} makes pods by rules of its own" in problems(read(text))


@pytest.mark.parametrize(
    ("version", "kind"),
    [
        ("autoscaling.agones.dev/v1", "FleetAutoscaler"),
        ("dashboard.opendatahub.io/v1", "AcceleratorProfile"),
        ("kubeflow.org/v1", "Profile"),
        ("llmd.ai/v1alpha1", "VariantAutoscaling"),
        ("operators.coreos.com/v1alpha1", "Subscription"),
    ],
)
def test_objects_beside_workloads_do_not_stop_a_plan(version: str, kind: str) -> None:
    text = f"apiVersion: {version}\nkind: {kind}\nmetadata: {{name: x}}\n---\n" + POD
    assert "ignored: " in problems(read(text))
    assert len(read(text).snapshot.pods) == 1


@pytest.mark.parametrize(("sharing", "said"), [("timeSlicing", True), ("mps", True), ("other", False)])
def test_a_config_by_which_gpus_are_shared_is_told_apart(sharing: str, *, said: bool) -> None:
    data = f"{{any: 'sharing:\n\n  {sharing}:\n\n    resources: []'}}"
    text = f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: x}}\ndata: {data}\n"
    assert ("each GPU counts several times" in problems(read(text))) is said


def test_what_a_kind_of_unknown_rules_asks_for_is_named() -> None:
    limits = "resources: {limits: {cpu: 4, nvidia.com/gpu: %d}}"
    spec = f"{{{limits % 2}, roles: [{{{limits % 1}}}, {{{limits % 3}}}, {{{limits % 4}}}]}}"
    text = f"apiVersion: kubeai.org/v1\nkind: Model\nmetadata: {{name: x}}\nspec: {spec}\n"
    (found,) = read(text).problems
    assert found.message.endswith(
        "; it asks for nvidia.com/gpu: 2 (spec.resources), nvidia.com/gpu: 1 (spec.roles[0].resources), "
        "nvidia.com/gpu: 3 (spec.roles[1].resources) and 1 more"
    )
    assert "or, before it runs, a Deployment whose pods ask for the same" in found.next_step


@pytest.mark.parametrize(
    ("kind", "told"),
    [
        ("PytorchJobs", "unknown kind 'PytorchJobs'\n  did you mean 'PyTorchJob'?"),
        ("FooJob", "unsupported kind FooJob of kubeflow.org/v1: Foreslice cannot tell whether it creates pods"),
    ],
)
def test_kinds_of_one_program_resemble_each_other(kind: str, told: str) -> None:
    assert told in problems(read(f"apiVersion: kubeflow.org/v1\nkind: {kind}\nmetadata: {{name: t}}"))

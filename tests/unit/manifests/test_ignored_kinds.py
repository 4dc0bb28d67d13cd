"""Kinds of other programs that make no pods."""

from __future__ import annotations

import io

import pytest

from autoscaler.manifests.load import load

POD = "apiVersion: v1\nkind: Pod\nmetadata: {name: %s}\nspec: {containers: [{name: c, image: i}]}\n"


@pytest.mark.parametrize(
    ("version", "kind", "why"),
    [
        ("eks.amazonaws.com/v1", "NodeClass", "belongs to another autoscaler"),
        ("gateway.envoyproxy.io/v1alpha1", "EnvoyProxy", "makes the pods of its proxies of it and of a Gateway"),
        ("gateway.envoyproxy.io/v1alpha1", "BackendTrafficPolicy", "it has no influence on where pods fit"),
        ("nfd.k8s-sigs.io/v1alpha1", "NodeFeatureRule", "for pods that select such a label, give nodes that have it"),
        ("nfd.openshift.io/v1", "NodeFeatureRule", "for pods that select such a label, give nodes that have it"),
        ("llmaz.io/v1alpha1", "OpenModel", "its flavors decide which devices and nodes those of a Playground or"),
        ("ome.io/v1beta1", "ClusterBaseModel", "it names models"),
        (
            "serving.kserve.io/v1alpha2",
            "LLMInferenceServiceConfig",
            "and no LLMInferenceService in these files names it in baseRefs",
        ),
    ],
)
def test_kinds_that_make_no_pods_are_ignored_with_a_reason(version: str, kind: str, why: str) -> None:
    text = f"apiVersion: {version}\nkind: {kind}\nmetadata: {{name: x}}\n---\n" + POD % "p"
    found = load(["-"], stdin=io.StringIO(text), skip_unknown=False)
    assert any(why in one.block for one in found.problems)
    assert len(found.snapshot.pods) == 1


@pytest.mark.parametrize("kind", ["AnalysisTemplate", "ClusterAnalysisTemplate", "AnalysisRun"])
@pytest.mark.parametrize(
    ("provider", "why"),
    [
        ("prometheus: {query: q}", "ignored: it has no influence on where pods fit"),
        ("job: {spec: {template: {spec: {containers: []}}}}", "ignored: its metric m is a Job, which runs for each"),
    ],
)
def test_an_analysis_of_a_rollout_makes_only_jobs(kind: str, provider: str, why: str) -> None:
    spec = f"metadata: {{name: a}}\nspec: {{metrics: [{{name: m, provider: {{{provider}}}}}]}}\n---\n"
    text = f"apiVersion: argoproj.io/v1alpha1\nkind: {kind}\n{spec}" + POD % "p"
    found = load(["-"], stdin=io.StringIO(text), skip_unknown=False)
    assert found.ok
    (told,) = found.problems
    assert told.message.startswith(why)


def test_an_experiment_of_argo_rollouts_makes_pods() -> None:
    text = "apiVersion: argoproj.io/v1alpha1\nkind: Experiment\nmetadata: {name: e}\nspec: {}\n"
    (told,) = load(["-"], stdin=io.StringIO(text), skip_unknown=False).problems
    assert "makes pods by rules of its own" in told.message


RUNTIME = "apiVersion: node.k8s.io/v1\nkind: RuntimeClass\nmetadata: {name: %s}\nhandler: h\n---\n" + POD % "p"


@pytest.mark.parametrize(
    ("name", "told"), [("FILLED_BY_OPERATOR", ["it looks like a placeholder"]), ("kata", []), ("Kata", [])]
)
def test_a_placeholder_as_the_name_of_an_ignored_object_is_told(name: str, told: list[str]) -> None:
    found = load(["-"], stdin=io.StringIO(RUNTIME % name), skip_unknown=False)
    assert found.ok
    about = [one for one in found.problems if one.path == ("metadata", "name")]
    assert [one.next_step.partition(":")[0] for one in about] == told


@pytest.mark.parametrize(
    ("text", "chart"),
    [
        ("scenario: [{name: a, decode: {resources: {}}}]\n", False),
        ("model: {name: m}\n", False),
        ("modelservice: {nodeSelector: {}}\n", True),
        ("global: {}\n", True),
    ],
)
def test_only_what_has_names_of_values_is_taken_for_values_of_a_chart(text: str, chart: bool) -> None:
    (told,) = [
        found.message
        for found in load(["-"], stdin=io.StringIO(f"{text}---\n" + POD % "p"), skip_unknown=False).problems
    ]
    assert told.startswith("ignored: no Kubernetes object")
    assert ("helm template" in told) is chart


@pytest.mark.parametrize(
    ("version", "kind", "release", "step"),
    [
        ("autoscaling/v2beta2", "HorizontalPodAutoscaler", "1.26", "write apiVersion: autoscaling/v2, whose fields"),
        ("policy/v1beta1", "PodDisruptionBudget", "1.25", "write apiVersion: policy/v1, whose fields"),
        ("policy/v1beta1", "PodSecurityPolicy", "1.25", "remove it: API servers refuse it"),
        ("extensions/v1beta1", "Ingress", "1.22", "write apiVersion: networking.k8s.io/v1, whose fields"),
    ],
)
def test_a_removed_version_of_an_ignored_kind_is_told(version: str, kind: str, release: str, step: str) -> None:
    text = f"apiVersion: {version}\nkind: {kind}\nmetadata: {{name: x}}\n---\n" + POD % "p"
    found = load(["-"], stdin=io.StringIO(text))
    assert found.ok
    (told,) = [one for one in found.problems if one.path == ("apiVersion",)]
    assert told.message == f"{kind} of {version} was removed with Kubernetes {release}"
    assert told.next_step.startswith(step)


def test_a_version_that_is_served_is_not_told() -> None:
    text = "apiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {name: x}\n---\n" + POD % "p"
    assert [one.path for one in load(["-"], stdin=io.StringIO(text)).problems] == [()]


def test_a_removed_version_of_a_kind_that_is_read_is_told() -> None:
    text = "apiVersion: batch/v1beta1\nkind: CronJob\nmetadata: {name: x}\n"
    (told,) = load(["-"], stdin=io.StringIO(text)).problems
    assert told.message == "CronJob of batch/v1beta1 was removed with Kubernetes 1.25"
    assert told.next_step.startswith("write apiVersion: batch/v1")

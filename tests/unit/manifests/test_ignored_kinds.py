"""Kinds of other programs that make no pods."""

from __future__ import annotations

import io

import pytest

from autoscaler.manifests.load import load

POD = "apiVersion: v1\nkind: Pod\nmetadata: {name: %s}\nspec: {containers: [{name: c, image: i}]}\n"


@pytest.mark.parametrize(
    ("version", "kind", "why"),
    [
        ("argoproj.io/v1alpha1", "WorkflowTemplate", "of which a Workflow makes pods"),
        ("eks.amazonaws.com/v1", "NodeClass", "belongs to another autoscaler"),
        ("gateway.envoyproxy.io/v1alpha1", "EnvoyProxy", "makes the pods of its proxies of it and of a Gateway"),
        ("gateway.envoyproxy.io/v1alpha1", "BackendTrafficPolicy", "it has no influence on where pods fit"),
        ("nfd.k8s-sigs.io/v1alpha1", "NodeFeatureRule", "for pods that select such a label, give nodes that have it"),
        ("nfd.openshift.io/v1", "NodeFeatureRule", "for pods that select such a label, give nodes that have it"),
        ("llmaz.io/v1alpha1", "OpenModel", "its flavors decide which devices and nodes those of a Playground or"),
        ("ome.io/v1beta1", "ClusterBaseModel", "it names models"),
        ("serving.kserve.io/v1alpha2", "LLMInferenceServiceConfig", "that name it in baseRefs are planned with it"),
    ],
)
def test_kinds_that_make_no_pods_are_ignored_with_a_reason(version: str, kind: str, why: str) -> None:
    text = f"apiVersion: {version}\nkind: {kind}\nmetadata: {{name: x}}\n---\n" + POD % "p"
    found = load(["-"], stdin=io.StringIO(text), skip_unknown=False)
    assert any(why in one.block for one in found.problems)
    assert len(found.snapshot.pods) == 1


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

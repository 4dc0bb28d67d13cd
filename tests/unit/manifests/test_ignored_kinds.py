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
        ("llmaz.io/v1alpha1", "OpenModel", "its flavors decide which devices and nodes those of a Playground or"),
        ("ome.io/v1beta1", "ClusterBaseModel", "it names models"),
        ("serving.kserve.io/v1alpha2", "LLMInferenceServiceConfig", "and a plan does not: give the pods that KServe"),
    ],
)
def test_kinds_that_make_no_pods_are_ignored_with_a_reason(version: str, kind: str, why: str) -> None:
    text = f"apiVersion: {version}\nkind: {kind}\nmetadata: {{name: x}}\n---\n" + POD % "p"
    found = load(["-"], stdin=io.StringIO(text), skip_unknown=False)
    assert any(why in one.block for one in found.problems)
    assert len(found.snapshot.pods) == 1

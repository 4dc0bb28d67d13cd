"""What is checked in the pod templates of other projects' workloads."""

from __future__ import annotations

import io

import pytest

from autoscaler.manifests.load import load


@pytest.mark.parametrize(
    ("version", "kind", "path"),
    [
        ("agones.dev/v1", "Fleet", "spec.template.spec.template"),
        ("agones.dev/v1", "GameServer", "spec.template"),
        ("apps.kruise.io/v1alpha1", "CloneSet", "spec.template"),
        ("argoproj.io/v1alpha1", "Rollout", "spec.template"),
        ("kubeflow.org/v1", "Notebook", "spec.template"),
        ("serving.knative.dev/v1", "Service", "spec.template"),
    ],
)
def test_an_image_that_was_left_to_be_filled_in_is_named_wherever_the_template_is(
    version: str, kind: str, path: str
) -> None:
    template = "{spec: {containers: [{name: c, image: registry.example/<PROJECT>/c:1}]}}"
    for name in reversed(path.split(".")):
        template = f"{{{name}: {template}}}"
    text = f"apiVersion: {version}\nkind: {kind}\nmetadata: {{name: x}}\n{template[1:-1]}\n"
    found = [one for one in load(["-"], stdin=io.StringIO(text)).problems if "<PROJECT>" in one.message]
    assert [".".join(map(str, one.path)) for one in found] == [f"{path}.spec.containers.0.image"]
    assert "placeholder" in found[0].next_step

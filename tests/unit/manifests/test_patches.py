"""A Kustomize patch has the kind of a whole object: what the API would refuse is said."""

from __future__ import annotations

import pytest

from tests.unit.manifests.texts import loaded

PATCH = """
apiVersion: apps/v1
kind: KIND
metadata: {name: server}
spec:
  SELECTOR
  template:
    metadata: {labels: {app: x}}
    spec: {containers: [{name: main, IMAGE resources: {limits: {nvidia.com/gpu: 1}}}]}
"""
IMAGE, SELECTOR = "image: i,", "selector: {matchLabels: {app: x}}"


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet", "DaemonSet"])
@pytest.mark.parametrize(
    ("image", "selector", "told"), [("", "", True), (IMAGE, "", False), ("", SELECTOR, True), (IMAGE, SELECTOR, False)]
)
def test_a_patch_is_named(kind: str, image: str, selector: str, told: bool) -> None:
    text = PATCH.replace("KIND", kind).replace("IMAGE", image).replace("SELECTOR", selector)
    found = loaded(text)
    assert found.ok
    assert [p.block for p in found.problems if "kubectl kustomize" in p.block] == [
        p.block for p in found.problems if told
    ]
    assert any("looks like a patch" in p.block for p in found.problems) is told


@pytest.mark.parametrize(("image", "told"), [("", True), (IMAGE, False)])
def test_so_is_a_pod_that_a_tool_completes(image: str, told: bool) -> None:
    pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: executor}\nspec: {containers: [{name: main, IMAGE tty: true}]}"
    found = loaded(pod.replace("IMAGE", image))
    assert [p.block for p in found.problems if "container main has no image" in p.block] == [
        p.block for p in found.problems if told
    ]
    assert any("API server refuses it" in p.block for p in found.problems) is told

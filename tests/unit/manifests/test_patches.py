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
    ("image", "selector", "told"), [("", "", True), (IMAGE, "", False), ("", SELECTOR, False), (IMAGE, SELECTOR, False)]
)
def test_a_patch_is_named(kind: str, image: str, selector: str, told: bool) -> None:
    text = PATCH.replace("KIND", kind).replace("IMAGE", image).replace("SELECTOR", selector)
    found = loaded(text)
    assert found.ok
    assert [p.block for p in found.problems if "kubectl kustomize" in p.block] == [
        p.block for p in found.problems if told
    ]
    assert any("looks like a patch" in p.block for p in found.problems) is told

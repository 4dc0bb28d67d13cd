"""AppWrappers, of Kueue and of MCAD before it: their objects are planned, except what decides on others' pods."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest

from autoscaler.manifests.load import Loaded, load
from instance_catalog.diagnostic import Severity

POD = "apiVersion: v1\nkind: Pod\nmetadata: {name: %s}\nspec: {containers: [{name: c, image: i}]}\n"


def read(text: str) -> Loaded:
    return load(["-"], stdin=io.StringIO(text))


def problems(found: Loaded) -> str:
    return "\n".join(f"{one.severity.value}: {one.block}" for one in found.problems)


WRAPPER = """apiVersion: workload.codeflare.dev/v1beta2
kind: AppWrapper
metadata: {name: w, namespace: team}
spec:
  suspend: %s
  components:
  - template:
      apiVersion: batch/v1
      kind: Job
      metadata: {name: train}
      spec: {template: {spec: {containers: [{name: c, image: i}]}}}
  - template:
      {apiVersion: v1, kind: Pod, metadata: {name: %s, namespace: other}, spec: {containers: [{name: c, image: i}]}}
"""


def test_the_components_of_an_app_wrapper_are_read_in_its_namespace() -> None:
    found = read(WRAPPER % ("false", "side"))
    assert problems(found) == ""
    assert sorted(pod.key for pod in found.snapshot.pods) == ["other/side", "team/train-0"]
    assert read(WRAPPER % ("true", "side")).snapshot.pods == ()


@pytest.mark.parametrize("listed", [False, True])
@pytest.mark.parametrize(
    ("version", "kind"),
    [
        ("v1", "Node"),
        ("v1", "PersistentVolume"),
        ("scheduling.k8s.io/v1", "PriorityClass"),
        ("resource.k8s.io/v1", "DeviceClass"),
        ("resource.k8s.io/v1", "ResourceSlice"),
        ("kueue.x-k8s.io/v1beta2", "ClusterQueue"),
        ("kueue.x-k8s.io/v1beta2", "LocalQueue"),
        ("foreslice.dev/v1alpha1", "CapacityPool"),
        ("foreslice.dev/v1alpha1", "PlanContext"),
    ],
)
def test_a_component_decides_on_no_pods_of_others(version: str, kind: str, listed: bool) -> None:
    inner: dict[str, Any] = {"apiVersion": version, "kind": kind, "metadata": {"name": "x"}, "spec": {}}
    template = {"apiVersion": "v1", "kind": "List", "items": [inner]} if listed else inner
    wrapper = {
        "apiVersion": "workload.codeflare.dev/v1beta2",
        "kind": "AppWrapper",
        "metadata": {"name": "w"},
        "spec": {"components": [{"template": template}]},
    }
    found = read(json.dumps(wrapper))
    (problem,) = found.problems
    assert "an AppWrapper creates it, and it decides on the pods of the whole cluster" in problem.message
    assert (problem.severity, problem.line > 0) == (Severity.WARNING, True)
    assert not any(kind in one.name for one in found.documents)


def test_a_mistake_in_a_component_is_told_with_its_line() -> None:
    found = read(WRAPPER % ("false", "No_Name"))
    (problem,) = found.problems
    assert ("No_Name" in problem.message, problem.line) == (True, 13)


OLD_WRAPPER = """apiVersion: workload.codeflare.dev/v1beta1
kind: AppWrapper
metadata: {name: w, namespace: team}
spec:
  resources: {GenericItems: [{replicas: 1, generictemplate: %s}]}
"""


def test_the_items_of_an_old_app_wrapper_are_read() -> None:
    job = "{apiVersion: batch/v1, kind: Job, metadata: {name: %s}, spec: {template: {spec: {containers: [%s]}}}}"
    found = read(OLD_WRAPPER % job % ("train", "{name: c, image: i}"))
    assert problems(found) == ""
    assert [pod.key for pod in found.snapshot.pods] == ["team/train-0"]
    (problem,) = read(OLD_WRAPPER % job % ("No_Name", "{name: c, image: i}")).problems
    assert ("No_Name" in problem.message, problem.line) == (True, 5)


@pytest.mark.parametrize(
    ("pods", "told"),
    [
        (
            [{"replicas": 2, "requests": {"nvidia.com/gpu": 8}}, {"replicas": 1, "limits": {"nvidia.com/gpu": "1"}}],
            "17",
        ),
        ([{"replicas": 2, "requests": {"cpu": 1}}], ""),
        ([{"replicas": "", "requests": {"nvidia.com/gpu": "8"}}], ""),
        ([{"replicas": "many", "requests": {"nvidia.com/gpu": "x"}}], ""),
    ],
)
def test_an_old_app_wrapper_waits_for_free_gpus(pods: list[dict[str, object]], told: str) -> None:
    template = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}}
    template |= {"spec": {"containers": [{"name": "c", "image": "i"}]}}
    item = {"replicas": 1, "custompodresources": pods, "generictemplate": template}
    spec = {"resources": {"GenericItems": [item]}}
    header = {"apiVersion": "workload.codeflare.dev/v1beta1", "kind": "AppWrapper", "metadata": {"name": "w"}}
    found = read(json.dumps({**header, "spec": spec}))
    assert found.ok
    assert [one.message.partition(" nvidia")[0] for one in found.problems] == (
        [f"MCAD creates its pods only once {told}"] if told else []
    )


def test_an_app_wrapper_without_objects_gets_a_warning() -> None:
    found = read(OLD_WRAPPER % "null" + "---\n" + POD % "p")
    assert "warning" in problems(found)
    assert "AppWrapper team/w: spec: has no object in it" in problems(found)
    assert found.ok

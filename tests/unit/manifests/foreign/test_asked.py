"""What is said of objects and files that are not read: what they are, and what they ask for."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.unit.manifests.texts import POD, loaded, messages

TEMPLATE = {"spec": {"containers": [{"name": "c", "resources": {"limits": {"huawei.com/ascend-1980": 4}}}]}}
CLAIMING = {"spec": {"resourceClaims": [{"name": "g"}], "containers": [{"name": "c"}]}}


def unknown(**spec: Any) -> str:
    return json.dumps({"apiVersion": "example.com/v1", "kind": "Trainer", "metadata": {"name": "t"}, "spec": spec})


def test_an_unsupported_kind_says_which_devices_its_pods_would_ask_for() -> None:
    (problem,) = messages(loaded(unknown(roles=[{"template": TEMPLATE}])))
    path = "spec.roles[0].template.spec.containers[0].resources"
    assert f"whether it creates pods; it asks for huawei.com/ascend-1980: 4 ({path})" in problem
    assert "(kubectl get pods -o yaml) or, before it runs, a Deployment whose pods ask for the same" in problem


def test_an_unsupported_kind_says_where_its_pods_have_claims() -> None:
    (problem,) = messages(loaded(unknown(template=CLAIMING)))
    assert "; its pods have resource claims (spec.template.spec.resourceClaims)" in problem


def test_an_unsupported_kind_without_pods_says_neither() -> None:
    (problem,) = messages(loaded(unknown(mode="x")))
    assert "it asks for" not in problem
    assert "Deployment" not in problem


@pytest.mark.parametrize(
    ("machine", "more", "said"),
    [
        ("Standard_NC24ads_A100_v4", {}, "1 × Standard_NC24ads_A100_v4 of Azure, with A100 80GB GPUs"),
        ("Standard_ND96isr_H100_v5", {"count": 2}, "2 × Standard_ND96isr_H100_v5 of Azure"),
        ("p4d.24xlarge", {}, "1 × p4d.24xlarge"),
    ],
)
def test_the_machines_of_kaito_are_named(machine: str, more: dict[str, int], said: str) -> None:
    value = {"apiVersion": "kaito.sh/v1beta1", "kind": "Workspace", "metadata": {"name": "w"}}
    made = {**value, "resource": {"instanceType": machine, **more}, "inference": {"preset": {"name": "m"}}}
    assert f"which Foreslice does not know; KAITO gets it {said}\n" in messages(loaded(json.dumps(made)))[0]
    inside = {**value, "kind": "InferenceSet", "spec": {"template": {"resource": {"instanceType": machine, **more}}}}
    assert f"; KAITO gets it {said}\n" in messages(loaded(json.dumps(inside)))[0]
    without = {**value, "resource": {"labelSelector": {}}}
    assert "KAITO" not in messages(loaded(json.dumps(without)))[0]


@pytest.mark.parametrize(
    ("profile", "said"),
    [("nvidia-gpu-l4:2", "2 × what resourceProfiles.nvidia-gpu-l4 of"), ("cpu", "1 × "), (None, "")],
)
def test_the_profile_of_a_model_of_kubeai_is_named(profile: str | None, said: str) -> None:
    value = {"apiVersion": "kubeai.org/v1", "kind": "Model", "metadata": {"name": "m"}}
    spec = {"url": "hf://x", **({"resourceProfile": profile} if profile else {})}
    (problem,) = messages(loaded(json.dumps({**value, "spec": spec})))
    assert (f"; each pod asks for {said}" in problem) is bool(said)


@pytest.mark.parametrize("runtime", ["srt-model", None, 3])
def test_the_runtime_of_an_inference_service_of_ome_is_named(runtime: object) -> None:
    value = {"apiVersion": "ome.io/v1beta1", "kind": "InferenceService", "metadata": {"name": "s"}}
    (problem,) = messages(loaded(json.dumps({**value, "spec": {"runtime": {"name": runtime}, "engine": {}}})))
    said = "what its pods ask for is in engineConfig and decoderConfig of ClusterServingRuntime srt-model"
    assert (said in problem) is (runtime == "srt-model")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "resources: {accelerators: 'H100:8'}\nnum_nodes: 2\nrun: x",
            "a task of SkyPilot, which asks for H100:8 on 2 nodes",
        ),
        ("resources: {cpus: 4}\nsetup: x", "a task of SkyPilot;"),
        ("type: task\ncommands: [x]\nresources: {gpu: 24GB}", "a task of dstack"),
        (
            "name: e\nsearcher: {name: single}\nentrypoint: x\nresources: {slots_per_trial: 8}",
            "an experiment of Determined",
        ),
    ],
)
def test_files_of_programs_that_make_pods_are_named(text: str, said: str) -> None:
    problem = "\n".join(
        messages(loaded(text, POD.replace("resourceClaims: [{name: gpu, resourceClaimName: gpu}]", "")))
    )
    assert f"ignored: {said}" in problem
    assert "give the pods that it makes" in problem

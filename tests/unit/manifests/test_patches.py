"""A Kustomize patch has the kind of a whole object: what the API would refuse is said."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from autoscaler.manifests.load import load
from tests.unit.manifests.texts import loaded

PATCH = """
apiVersion: apps/v1
kind: KIND
metadata: {name: server}
spec:
  SELECTOR
  template:
    metadata: {labels: {app: x}}
    spec: {nodeSelector: {kind: gpu}, containers: [{name: main, IMAGE resources: {limits: {nvidia.com/gpu: 1}}}]}
"""
IMAGE, SELECTOR = "image: i,", "selector: {matchLabels: {app: x}}"


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet", "DaemonSet"])
@pytest.mark.parametrize(
    ("image", "selector", "told"), [("", "", True), ("", SELECTOR, True), (IMAGE, SELECTOR, False)]
)
def test_a_patch_is_named(kind: str, image: str, selector: str, told: bool) -> None:
    text = PATCH.replace("KIND", kind).replace("IMAGE", image).replace("SELECTOR", selector)
    found = loaded(text)
    assert found.ok
    assert [p.block for p in found.problems if "kubectl kustomize" in p.block] == [
        p.block for p in found.problems if told
    ]
    assert any("looks like a patch" in p.block for p in found.problems) is told


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet", "DaemonSet", "ReplicaSet"])
def test_a_whole_workload_needs_the_selector_that_apps_v1_requires(kind: str) -> None:
    text = PATCH.replace("KIND", kind).replace("IMAGE", IMAGE)
    (problem,) = loaded(text.replace("SELECTOR", "")).errors
    assert problem.field == "spec.selector"
    assert problem.next_step == "add `selector: {matchLabels: {app: x}}` below spec"
    assert not loaded(text.replace("SELECTOR", "selector: {matchLabels: {}}")).ok
    assert loaded(text.replace("SELECTOR", "selector: {matchExpressions: [{key: app, operator: Exists}]}")).ok
    assert loaded(text.replace("SELECTOR", problem.next_step.split("`")[1])).ok


def test_an_image_alone_is_a_patch() -> None:
    text = PATCH.replace("KIND", "Deployment").replace("IMAGE", IMAGE).replace("SELECTOR", "")
    found = loaded(text.replace("metadata: {labels: {app: x}}", ""))
    assert found.ok
    assert any("it has no selector" in p.message and "looks like a patch" in p.message for p in found.problems)


@pytest.mark.parametrize("version", ["apps/v1beta1", "apps/v1beta2", "extensions/v1beta1"])
def test_who_leaves_an_old_version_is_told_of_the_selector(version: str) -> None:
    text = PATCH.replace("KIND", "Deployment").replace("IMAGE", IMAGE).replace("apps/v1", version)
    steps = [p.next_step for p in loaded(text.replace("SELECTOR", "").replace("app: x", 'app: "1"')).errors]
    selector = 'selector: {matchLabels: {app: "1"}}'
    assert steps == [f"write apiVersion: apps/v1, and below spec `{selector}`, which apps/v1 requires"]
    assert [p.next_step for p in loaded(text.replace("SELECTOR", SELECTOR)).errors] == ["write apiVersion: apps/v1"]


@pytest.mark.parametrize(("image", "told"), [("", True), (IMAGE, False)])
def test_so_is_a_pod_that_a_tool_completes(image: str, told: bool) -> None:
    pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: executor}\nspec: {containers: [{name: main, IMAGE tty: true}]}"
    found = loaded(pod.replace("IMAGE", image))
    assert [p.block for p in found.problems if "container main has no image" in p.block] == [
        p.block for p in found.problems if told
    ]
    assert any("API server refuses it" in p.block for p in found.problems) is told


@pytest.mark.parametrize(
    ("kind", "name", "image", "signs"),
    [
        (
            "Deployment",
            "'*'",
            "",
            "is a patch of Kustomize, and no whole object: its name is '*', and container main has",
        ),
        ("Job", "'*'", "", "is a patch of Kustomize, and no whole object: its name is '*', and container main has"),
        ("Deployment", "'*'", IMAGE, "is a patch of Kustomize, and no whole object: its name is '*'"),
        (
            "Job",
            "server",
            "",
            "looks like a patch of Kustomize, and no whole object: container main has no image, and Job",
        ),
        (
            "Deployment",
            "Any",
            "",
            "looks like a patch of Kustomize, and no whole object: container main has no image, and",
        ),
    ],
)
def test_nobody_renames_or_converts_a_patch(kind: str, name: str, image: str, signs: str) -> None:
    text = PATCH.replace("KIND", kind).replace("name: server", f"name: {name}").replace("SELECTOR", SELECTOR)
    found = loaded(text.replace("IMAGE", image))
    (problem,) = found.problems
    assert problem in found.errors
    assert problem.message.startswith(signs)
    assert "`kubectl kustomize DIR | foreslice plan -f -`" in problem.next_step
    assert "write" not in problem.block


def test_a_whole_object_keeps_the_problem_with_its_name() -> None:
    text = PATCH.replace("KIND", "Deployment").replace("SELECTOR", SELECTOR)
    (wrong,) = loaded(text.replace("name: server", "name: gpu_server").replace("IMAGE", IMAGE)).errors
    assert wrong.next_step.endswith("such as gpu-server")
    found = loaded(text.replace("name: server", "name: $NAME").replace("IMAGE", "")).errors
    assert ["was not replaced" in one.next_step for one in found] == [True]


@pytest.mark.parametrize(("image", "number"), [("", 1), (IMAGE, 0)])
def test_what_looks_like_a_patch_is_counted(image: str, number: int) -> None:
    text = PATCH.replace("KIND", "Deployment").replace("SELECTOR", SELECTOR)
    assert loaded(text.replace("IMAGE", image)).incomplete == number


@pytest.mark.parametrize(
    ("kind", "spec", "asked", "refused"),
    [
        ("Deployment", "", "nvidia.com/gpu", True),
        ("StatefulSet", "tolerations: [],", "google.com/tpu", True),
        ("Deployment", "nodeSelector: {kind: gpu},", "nvidia.com/gpu", False),
        ("Deployment", "affinity: {nodeAffinity: {}},", "nvidia.com/gpu", False),
        ("Deployment", "", "cpu", False),
        ("DaemonSet", "", "nvidia.com/gpu", False),
    ],
)
def test_no_machine_is_guessed_for_a_patch_that_names_none(kind: str, spec: str, asked: str, refused: bool) -> None:
    text = PATCH.replace("KIND", kind).replace("SELECTOR", SELECTOR).replace("nvidia.com/gpu", asked)
    text = text.replace("nodeSelector: {kind: gpu},", spec)
    found = loaded(text.replace("IMAGE", ""))
    assert [f"asks for {asked}" in one.message for one in found.errors] == [True] * refused
    assert all("--skip-unknown" not in one.next_step for one in found.errors)
    pod = "\n---\n{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: [{name: main, image: i}]}}\n"
    beside = loaded(text.replace("IMAGE", "") + pod)
    assert all("--skip-unknown" in one.next_step for one in beside.errors)
    assert all(
        "names no model; the object that it changes, or another file of its kustomization" in one.message
        for one in found.errors
    )
    left_out = load(["-"], stdin=io.StringIO(text.replace("IMAGE", "")), skip_unknown=True)
    assert left_out.ok
    assert (not left_out.snapshot.pods) == (refused or kind == "DaemonSet")
    assert loaded(text.replace("IMAGE", IMAGE)).ok


SERVICE = """
apiVersion: serving.kserve.io/v1beta1
kind: InferenceService
metadata: {name: isvc}
spec: {predictor: {CHOICE model: {FORMAT storageUri: "s3://b/m", resources: {limits: {DEVICE: 8}}}}}
"""
FORMAT = "modelFormat: {name: vLLM},"


@pytest.mark.parametrize(
    ("form", "choice", "device", "refused", "number"),
    [
        ("", "", "nvidia.com/gpu", True, 1),
        ("", "nodeSelector: {kind: gpu},", "nvidia.com/gpu", False, 1),
        ("", "", "cpu", False, 1),
        (FORMAT, "", "nvidia.com/gpu", False, 0),
        ("runtime: vllm,", "", "nvidia.com/gpu", False, 0),
    ],
)
def test_a_service_of_kserve_without_the_format_of_its_model_is_a_patch(
    form: str, choice: str, device: str, refused: bool, number: int
) -> None:
    text = SERVICE.replace("FORMAT", form).replace("CHOICE", choice).replace("DEVICE", device)
    found = loaded(text)
    said = [one.message for one in found.problems if "looks like a patch" in one.message]
    assert ["neither modelFormat nor runtime, so KServe finds no runtime" in one for one in said] == [True] * number
    assert ["asks for nvidia.com/gpu" in one.message for one in found.errors] == [True] * refused
    assert found.incomplete == (0 if refused else number)


def test_json_patches_are_named_once_and_are_no_values_of_a_chart() -> None:
    patches = "\n".join(f"- {{op: add, path: /spec/template/spec/{field}, value: {{}}}}" for field in ("a", "b", "c"))
    found = loaded(patches + "\n- {op: remove, path: /spec/replicas}\n")
    (problem,) = found.problems
    assert found.ok
    assert problem.message.startswith("ignored: JSON patches")
    assert "kubectl kustomize" in problem.message


def test_a_list_with_an_object_beside_what_looks_like_a_patch_is_read() -> None:
    pod = "{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: [{name: main, image: i}]}}"
    found = loaded(f"- {{op: add, path: /spec}}\n- {pod}\n")
    assert [one.name for one in found.snapshot.pods] == ["a"]
    assert [one.message.startswith("ignored: JSON patches") for one in found.problems] == [True]


def test_the_command_of_a_kustomization_names_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "overlays" / "my prod"
    folder.mkdir(parents=True)
    text = "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources: [x]\n"
    (folder / "change.yaml").write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    (problem,) = load(["overlays/my prod/change.yaml"]).problems
    assert problem.block.endswith("`kubectl kustomize 'overlays/my prod' | foreslice plan -f -`")


@pytest.mark.parametrize(
    "text",
    [
        "- {op: add, path: /spec/replicas, value: 2}\n",
        PATCH.replace("KIND", "Deployment").replace("IMAGE", "").replace("SELECTOR", SELECTOR),
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: '*'}\nspec: {}\n",
        "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {nodeSelector: {a: b}}\n",
        "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nresources: [x]\n",
    ],
)
def test_a_patch_is_rendered_in_the_folder_of_its_kustomization(text: str) -> None:
    (problem,) = loaded(text).problems
    assert "`kubectl kustomize DIR | foreslice plan -f -`" in problem.block
    assert "DIR is the folder with the kustomization.yaml that uses it" in problem.block


def test_a_kustomization_without_a_kind_names_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "kustomization.yaml").write_text("resources: [x]\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    (problem,) = load(["kustomization.yaml"]).problems
    assert problem.message.endswith("give what it renders: `kubectl kustomize . | foreslice plan -f -`")

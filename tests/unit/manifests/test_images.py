"""Images that users have to fill in are told, and planned."""

from __future__ import annotations

import pytest

from tests.unit.manifests.texts import loaded

VARIABLES = (
    "${REGISTRY}/app:1",
    "{{ image }}",
    "R-docker.pkg.dev/PROJECT_ID/app:1",
    "r.example/APP_NAME:1",
    "REPO_HERE.azurecr.io/app:1",
    "r.io/app:TAG_HERE",
    "r-docker.example/<PROJECT_ID>/<REPO>/app:1",
    "FILLED BY THE OPERATOR",
    "IMAGE_URL",
    "TODO",
    "REPLACE_ME",
    "your-registry/app:1",
    "YOUR_REGISTRY.example.com/app:1",
    "your-registry.example.com/app:1",
    "r.example/your-project/app:1",
    "r.example/replace-me:1",
)
WHOLE = (
    "r.example/todo:1",
    "dummy/app",
    "r.example/your-app:1",
    "your/app:1",
    "r.example:80/app:BUILD_7",
    "r.example/app:BUILD_7@sha256:0",
)


@pytest.mark.parametrize(("image", "expected"), [*((one, 1) for one in VARIABLES), *((one, 0) for one in WHOLE)])
def test_an_image_with_a_variable_is_planned_and_told(image: str, expected: int) -> None:
    found = loaded(
        "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n  containers:\n"
        f"  - {{name: c, image: '{image}'}}\n  - {{name: d, image: '{image}'}}\n"
    )
    assert found.ok
    assert len([problem for problem in found.problems if "no node can pull" in problem.message]) == expected


@pytest.mark.parametrize(
    ("image", "words"),
    [
        ("ACCOUNT_ID.dkr.ecr.REGION.amazonaws.com/app:latest", "ACCOUNT_ID and REGION"),
        ("r.io/app:TAG_HERE", "TAG_HERE"),
    ],
)
def test_words_that_envsubst_does_not_know_are_named(image: str, words: str) -> None:
    (found,) = loaded(
        f"apiVersion: v1\nkind: Pod\nmetadata: {{name: p}}\nspec: {{containers: [{{name: c, image: '{image}'}}]}}\n"
    ).problems
    assert found.next_step == (
        f"it looks like a variable that was not replaced: write the value of {words}, each time that it is in the file"
    )


def test_images_that_no_node_can_pull_are_told_once_a_file() -> None:
    pods = (
        f"apiVersion: v1\nkind: Pod\nmetadata: {{name: p{i}}}\nspec:\n  containers: [{{name: c, image: '{image}'}}]\n"
        for i, image in enumerate(("${A}", "${A}", "<b>", "TODO", "your-registry/c", "busybox"))
    )
    (found,) = loaded("---\n".join(pods)).problems
    assert found.message == "no node can pull ${A}, <b>, TODO and 1 more, so pods do not start there"
    assert found.subject == "Pod p0"
    assert "envsubst" in found.next_step
    assert "write the value that belongs there" in found.next_step


@pytest.mark.parametrize(
    ("version", "pods"),
    [
        ("v1beta1", "components: [{name: w, podTemplate: {spec: {containers: [{name: main, image: IMAGE}]}}}]"),
        ("v1beta1", "components: [{name: w, podTemplate: {spec: {initContainers: [{name: a, image: IMAGE}]}}}]"),
        ("v1alpha1", "services: {w: {extraPodSpec: {mainContainer: {image: IMAGE}}}}"),
    ],
)
def test_an_image_is_told_wherever_a_kind_has_its_pods(version: str, pods: str) -> None:
    text = f"apiVersion: nvidia.com/{version}\nkind: DynamoGraphDeployment\nmetadata: {{name: g}}\nspec: {{{pods}}}\n"
    told = [one.message for one in loaded(text.replace("IMAGE", "<your-registry>/app:1")).problems]
    assert "no node can pull <your-registry>/app:1, so the pod does not start there" in told


def test_an_image_of_a_pod_that_has_ended_is_not_told() -> None:
    pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: c, image: TODO}]}\n"
    found = loaded(f"{pod}status: {{phase: Succeeded}}\n")
    assert not any("no node can pull" in one.message for one in found.problems)

"""Arguments with a variable that only a shell would replace."""

from __future__ import annotations

import io

import pytest

from autoscaler.manifests.load import load

_GPU = "resources: {limits: {nvidia.com/gpu: 1}}"


def _told(container: str, resources: str = _GPU) -> str:
    spec = f"{{containers: [{{name: c, image: i, {resources}, {container}}}]}}"
    text = f"apiVersion: v1\nkind: Pod\nmetadata: {{name: p}}\nspec: {spec}\n"
    found = load(["-"], stdin=io.StringIO(text))
    return "\n".join(one.block for one in found.problems)


@pytest.mark.parametrize("args", ["['--model=${MODEL}']", "[serve, '${MODEL}', --port=1]"])
def test_kubernetes_leaves_a_variable_of_a_shell_as_it_is(args: str) -> None:
    told = _told(f"args: {args}")
    assert "${MODEL}' as it is: Kubernetes replaces only $(NAME) in arguments" in told
    assert "run `MODEL= envsubst '$MODEL' < FILE | foreslice plan -f -`" in told


def test_a_variable_of_the_container_has_another_form() -> None:
    told = _told("args: ['--host=${POD_IP}'], env: [{name: POD_IP, value: a}]")
    assert "write $(POD_IP)" in told


def test_containers_without_devices_are_left_out() -> None:
    assert "as it is" not in _told("args: ['--model=${MODEL}']", "resources: {limits: {cpu: 1}}")


@pytest.mark.parametrize(
    "container",
    [
        "command: [sh, -c], args: ['${MODEL}']",
        "command: [/bin/bash, -lc, 'a ${MODEL}']",
        "command: [/opt/run.sh, '--model=${MODEL}']",
        "args: ['--model=$(MODEL)']",
        "args: ['--template={{a}} ${x}']",
        "args: ['--model=$MODEL']",
    ],
)
def test_what_a_shell_or_a_program_replaces(container: str) -> None:
    assert "as it is" not in _told(container)

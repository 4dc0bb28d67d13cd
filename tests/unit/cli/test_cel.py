"""`foreslice cel`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from autoscaler.cli.cel import cel
from autoscaler.errors import BadInputError
from autoscaler.lint.devices.effort import Effort

GPU = 'device.attributes["gpu.nvidia.com"]'
MEMORY = 'device.capacity["gpu.nvidia.com"].memory'


def run(*arguments: str, stdin: str | None = None) -> Result:
    return CliRunner().invoke(cel, arguments, input=stdin)


def test_equal_devices_of_a_type_are_one_line_with_values_and_cost() -> None:
    result = run(f'device.driver == "gpu.nvidia.com" && {GPU}.architecture == "Hopper"', "--type", "p5.48xlarge")
    head, columns, first, *others = result.stdout.splitlines()
    assert head == "Kubernetes v1.36.3, estimated cost at most 9"
    assert columns.split() == ["RESULT", "DRIVER", "DEVICES", "NAMES", "COST", "VALUES", "WHY"]
    assert first.split("  ")[0] == "true"
    assert "8        gpu-0 … gpu-7" in first
    assert first.endswith("9     architecture=Hopper")
    assert [line.split()[:3] for line in others] == [
        ["false", "compute-domain.nvidia.com", "2"],
        ["false", "dra.net", "32"],
    ]
    assert result.exit_code == 0


def test_errors_and_unknowns_say_why() -> None:
    answers = json.loads(run(f'{GPU}.uuid == "GPU-1"', "--type", "p5.48xlarge", "-o", "json").stdout)["results"]
    by_driver = {answer["driver"]: answer for answer in answers}
    assert by_driver["dra.net"]["result"] == "error"
    assert by_driver["dra.net"]["message"] == "no such key: uuid"
    assert by_driver["dra.net"]["values"] == {"gpu.nvidia.com/uuid": ["(absent)"]}
    assert by_driver["gpu.nvidia.com"]["result"] == "unknown"
    assert "gpu.nvidia.com/uuid" in by_driver["gpu.nvidia.com"]["message"]
    assert by_driver["gpu.nvidia.com"]["names"] == [f"gpu-{n}" for n in range(8)]


def test_without_a_type_the_whole_catalog_is_tried() -> None:
    result = run(f'device.driver == "gpu.nvidia.com" && {MEMORY}.isGreaterThan(quantity("80Gi"))', "-o", "yaml")
    found = {(one["result"], one["driver"]): one for one in yaml.safe_load(result.stdout)["results"]}
    assert "p5.48xlarge" not in found["true", "gpu.nvidia.com"]["instanceTypes"]
    assert "p5.48xlarge" in found["false", "gpu.nvidia.com"]["instanceTypes"]
    assert "p5en.48xlarge" in found["true", "gpu.nvidia.com"]["instanceTypes"]
    assert not any(outcome == "error" for outcome, _ in found)


def test_the_catalog_table_counts_types() -> None:
    (line,) = [line for line in run('device.driver == "tpu.google.com"').stdout.splitlines() if line.startswith("true")]
    assert line.split()[1] == "tpu.google.com"
    assert int(line.split()[2]) > 5
    assert line.split()[3].startswith("ct")


def test_drivers_decide_what_is_published() -> None:
    expression = f'device.driver == "gpu.nvidia.com" && {GPU}.type == "mig"'
    for more in (("--type", "p5.48xlarge"), ()):
        plain = json.loads(run(expression, "--drivers", "nvidia", "-o", "json", *more).stdout)["results"]
        parted = json.loads(run(expression, "--drivers", "nvidia:dynamic-mig", "-o", "json", *more).stdout)["results"]
        assert {one["result"] for one in plain} == {"false"}
        assert "true" in {one["result"] for one in parted}


def test_published_slices_are_read_from_a_file_or_stdin(tmp_path: Path) -> None:
    text = yaml.safe_dump(
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceSlice",
            "metadata": {"name": "s"},
            "spec": {
                "driver": "d.example.com",
                "nodeName": "node-1",
                "pool": {"name": "node-1", "generation": 1, "resourceSliceCount": 1},
                "devices": [
                    {"name": "d0", "attributes": {"size": {"int": 3}}},
                    {"name": "d1", "attributes": {"size": {"int": 3}}},
                    {"name": "d2", "attributes": {"size": {"int": 4}}},
                ],
            },
        }
    )
    file = tmp_path / "slices.yaml"
    file.write_text(text, encoding="utf-8")
    expression = 'device.attributes["d.example.com"].size > 3'
    from_file = run(expression, "--slices", str(file))
    assert from_file.stdout == run(expression, "--slices", "-", stdin=text).stdout
    assert [" ".join(line.split()) for line in from_file.stdout.splitlines()[2:]] == [
        "true d.example.com 1 d2 5 size=4",
        "false d.example.com 2 d0, d1 5 size=3",
    ]


def test_what_does_not_compile_is_pointed_at() -> None:
    result = run(f'{GPU}.type == "gpu" &&\n {MEMORY} > quantity("40Gi")')
    assert result.exit_code == 1
    assert isinstance(result.exception, BadInputError)
    message, line, caret, hint = str(result.exception).splitlines()
    assert message.startswith("the selector does not compile: line 2, column ")
    assert line == f'   {MEMORY} > quantity("40Gi")'
    assert line[caret.index("^") :].startswith(("memory", ">", ".memory"))
    assert "isGreaterThan" in hint


def test_of_a_long_line_the_place_is_shown() -> None:
    message = str(run(" || ".join(["true"] * 50) + " || nvidia").exception)
    _, line, caret, _ = message.splitlines()
    assert line.startswith("  …")
    assert len(line) < 130
    assert line[caret.index("^") :] == "nvidia"


@pytest.mark.parametrize(
    ("path", "note"),
    [
        ('device.attributes["gpu.nvidia.com"].memory', "is not an attribute but a capacity; read device.capacity"),
        ('device.attributes["gpu.nvidia.com"].productNam', "did you mean gpu.nvidia.com/productName?"),
        ('device.attributes["gpu.nvida.com"].uuid', "did you mean 'gpu.nvidia.com'?"),
    ],
)
def test_a_name_that_no_driver_publishes_is_noted(path: str, note: str) -> None:
    tried = run(f'{path} == "x"', "--type", "g6.xlarge")
    assert tried.exit_code == 0
    assert note in tried.stderr


def test_names_that_other_drivers_publish_are_not_noted() -> None:
    tried = run('device.attributes["gpu.nvidia.com"].uuid == "x"', "--type", "trn1.2xlarge")
    assert "no such key" in tried.stdout
    assert "note:" not in tried.stderr


def test_what_the_api_server_would_refuse_is_noted() -> None:
    costly = run(f'{MEMORY} != quantity("80Gi")', "--type", "g6.xlarge", "--drivers", "nvidia")
    assert "note: the API server refuses it in new objects: its estimated cost exceeds 1,000,000" in costly.stderr
    older = run("device.allowMultipleAllocations", "--type", "g6.xlarge", "--kubernetes-version", "1.34")
    assert "refuses it in new objects: undefined field 'allowMultipleAllocations'" in older.stderr
    assert costly.exit_code == older.exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--type", "p5.48xlage"), "p5.48xlarge"),
        (("--type", "p5.48xlarge", "--drivers", "nvidai"), "--drivers nvidai"),
        (("--drivers", "nvidai"), "--drivers nvidai"),
        (("--kubernetes-version", "1.12"), "--kubernetes-version"),
        (("--slices", "no-such-file.yaml"), "no-such-file.yaml"),
        (("--catalog", "no-such-directory"), "no such directory"),
    ],
)
def test_bad_input_says_what_to_do(arguments: tuple[str, ...], told: str) -> None:
    result = run("true", *arguments)
    assert isinstance(result.exception, BadInputError)
    assert told in str(result.exception)


def test_type_and_slices_exclude_each_other() -> None:
    assert run("true", "--type", "p5.48xlarge", "--slices", "-").exit_code == 2


def test_a_selector_too_costly_for_the_catalog_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("autoscaler.report.tables.cel_trial.Effort", lambda: Effort(allowed=1))
    digits = "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]"
    result = run(f"{digits}.all(a, {digits}.all(b, {digits}.all(c, a + b + c >= 0)))")
    assert isinstance(result.exception, BadInputError)
    assert "too costly to try on all devices" in str(result.exception)
    assert "--type" in result.exception.next_step

"""`foreslice lint`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from autoscaler.cli.lint import lint
from autoscaler.errors import BadInputError
from autoscaler.lint.rules import RULES

CLAIM = """\
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: gpu, namespace: ml}
spec:
  spec:
    devices:
      requests:
        - name: gpu
          exactly:
            deviceClassName: gpu.nvidia.com
            selectors:
              - cel:
                  expression: device.attributes["gpu.nvidia.com"].architecture == "%s"
"""
LINE = 13


def run(*arguments: str, stdin: str | None = None) -> Result:
    return CliRunner().invoke(lint, arguments, input=stdin)


def written(folder: Path, text: str, name: str = "claims/gpu.yaml") -> Path:
    file = folder / name
    file.parent.mkdir(exist_ok=True)
    file.write_text(text, encoding="utf-8")
    return file


def test_nothing_found_is_said_and_exits_0(tmp_path: Path) -> None:
    result = run("-f", str(written(tmp_path, CLAIM % "Hopper")))
    assert (result.exit_code, result.stdout) == (0, "nothing found\n")


def test_errors_stand_with_file_line_rule_and_fix(tmp_path: Path) -> None:
    file = written(tmp_path, CLAIM % "Hoper")
    result = run("-f", str(tmp_path))
    first, fix, *_, summary = result.stdout.splitlines()
    field = "spec.spec.devices.requests[0].exactly.selectors[0].cel.expression"
    assert first.startswith(f"{file}:{LINE}: error: ResourceClaimTemplate ml/gpu: {field}: no device of the catalog")
    assert first.endswith("(architecture = Hopper) [never-matches]")
    assert fix == "  did you mean 'Hopper'?"
    assert summary == "1 error"
    assert result.exit_code == 3


def test_warnings_alone_exit_0() -> None:
    text = (CLAIM % "Hopper").replace("architecture", "uuid")
    result = run("-f", "-", stdin=text)
    assert "-:13: warning:" in result.stdout
    assert "[run-time-only]" in result.stdout
    assert result.exit_code == 0


def test_a_selector_that_does_not_compile_is_told_once() -> None:
    result = run("-f", "-", "-o", "json", stdin=(CLAIM % "Hopper").replace("==", "="))
    (found,) = json.loads(result.stdout)["findings"]
    assert (found["rule"], found["line"]) == ("cel-compile", LINE)
    assert result.exit_code == 3


def test_what_reading_found_are_findings_too() -> None:
    text = (CLAIM % "Hopper").replace("deviceClassName: gpu", "count: x\n            deviceClassName: gpux")
    findings = json.loads(run("-f", "-", "-o", "json", stdin=text).stdout)["findings"]
    assert {"invalid-object"} == {found["rule"] for found in findings}
    assert "spec.spec.devices.requests[0].exactly.count" in {found["field"] for found in findings}


POD_GROUP = """\
apiVersion: scheduling.x-k8s.io/v1alpha1
kind: PodGroup
metadata: {name: g, namespace: ml}
spec: %s
"""


@pytest.mark.parametrize(
    ("text", "rule", "field", "fix"),
    [
        (
            (CLAIM % "Hopper").replace("deviceClassName", "selector: x\n            deviceClassName"),
            "unknown-field",
            "spec.spec.devices.requests[0].exactly.selector",
            "did you mean 'selectors'?",
        ),
        (POD_GROUP % "{}", "questionable-object", "spec.minMember", "say how many pods must start together"),
    ],
    ids=["unknown field", "does less than it seems to"],
)
def test_what_reading_only_warns_of_is_a_warning(text: str, rule: str, field: str, fix: str) -> None:
    result = run("-f", "-", "-o", "json", stdin=text)
    (found,) = json.loads(result.stdout)["findings"]
    assert (found["rule"], found["level"], found["field"]) == (rule, "warning", field)
    assert fix in found["fix"]
    assert found["line"] > 0
    assert result.exit_code == 0


def test_sarif_names_rules_levels_and_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(tmp_path, CLAIM % "Hoper", "a claim.yaml")
    monkeypatch.chdir(tmp_path)
    result = run("-f", "a claim.yaml", "-o", "sarif")
    log = json.loads(result.stdout)
    assert log["version"] == "2.1.0"
    (sarif_run,) = log["runs"]
    rules = sarif_run["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == [rule.id for rule in RULES]
    (found,) = sarif_run["results"]
    assert rules[found["ruleIndex"]]["id"] == found["ruleId"] == "never-matches"
    assert found["level"] == "error"
    (location,) = found["locations"]
    assert location["physicalLocation"] == {
        "artifactLocation": {"uri": "a%20claim.yaml"},
        "region": {"startLine": LINE},
    }
    assert location["logicalLocations"][0]["fullyQualifiedName"].startswith("ResourceClaimTemplate ml/gpu: spec.")
    assert result.exit_code == 3


def test_fingerprints_do_not_change_with_the_lines_above(tmp_path: Path) -> None:
    file = written(tmp_path, CLAIM % "Hoper")
    before = json.loads(run("-f", str(file), "-o", "sarif").stdout)["runs"][0]["results"][0]
    written(tmp_path, "# a comment\n" + CLAIM % "Hoper")
    after = json.loads(run("-f", str(file), "-o", "sarif").stdout)["runs"][0]["results"][0]
    assert before["partialFingerprints"] == after["partialFingerprints"]
    assert before["locations"] != after["locations"]


def test_a_catalog_of_ones_own_makes_a_selector_match(tmp_path: Path) -> None:
    types = """
cloud: aws
defaults: {architecture: amd64}
provenance: {shape: {source: a test, date: 2026-08-21}}
types:
  - {name: my.gpu, vcpu: 8, memory: 32Gi, accelerator: {model: nvidia-l4, count: 16}, capacityTypes: [on-demand]}
"""
    own = tmp_path / "catalog"
    own.mkdir()
    (own / "mine.yaml").write_text(types, encoding="utf-8")
    text = (CLAIM % "Ada Lovelace").replace("exactly:\n", "exactly:\n            count: 16\n")
    assert "[more-than-a-node]" in run("-f", "-", stdin=text).stdout
    assert run("-f", "-", "--catalog", str(own), stdin=text).stdout == "nothing found\n"


def test_the_version_decides() -> None:
    text = (CLAIM % "Hopper").replace(
        'device.attributes["gpu.nvidia.com"].architecture == "Hopper"', "device.allowMultipleAllocations == false"
    )
    assert run("-f", "-", "--kubernetes-version", "1.34", stdin=text).exit_code == 3
    assert run("-f", "-", stdin=text).exit_code == 0


def test_input_that_cannot_be_read_is_bad_input() -> None:
    result = run("-f", "-", stdin="a: [")
    assert isinstance(result.exception, BadInputError)
    assert "nothing to check" in str(result.exception)


def test_objects_of_one_line_are_told_apart() -> None:
    objects = [
        yaml.safe_load(CLAIM % "Hopper"),
        yaml.safe_load((CLAIM % "Hoper").replace("name: gpu,", "name: bad,")),
    ]
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})
    (found,) = json.loads(run("-f", "-", "-o", "json", stdin=text).stdout)["findings"]
    assert (found["object"], found["line"]) == ("ResourceClaimTemplate ml/bad", 1)


@pytest.mark.parametrize(
    "spec",
    ["[]", "7", "{devices: 3}", "{devices: {requests: 3}}", "{devices: {requests: [null, 3, {exactly: []}]}}"],
)
@pytest.mark.parametrize("kind", ["ResourceClaim", "ResourceClaimTemplate", "DeviceClass", "ResourceSlice"])
def test_malformed_objects_are_findings_not_failures(kind: str, spec: str) -> None:
    text = f"apiVersion: resource.k8s.io/v1\nkind: {kind}\nmetadata: {{name: x}}\nspec: {spec}\n"
    result = run("-f", "-", "-o", "json", stdin=text)
    assert result.exit_code in (0, 3)
    assert json.loads(result.stdout)["findings"]

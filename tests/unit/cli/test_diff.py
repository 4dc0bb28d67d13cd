"""`diff` of plans and of manifests, git revisions included, and the cost of plans by group."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from autoscaler.cli.diff import diff
from autoscaler.cli.plan import plan
from autoscaler.errors import BadInputError

POD = """
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {{name: {name}, namespace: {namespace}}}
spec:
  devices:
    requests:
      - name: gpu
        exactly: {{deviceClassName: gpu.nvidia.com, count: {count}}}
---
apiVersion: v1
kind: Pod
metadata: {{name: {name}, namespace: {namespace}, labels: {{team: {team}}}}}
spec:
  resourceClaims: [{{name: gpu, resourceClaimName: {name}}}]
  containers: [{{name: main, image: train, resources: {{requests: {{cpu: "1"}}, claims: [{{name: gpu}}]}}}}]
---
"""


def manifest(name: str, count: int, *, namespace: str = "default", team: str = "ml") -> str:
    return POD.format(name=name, count=count, namespace=namespace, team=team)


def written(folder: Path, name: str, *texts: str) -> str:
    file = folder / name
    file.write_text("".join(texts))
    return str(file)


def run(*arguments: str) -> Result:
    return CliRunner().invoke(diff, arguments)


def data(*arguments: str) -> Any:
    return json.loads(run(*arguments, "-o", "json").stdout)


def planned(file: str, into: Path) -> str:
    into.write_text(CliRunner().invoke(plan, ["-f", file, "-o", "json"]).stdout)
    return str(into)


def test_a_pod_that_grows(tmp_path: Path) -> None:
    before, after = written(tmp_path, "a.yaml", manifest("p", 1)), written(tmp_path, "b.yaml", manifest("p", 8))
    found = data(before, after)
    (gone, new) = sorted(found["nodes"], key=lambda entry: int(entry["after"]))
    assert (gone["before"], gone["after"], new["before"], new["after"]) == (1, 0, 0, 1)
    assert [(p["pod"], p["change"]) for p in found["pods"]] == [("default/p", "moved")]
    assert found["usdPerHour"]["difference"].startswith("+")
    text = run(before, after).output
    assert "default/p  moved" in text
    assert "1 pod moved" in text


def test_a_pod_that_loses_its_place_is_the_exit_code(tmp_path: Path) -> None:
    before, after = written(tmp_path, "a.yaml", manifest("p", 1)), written(tmp_path, "b.yaml", manifest("p", 99))
    assert run(before, after).exit_code == 3
    assert run(after, before).exit_code == 0
    assert data(after, before)["pods"][0]["change"] == "placed now"


def test_plans_that_were_printed(tmp_path: Path) -> None:
    file = written(tmp_path, "a.yaml", manifest("p", 1))
    both = written(tmp_path, "b.yaml", manifest("p", 1), manifest("q", 2, namespace="other"))
    before = planned(file, tmp_path / "before.json")
    assert data(before, file) == data(before, before)
    found = data(before, planned(both, tmp_path / "after.json"))
    assert [(p["pod"], p["change"]) for p in found["pods"]] == [("other/q", "added")]
    assert run(before, before).output == run(file, file).output


def test_a_git_revision(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    written(tmp_path, "p.yaml", manifest("p", 1))
    who = ["-c", "user.name=t", "-c", "user.email=t@example.com"]
    for arguments in (["init", "-q"], ["add", "p.yaml"], ["commit", "-qm", "one"]):
        subprocess.run(["git", *who, *arguments], check=True)
    written(tmp_path, "p.yaml", manifest("p", 8))
    assert data("git:HEAD:p.yaml", "p.yaml")["pods"][0]["change"] == "moved"


def test_problems_of_a_git_revision_name_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    written(tmp_path, "p.yaml", manifest("p", 1).replace("kind: Pod", "kind: Pood"))
    who = ["-c", "user.name=t", "-c", "user.email=t@example.com"]
    for arguments in (["init", "-q"], ["add", "p.yaml"], ["commit", "-qm", "one"]):
        subprocess.run(["git", *who, *arguments], check=True)
    said = str(run("git:HEAD:p.yaml", "p.yaml").exception)
    assert "git:HEAD:p.yaml:" in said
    assert "foreslice-" not in said


@pytest.mark.parametrize("given", ["git:HEAD", "git:no-such-branch:p.yaml", "git:--output=x:p.yaml"])
def test_what_git_does_not_have(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: str) -> None:
    monkeypatch.chdir(tmp_path)
    subprocess.run(["git", "init", "-q"], check=True)
    assert isinstance(run(given, given).exception, BadInputError)


def test_a_plan_of_another_version(tmp_path: Path) -> None:
    file = written(tmp_path, "plan.json", json.dumps({"kind": "Plan", "launches": [{}]}))
    error = run(file, file).exception
    assert isinstance(error, BadInputError)
    assert "foreslice plan -f PATH -o json" in str(error)


@pytest.mark.parametrize(
    ("by", "expected"),
    [
        ("namespace", {"a": 1, "b": 2}),
        ("workload", {"a/Pod/p": 1, "b/Pod/q": 1, "b/Pod/r": 1}),
        ("label=team", {"ml": 2, "web": 1}),
        ("label=none", {"(none)": 3}),
    ],
)
def test_the_cost_of_groups_is_that_of_the_plan(tmp_path: Path, by: str, expected: dict[str, int]) -> None:
    texts = [
        manifest("p", 1, namespace="a"),
        manifest("q", 1, namespace="b"),
        manifest("r", 2, namespace="b", team="web"),
    ]
    file = written(tmp_path, "p.yaml", *texts)
    result = CliRunner().invoke(plan, ["-f", file, "--cost-by", by, "-o", "json"])
    found = json.loads(result.stdout)
    groups = found["costBy"]["groups"]
    assert {group["name"]: group["podsPlaced"] for group in groups} == expected
    total = sum(float(group["usdPerHour"]) for group in groups)
    assert total == pytest.approx(float(found["summary"]["usdPerHour"]))
    assert f"Cost by {by.removeprefix('label=')}" in CliRunner().invoke(plan, ["-f", file, "--cost-by", by]).stdout


def test_nobody_groups_by_that() -> None:
    assert CliRunner().invoke(plan, ["-f", "x", "--cost-by", "moon"]).exit_code == 2

"""`foreslice catalog verify`."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from autoscaler.cli.catalog.group import catalog
from autoscaler.errors import BadInputError

ROOT = Path(__file__).parents[4]
PUBLISHED = ROOT / "tests" / "data" / "published"
P4D = str(PUBLISHED / "eks-p4d.yaml")


def run(*arguments: str, stdin: str = "") -> Result:
    return CliRunner().invoke(catalog, ["verify", *arguments], input=stdin)


def test_a_node_as_predicted_ends_with_0() -> None:
    result = run("--slices", P4D, "--type", "p4d.24xlarge")
    assert result.exit_code == 0
    assert result.stdout == "p4d.24xlarge with nvidia v0.4.1 + dranet v1.4.0: 15 devices published, as predicted\n"


def test_drift_ends_with_3_and_an_overlay_that_repairs_it(tmp_path: Path) -> None:
    result = run("--slices", P4D, "--type", "p4de.24xlarge")
    assert result.exit_code == 3
    row = next(line for line in result.stdout.splitlines() if "productName" in line)
    assert row.split()[:4] == ["different", "attribute", "productName", "gpu.nvidia.com"]
    assert "gpu-0, gpu-1, gpu-2 and 5 more" in row
    head, _, overlay = result.stdout.partition("\ntypes:")
    assert head.endswith("0 differences would be left.")
    (tmp_path / "repaired.yaml").write_text(f"types:{overlay}", encoding="utf-8")
    assert run("--slices", P4D, "--type", "p4de.24xlarge", "--catalog", str(tmp_path)).exit_code == 0


def test_programs_get_every_difference() -> None:
    result = run("--slices", P4D, "--type", "p4de.24xlarge", "-o", "json")
    document = json.loads(result.stdout)
    assert (result.exit_code, document["equal"], document["leftWithOverlay"]) == (3, False, [])
    assert {
        "change": "different",
        "aspect": "capacity",
        "driver": "gpu.nvidia.com",
        "device": "gpu-3",
        "field": "memory",
        "predicted": "80Gi",
        "published": "40Gi",
    } in document["differences"]


def test_the_profile_is_recognised_by_its_devices() -> None:
    """A sample of whole GPUs is not taken for the MIG layout that misses fewer attributes."""
    assert run("--slices", P4D, "--type", "p5.48xlarge").stdout.startswith("p5.48xlarge with nvidia v0.4.1 + dranet")


def test_slices_come_from_stdin_as_kubectl_lists_them() -> None:
    items = list(yaml.safe_load_all(Path(P4D).read_text(encoding="utf-8")))
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": items})
    assert run("--slices", "-", "--type", "p4d.24xlarge", stdin=text).exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--slices", "nowhere.yaml", "--type", "p4d.24xlarge"], "nowhere.yaml"),
        (["--slices", str(PUBLISHED / "catalog"), "--type", "p4d.24xlarge"], "no ResourceSlice found"),
        (["--slices", P4D, "--type", "p4d.24xlarg"], 'did you mean "p4d.24xlarge"'.replace('"', "'")),
        (["--slices", P4D, "--slices", str(PUBLISHED / "oke-gb200.yaml"), "--type", "p4d.24xlarge"], "--node"),
        (["--slices", P4D, "--type", "p4d.24xlarge", "--node", "oke"], "no slices of node 'oke'"),
        (["--slices", P4D, "--type", "p4d.24xlarge", "--drivers", "nvidea"], "nvidia"),
    ],
    ids=["no file", "no slices", "unknown type", "several nodes", "unknown node", "unknown driver"],
)
def test_bad_input_says_what_to_do(arguments: list[str], message: str) -> None:
    result = run(*arguments)
    assert isinstance(result.exception, BadInputError)
    assert message in str(result.exception)


COMMANDS = re.findall(
    r"^foreslice catalog (verify .*tests/data.*)$", (ROOT / "docs" / "drift.md").read_text(), re.MULTILINE
)


EXPECTED = {entry["slices"]: entry for entry in yaml.safe_load((PUBLISHED / "expected.yaml").read_text())}


def sample_of(command: str) -> str:
    """The file whose slices a command verifies."""
    return Path(command.split("--slices ")[1].split()[0]).name


@pytest.mark.parametrize("command", COMMANDS, ids=sample_of)
def test_the_samples_verify_as_the_page_says(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    result = CliRunner().invoke(catalog, [*command.split(), "-o", "json"])
    found = json.loads(result.stdout)
    left = EXPECTED[sample_of(command)]["left"]
    assert result.exit_code == (3 if left else 0)
    drivers = {difference["driver"] for difference in found["differences"]}
    assert drivers == {entry.get("driver", "dra.net") for entry in left}


def test_the_page_verifies_every_sample() -> None:
    samples = {path.name for path in (ROOT / "tests" / "data" / "published").glob("*.yaml")} - {"expected.yaml"}
    assert {Path(word).name for command in COMMANDS for word in command.split() if word.endswith(".yaml")} == samples


PODS = """\
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: gpu}
spec: {selectors: [{cel: {expression: "device.driver == 'gpu.nvidia.com'"}}]}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: h100, namespace: default}
spec:
  devices:
    requests:
      - name: gpu
        exactly:
          deviceClassName: gpu
          selectors: [{cel: {expression: "device.attributes['gpu.nvidia.com'].productName.contains('H100')"}}]
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: any, namespace: default}
spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu}}]}}
---
apiVersion: v1
kind: Pod
metadata: {name: picky, namespace: default}
spec:
  containers: [{name: c, image: i, resources: {claims: [{name: gpu}]}}]
  resourceClaims: [{name: gpu, resourceClaimName: h100}]
---
apiVersion: v1
kind: Pod
metadata: {name: modest, namespace: default}
spec:
  containers: [{name: c, image: i, resources: {claims: [{name: gpu}]}}]
  resourceClaims: [{name: gpu, resourceClaimName: any}]
"""


def test_pods_that_the_drift_affects_are_named_with_the_cause(tmp_path: Path) -> None:
    path = tmp_path / "pods.yaml"
    path.write_text(PODS)
    arguments = ("--slices", P4D, "--type", "p5.48xlarge", "--for", str(path))
    rows = {line.split()[0]: line.split()[1:] for line in run(*arguments).stdout.splitlines() if "default/" in line}
    assert rows["default/picky"] == ["fits", "does", "not", "fit", "gpu.nvidia.com", "productName"]
    assert rows["default/modest"] == ["fits", "fits", "-"]
    pods = {row["pod"]: row for row in json.loads(run(*arguments, "-o", "json").stdout)["pods"]}
    assert (pods["default/picky"]["matters"], pods["default/modest"]["matters"]) == (True, False)


def test_manifests_without_claims_are_bad_input_for_for(tmp_path: Path) -> None:
    path = tmp_path / "pods.yaml"
    path.write_text("apiVersion: v1\nkind: Pod\nmetadata: {name: a, namespace: b}\nspec: {containers: []}\n")
    result = run("--slices", P4D, "--type", "p5.48xlarge", "--for", str(path))
    assert isinstance(result.exception, BadInputError)

"""The objects that `foreslice plan --write-objects` writes place the pods as promised, and drivers and labels that a
step names are there with what it says."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from autoscaler.cli.main import foreslice
from tests.golden.test_advice_carried_out import (
    CASES,
    LAUNCH,
    SELECTOR,
    carried_out,
    custom_object,
    planned,
    proposals,
    template,
    told,
    workload,
)


def filled(manifest: Path, tmp_path: Path) -> Path:
    """The file that `--write-objects` writes, once a person has filled it in."""
    file = tmp_path / "objects.yaml"
    planned(manifest, options=["--write-objects", str(file)])
    values = {"<CLUSTER>": "c", "<LOCATION>": "us-central1", "<ZONE>": "us-central1-a", "<RESERVATION>": "r"}
    values |= {"<GROUP>": "np", "<START>": "2020-01-01T00:00:00Z", "<END>": "2199-01-01T00:00:00Z"}
    body = re.sub("^#.*\n", "", file.read_text(encoding="utf-8"), flags=re.MULTILINE)
    file.write_text(re.sub("<[A-Z]+>", lambda found: values[found[0]], body), encoding="utf-8")
    return file


CREATING = [name for name in CASES if not name.startswith(("Gang", "disk", "Spot"))]


@pytest.mark.parametrize("case", CREATING)
def test_the_written_objects_place_the_pods(case: str, tmp_path: Path) -> None:
    manifest = tmp_path / "manifest.yaml"
    manifest.write_text(yaml.safe_dump(CASES[case]), encoding="utf-8")
    (advice,) = proposals(planned(manifest))
    rest, options = told(advice["change"], tmp_path / "catalog")
    others = [one for one in carried_out(rest) or [] if one["apiVersion"] != "foreslice.dev/v1alpha1"]
    beside = tmp_path / "beside.yaml"
    beside.write_text(yaml.safe_dump_all(others), encoding="utf-8")
    files = [manifest, filled(manifest, tmp_path), *([beside] if others else [])]
    plan = json.loads(planned(*files, form="json", options=options))
    promised = {kind: int(many) for many, kind in LAUNCH.findall(advice["result"])}
    assert Counter(plan["offerings"][n["offering"]]["instanceType"] for n in plan["launches"]) == promised
    assert advice["pod"] in {placed["pod"] for placed in plan["placements"]}


BOUGHT = {
    "any": {"nvidia.com/gpu.product": "NVIDIA-GB200"},
    "of a node pool": {"cloud.google.com/gke-nodepool": "np-2", "kubernetes.io/arch": "arm64"},
}


@pytest.mark.parametrize("selector", BOUGHT.values(), ids=BOUGHT)
def test_a_written_block_has_its_pool_and_all_that_was_tried(selector: dict[str, str], tmp_path: Path) -> None:
    """GPU feature discovery, which writes the label of the product, and the node template of the pool."""
    manifest = tmp_path / "manifest.yaml"
    pods = template({"nvidia.com/gpu": 4, "cpu": 8}, nodeSelector=selector)
    manifest.write_text(yaml.safe_dump(workload("Deployment", "apps/v1", {"template": pods, **SELECTOR})))
    assert "→ 1 × a4x-highgpu-4g (capacity-block), prepaid" in planned(manifest)
    plan = json.loads(planned(manifest, filled(manifest, tmp_path), form="json"))
    assert [plan["offerings"][node["offering"]]["capacityType"] for node in plan["launches"]] == ["capacity-block"]
    assert len(plan["placements"]) == 1


def test_written_blocks_for_two_nvlink_domains_have_a_name_each(tmp_path: Path) -> None:
    manifest, file = tmp_path / "manifest.yaml", tmp_path / "objects.yaml"
    away = {"labelSelector": {"matchLabels": {"app": "a"}}, "topologyKey": "nvidia.com/gpu.clique"}
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [away]}}
    both = []
    for name, more in {"a": {}, "b": {"affinity": apart}}.items():
        labels = {"app": name}
        pods = template({"nvidia.com/gpu": 4, "cpu": 8}, nodeSelector=BOUGHT["any"], **more)
        spec = {"template": {**pods, "metadata": {"labels": labels}}, "selector": {"matchLabels": labels}}
        both.append(workload("Deployment", "apps/v1", spec, name=name))
    manifest.write_text(yaml.safe_dump_all(both), encoding="utf-8")
    text = re.sub(r"\s+", " ", planned(manifest, options=["--write-objects", str(file)]))
    assert "(2 times: podAntiAffinity" in text
    blocks = [one for one in yaml.safe_load_all(file.read_text(encoding="utf-8")) if one["kind"] == "CapacityBlock"]
    assert [one["metadata"]["name"] for one in blocks] == ["advised", "advised-2"]


def test_a_label_of_feature_discovery_is_there_with_its_profile(tmp_path: Path) -> None:
    manifest, pool = tmp_path / "manifest.yaml", tmp_path / "pool.yaml"
    pods = template({"nvidia.com/gpu": 1, "cpu": 1}, nodeSelector={"nvidia.com/gpu.product": "NVIDIA-L4"})
    manifest.write_text(yaml.safe_dump(workload("Deployment", "apps/v1", {"template": pods, **SELECTOR})))
    spec: dict[str, Any] = {"limits": {"nodes": 1}}
    pool.write_text(yaml.safe_dump(custom_object("CapacityPool", spec)))
    text = re.sub(r"\s+", " ", planned(manifest, pool))
    assert "(or list nvidia:feature-discovery, GPU feature discovery, in spec.drivers.profiles of the pool" in text
    pool.write_text(
        yaml.safe_dump(custom_object("CapacityPool", {**spec, "drivers": {"profiles": ["nvidia:feature-discovery"]}}))
    )
    assert len(json.loads(planned(manifest, pool, form="json"))["placements"]) == 1


def test_no_name_of_a_product_is_advised_for_parts_that_are_not_there_by_it(tmp_path: Path) -> None:
    """Nodes with MIG parts have the label of no product, however it is spelt."""
    manifest = tmp_path / "manifest.yaml"
    pods = template({"nvidia.com/mig-1g.5gb": 1}, nodeSelector={"nvidia.com/gpu.product": "A100-SXM4-40GB"})
    manifest.write_text(yaml.safe_dump(workload("Deployment", "apps/v1", {"template": pods, **SELECTOR})))
    text = re.sub(r"\s+", " ", planned(manifest))
    assert "did you mean" not in text
    assert (
        "to do: select it by foreslice.dev/accelerator (nvidia-a100-40gb), which nodes with claimed MIG parts" in text
    )


def test_what_is_left_to_fill_in_is_no_value(tmp_path: Path) -> None:
    manifest, file = tmp_path / "manifest.yaml", tmp_path / "objects.yaml"
    pods = template({"nvidia.com/gpu": 4}, nodeSelector=BOUGHT["any"])
    manifest.write_text(yaml.safe_dump(workload("Deployment", "apps/v1", {"template": pods, **SELECTOR})))
    asked = ["plan", "-f", str(manifest), "--write-objects", str(file)]
    written = CliRunner().invoke(foreslice, asked)
    left = "<ZONE>, <RESERVATION>, <START>, <END>"
    assert f"is written; fill in {left}, and give it with -f beside the manifests" in written.stderr
    assert "note: --write-objects FILE writes CapacityPool and CapacityBlock as tried" in written.stdout
    refused = CliRunner().invoke(foreslice, ["plan", "-f", str(manifest), "-f", str(file)])
    assert refused.exit_code == 1
    for name in (*left.split(", "), "write the value that belongs there"):
        assert name in str(refused.exception)


def test_node_pools_of_any_name_are_all_to_fill_in(tmp_path: Path) -> None:
    manifest, file = tmp_path / "manifest.yaml", tmp_path / "objects.yaml"
    tpu = {"cloud.google.com/gke-tpu-accelerator": "tpu-v5p-slice", "cloud.google.com/gke-tpu-topology": "2x2x1"}
    job = {"spec": {"template": template({"google.com/tpu": 4}, nodeSelector=tpu)}}
    jobs = workload(
        "JobSet", "jobset.x-k8s.io/v1alpha2", {"replicatedJobs": [{"name": "s", "replicas": 2, "template": job}]}
    )
    jobs["metadata"]["annotations"] = {"alpha.jobset.sigs.k8s.io/exclusive-topology": "cloud.google.com/gke-nodepool"}
    manifest.write_text(yaml.safe_dump(jobs))
    CliRunner().invoke(foreslice, ["plan", "-f", str(manifest), "--write-objects", str(file)])
    written = [one["spec"] for one in yaml.safe_load_all(file.read_text()) if one["kind"] == "GCPNodeTemplate"]
    assert [spec["nodePools"] for spec in written] == [["<GROUP>"]] * 2


def test_nothing_is_written_where_a_change_creates_nocustom_object(tmp_path: Path) -> None:
    file = tmp_path / "objects.yaml"
    asked = ["plan", "-f", "docs/examples/whole-node.yaml", "--write-objects", str(file)]
    assert "no change that was found creates an object" in CliRunner().invoke(foreslice, asked).stderr
    assert not file.exists()


@pytest.mark.parametrize("name", ["<ZONE>", "x <OTHER> <ZONE>"])
def test_what_a_manifest_has_is_no_placeholder(name: str, tmp_path: Path) -> None:
    manifest, file = tmp_path / "manifest.yaml", tmp_path / "objects.yaml"
    pods = template({"nvidia.com/gpu": 1}, schedulerName=name)
    manifest.write_text(yaml.safe_dump(workload("Deployment", "apps/v1", {"template": pods, **SELECTOR})))
    asked = ["plan", "-f", str(manifest), "--write-objects", str(file)]
    written = CliRunner().invoke(foreslice, asked, catch_exceptions=False)
    assert "is written; give it with -f beside the manifests" in written.stderr
    assert name in yaml.safe_load(file.read_text())["spec"]["scope"]["schedulerNames"]
    assert "Fill in" not in file.read_text()


def test_no_file_is_overwritten(tmp_path: Path) -> None:
    """Not even the manifest that was read."""
    manifest = tmp_path / "manifest.yaml"
    pods = template({"nvidia.com/gpu": 1}, schedulerName="mine")
    text = yaml.safe_dump(workload("Deployment", "apps/v1", {"template": pods, **SELECTOR}))
    manifest.write_text(text)
    refused = CliRunner().invoke(foreslice, ["plan", "-f", str(manifest), "--write-objects", str(manifest)])
    assert refused.exit_code == 1
    assert f"{manifest}: the file exists" in str(refused.exception)
    assert manifest.read_text() == text

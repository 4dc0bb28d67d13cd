"""Changes of two workloads that contradict each other in one pool."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from autoscaler.cli.main import foreslice

POOL = {
    "apiVersion": "foreslice.dev/v1alpha1",
    "kind": "CapacityPool",
    "metadata": {"name": "gpu"},
    "spec": {
        "limits": {"nodes": 10},
        "drivers": {"profiles": ["nvidia"]},
        "requirements": [{"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["g6.xlarge"]}],
    },
}


def deployment(name: str, **spec: Any) -> dict[str, Any]:
    container = {
        "name": "main",
        "image": "registry.example/a:1",
        "resources": {"requests": {"cpu": 1, "memory": "1Gi"}, "limits": {"nvidia.com/gpu": 1}},
    }
    template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": [container], **spec}}
    selector = {"matchLabels": {"app": name}}
    metadata = {"name": name}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": metadata,
        "spec": {"selector": selector, "template": template},
    }


def told(tmp_path: Path, *objects: dict[str, Any]) -> str:
    path = tmp_path / "all.yaml"
    path.write_text(yaml.safe_dump_all(objects), encoding="utf-8")
    output = CliRunner().invoke(foreslice, ["plan", "-f", str(path)], catch_exceptions=False).output
    return " ".join(output.partition("Smallest change")[2].split())


@pytest.mark.parametrize(("label", "contested"), [("team", True), ("disk", False)])
def test_a_label_that_both_need_is_given_in_a_copy_of_the_pool(label: str, contested: bool, tmp_path: Path) -> None:
    first, second = deployment("a", nodeSelector={"team": "a"}), deployment("b", nodeSelector={label: "b"})
    text = told(tmp_path, POOL, first, second)
    assert "default/a-0: pool gpu: add team=a to spec.labels → 1 × g6.xlarge" in text
    where = "a copy of pool gpu, which itself changes for default/a-0" if contested else "pool gpu"
    assert f"default/b-0: {where}: add {label}=b to spec.labels → 1 × g6.xlarge" in text


@pytest.mark.parametrize("pools", [[], [POOL]])
def test_the_first_pool_ends_the_offer_of_the_whole_catalog(pools: list[dict[str, Any]], tmp_path: Path) -> None:
    text = told(tmp_path, *pools, deployment("a"), deployment("b", nodeSelector={"team": "b"}))
    assert ("the whole catalog is no longer on offer: give the pods that have a place now" in text) == (not pools)

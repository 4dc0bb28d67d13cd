"""What decides about pods is told in the first answer, whatever else is wrong with them."""

from __future__ import annotations

from pathlib import Path

from click.testing import CliRunner, Result

from autoscaler.cli.plan import plan

POD = """apiVersion: v1
kind: Pod
metadata: {name: p}
spec:
  nodeSelector: {team: mars, nvidia.com/cuda.runtime-version.full: "12.1"}
  containers: [{name: main, image: i, resources: {limits: {RESOURCE: 1}}}]
"""


def planned(tmp_path: Path, text: str, *options: str) -> Result:
    (tmp_path / "a.yaml").write_text(text, encoding="utf-8")
    return CliRunner().invoke(plan, ["-f", str(tmp_path), *options])


def test_a_pod_that_asks_for_a_part_of_a_gpu_learns_what_else_keeps_it_from_nodes(tmp_path: Path) -> None:
    said = " ".join(planned(tmp_path, POD.replace("RESOURCE", "nvidia.com/gpu.shared")).stdout.split())
    assert "default/p (with nvidia.com/gpu 1, for whole GPUs): does-not-fit" in said
    assert "node selector wants team=mars, nvidia.com/cuda.runtime-version.full=12.1" in said
    assert "smallest change then: (1) create a CapacityPool" in said

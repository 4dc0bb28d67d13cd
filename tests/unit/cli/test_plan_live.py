"""`foreslice plan --live` before it reaches a cluster; tests/e2e/controller/test_plan_live.py has the rest."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from autoscaler.cli.plan import plan
from autoscaler.errors import ConfigurationError


@pytest.mark.parametrize("arguments", [[], ["--live", "-f", "pods.yaml"]], ids=["neither", "both"])
def test_manifests_or_a_cluster(arguments: list[str]) -> None:
    result = CliRunner().invoke(plan, arguments)
    assert result.exit_code == 2
    assert "Give either -f with manifests, or --live" in result.output


def test_no_cluster_says_what_to_give(tmp_path: Path) -> None:
    result = CliRunner().invoke(plan, ["--live", "--kubeconfig", str(tmp_path / "missing")])
    assert isinstance(result.exception, ConfigurationError)
    assert "there is no kubeconfig" in str(result.exception)
    assert "--kubeconfig" in str(result.exception)

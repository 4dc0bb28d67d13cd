"""Feature gates that may be tried out are, by the commands that decide; the others are assumed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from autoscaler.cli.doctor import doctor
from autoscaler.cli.plan import plan
from tests.fakes.http_api import serving

DRY_RUN = "dryRun=All"


@pytest.mark.parametrize("permitted", [True, False], ids=["permitted", "forbidden"])
def test_the_doctor_says_what_is_proven(tmp_path: Path, permitted: bool) -> None:
    """The fake API server keeps every field, as one does whose gates are all on."""
    with serving(tmp_path, dry_runs=permitted) as api:
        result = CliRunner().invoke(doctor, ["--kubeconfig", api.kubeconfig, "-o", "json"])
    said = [item for item in json.loads(result.stdout) if item["area"] == "kubernetes"]
    proven = [item["message"] for item in said if item["message"].startswith("feature gates verified")]
    untried = [item["message"] for item in said if "could not be tried" in item["message"]]
    told = [item["message"] for item in said if item["level"] == "warning"]
    if permitted:
        assert "DRAListTypeAttributes=true" in proven[0]
        assert untried == []
        assert "set cluster.featureGates to DRAListTypeAttributes=true" in told[0]
    else:
        assert (proven, told) == ([], [])
        assert len(untried) == 3
        assert "that takes the right to create resourceslices.resource.k8s.io" in untried[1]


def test_a_live_plan_notes_gates_that_are_otherwise_than_the_version_has_them(tmp_path: Path) -> None:
    with serving(tmp_path, dry_runs=True) as api:
        result = CliRunner().invoke(plan, ["--live", "--kubeconfig", api.kubeconfig])
        asked = [request for request in api.requests if request.startswith("POST")]
    assert result.exception is None
    assert (
        "feature gates of the cluster differ from the defaults of its version: DRAListTypeAttributes=true"
        in result.stderr
    )
    assert asked
    assert all(DRY_RUN in request for request in asked)


def test_a_version_that_is_given_is_not_tried(tmp_path: Path) -> None:
    with serving(tmp_path, dry_runs=True) as api:
        CliRunner().invoke(plan, ["--live", "--kubeconfig", api.kubeconfig, "--kubernetes-version", "1.35"])
        assert [request for request in api.requests if DRY_RUN in request] == []

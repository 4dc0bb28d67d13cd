"""`gcp check` looks at what a launch needs, and says what is missing and which command corrects it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from click.testing import CliRunner

from autoscaler.cli.gcp.group import gcp as command
from autoscaler.clock import VirtualClock
from autoscaler.cluster.resources import GCP_NODE_TEMPLATES, NAMESPACES
from autoscaler.errors import BadInputError
from autoscaler.simulation.api_server import ApiServer
from providers.gcp.session import Gcp
from tests.fakes.gce.state import PROJECT
from tests.gcp import A3, Rig, expired, server

CLIENTS = "autoscaler.composition.gcp.Gcp"
SPEC: dict[str, Any] = {"cluster": {"name": "c1", "location": "us-central1"}, "nodePools": ["h100"]}


@pytest.fixture
def rig(monkeypatch: pytest.MonkeyPatch) -> Rig:
    monkeypatch.setattr(CLIENTS, lambda project="": Gcp(project or PROJECT, endpoint=server().url))
    return Rig()


def cluster(monkeypatch: pytest.MonkeyPatch, spec: Mapping[str, Any] | None = SPEC) -> None:
    """The commands' cluster, with one GCPNodeTemplate or none."""
    api = ApiServer(VirtualClock())
    if not any(item["metadata"]["name"] == "kube-system" for item in api.list(NAMESPACES).items):
        api.create(NAMESPACES, {"metadata": {"name": "kube-system"}})
    if spec is not None:
        api.create(GCP_NODE_TEMPLATES, {"metadata": {"name": "gpu"}, "spec": spec})
    monkeypatch.setattr("autoscaler.cli.common.preflight.connected", lambda *_: api)
    monkeypatch.setattr("autoscaler.cli.gcp.trial.connected", lambda *_: api)


def checked(
    monkeypatch: pytest.MonkeyPatch, *options: str, output: str = "json", spec: Mapping[str, Any] | None = SPEC
) -> tuple[int, Any]:
    """The exit code and the findings."""
    cluster(monkeypatch, spec)
    result = CliRunner().invoke(command, ["check", "-o", output, *options], catch_exceptions=False)
    return result.exit_code, json.loads(result.output) if output == "json" else result.output


def missing(monkeypatch: pytest.MonkeyPatch, *options: str, spec: Mapping[str, Any] | None = SPEC) -> tuple[str, str]:
    """Of the one finding that did not pass, what was found and the next step."""
    code, found = checked(monkeypatch, *options, spec=spec)
    assert code == 3
    (one,) = [row for row in found if not row["passed"]]
    return one["message"], one["nextStep"]


def test_a_project_that_is_ready(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    code, found = checked(monkeypatch)
    assert code == 0
    assert [one["subject"] for one in found if one["passed"]] == ["project", "permissions", "GCPNodeTemplate gpu"]
    assert rig.fake.project.machines == {}


def test_what_launches_may_not_do_is_named_although_all_can_be_read(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    rig.fake.lacking |= {"compute.instanceGroupManagers.update", "compute.advice.calendarMode"}
    message, step = missing(monkeypatch)
    assert message == f"not granted in project {PROJECT}: compute.instanceGroupManagers.update"
    assert "the role of deploy/gcp" in step
    assert rig.fake.calls["createInstances"] == 0


def test_permissions_that_cannot_be_asked_for_are_not_known(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is an API of its own, which launches need not."""
    rig.fake.denied.add("testIamPermissions")
    code, found = checked(monkeypatch)
    (one,) = [row for row in found if not row["passed"]]
    assert (code, one["required"]) == (0, False)
    assert one["message"].startswith("whether machines may be started and ended is not known")
    assert "gcloud services enable cloudresourcemanager.googleapis.com --project 424242424242" in one["nextStep"]


def test_a_pool_that_gke_sizes(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    rig.fake.clusters.pools["h100"].autoscaling = True
    code, found = checked(monkeypatch, output="table")
    assert code == 3
    assert "MISSING" in found
    assert "--no-enable-autoscaling" in found


def test_a_project_that_does_not_exist(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    message, step = missing(monkeypatch, "--project", "nosuch")
    assert "projects/nosuch" in message
    assert "gcloud projects list" in step


def test_an_api_that_is_off_is_enabled_in_the_project_that_google_names(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig.fake.disabled = True
    _, step = missing(monkeypatch)
    assert step.endswith("compute.googleapis.com container.googleapis.com --project 424242424242")


def test_no_credentials_and_expired_ones_are_told_in_words(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CLIENTS, lambda *_: expired())
    message, step = missing(monkeypatch)
    assert message.endswith("invalid_grant: Token has been expired or revoked.")
    assert "gcloud auth application-default login" in step
    monkeypatch.setattr(CLIENTS, Gcp)
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", "/nowhere.json")
    assert missing(monkeypatch)[0] == "credentials: File /nowhere.json was not found."


def test_a_cluster_without_a_template_is_not_ready(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    assert missing(monkeypatch, spec=None) == ("there is none", "create one: docs/gcp.md shows a small one")


@pytest.mark.parametrize(
    ("change", "steps"),
    [
        ({"cluster": {"name": "c1", "location": "us-west1"}}, ("spec.cluster", f"clusters list --project {PROJECT}")),
        ({"nodePools": ["h1000"]}, ("spec.nodePools", "--cluster c1 --location us-central1", f"--project {PROJECT}")),
        ({"nodePools": [], "instanceGroups": [{"zone": "us-central1-a", "name": "no"}]}, ("spec.instanceGroups",)),
    ],
)
def test_a_template_that_names_what_is_not_there_says_which_field(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, change: Mapping[str, Any], steps: tuple[str, ...]
) -> None:
    _, step = missing(monkeypatch, spec={**SPEC, **change})
    assert all(part in step for part in steps)


def autoscaled(rig: Rig) -> None:
    rig.fake.clusters.pools["h100"].autoscaling = True


def renamed(rig: Rig) -> None:
    rig.fake.clusters.pools["other"] = rig.fake.clusters.pools.pop("h100")


def flexible(rig: Rig) -> None:
    rig.group(A3).model = "FLEX_START"


def reserved(rig: Rig) -> None:
    rig.group(A3).reservation = "own"


def in_a_slice(rig: Rig) -> None:
    rig.slices(tried=False)
    rig.fake.clusters.pools["h100"] = rig.fake.clusters.pools.pop("slice0")


@pytest.mark.parametrize(
    ("prepare", "message", "step"),
    [
        (autoscaled, "GKE's autoscaling is on", "--no-enable-autoscaling"),
        (renamed, "there is no node pool 'h100'", "gcloud container node-pools list"),
        (flexible, "does not say how long they shall run", "spec.flexStart.runDuration"),
        (reserved, "reservations/own does not exist", "gcloud compute reservations list"),
        (in_a_slice, "no trial has started machines", "--resize-requests --max-usd DOLLARS --yes"),
    ],
)
def test_a_trial_that_cannot_begin_says_why_before_it_launches(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, prepare: Callable[[Rig], None], message: str, step: str
) -> None:
    prepare(rig)
    cluster(monkeypatch)
    result = CliRunner().invoke(command, ["trial", "--template", "gpu", "--max-usd", "900"])
    assert isinstance(result.exception, BadInputError)
    assert message in str(result.exception)
    assert step in result.exception.next_step


def test_a_trial_of_a_type_that_no_group_starts_names_those_there_are(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster(monkeypatch)
    result = CliRunner().invoke(command, ["trial", "--template", "gpu", "--type", "g2-standard-4", "--max-usd", "9"])
    assert isinstance(result.exception, BadInputError)
    assert "starts g2-standard-4" in str(result.exception)
    assert "a3-highgpu-8g" in result.exception.next_step

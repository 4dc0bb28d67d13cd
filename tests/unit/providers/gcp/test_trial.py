"""A trial looks at what Google made of each promise, and leaves no name behind, whatever interrupts it."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from decimal import Decimal
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from autoscaler.cli.gcp.group import gcp as command
from autoscaler.cluster.resources import GCP_NODE_TEMPLATES, NAMESPACES
from autoscaler.composition.gcp import tried_groups
from autoscaler.errors import BadInputError
from autoscaler.simulation.api_server import ApiServer
from instance_catalog.dataclass import replace
from instance_catalog.files.loader import load_catalog
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.types.instance_type import CapacityType, Price
from providers.contract import OfferingKey
from providers.errors import TemplateError, UncertainError, WaitingError
from providers.gcp.node_template.template import GroupRef, GroupTemplate
from providers.gcp.provider import GcpProvider, Project
from providers.gcp.trial import Trial, cluster_of_trials
from providers.trials import Outcome, without_secrets
from tests.fakes.gce.errors import CUT_AFTER, THROTTLED, refused
from tests.fakes.gce.state import PROMPT, SLUGGISH, Behaviour
from tests.gcp import A2, A3, CLUSTER, FLEX, ZONE, Rig, Written, gcp

FLEX_GROUP = "gke-c1-flex-0a1b2c3d-grp"
FLEX_PRICE = FrozenMap({CapacityType.FLEX_START: Price(Decimal(40), "us-central1", "2026-11-01")})
SPEC = {"instanceGroups": [{"zone": ZONE, "name": "gke-c1-a3-on-0a1b2c3d-grp"}]}


def trial(rig: Rig, told: Callable[[Outcome], None] = lambda outcome: None, *, of: OfferingKey = A3) -> Trial:
    ref = GroupRef(ZONE, rig.group(of).name)
    template = GroupTemplate("gpu", groups=(ref,))
    project = Project(gcp(), rig.clock, cluster_of_trials(CLUSTER))
    launcher = GcpProvider(project, Written(template)).launcher
    return Trial(launcher, template, launcher.groups.group(ref), Decimal(10), told)


def left(rig: Rig) -> list[str]:
    rig.settle()
    status = rig.fake.project.status
    alive = [machine.name for machine in rig.fake.project.machines.values() if status(machine)]
    return [*alive, *(name for group in rig.fake.project.groups.values() for name in group.members)]


@pytest.mark.parametrize("behaviour", [pytest.param(PROMPT, id="prompt"), pytest.param(SLUGGISH, id="sluggish")])
def test_all_is_as_expected_and_nothing_is_left(behaviour: Behaviour) -> None:
    rig = Rig(behaviour)
    found = trial(rig)
    found.run()
    assert [one for one in found.outcomes if one.passed is not True] == []
    names = {one.name for one in found.outcomes}
    for name in ("one machine", "gang of two"):
        assert {f"{name}: {part}" for part in ("launch", "names again", "list")} <= names
    assert {"end", "ended"} <= names
    assert rig.fake.calls["createInstances"] == 2
    assert left(rig) == []


def test_lists_that_lag_longer_than_the_controller_waits_do_not_pass() -> None:
    rig = Rig(replace(PROMPT, visibility=timedelta(minutes=4)))
    found = trial(rig)
    found.run()
    failed = {one.name: one.message for one in found.outcomes if not one.passed}
    assert failed.keys() == {"one machine: list", "gang of two: list"}
    assert "the controller waits 180 seconds for that" in failed["one machine: list"]
    assert left(rig) == []


@pytest.mark.parametrize("at", ["one machine: launch", "gang of two: names again", "end"])
def test_ctrl_c_ends_everything(at: str) -> None:
    rig = Rig(SLUGGISH)

    def told(outcome: Outcome) -> None:
        if outcome.name == at:
            raise KeyboardInterrupt

    with suppress(KeyboardInterrupt):
        trial(rig, told).run()
    assert len(rig.fake.project.machines) > 0
    assert left(rig) == []


def test_a_trial_that_crashed_is_cleaned_up_by_the_next() -> None:
    rig = Rig()
    first = trial(rig)
    first.launcher.launch(first._request("one machine", 1), first.template)
    later = trial(rig)
    later.clean()
    assert [(one.name, one.passed) for one in later.outcomes] == [("clean-up", True)]
    assert left(rig) == []


@pytest.mark.parametrize("kind", ["running", "just asked for", "a name without a machine"])
def test_a_trial_that_crashed_in_another_group_is_cleaned_up_by_the_next(kind: str) -> None:
    rig = Rig(SLUGGISH)
    if kind == "a name without a machine":
        rig.fake.project.errors[rig.key(A2)] = ("RESOURCE_OPERATION_RATE_EXCEEDED", "later")
    first = trial(rig, of=A2)
    asked = first._request("one machine", 1)
    rig.fake.faults.inject("createInstances", CUT_AFTER)
    with pytest.raises(UncertainError):
        first.launcher.launch(asked, first.template)
    if kind == "running":
        rig.settle()
    assert len(rig.group(A2).members) == 1
    later = trial(rig)
    later.run()
    assert [one for one in later.outcomes if one.passed is not True] == []
    assert left(rig) == []


def test_what_ends_machines_is_told_with_the_cost(rig: Rig) -> None:
    output = typed("--max-usd", "1000").output
    assert "until the next trial deletes them" in output
    assert "at most" not in output


def test_machines_of_the_cluster_are_not_the_trials_and_the_other_way_round() -> None:
    rig = Rig()
    from tests.gcp import request

    (own,) = rig.provider.launch(request()).instances
    found = trial(rig)
    found.launcher.launch(found._request("one machine", 1), found.template)
    assert [one.id for one in rig.provider.describe({}).instances] == [own.id]
    found.clean()
    rig.settle()
    assert [one.id for one in rig.provider.describe({}).instances] == [own.id]


def test_what_is_out_of_stock_is_told_and_leaves_no_name() -> None:
    rig = Rig()
    rig.fake.project.stock[rig.key(A3)] = 1
    found = trial(rig)
    found.run()
    (failed,) = [one for one in found.outcomes if one.passed is False]
    assert failed.name == "gang of two: launch"
    assert "does not have enough resources" in failed.message
    assert left(rig) == []


def test_a_lost_answer_and_a_throttle_are_repeated_until_they_are_known() -> None:
    rig = Rig()
    rig.fake.faults.inject("createInstances", CUT_AFTER, THROTTLED)
    found = trial(rig)
    found.run()
    assert left(rig) == []
    assert [one.name for one in found.outcomes if one.passed is False] in ([], ["gang of two: launch"])


@pytest.mark.slow
def test_names_that_cannot_be_deleted_come_with_the_command() -> None:
    rig = Rig()
    found = trial(rig)
    found.launcher.launch(found._request("one machine", 1), found.template)
    rig.fake.faults.inject("deleteInstances", *[refused("forbidden", 403)] * 1000)
    found.clean()
    (outcome,) = found.outcomes
    assert outcome.passed is False
    assert "list-instances gke-c1-a3-on-0a1b2c3d-grp" in outcome.message


def test_without_a_price_nothing_is_bought() -> None:
    found = trial(Rig())
    assert found.cost() == Decimal(30)
    found.usd_per_hour = None
    with pytest.raises(TemplateError, match="is not known"):
        found.cost()


def test_a_report_names_no_project_and_nobody() -> None:
    text = "projects/gpu-project/zones/z denied for me@gpu-project.iam.gserviceaccount.com"
    assert without_secrets(text) == "projects/(project)/zones/z denied for (identity)"


@pytest.fixture
def rig(monkeypatch: pytest.MonkeyPatch) -> Rig:
    rig = Rig()
    api = ApiServer(rig.clock)
    if not any(item["metadata"]["name"] == "kube-system" for item in api.list(NAMESPACES).items):
        api.create(NAMESPACES, {"metadata": {"name": "kube-system"}})
    api.create(GCP_NODE_TEMPLATES, {"metadata": {"name": "gpu"}, "spec": SPEC})
    monkeypatch.setattr("autoscaler.cli.gcp.trial.connected", lambda *_: api)
    monkeypatch.setattr("autoscaler.cli.common.preflight.SystemClock", lambda: rig.clock)
    monkeypatch.setattr("autoscaler.composition.gcp.Gcp", lambda *_: gcp())
    return rig


def typed(*arguments: str) -> Result:
    return CliRunner().invoke(command, ["trial", "--template", "gpu", *arguments])


def test_the_command_launches_nothing_without_yes(rig: Rig) -> None:
    result = typed("--max-usd", "1000")
    assert result.exit_code == 0
    assert "add --yes to launch" in result.output
    assert rig.fake.calls["createInstances"] == 0


def test_the_command_keeps_to_its_limit(rig: Rig) -> None:
    result = typed("--max-usd", "0.5", "--yes")
    assert isinstance(result.exception, BadInputError)
    assert rig.fake.calls["createInstances"] == 0


def test_the_command_names_types_that_it_could_use(rig: Rig) -> None:
    result = typed("--max-usd", "1000", "--type", "a4-highgpu-8g")
    assert isinstance(result.exception, BadInputError)
    assert "a3-highgpu-8g" in result.exception.next_step


def test_a_group_that_takes_no_resize_requests_is_not_tried_with_them(rig: Rig) -> None:
    domain = rig.group(A3)
    domain.machine_type, domain.policy = "a4x-highgpu-4g", "nvl72"
    rig.fake.project.policies["nvl72"] = {"type_": "HIGH_THROUGHPUT", "accelerator_topology": "1x72"}
    result = typed("--max-usd", "1000", "--type", "a4x-highgpu-4g", "--resize-requests")
    assert isinstance(result.exception, BadInputError)
    assert "a4x" not in result.exception.next_step
    result = typed("--max-usd", "1000", "--type", "a4x-highgpu-4g")
    assert "price of a4x-highgpu-4g is not known" in str(result.exception)


def test_the_command_writes_a_report(rig: Rig, tmp_path: Path) -> None:
    path = tmp_path / "trial.json"
    result = typed("--max-usd", "1000", "--yes", "--report", str(path))
    assert result.exit_code == 0, result.output
    report = json.loads(path.read_text())
    assert "google-cloud-compute" in report["versions"]
    assert {row["passed"] for row in report["outcomes"]} == {True}
    assert "gpu-project" not in path.read_text()
    assert left(rig) == []


FLEX_SPEC = {"instanceGroups": [{"zone": ZONE, "name": FLEX_GROUP}], "flexStart": {"runDuration": "2h"}}


def tried(api: ApiServer) -> frozenset[GroupRef]:
    return tried_groups(api.get(GCP_NODE_TEMPLATES, "flex"))


@pytest.fixture
def flex_api(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> ApiServer:
    rig.flex(tried=False)
    api = ApiServer(rig.clock)
    api.create(GCP_NODE_TEMPLATES, {"metadata": {"name": "flex"}, "spec": FLEX_SPEC})
    api.create(NAMESPACES, {"metadata": {"name": "kube-system"}})
    monkeypatch.setattr("autoscaler.cli.gcp.trial.connected", lambda *_: api)
    priced = replace(load_catalog().get("a3-highgpu-8g"), zone_prices=FrozenMap({ZONE: FLEX_PRICE}))
    catalog = replace(load_catalog(), types=FrozenMap({"a3-highgpu-8g": priced}))
    monkeypatch.setattr("autoscaler.cli.common.preflight.load_catalog", lambda: catalog)
    return api


def flex_trial(tmp_path: Path) -> Result:
    asked = ["--template", "flex", "--resize-requests", "--max-usd", "1000", "--yes"]
    return CliRunner().invoke(command, ["trial", *asked, "--report", str(tmp_path / "trial.json")])


def test_resize_requests_that_work_are_noted_for_their_group(rig: Rig, flex_api: ApiServer, tmp_path: Path) -> None:
    result = flex_trial(tmp_path)
    assert result.exit_code == 0, result.output
    assert "resize request: launch" in result.output
    assert "withdraw" in result.output
    assert (rig.fake.calls["createInstances"], rig.fake.calls["resizeRequests.insert"]) == (0, 2)
    assert tried(flex_api) == {GroupRef(ZONE, FLEX_GROUP)}
    assert left(rig) == []
    assert rig.group(FLEX).asked == {}


@pytest.mark.slow
def test_what_still_waits_is_cancelled_and_not_noted(rig: Rig, flex_api: ApiServer, tmp_path: Path) -> None:
    rig.fake.project.stock[rig.key(FLEX)] = 0
    result = flex_trial(tmp_path)
    assert "cancelled, since it still waits" in result.output
    assert tried(flex_api) == frozenset()
    assert (rig.fake.calls["resizeRequests.insert"], rig.group(FLEX).asked) == (1, {})


@pytest.mark.slow
def test_a_request_that_cannot_be_cancelled_proves_nothing() -> None:
    rig = Rig()
    rig.flex()
    rig.fake.project.stock[rig.key(FLEX)] = 0
    found = trial(rig, of=FLEX)
    found.queued, found.template = True, replace(found.template, flex_start=timedelta(hours=1), on_trial=True)
    rig.fake.faults.inject("resizeRequests.cancel", *[refused("forbidden", 403)] * 1000)
    found._withdrawing()
    assert [(one.name, one.passed) for one in found.outcomes] == [("withdraw", False)]
    assert not found.proven


def test_a_request_of_a_trial_that_was_killed_is_cancelled_by_the_next() -> None:
    rig = Rig()
    rig.flex()
    rig.fake.project.stock[rig.key(FLEX)] = 0
    first = trial(rig, of=FLEX)
    first.template = replace(first.template, flex_start=timedelta(hours=1), on_trial=True)
    with pytest.raises(WaitingError):
        first.launcher.launch(first._request("resize request", 2), first.template)
    rig.advance(timedelta(minutes=1))
    trial(rig).clean()
    rig.fake.project.stock[rig.key(FLEX)] = 9
    rig.advance(timedelta(hours=1))
    assert (rig.group(FLEX).asked, left(rig)) == ({}, [])

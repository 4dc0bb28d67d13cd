"""A trial looks at what EC2 made of each promise, and leaves no machine behind, whatever interrupts it."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from autoscaler.cli.aws.group import aws
from autoscaler.clock import VirtualClock
from autoscaler.cluster.resources import AWS_NODE_TEMPLATES, NAMESPACES
from autoscaler.simulation.api_server import ApiServer
from instance_catalog.dataclass import replace
from providers.aws.trial import TRIAL_TAG, Trial
from providers.contract import TAG_CLUSTER
from providers.errors import ProviderError, TemplateError
from providers.trials import Outcome, without_secrets
from tests.aws import CLUSTER, Rig
from tests.fakes.ec2 import PROMPT, SLUGGISH, THROTTLED, TIMEOUT_AFTER, Behaviour, refused
from tests.unit.cli.aws.test_aws import SPEC

TYPE = "g6.xlarge"
SEEN = replace(PROMPT, shows_interfaces=True)


def trial(rig: Rig, told: Callable[[Outcome], None] = lambda outcome: None) -> Trial:
    return rig.provider.trial("gpu", TYPE, told)


def left(rig: Rig) -> list[str]:
    rig.settle()
    return [machine.id for machine in rig.fake.account.alive()]


@pytest.mark.parametrize(
    "behaviour",
    [pytest.param(SEEN, id="prompt"), pytest.param(replace(SLUGGISH, shows_interfaces=True), id="sluggish")],
)
def test_all_is_as_expected_and_nothing_is_left(behaviour: Behaviour) -> None:
    rig = Rig(behaviour)
    found = trial(rig)
    found.run()
    assert [one for one in found.outcomes if one.passed is not True] == []
    names = [one.name for one in found.outcomes]
    for name in ("on-demand", "spot", "gang of two"):
        assert {f"{name}: {part}" for part in ("launch", "token again", "describe", "tags", "interfaces")} <= set(names)
    assert {"gang of two: one subnet", "end", "ended", "token of ended machines"} <= set(names)
    assert left(rig) == []
    assert rig.fake.account.templates == {}


INTERRUPTED = (
    "on-demand: launch",
    "on-demand: describe",
    "spot: launch",
    "gang of two: token again",
    "end",
)


@pytest.mark.parametrize("at", INTERRUPTED)
def test_ctrl_c_ends_everything(at: str) -> None:
    rig = Rig(SLUGGISH)

    def told(outcome: Outcome) -> None:
        if outcome.name == at:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        trial(rig, told).run()
    assert left(rig) == []


@pytest.mark.parametrize("at", INTERRUPTED)
def test_after_a_crash_the_next_trial_ends_what_is_left(at: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rig = Rig()

    def crash(outcome: Outcome) -> None:
        if outcome.name == at:
            monkeypatch.setattr(Trial, "clean", lambda self: None)
            raise SystemExit

    with pytest.raises(SystemExit):
        trial(rig, crash).run()
    monkeypatch.undo()
    running = {machine.id for machine in rig.fake.account.alive()}
    assert bool(running) == (at != "end")
    rig.restart()
    rig.settle()
    trial(rig).clean()
    assert left(rig) == []


@pytest.mark.parametrize(
    ("operation", "fault"),
    [
        pytest.param("CreateFleet", TIMEOUT_AFTER, id="a lost answer of a fleet"),
        pytest.param("RunInstances", TIMEOUT_AFTER, id="a lost answer of a gang"),
        pytest.param("TerminateInstances", THROTTLED, id="ending is throttled"),
        pytest.param("DescribeInstances", refused("InternalError", status=500), id="describing fails"),
    ],
)
def test_nothing_is_left_after_trouble(operation: str, fault: Any) -> None:
    rig = Rig(SLUGGISH)
    rig.fake.faults.inject(operation, fault)
    found = trial(rig)
    with suppress(ProviderError):
        found.run()
    assert left(rig) == []


def test_machines_of_others_and_of_the_controller_stay() -> None:
    rig = Rig()
    image = next(iter(rig.fake.account.geography.images))
    tags = [{"Key": TAG_CLUSTER, "Value": CLUSTER}, {"Key": "foreslice.dev/launch-token", "Value": "t"}]
    specification = [{"ResourceType": "instance", "Tags": tags}]
    other = rig.aws.ec2.run_instances(
        ImageId=image, InstanceType=TYPE, MinCount=1, MaxCount=1, TagSpecifications=specification
    )
    trial(rig).run()
    assert left(rig) == [other["Instances"][0]["InstanceId"]]


def test_machines_end_themselves_and_do_not_join() -> None:
    rig = Rig()
    asked = trial(rig).template
    assert "shutdown -h +30" in asked.user_data_text
    assert "NodeConfig" not in asked.user_data_text
    assert asked.tags[TRIAL_TAG] == "true"


def test_without_a_price_nothing_is_launched() -> None:
    rig = Rig()
    with pytest.raises(TemplateError, match=r"price of x9\.huge is not known"):
        rig.provider.trial("gpu", "x9.huge", lambda _: None).cost()


@pytest.mark.parametrize(
    ("text", "instead"),
    [
        ("arn:aws:sts::123456789012:assumed-role/admin/jane", "(identity)"),
        ("account 123456789012", "account (account)"),
        ("no. Encoded authorization failure message: aBc_d-9", "no. (encoded message left out)"),
        ("key AKIAIOSFODNN7EXAMPLE", "key (key)"),
    ],
)
def test_a_report_names_no_account_key_or_user(text: str, instead: str) -> None:
    assert without_secrets(text) == instead


@pytest.mark.parametrize(
    ("arguments", "code", "words", "launched"),
    [
        pytest.param(["--max-usd", "5"], 0, "nothing was launched; add --yes", False, id="without --yes"),
        pytest.param(["--max-usd", "0.01", "--yes"], 1, "may cost", False, id="above the budget"),
        pytest.param(["--max-usd", "50", "--yes"], 0, "report: ", True, id="with --yes"),
        pytest.param(["--yes"], 2, "--max-usd", False, id="without a budget"),
    ],
)
def test_the_command(
    arguments: list[str], code: int, words: str, launched: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig = Rig(SEEN)
    monkeypatch.setattr("autoscaler.composition.aws.Aws", lambda *_, **__: rig.aws)
    monkeypatch.setattr("autoscaler.cli.common.preflight.SystemClock", lambda: rig.clock)
    api = ApiServer(VirtualClock())
    api.create(NAMESPACES, {"metadata": {"name": "kube-system"}})
    api.create(AWS_NODE_TEMPLATES, {"metadata": {"name": "gpu"}, "spec": SPEC})
    monkeypatch.setattr("autoscaler.cli.aws.trial.connected", lambda *_: api)
    report = tmp_path / "trial.json"
    result = CliRunner().invoke(aws, ["trial", "--template", "gpu", "--report", str(report), *arguments])
    told = f"{result.output}{result.exception}"
    assert (result.exit_code, words in told) == (code, True), told
    assert report.exists() == launched
    assert (rig.fake.calls["CreateFleet"] > 0) == launched
    if launched:
        found = json.loads(report.read_text(encoding="utf-8"))
        assert all(row["passed"] for row in found["outcomes"])
        assert "123456789012" not in report.read_text(encoding="utf-8")
    assert left(rig) == []

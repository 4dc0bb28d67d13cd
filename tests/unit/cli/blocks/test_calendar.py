"""`blocks find` for Google's types: what is recommended, why nothing else is, and the command that reserves it."""

from __future__ import annotations

import json
import shlex
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from click.testing import CliRunner, Result

from autoscaler.cli.blocks.market import find_blocks
from autoscaler.errors import BadInputError
from tests.fakes.gce.calendar import Free
from tests.fakes.gce.errors import Fault, refused
from tests.gcp import A3, ZONE, Rig, gcp

QUERY = ["--type", A3.instance_type, "--count", "2", "--hours", "48", "--region", "us-central1"]
OTHER = "us-central1-b"


@pytest.fixture
def rig(monkeypatch: pytest.MonkeyPatch) -> Rig:
    rig = Rig()
    start = rig.clock.now() + timedelta(days=6)
    rig.fake.project.free += [
        Free(ZONE, A3.instance_type, 4, start, start + timedelta(days=30)),
        Free(OTHER, A3.instance_type, 1, start, start + timedelta(days=30)),
    ]
    monkeypatch.setattr("autoscaler.composition.gcp.Gcp", lambda *_: gcp())
    monkeypatch.setattr("autoscaler.cli.blocks.market.SystemClock", lambda: rig.clock)
    return rig


def run(*arguments: str) -> Result:
    return CliRunner().invoke(find_blocks, list(arguments), catch_exceptions=True)


def test_what_google_recommends_comes_with_the_command_that_reserves_it(rig: Rig) -> None:
    result = run(*QUERY, "-o", "json")
    found = json.loads(result.stdout)
    (window,) = found["windows"]
    starts = rig.fake.project.free[0].starts
    assert datetime.fromisoformat(window["startsAt"]) == starts.astimezone(UTC)
    assert datetime.fromisoformat(window["endsAt"]) - starts == timedelta(hours=48)
    assert (window["zone"], found["elsewhere"]) == (ZONE, {OTHER: "NO_CAPACITY"})
    options = shlex.split(window["command"])
    assert options[:4] == ["gcloud", "compute", "future-reservations", "create"]
    given = {key: value for key, value in pairwise(options) if key.startswith("--")}
    assert (given["--reservation-mode"], given["--total-count"], given["--zone"]) == ("CALENDAR", "2", ZONE)


def test_a_person_reads_it_as_a_table(rig: Rig) -> None:
    result = run(*QUERY)
    assert "not recommended because".upper() in result.stdout.upper()
    assert "may not let it be withdrawn once it has approved it" in result.stdout
    assert "--planning-status SUBMITTED" in result.stdout


def test_nothing_that_fits_says_what_to_try(rig: Rig) -> None:
    rig.fake.project.free.clear()
    assert "Google recommends nothing in us-central1" in run(*QUERY).stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (QUERY[:-2], "region by region"),
        ([*QUERY, "--hours", "4368"], "1 to 90 days, not 182"),
        ([*QUERY, "--within", "2"], "87 hours before its start"),
        ([*QUERY, "--type", "ct4p-hightpu-4t"], "calendar mode has no ct4p machines"),
        ([*QUERY, "--workload", "BATCH"], "--workload is for TPUs only"),
        ([*QUERY, "--type", "n1-standard-8+1xnvidia-tesla-t4"], "no machines with attached GPUs"),
        ([*QUERY, "--region", ZONE], f"{ZONE} is a zone"),
        ([*QUERY, "--region", "us-central1-ai1a"], "us-central1-ai1a is a zone"),
    ],
)
def test_a_wrong_question_is_told(rig: Rig, arguments: list[str], message: str) -> None:
    result = run(*arguments)
    assert isinstance(result.exception, BadInputError)
    assert message in str(result.exception)
    assert result.exception.next_step
    assert rig.fake.calls["advice.calendarMode"] == 0


def test_whoever_may_not_ask_is_told(rig: Rig) -> None:
    rig.fake.denied.add("advice.calendarMode")
    result = run(*QUERY)
    assert isinstance(result.exception, BadInputError)
    assert "granted to your account" in result.exception.next_step


def test_tpus_are_asked_for_and_reserved_in_chips(rig: Rig) -> None:
    """Four machines of four chips; they are submitted six hours ahead, not 87."""
    now = rig.clock.now()
    rig.fake.project.free.append(Free(ZONE, "ct6e", 16, now, now + timedelta(days=30)))
    query = ["--type", "ct6e-standard-4t", "--count", "4", "--hours", "48", "--region", "us-central1"]
    (window,) = json.loads(run(*query, "--workload", "BATCH", "-o", "json").stdout)["windows"]
    assert datetime.fromisoformat(window["startsAt"]) == (now + timedelta(hours=6)).astimezone(UTC)
    options = shlex.split(window["command"])
    given = {key: value for key, value in pairwise(options) if key.startswith("--")}
    assert (given["--tpu-version"], given["--chip-count"], given["--workload-type"]) == ("V6E", "16", "BATCH")
    assert not {"--machine-type", "--total-count"} & set(given)
    more = json.loads(run(*query[:3], "5", *query[4:], "-o", "json").stdout)
    assert (more["windows"], more["elsewhere"][ZONE]) == ([], "NO_CAPACITY")


def test_a_workload_is_for_google_cloud(rig: Rig) -> None:
    result = run("--type", "p5.48xlarge", "--workload", "BATCH")
    assert result.exit_code == 2
    assert "machine types of Google Cloud with TPUs" in result.output


def test_options_of_aws_are_refused(rig: Rig) -> None:
    for option in (["--all-zones"], ["--profile", "x"]):
        result = run(*QUERY, *option)
        assert result.exit_code == 2
        assert "are for AWS" in result.output


def test_a_type_that_the_catalog_lacks_goes_to_the_cloud_that_names_types_so(rig: Rig) -> None:
    result = run(*QUERY, "--type", "a9-highgpu-8g")
    assert "the catalog has no a9-highgpu-8g" in result.stderr
    assert rig.fake.calls["advice.calendarMode"] == 1


@pytest.mark.parametrize(
    ("fault", "step"),
    [
        (refused("invalid", 400, "Invalid value for field 'region': 'us-mars1'. Unknown region."), "regions list"),
        (refused("backendError", 503), "try again"),
    ],
)
def test_a_refusal_is_for_a_person_and_not_for_a_controller(rig: Rig, fault: Fault, step: str) -> None:
    rig.fake.faults.inject("advice.calendarMode", fault)
    result = run(*QUERY)
    assert isinstance(result.exception, BadInputError)
    assert step in result.exception.next_step

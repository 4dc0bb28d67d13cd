"""What `aws check` says of the queue of notices: whether it exists, can be read, and whether events reach it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from providers.aws.interruptions import KINDS
from providers.aws.provider import Account, AwsProvider
from providers.aws.queue_check import region_of
from providers.finding import Finding
from tests.aws import CLUSTER, Rig, catalog
from tests.fakes.ec2 import refused
from tests.fakes.ec2.notices import Queue

URL = "https://sqs.us-east-1.amazonaws.com/123456789012/foreslice"


def policy(**statement: Any) -> str:
    whole = {"Effect": "Allow", "Principal": {"Service": "events.amazonaws.com"}, "Action": "sqs:SendMessage"}
    return json.dumps({"Version": "2012-10-17", "Statement": [whole | statement]})


def pattern(*kinds: str) -> str:
    return json.dumps({"source": ["aws.ec2"], "detail-type": list(kinds)})


def prepared(rig: Rig) -> Queue:
    """A queue as deploy/aws/main.tf makes it."""
    queue = rig.fake.account.notices.queue("foreslice")
    queue.policy, queue.rules["notices"] = policy(), pattern(*KINDS)
    return queue


def findings(rig: Rig, url: str = URL) -> dict[str, Finding]:
    provider = AwsProvider(Account(rig.aws, rig.clock, catalog(), CLUSTER), rig.templates, queue=url)
    return {found.subject: found for found in provider.check() if found.subject.startswith("queue")}


def test_a_queue_that_is_as_it_should_be_stays_as_it_is() -> None:
    rig = Rig()
    queue = prepared(rig)
    rig.fake.account.notices.send(KINDS[0], {"instance-id": "i-1"}, at=rig.clock.now())
    found = findings(rig)
    assert list(found) == ["queue", "queue: sqs:ReceiveMessage", "queue: policy", "queue: events"]
    assert all(one.passed for one in found.values())
    assert len(queue.messages) == 1
    assert queue.messages[0].hidden_until <= rig.clock.now()


@pytest.mark.parametrize(
    ("change", "subject", "message", "step"),
    [
        pytest.param(
            lambda rig, _: rig.fake.account.notices.queues.clear(), "queue", "does not exist", "aws.queue", id="deleted"
        ),
        pytest.param(
            lambda rig, _: rig.fake.denied.add("sqs:ReceiveMessage"),
            "queue: sqs:ReceiveMessage",
            "not authorized",
            "controller-policy.json",
            id="not readable",
        ),
        pytest.param(lambda _, q: setattr(q, "policy", ""), "queue: policy", "not admit", "main.tf", id="no policy"),
        pytest.param(
            lambda _, q: setattr(q, "policy", policy(Principal={"Service": ["sns.amazonaws.com"]})),
            "queue: policy",
            "not admit",
            "allow events.amazonaws.com",
            id="another service",
        ),
        pytest.param(
            lambda _, q: setattr(q, "policy", policy(Effect="Deny")), "queue: policy", "not admit", "", id="a denial"
        ),
        pytest.param(lambda _, q: q.rules.clear(), "queue: events", "no event at all", "create a rule", id="no rule"),
        pytest.param(
            lambda _, q: q.rules.update(notices=""), "queue: events", "no event at all", "", id="a disabled rule"
        ),
        pytest.param(
            lambda _, q: q.rules.update(notices=pattern(*KINDS[1:])),
            "queue: events",
            f"no event of the kinds {KINDS[0]}",
            "main.tf",
            id="one kind is missing",
        ),
    ],
)
def test_what_is_wrong_with_a_queue_is_told_and_is_not_required(
    change: Callable[[Rig, Queue], object], subject: str, message: str, step: str
) -> None:
    rig = Rig()
    change(rig, prepared(rig))
    found = findings(rig)[subject]
    assert (found.passed, found.required) == (False, False)
    assert message in found.message
    assert step in found.next_step


@pytest.mark.parametrize(
    ("url", "message"),
    [
        pytest.param(URL.replace("us-east-1", "eu-west-1"), "is in eu-west-1, not in us-east-1", id="another region"),
        pytest.param("arn:aws:sqs:us-east-1:123456789012:foreslice", "is no URL of a queue", id="an ARN"),
    ],
)
def test_a_wrong_url_is_told_without_a_call(url: str, message: str) -> None:
    rig = Rig()
    (found,) = findings(rig, url).values()
    assert message in found.message
    assert rig.fake.calls["GetQueueAttributes"] == 0


@pytest.mark.parametrize(
    ("host", "region"),
    [
        ("sqs.us-east-1.amazonaws.com", "us-east-1"),
        ("sqs-fips.us-gov-west-1.amazonaws.com", "us-gov-west-1"),
        ("sqs.cn-north-1.amazonaws.com.cn", "cn-north-1"),
        ("sqs.eu-west-1.api.aws", "eu-west-1"),
        ("sqs.eusc-de-east-1.amazonaws.eu", "eusc-de-east-1"),
        ("vpce-0a1b-c2d3.sqs.us-east-1.vpce.amazonaws.com", "us-east-1"),
        ("us-west-2.queue.amazonaws.com", "us-west-2"),
        ("queue.amazonaws.com", "us-east-1"),
        ("sqs.us-east-1.example.com", ""),
        ("evil.com/sqs.us-east-1.amazonaws.com", ""),
    ],
)
def test_the_region_of_a_queue_is_in_its_host(host: str, region: str) -> None:
    assert region_of(f"https://{host}/123456789012/foreslice") == region


@pytest.mark.parametrize(
    "sending",
    [
        pytest.param({"Principal": "*", "Action": ["SQS:SendMessage"]}, id="everybody"),
        pytest.param({"Principal": {"Service": ["events.amazonaws.com"]}, "Action": "sqs:*"}, id="every action"),
    ],
)
def test_other_policies_that_admit_events(sending: dict[str, Any]) -> None:
    rig = Rig()
    prepared(rig).policy = policy(**sending)
    assert findings(rig)["queue: policy"].passed


def test_rules_that_share_the_kinds_are_taken_together() -> None:
    rig = Rig()
    prepared(rig).rules.update(notices=pattern(*KINDS[:3]), others=pattern(*KINDS[3:]))
    assert findings(rig)["queue: events"].passed


def test_events_that_may_not_be_listed_are_a_note() -> None:
    rig = Rig()
    prepared(rig)
    rig.fake.faults.inject("ListRuleNamesByTarget", refused("AccessDeniedException"))
    found = findings(rig)["queue"]
    assert (found.passed, found.required) == (False, False)

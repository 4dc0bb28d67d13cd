"""Checks the queue of notices for `foreslice aws check`: it exists, can be read, and receives EC2's events."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import timedelta
from typing import Any, Final

from providers.aws.errors import translated
from providers.aws.interruptions import KINDS, Interruptions
from providers.aws.session import Aws
from providers.errors import PermissionDeniedError
from providers.finding import Finding, note, ok

_EVENTS: Final = "events.amazonaws.com"
_SENDING: Final = frozenset({"sqs:sendmessage", "sqs:*", "*"})
# The hosts of SQS: plain, FIPS, dual-stack, VPC endpoints, the legacy ones, and each partition's suffix.
# Source: AWS General Reference, "Amazon SQS endpoints and quotas"; SQS developer guide, "Interface VPC endpoints".
_SUFFIX: Final = r"(amazonaws\.com(\.cn)?|amazonaws\.eu|api\.aws|api\.amazonwebservices\.com\.cn)"
_HOSTS: Final = tuple(
    re.compile(rf"https://{host}/\d+/[^/]+")
    for host in (
        rf"sqs(-fips)?\.(?P<region>[a-z0-9-]+)\.{_SUFFIX}",
        r"(vpce-[a-z0-9-]+\.)sqs(-fips)?\.(?P<region>[a-z0-9-]+)\.vpce\.amazonaws\.(com(\.cn)?|eu)",
        r"(?P<region>[a-z0-9-]+)\.queue\.amazonaws\.com(\.cn)?",
        r"queue\.amazonaws\.com",
    )
)
_LEGACY_REGION: Final = "us-east-1"
_SHOWN: Final = "deploy/aws/main.tf shows it"


def queue_findings(aws: Aws, queue: str) -> Iterator[Finding]:
    """The findings about a queue, by its URL. Without notices everything works, only slower.

    Raises ProviderErrors if AWS refuses a call.
    """
    region = region_of(queue)
    if not region:
        step = "give its URL: https://sqs.<region>.amazonaws.com/<account>/<name>"
        yield note("queue", f"{queue} is no URL of a queue", step)
        return
    if region != aws.region:
        step = f"create one in {aws.region}: EC2's events stay in their region"
        yield note("queue", f"{queue} is in {region}, not in {aws.region}", step)
        return
    with translated(f"GetQueueAttributes {queue}"):
        about = aws.sqs.get_queue_attributes(QueueUrl=queue, AttributeNames=["All"])["Attributes"]
    yield ok("queue", f"{queue}, {about.get('ApproximateNumberOfMessages', '?')} messages")
    yield _reading(Interruptions(aws, queue))
    yield _sending(about.get("Policy", ""))
    yield _rules(aws, about["QueueArn"])


def region_of(queue: str) -> str:
    """The region in a queue's URL; "" for any other text."""
    for host in _HOSTS:
        found = host.fullmatch(queue)
        if found is not None:
            return found.groupdict().get("region") or _LEGACY_REGION
    return ""


def _reading(queue: Interruptions) -> Finding:
    """Looks at a message and leaves it there."""
    try:
        queue.announced(timedelta(0))
    except PermissionDeniedError as error:
        step = "allow sqs:ReceiveMessage and sqs:DeleteMessage: deploy/aws/controller-policy.json has them"
        return note("queue: sqs:ReceiveMessage", error.message, step)
    return ok("queue: sqs:ReceiveMessage", "allowed")


def _sending(policy: str) -> Finding:
    statements = _listed(json.loads(policy)["Statement"]) if policy else []
    if any(_admits_events(statement) for statement in statements):
        return ok("queue: policy", f"{_EVENTS} may send to it")
    step = f"allow {_EVENTS} sqs:SendMessage in the policy of the queue: {_SHOWN}"
    return note("queue: policy", f"it does not admit {_EVENTS}", step)


def _admits_events(statement: Mapping[str, Any]) -> bool:
    principal = statement.get("Principal", {})
    services = _listed(principal.get("Service", ())) if isinstance(principal, Mapping) else [principal]
    actions = {action.lower() for action in _listed(statement.get("Action", ()))}
    return statement.get("Effect") == "Allow" and bool(actions & _SENDING) and bool({_EVENTS, "*"} & set(services))


def _rules(aws: Aws, arn: str) -> Finding:
    """Checks that rules of EventBridge send every known kind of event to the queue."""
    with translated("ListRuleNamesByTarget"):
        pages = list(aws.events.get_paginator("list_rule_names_by_target").paginate(TargetArn=arn))
    sent: set[str] = set()
    for name in (name for page in pages for name in page["RuleNames"]):
        with translated(f"DescribeRule {name}"):
            rule = aws.events.describe_rule(Name=name)
        if rule["State"] != "DISABLED" and rule.get("EventPattern"):
            # A rule without kinds sends all events of its sources.
            sent.update(json.loads(rule["EventPattern"]).get("detail-type", KINDS))
    unsent = [kind for kind in KINDS if kind not in sent]
    if not unsent:
        return ok("queue: events", "EventBridge sends it every kind of notice")
    what = "no event at all" if len(unsent) == len(KINDS) else f"no event of the kinds {', '.join(unsent)}"
    step = f"create a rule of EventBridge with this queue as its target: {_SHOWN}"
    return note("queue: events", f"EventBridge sends it {what}", step)


def _listed(found: Any) -> list[Any]:
    """IAM writes a single thing with or without its list."""
    return list(found) if isinstance(found, Iterable) and not isinstance(found, str | Mapping) else [found]

"""Notices of what EC2 is about to take back, from EventBridge through an SQS queue.

They only make us faster: describing is the truth, and what is missed here is seen there. A message is deleted once it
has been read, also one that we do not understand, because nobody else will understand it later.
Sources: EventBridge events of aws.ec2 and aws.health; Capacity Blocks user guide (monitoring).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any, Final

from providers.aws.errors import translated
from providers.aws.session import Aws

# Spot machines get two minutes; the event says when it was sent, not when they go.
_SPOT_NOTICE: Final = timedelta(minutes=2)
# SQS gives ten messages in one answer; more than this many answers are left for the next round.
_BATCH: Final = 10
_ROUNDS: Final = 10


@dataclass(frozen=True, slots=True)
class Notice:
    """What is about to happen to a machine or a reservation. `at` None: soon, or EC2 does not say."""

    subject: str
    reason: str
    at: datetime | None = None


class Interruptions:
    """Reads a queue. Without one there are no notices. Also an Announcer."""

    def __init__(self, aws: Aws, queue: str) -> None:
        self._aws = aws
        self._queue = queue

    def announced(self, wait: timedelta) -> bool:
        """Whether there is a message, waiting so long for one (at most 20 seconds). It stays, for `poll` to read."""
        if not self._queue:
            return False
        with translated("ReceiveMessage"):
            answer = self._aws.sqs.receive_message(
                QueueUrl=self._queue,
                MaxNumberOfMessages=1,
                WaitTimeSeconds=int(wait.total_seconds()),
                VisibilityTimeout=0,
            )
        return bool(answer.get("Messages"))

    def poll(self) -> tuple[Notice, ...]:
        """What has arrived since the last time. Does not wait."""
        if not self._queue:
            return ()
        found: list[Notice] = []
        for _ in range(_ROUNDS):
            with translated("ReceiveMessage"):
                answer = self._aws.sqs.receive_message(QueueUrl=self._queue, MaxNumberOfMessages=_BATCH)
            messages = answer.get("Messages", ())
            for message in messages:
                found += notices_of(message["Body"])
                with translated("DeleteMessage"):
                    self._aws.sqs.delete_message(QueueUrl=self._queue, ReceiptHandle=message["ReceiptHandle"])
            if len(messages) < _BATCH:
                break
        return tuple(found)


def notices_of(body: str) -> tuple[Notice, ...]:
    """The notices in a message; () for one that is about something else, or no event at all."""
    try:
        event = json.loads(body)
        return tuple(_notices(event["detail-type"], event["detail"], event))
    except (ValueError, KeyError, TypeError, AttributeError):
        return ()


def _notices(kind: str, detail: Mapping[str, Any], event: Mapping[str, Any]) -> Iterator[Notice]:
    match kind:
        case "EC2 Spot Instance Interruption Warning":
            sent = datetime.fromisoformat(event["time"])
            yield Notice(detail["instance-id"], "spot interruption", sent + _SPOT_NOTICE)
        case "EC2 Instance Rebalance Recommendation":
            yield Notice(detail["instance-id"], "spot rebalance recommendation")
        case "EC2 Instance State-change Notification":
            if detail["state"] in ("stopping", "shutting-down", "terminated"):
                yield Notice(detail["instance-id"], detail["state"], datetime.fromisoformat(event["time"]))
        case "EC2 Capacity Reservation Instance Interruption Warning":
            at = datetime.fromisoformat(detail["instance-termination-time"])
            yield Notice(detail["instance-id"], "end of the capacity block", at)
        case "Capacity Block Reservation Expiration Warning" | "Capacity Block Reservation Delivered":
            yield Notice(detail["capacity-reservation-id"], kind)
        case "AWS Health Event":
            if detail.get("service") == "EC2" and detail.get("eventTypeCategory") == "scheduledChange":
                begins = _health_time(detail.get("startTime", ""))
                for entity in detail.get("affectedEntities", ()):
                    yield Notice(entity["entityValue"], detail.get("eventTypeCode", "maintenance"), begins)


def _health_time(text: str) -> datetime | None:
    """AWS Health writes times as in e-mail."""
    return parsedate_to_datetime(text) if text else None

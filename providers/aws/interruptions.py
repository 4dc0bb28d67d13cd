"""Notices of what EC2 is about to take back, from EventBridge through an SQS queue.

They only make us faster: describing is the truth, and what is missed here is seen there, also while the queue cannot be
read at all. A message is deleted once what it says was written down, also one that we do not understand, because
nobody else will understand it later. Until then it comes again after SQS's visibility time-out, and says the same.
Sources: EventBridge events of aws.ec2 and aws.health; Capacity Blocks user guide (monitoring).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any, Final

from instance_catalog.dataclass import dataclass
from providers.aws.errors import translated
from providers.aws.session import Aws
from providers.contract import Clock
from providers.errors import ProviderError

# Spot machines get two minutes; the event says when it was sent, not when they go.
_SPOT_NOTICE: Final = timedelta(minutes=2)
# SQS gives, and deletes, ten messages in one call; more than this many answers are left for the next look.
_BATCH: Final = 10
_ROUNDS: Final = 10
# How long a notice about a machine that nobody has described yet is kept, in seconds.
_UNSEEN_FOR: Final = 900.0
# The events that `notices_of` understands, by their detail-type.
KINDS: Final = (
    "EC2 Spot Instance Interruption Warning",
    "EC2 Instance Rebalance Recommendation",
    "EC2 Instance State-change Notification",
    "EC2 Capacity Reservation Instance Interruption Warning",
    "Capacity Block Reservation Delivered",
    "Capacity Block Reservation Expiration Warning",
    "AWS Health Event",
)


@dataclass(frozen=True, slots=True)
class Notice:
    """What is about to happen to a machine or a reservation. `at` None: soon, or EC2 does not say.

    `repeated`: whoever describes the machine's reservation sees this end as well, and sees it move.
    """

    subject: str
    reason: str
    at: datetime | None = None
    repeated: bool = False


class Interruptions:
    """Reads a queue. Without one there are no notices. Also an Announcer."""

    def __init__(self, aws: Aws, queue: str) -> None:
        self._aws = aws
        self._queue = queue
        self._read: list[str] = []  # receipts of the messages that were read and not deleted

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

    def poll(self) -> Iterator[Notice]:
        """What has arrived since the last time. Does not wait. What was read before an error counts."""
        for _ in range(_ROUNDS if self._queue else 0):
            with translated("ReceiveMessage"):
                answer = self._aws.sqs.receive_message(QueueUrl=self._queue, MaxNumberOfMessages=_BATCH)
            messages = answer.get("Messages", ())
            for message in messages:
                yield from notices_of(message.get("Body", ""))
                self._read.append(message["ReceiptHandle"])
            if len(messages) < _BATCH:
                return

    def acknowledge(self) -> None:
        """Delete what was read. Those that SQS fails to delete come again, and say the same."""
        while self._read:
            batch, self._read = self._read[:_BATCH], self._read[_BATCH:]
            entries = [{"Id": str(index), "ReceiptHandle": receipt} for index, receipt in enumerate(batch)]
            with translated("DeleteMessageBatch"):
                self._aws.sqs.delete_message_batch(QueueUrl=self._queue, Entries=entries)

    def forget(self) -> None:
        """Leave what was read where it is."""
        self._read.clear()


class Noticed:
    """What notices say of each machine: the earliest end of several. A queue that cannot be read is left alone, ever
    longer.
    """

    def __init__(self, queue: Interruptions, clock: Clock) -> None:
        self._queue = queue
        self._clock = clock
        self._known: dict[str, Notice] = {}
        self._heard_at: dict[str, float] = {}  # by machine, on the monotonic clock
        self._failures = 0
        self._rests_until = clock.monotonic()

    def of(self, machines: Iterable[str]) -> Mapping[str, Notice]:
        """What is known of these machines. What is known of others is kept for a while: a machine may be described
        only after its notice has come."""
        now = self._clock.monotonic()
        if now >= self._rests_until:
            self._read()
        asked = frozenset(machines)
        kept = {key for key in self._known if key in asked or now - self._heard_at[key] < _UNSEEN_FOR}
        self._known = {key: notice for key, notice in self._known.items() if key in kept}
        self._heard_at = {key: at for key, at in self._heard_at.items() if key in kept}
        return {key: notice for key, notice in self._known.items() if key in asked}

    def acknowledge(self) -> None:
        """What is known is written down by now."""
        try:
            self._queue.acknowledge()
        except ProviderError as error:
            self._rest(error)

    def _read(self) -> None:
        self._queue.forget()  # nobody has written down what was read before: it comes again
        try:
            for notice in self._queue.poll():
                self._known[notice.subject] = earlier(self._known.get(notice.subject), notice)
                self._heard_at[notice.subject] = self._clock.monotonic()
            self._failures = 0
        except ProviderError as error:
            # Whoever waits at the queue tells a person; to raise it would hide the machines from who looks for them.
            self._rest(error)

    def _rest(self, error: ProviderError) -> None:
        self._failures += 1
        self._rests_until = self._clock.monotonic() + error.backoff(self._failures).total_seconds()


def earlier(known: Notice | None, heard: Notice) -> Notice:
    """Which of two notices about one subject counts: that of the earlier end. One without an end takes none away."""
    if known is None or known.at is None:
        return heard
    return heard if heard.at is not None and heard.at < known.at else known


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
            sent = _moment(event["time"])
            yield Notice(detail["instance-id"], "spot interruption", sent + _SPOT_NOTICE)
        case "EC2 Instance Rebalance Recommendation":
            yield Notice(detail["instance-id"], "spot rebalance recommendation")
        case "EC2 Instance State-change Notification":
            if detail["state"] in ("shutting-down", "terminated"):
                yield Notice(detail["instance-id"], detail["state"], _moment(event["time"]))
            elif detail["state"] == "stopping":  # it may be started again
                yield Notice(detail["instance-id"], detail["state"])
        case "EC2 Capacity Reservation Instance Interruption Warning":
            at = _moment(detail["instance-termination-time"])
            yield Notice(detail["instance-id"], "end of the capacity block", at, repeated=True)
        case "Capacity Block Reservation Expiration Warning" | "Capacity Block Reservation Delivered":
            yield Notice(detail["capacity-reservation-id"], kind)
        case "AWS Health Event":
            if detail.get("service") == "EC2" and detail.get("eventTypeCategory") == "scheduledChange":
                begins = _health_time(detail.get("startTime", ""))
                for entity in detail.get("affectedEntities", ()):
                    yield Notice(entity["entityValue"], detail.get("eventTypeCode", "maintenance"), begins)


def _moment(text: str) -> datetime:
    return _aware(datetime.fromisoformat(text))


def _health_time(text: str) -> datetime | None:
    """AWS Health writes times as in e-mail."""
    return _aware(parsedate_to_datetime(text)) if text else None


def _aware(at: datetime) -> datetime:
    """AWS means UTC where it names no zone."""
    return at if at.tzinfo is not None else at.replace(tzinfo=UTC)

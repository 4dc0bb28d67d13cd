"""Notices of machines that EC2 is about to take back, from EventBridge through an SQS queue.

Notices only make the reaction faster: descriptions are authoritative and show everything that a notice says, also while
the queue cannot be read. A message is deleted after its content is recorded; so is one that cannot be parsed, because
no later reader can parse it either. Until then SQS delivers it again after its visibility time-out. Sources:
EventBridge events of aws.ec2 and aws.health; Capacity Blocks user guide (monitoring).
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
# How long a notice about a machine that no call has described yet is kept, in seconds.
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
    """The announced end of a machine or a reservation. `at` None: soon, or EC2 does not say.

    `repeated`: descriptions of the machine's reservation show this end as well, and show when it moves.
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
        """True if the queue has a message, waiting at most `wait` (20 seconds at most). The message stays for
        `poll`."""
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
        """The notices that arrived since the last call. Does not wait. Notices read before an error are yielded."""
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
        """Deletes the messages that were read. SQS delivers those that it fails to delete again, with the same
        content."""
        while self._read:
            batch, self._read = self._read[:_BATCH], self._read[_BATCH:]
            entries = [{"Id": str(index), "ReceiptHandle": receipt} for index, receipt in enumerate(batch)]
            with translated("DeleteMessageBatch"):
                self._aws.sqs.delete_message_batch(QueueUrl=self._queue, Entries=entries)

    def forget(self) -> None:
        """Forgets the messages that were read. They stay in the queue."""
        self._read.clear()


class Noticed:
    """The notices by machine; of several the one with the earliest end. A queue that cannot be read is left alone for
    increasing times."""

    def __init__(self, queue: Interruptions, clock: Clock) -> None:
        self._queue = queue
        self._clock = clock
        self._known: dict[str, Notice] = {}
        self._heard_at: dict[str, float] = {}  # by machine, on the monotonic clock
        self._failures = 0
        self._rests_until = clock.monotonic()

    def of(self, machines: Iterable[str]) -> Mapping[str, Notice]:
        """The notices about these machines. Notices about other machines are kept for a while, because a machine may be
        described only after its notice arrives."""
        now = self._clock.monotonic()
        if now >= self._rests_until:
            self._read()
        asked = frozenset(machines)
        kept = {key for key in self._known if key in asked or now - self._heard_at[key] < _UNSEEN_FOR}
        self._known = {key: notice for key, notice in self._known.items() if key in kept}
        self._heard_at = {key: at for key, at in self._heard_at.items() if key in kept}
        return {key: notice for key, notice in self._known.items() if key in asked}

    def acknowledge(self) -> None:
        """Deletes the messages whose notices the caller has recorded."""
        try:
            self._queue.acknowledge()
        except ProviderError as error:
            self._rest(error)

    def _read(self) -> None:
        self._queue.forget()  # no caller has recorded what was read before: SQS delivers it again
        try:
            for notice in self._queue.poll():
                self._known[notice.subject] = earlier(self._known.get(notice.subject), notice)
                self._heard_at[notice.subject] = self._clock.monotonic()
            self._failures = 0
        except ProviderError as error:
            # The check of the queue reports it to the user; raising it here would hide the machines from the caller.
            self._rest(error)

    def _rest(self, error: ProviderError) -> None:
        self._failures += 1
        self._rests_until = self._clock.monotonic() + error.backoff(self._failures).total_seconds()


def earlier(known: Notice | None, heard: Notice) -> Notice:
    """The notice that counts of two about one subject: the one with the earlier end. One without an end never replaces
    one with an end."""
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
    """A time without a zone is UTC in AWS's messages."""
    return at if at.tzinfo is not None else at.replace(tzinfo=UTC)

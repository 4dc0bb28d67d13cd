"""Notices: EventBridge events of EC2 that a rule delivers to a queue, with the moment at which they were sent.

A queue is what SQS keeps: messages that come back unless they are deleted within the visibility time-out.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

from providers.contract import Clock
from tests.fakes.ec2.geography import ACCOUNT, REGION
from tests.fakes.ec2.holdings import WARNING_BEFORE_RECLAIM, Holding
from tests.fakes.ec2.machines import Behaviour, Machine

VISIBILITY: Final = timedelta(seconds=30)


@dataclass
class Message:
    """A message in a queue; `hidden_until` after it was received."""

    id: str
    body: str
    sent_at: datetime
    hidden_until: datetime
    receipts: int = 0


@dataclass
class Queue:
    """A queue. Messages are delivered at least once, in no promised order; the fake keeps the order of sending.

    `policy` says who may send to it, `rules` what EventBridge is told to: patterns by name. The fake heeds neither.
    """

    url: str
    messages: list[Message] = field(default_factory=list)
    policy: str = ""
    rules: dict[str, str] = field(default_factory=dict)

    @property
    def arn(self) -> str:
        """Its name for policies and rules."""
        return f"arn:aws:sqs:{REGION}:{ACCOUNT}:{self.url.rpartition('/')[2]}"


class Notices:
    """The queues, and which events have been sent."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.queues: dict[str, Queue] = {}
        self._states: dict[str, str] = {}
        self._sent = 0

    def queue(self, name: str) -> Queue:
        """The queue of this name, to which all notices go from now on."""
        url = f"https://sqs.{REGION}.amazonaws.com/{ACCOUNT}/{name}"
        return self.queues.setdefault(url, Queue(url))

    def send(self, detail_type: str, detail: Mapping[str, Any], *, source: str = "aws.ec2", at: datetime) -> None:
        """Put an event into every queue."""
        self._sent += 1
        event = {
            "version": "0",
            "id": f"{self._sent:08x}-0000-4000-8000-000000000000",
            "detail-type": detail_type,
            "source": source,
            "account": ACCOUNT,
            "time": at.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "region": REGION,
            "resources": [],
            "detail": dict(detail),
        }
        for queue in self.queues.values():
            queue.messages.append(Message(event["id"], json.dumps(event), at, at))

    def interruption(self, machine: Machine, at: datetime) -> None:
        """The warning before a machine is taken back."""
        if machine.order.market == "spot":
            detail = {"instance-id": machine.id, "instance-action": "terminate"}
            self.send("EC2 Spot Instance Interruption Warning", detail, at=self._clock.now())
            return
        detail = {
            "instance-id": machine.id,
            "instance-action": "terminate",
            "instance-termination-time": at.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "availability-zone-id": machine.order.zone,
            "instance-lifecycle": machine.order.market,
        }
        self.send("EC2 Capacity Reservation Instance Interruption Warning", detail, at=self._clock.now())

    def rebalance(self, machine: Machine) -> None:
        """The recommendation to leave a spot machine early."""
        self.send("EC2 Instance Rebalance Recommendation", {"instance-id": machine.id}, at=self._clock.now())

    def catch_up(self, holdings: Iterable[Holding], machines: Iterable[Machine], behaviour: Behaviour) -> None:
        """Send what has fallen due: deliveries and ends of blocks, and changes of instances' states."""
        now = self._clock.now()
        for holding in holdings:
            if holding.block:
                self._of_block(holding, now)
        for machine in machines:
            state = machine.state(now, behaviour)
            if self._states.get(machine.id) != state:
                self._states[machine.id] = state
                detail = {"instance-id": machine.id, "state": state}
                self.send("EC2 Instance State-change Notification", detail, at=now)

    def _of_block(self, holding: Holding, now: datetime) -> None:
        end, reclaim = holding.end(now), holding.reclaim_at(now)
        if end is None or reclaim is None or holding.state(now) not in ("active", "expired"):
            return
        detail = {"capacity-reservation-id": holding.id, "end-date": end.strftime("%Y-%m-%dT%H:%M:%SZ")}
        if not holding.delivered:
            holding.delivered = True
            self.send("Capacity Block Reservation Delivered", detail, at=holding.starts_at)
        warning = reclaim - WARNING_BEFORE_RECLAIM
        if now >= warning and holding.warned_for != end:
            holding.warned_for = end
            self.send("Capacity Block Reservation Expiration Warning", detail, at=warning)

"""Notices bring an end forward; what is no notice changes nothing."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest

from autoscaler.clock import VirtualClock
from instance_catalog.dataclass import replace
from instance_catalog.types.instance_type import CapacityType
from providers.aws.interruptions import KINDS, Interruptions, Notice, Noticed, earlier, notices_of
from providers.aws.provider import Account, AwsProvider, seen
from providers.contract import TAG_CLUSTER
from providers.errors import TemplateError
from tests.aws import CLUSTER, P5, Rig, catalog, request
from tests.fakes.ec2 import TIMEOUT_BEFORE, refused

SENT = "2026-01-01T08:00:00Z"
AT = datetime(2026, 1, 1, 8, tzinfo=UTC)


def event(kind: str, **detail: Any) -> str:
    return json.dumps({"detail-type": kind, "source": "aws.ec2", "time": SENT, "detail": detail})


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        pytest.param(
            event("EC2 Spot Instance Interruption Warning", **{"instance-id": "i-1", "instance-action": "terminate"}),
            Notice("i-1", "spot interruption", AT + timedelta(minutes=2)),
            id="spot",
        ),
        pytest.param(
            event("EC2 Instance Rebalance Recommendation", **{"instance-id": "i-1"}),
            Notice("i-1", "spot rebalance recommendation"),
            id="rebalance",
        ),
        pytest.param(
            event("EC2 Instance State-change Notification", **{"instance-id": "i-1", "state": "shutting-down"}),
            Notice("i-1", "shutting-down", AT),
            id="ended",
        ),
        pytest.param(
            event(
                "EC2 Capacity Reservation Instance Interruption Warning",
                **{"instance-id": "i-1", "instance-termination-time": "2026-01-01T11:00:00Z"},
            ),
            Notice("i-1", "end of the capacity block", AT + timedelta(hours=3), repeated=True),
            id="block",
        ),
        pytest.param(
            event("Capacity Block Reservation Expiration Warning", **{"capacity-reservation-id": "cr-1"}),
            Notice("cr-1", "Capacity Block Reservation Expiration Warning"),
            id="expiry",
        ),
        pytest.param(
            event(
                "AWS Health Event",
                service="EC2",
                eventTypeCategory="scheduledChange",
                eventTypeCode="AWS_EC2_INSTANCE_RETIREMENT_SCHEDULED",
                startTime="Thu, 01 Jan 2026 09:00:00 GMT",
                affectedEntities=[{"entityValue": "i-1"}],
            ),
            Notice("i-1", "AWS_EC2_INSTANCE_RETIREMENT_SCHEDULED", AT + timedelta(hours=1)),
            id="maintenance",
        ),
        pytest.param(
            event(
                "EC2 Capacity Reservation Instance Interruption Warning",
                **{"instance-id": "i-1", "instance-termination-time": "2026-01-01T08:00:00"},
            ),
            Notice("i-1", "end of the capacity block", AT, repeated=True),
            id="a time without its zone",
        ),
    ],
)
def test_a_notice_names_its_subject_and_moment(body: str, expected: Notice) -> None:
    assert notices_of(body) == (expected,)


@pytest.mark.parametrize(
    "body",
    [
        pytest.param("hello", id="no JSON"),
        pytest.param("[]", id="a list"),
        pytest.param("{}", id="empty"),
        pytest.param(event("EC2 Spot Instance Interruption Warning"), id="without its machine"),
        pytest.param(
            event("EC2 Instance State-change Notification", **{"instance-id": "i", "state": "running"}), id="started"
        ),
        pytest.param(event("Something New", **{"instance-id": "i"}), id="unknown kind"),
        pytest.param(event("AWS Health Event", service="RDS"), id="another service"),
        pytest.param('{"detail-type": "AWS Health Event", "detail": 3}', id="a detail that is none"),
    ],
)
def test_what_is_no_notice_is_passed_over(body: str) -> None:
    assert notices_of(body) == ()


def test_every_kind_that_is_asked_for_is_understood() -> None:
    state = {"instance-id": "i", "state": "terminated", "instance-termination-time": SENT}
    health = {"service": "EC2", "eventTypeCategory": "scheduledChange", "affectedEntities": [{"entityValue": "i"}]}
    for kind in KINDS:
        assert notices_of(event(kind, **state, **health, **{"capacity-reservation-id": "cr"})), kind


def with_queue(rig: Rig) -> AwsProvider:
    account = Account(rig.aws, rig.clock, catalog(), CLUSTER)
    url = rig.fake.account.notices.queue("foreslice").url
    return AwsProvider(account, rig.templates, queue=url)


def test_a_spot_machine_knows_its_end_at_the_next_look() -> None:
    rig = Rig()
    provider = with_queue(rig)
    spot = request("a", "b", offerings=(replace(P5, capacity_type=CapacityType.SPOT),))
    first, second = provider.launch(spot).instances
    rig.settle()
    rig.fake.account.interrupt(first.id)
    found = {one.id: one for one in provider.describe({TAG_CLUSTER: CLUSTER}).instances}
    assert found[first.id].reclaim_at == rig.clock.now() + timedelta(minutes=2)
    assert found[first.id].message == "spot interruption"
    assert found[second.id].reclaim_at is None
    assert found[first.id].noticed_at == found[first.id].reclaim_at
    # The message was deleted and the notice kept.
    provider.acknowledge()
    again = {one.id: one for one in provider.describe({TAG_CLUSTER: CLUSTER}).instances}
    assert again[first.id].reclaim_at == found[first.id].reclaim_at


def test_a_queue_that_does_not_exist_is_a_matter_of_settings() -> None:
    rig = Rig()
    with pytest.raises(TemplateError) as caught:
        list(Interruptions(rig.aws, "https://sqs.us-east-1.amazonaws.com/123456789012/none").poll())
    assert "aws.queue" in caught.value.next_step


@pytest.mark.parametrize(
    "trouble",
    [
        pytest.param(lambda rig: rig.fake.account.notices.queues.clear(), id="the queue was deleted"),
        pytest.param(lambda rig: rig.fake.denied.add("sqs:ReceiveMessage"), id="reading is not allowed"),
        pytest.param(lambda rig: rig.fake.denied.add("sqs:DeleteMessageBatch"), id="deleting is not allowed"),
        pytest.param(lambda rig: rig.fake.faults.inject("ReceiveMessage", *[TIMEOUT_BEFORE] * 9), id="no answer"),
        pytest.param(lambda rig: rig.fake.faults.inject("ReceiveMessage", *[refused("Teapot")] * 9), id="unknown code"),
    ],
)
def test_without_its_queue_a_machine_is_described_all_the_same(trouble: Callable[[Rig], object]) -> None:
    rig = Rig()
    provider = with_queue(rig)
    (machine,) = provider.launch(request()).instances
    rig.settle()
    trouble(rig)
    assert [one.id for one in provider.describe({TAG_CLUSTER: CLUSTER}).instances] == [machine.id]


def test_a_queue_that_cannot_be_read_is_asked_ever_more_rarely() -> None:
    rig = Rig()
    provider = with_queue(rig)
    rig.fake.denied.add("sqs:ReceiveMessage")
    for _ in range(6 * 60):
        provider.describe({TAG_CLUSTER: CLUSTER})
        rig.clock.advance(timedelta(seconds=10))
    assert rig.fake.calls["ReceiveMessage"] == 3  # at once, after ten minutes and after thirty
    rig.fake.denied.clear()
    rig.clock.advance(timedelta(hours=1))
    provider.describe({TAG_CLUSTER: CLUSTER})
    provider.describe({TAG_CLUSTER: CLUSTER})
    assert rig.fake.calls["ReceiveMessage"] == 5


def test_what_was_read_counts_when_it_cannot_be_deleted() -> None:
    rig = Rig()
    provider = with_queue(rig)
    (spot,) = provider.launch(request(offerings=(replace(P5, capacity_type=CapacityType.SPOT),))).instances
    rig.settle()
    rig.fake.account.interrupt(spot.id)
    rig.fake.denied.add("sqs:DeleteMessageBatch")
    for _ in range(2):
        (found,) = provider.describe({TAG_CLUSTER: CLUSTER}).instances
        provider.acknowledge()
        assert found.reclaim_at == rig.clock.now() + timedelta(minutes=2)


def test_a_notice_that_nobody_wrote_down_comes_again_to_the_next_leader() -> None:
    rig = Rig()
    first = with_queue(rig)
    (spot,) = first.launch(request(offerings=(replace(P5, capacity_type=CapacityType.SPOT),))).instances
    rig.settle()
    rig.fake.account.interrupt(spot.id, notice=timedelta(minutes=10))
    (before,) = first.describe({TAG_CLUSTER: CLUSTER}).instances
    rig.clock.advance(timedelta(minutes=1))
    (after,) = with_queue(rig).describe({TAG_CLUSTER: CLUSTER}).instances
    assert (after.noticed_at, after.reclaim_at) == (before.noticed_at, before.reclaim_at)


@pytest.mark.parametrize(("moved", "counts"), [(timedelta(0), True), (timedelta(days=1), False)])
def test_an_extended_block_outlives_the_notice_of_its_first_end(moved: timedelta, counts: bool) -> None:
    end = AT + timedelta(hours=1)
    notice = Notice("i-1", "end of the capacity block", end - timedelta(minutes=10), repeated=True)
    described = {
        "InstanceId": "i-1",
        "InstanceType": "p5.48xlarge",
        "Placement": {"AvailabilityZone": "us-east-1a"},
        "State": {"Name": "running"},
        "LaunchTime": AT,
    }
    found = seen(described, end + moved, notice)
    assert found.reclaim_at == (notice.at if counts else end + moved)
    assert found.noticed_at is None, "the reservation says it again"


def test_a_machine_that_stops_has_no_end() -> None:
    body = event("EC2 Instance State-change Notification", **{"instance-id": "i-1", "state": "stopping"})
    assert notices_of(body) == (Notice("i-1", "stopping"),)


def test_messages_are_read_and_deleted_ten_at_a_time() -> None:
    rig = Rig()
    provider = with_queue(rig)
    for number in range(25):
        rig.fake.account.notices.send("Something New", {"instance-id": f"i-{number}"}, at=rig.clock.now())
    provider.describe({TAG_CLUSTER: CLUSTER})
    assert rig.fake.calls["DeleteMessageBatch"] == 0, "nobody has written down yet what they say"
    provider.acknowledge()
    assert rig.fake.calls["ReceiveMessage"] == rig.fake.calls["DeleteMessageBatch"] == 3
    assert [queue.messages for queue in rig.fake.account.notices.queues.values()] == [[]]


def test_without_a_queue_nothing_is_asked() -> None:
    rig = Rig()
    assert list(Interruptions(rig.aws, "").poll()) == []
    assert rig.fake.calls["ReceiveMessage"] == 0


# --- several notices about one machine -----------------------------------------------------------------------------

SOON = Notice("i-1", "spot interruption", AT + timedelta(minutes=2))
LATER = Notice("i-1", "maintenance", AT + timedelta(days=3))
REBALANCE = Notice("i-1", "spot rebalance recommendation")


@pytest.mark.parametrize(
    ("heard", "counts"),
    [
        pytest.param((SOON, REBALANCE), SOON, id="a rebalance recommendation after an interruption"),
        pytest.param((REBALANCE, SOON), SOON, id="and before it"),
        pytest.param((SOON, LATER), SOON, id="a later end after an earlier one"),
        pytest.param((LATER, SOON), SOON, id="an earlier end after a later one"),
        pytest.param((REBALANCE,), REBALANCE, id="one alone"),
    ],
)
def test_the_earliest_end_of_several_notices_counts(heard: tuple[Notice, ...], counts: Notice) -> None:
    known: Notice | None = None
    for notice in heard:
        known = earlier(known, notice)
    assert known == counts


class Queue:
    """Gives each batch of notices once."""

    def __init__(self, *batches: tuple[Notice, ...]) -> None:
        self._batches = list(batches)

    def poll(self) -> tuple[Notice, ...]:
        return self._batches.pop(0) if self._batches else ()

    def forget(self) -> None:
        """Nothing is kept."""


def test_a_notice_that_comes_before_its_machine_is_described_is_kept_for_a_while() -> None:
    clock = VirtualClock()
    noticed = Noticed(cast(Interruptions, Queue((SOON,))), clock)
    assert noticed.of(()) == {}
    clock.advance(timedelta(minutes=1))
    assert noticed.of(("i-1",)) == {"i-1": SOON}
    assert noticed.of(()) == {}
    clock.advance(timedelta(minutes=16))
    assert noticed.of(()) == {}
    assert noticed.of(("i-1",)) == {}

"""What has to be known about ProvisioningRequests from one reconcile to the next. Pure: a value in, a value out.

It is kept in memory alone. After a restart every time of grace begins anew and every question is asked again: a request
fails later than it might, and never earlier.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from autoscaler.kube.workloads.stamping import MOST_PODS
from autoscaler.model.capacity_answers import RequestAnswer
from autoscaler.model.requested_capacity import ProvisioningRequest, RequestClass, RequestCondition
from autoscaler.model.snapshot import Snapshot
from instance_catalog.frozen_map import FrozenMap

# Kueue creates a request before its PodTemplates, watches of different kinds do not arrive together, and who installs a
# driver anew deletes its DeviceClass for a moment.
GRACE: Final = timedelta(seconds=30)
CHECK_AGAIN: Final = timedelta(minutes=1)
# Requests that only ask and that are looked at in one reconcile: each costs a plan of its own.
CHECKS_AT_ONCE: Final = 4
# When more of them are due.
CHECK_PAUSE: Final = timedelta(seconds=1)
_NO_TIMES: Final[FrozenMap[str, datetime]] = FrozenMap()


@dataclass(frozen=True, slots=True)
class RequestsSeen:
    """By uid of the request: `obstacles`, since when each reconcile found that it cannot be met at all; `looked`, when
    a request that only asks was last looked at."""

    obstacles: FrozenMap[str, datetime] = _NO_TIMES
    looked: FrozenMap[str, datetime] = _NO_TIMES

    def hopeless_since(self, request: ProvisioningRequest) -> datetime | None:
        """Since when nothing can meet the request; None if something could, as of the last look at it."""
        return self.obstacles.get(_id(request))


NOTHING_SEEN: Final = RequestsSeen()


def seen_after(
    before: RequestsSeen,
    snapshot: Snapshot,
    answers: Iterable[RequestAnswer],
    looked: Iterable[ProvisioningRequest],
    now: datetime,
) -> RequestsSeen:
    """What is known after a reconcile: an obstacle that it did not find is forgotten, so that the next one counts anew.

    Of a request that only asks nothing changes where it was not looked at.
    """
    met = {_id(answer.request) for answer in answers if any(said.obstacle for said in answer.said)}
    looks = dict.fromkeys(map(_id, looked), now)
    asking = {_id(request) for request in _asking(snapshot)}
    kept = {key for key in before.obstacles if key in asking and key not in looks}
    return RequestsSeen(
        FrozenMap({key: before.obstacles.get(key, now) for key in sorted(met | kept)}),
        FrozenMap({key: moment for key, moment in ({**before.looked, **looks}).items() if key in asking}),
    )


def asks(request: ProvisioningRequest) -> bool:
    """Whether it is of the class that only asks, and was not answered that there is room."""
    open_ = not request.over and not request.has(RequestCondition.PROVISIONED)
    return request.served is RequestClass.CHECK and open_


def due_checks(snapshot: Snapshot, now: datetime, seen: RequestsSeen) -> tuple[ProvisioningRequest, ...]:
    """The requests that only ask and that are looked at in this reconcile, a minute after the last time at the
    earliest.

    The namespace that has waited longest comes first, with the request that has waited longest; so neither new ones nor
    those of a large namespace keep others from their turn.
    """
    chosen: list[ProvisioningRequest] = []
    pods = 0
    for request in _in_turn(_due(snapshot, now, seen), seen, _last_turns(snapshot, seen)):
        pods += request.pods
        if chosen and (len(chosen) == CHECKS_AT_ONCE or pods > MOST_PODS):
            break
        chosen.append(request)
    return tuple(chosen)


def next_check(snapshot: Snapshot, now: datetime, seen: RequestsSeen) -> datetime | None:
    """When a request that only asks is to be looked at next; None if none asks."""
    if _due(snapshot, now, seen):
        return now + CHECK_PAUSE
    return min((seen.looked[_id(request)] + CHECK_AGAIN for request in _asking(snapshot)), default=None)


def _id(request: ProvisioningRequest) -> str:
    return request.uid or request.key


def _asking(snapshot: Snapshot) -> list[ProvisioningRequest]:
    return [request for request in snapshot.provisioning_requests if asks(request)]


def _due(snapshot: Snapshot, now: datetime, seen: RequestsSeen) -> list[ProvisioningRequest]:
    last = seen.looked
    return [r for r in _asking(snapshot) if _id(r) not in last or now - last[_id(r)] >= CHECK_AGAIN]


def _last_turns(snapshot: Snapshot, seen: RequestsSeen) -> dict[str, float]:
    """When a request of each namespace was last looked at, in seconds of the epoch."""
    turns: dict[str, float] = {}
    for request in _asking(snapshot):
        moment = seen.looked.get(_id(request))
        if moment is not None:
            turns[request.namespace] = max(moment.timestamp(), turns.get(request.namespace, 0.0))
    return turns


def _in_turn(
    due: Iterable[ProvisioningRequest], seen: RequestsSeen, turns: dict[str, float]
) -> Iterator[ProvisioningRequest]:
    """Round after round, one request of each namespace."""

    def waits_since(request: ProvisioningRequest) -> tuple[float, str]:
        moment = seen.looked.get(_id(request))
        return (request.created if moment is None else moment.timestamp()), request.key

    waiting: dict[str, list[ProvisioningRequest]] = {}
    for request in sorted(due, key=waits_since):
        waiting.setdefault(request.namespace, []).append(request)
    queues = [waiting[name] for name in sorted(waiting, key=lambda name: (turns.get(name, 0.0), name))]
    for index in range(max(map(len, queues), default=0)):
        yield from (queue[index] for queue in queues if index < len(queue))

"""The state of ProvisioningRequests that is kept from one reconcile to the next. Pure: a value in, a value out.

It exists only in memory. After a restart all grace periods start again and every capacity check is repeated: a request
fails later than it might, but never earlier.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from typing import Final

from autoscaler.kube.workloads.stamping import MOST_PODS
from autoscaler.model.capacity_answers import RequestAnswer
from autoscaler.model.requested_capacity import ProvisioningRequest, RequestClass, RequestCondition
from autoscaler.model.snapshot import Snapshot
from instance_catalog.dataclass import dataclass
from instance_catalog.frozen_map import FrozenMap

# Kueue creates a request before its PodTemplates, watches of different kinds have different delays, and the
# reinstallation of a driver deletes its DeviceClass for a moment.
GRACE: Final = timedelta(seconds=30)
CHECK_AGAIN: Final = timedelta(minutes=1)
# The most capacity checks in one reconcile: each costs a plan of its own.
CHECKS_AT_ONCE: Final = 4
# The pause before the next reconcile if more of them are due.
CHECK_PAUSE: Final = timedelta(seconds=1)
_NO_TIMES: Final[FrozenMap[str, datetime]] = FrozenMap()


@dataclass(frozen=True, slots=True)
class RequestState:
    """By uid of the request: `obstacles`, since when every reconcile found that it cannot be met at all; `looked`,
    the time of its last capacity check."""

    obstacles: FrozenMap[str, datetime] = _NO_TIMES
    looked: FrozenMap[str, datetime] = _NO_TIMES

    def hopeless_since(self, request: ProvisioningRequest) -> datetime | None:
        """The time since when nothing can meet the request; None if something could at the last check."""
        return self.obstacles.get(_id(request))


NO_REQUEST_STATE: Final = RequestState()


def request_state_after(
    before: RequestState,
    snapshot: Snapshot,
    answers: Iterable[RequestAnswer],
    looked: Iterable[ProvisioningRequest],
    now: datetime,
) -> RequestState:
    """The state after a reconcile. An obstacle that was not found again is removed, so the next one starts a new
    period.

    Requests that only check capacity keep their state unless they were checked.
    """
    met = {_id(answer.request) for answer in answers if any(condition.obstacle for condition in answer.conditions)}
    looks = dict.fromkeys(map(_id, looked), now)
    asking = {_id(request) for request in _asking(snapshot)}
    kept = {key for key in before.obstacles if key in asking and key not in looks}
    return RequestState(
        FrozenMap({key: before.obstacles.get(key, now) for key in sorted(met | kept)}),
        FrozenMap({key: moment for key, moment in ({**before.looked, **looks}).items() if key in asking}),
    )


def asks(request: ProvisioningRequest) -> bool:
    """True if the request only checks capacity and has not been answered positively."""
    open_ = not request.over and not request.has(RequestCondition.PROVISIONED)
    return request.served is RequestClass.CHECK and open_


def due_checks(snapshot: Snapshot, now: datetime, seen: RequestState) -> tuple[ProvisioningRequest, ...]:
    """The capacity checks of this reconcile; each is repeated after a minute at the earliest.

    The namespace that has waited longest is first, with its oldest check. So neither new requests nor those of a large
    namespace keep others waiting.
    """
    chosen: list[ProvisioningRequest] = []
    pods = 0
    for request in _in_turn(_due(snapshot, now, seen), seen, _last_turns(snapshot, seen)):
        pods += request.pods
        if chosen and (len(chosen) == CHECKS_AT_ONCE or pods > MOST_PODS):
            break
        chosen.append(request)
    return tuple(chosen)


def next_check(snapshot: Snapshot, now: datetime, seen: RequestState) -> datetime | None:
    """The time of the next capacity check; None if there is none."""
    if _due(snapshot, now, seen):
        return now + CHECK_PAUSE
    return min((seen.looked[_id(request)] + CHECK_AGAIN for request in _asking(snapshot)), default=None)


def _id(request: ProvisioningRequest) -> str:
    return request.uid or request.key


def _asking(snapshot: Snapshot) -> list[ProvisioningRequest]:
    return [request for request in snapshot.provisioning_requests if asks(request)]


def _due(snapshot: Snapshot, now: datetime, seen: RequestState) -> list[ProvisioningRequest]:
    last = seen.looked
    return [r for r in _asking(snapshot) if _id(r) not in last or now - last[_id(r)] >= CHECK_AGAIN]


def _last_turns(snapshot: Snapshot, seen: RequestState) -> dict[str, float]:
    """The time of the last check in each namespace, in seconds of the epoch."""
    turns: dict[str, float] = {}
    for request in _asking(snapshot):
        moment = seen.looked.get(_id(request))
        if moment is not None:
            turns[request.namespace] = max(moment.timestamp(), turns.get(request.namespace, 0.0))
    return turns


def _in_turn(
    due: Iterable[ProvisioningRequest], seen: RequestState, turns: dict[str, float]
) -> Iterator[ProvisioningRequest]:
    """One request of each namespace, then the next one of each, and so on."""

    def waits_since(request: ProvisioningRequest) -> tuple[float, str]:
        moment = seen.looked.get(_id(request))
        return (request.created if moment is None else moment.timestamp()), request.key

    waiting: dict[str, list[ProvisioningRequest]] = {}
    for request in sorted(due, key=waits_since):
        waiting.setdefault(request.namespace, []).append(request)
    queues = [waiting[name] for name in sorted(waiting, key=lambda name: (turns.get(name, 0.0), name))]
    for index in range(max(map(len, queues), default=0)):
        yield from (queue[index] for queue in queues if index < len(queue))

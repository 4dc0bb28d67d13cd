"""Corrects recorded times that are in the future after a clock was set back.

A wait until some time after such a moment would last until the clock has caught up, possibly for hours. So the recorded
time of a past event is limited to now. A wait that is longer than one that begins now could be is over: its start is
unknown, and one early request does little harm.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

from autoscaler.lifecycle import quarantine
from autoscaler.model.provisioned_node import ProvisionedNode
from autoscaler.model.snapshot import Backoff, Quarantine, Snapshot
from instance_catalog.dataclass import replace

# A provider may give a wait of its own, which was not recorded; few are longer.
_LONGEST_NAMED: Final = timedelta(hours=1)


def without_future(snapshot: Snapshot, now: datetime, backoff_of: Callable[[str, int], timedelta]) -> Snapshot:
    """The snapshot with the recorded times of past events in the past; unchanged while the clock only moves forward.

    `backoff_of`: the duration of a back-off, by the kind of its error and the number of consecutive failures.
    """
    return replace(
        snapshot,
        provisioned=tuple(_node(node, now) for node in snapshot.provisioned),
        backoffs=tuple(_backoff(found, now, backoff_of(found.reason, found.failures)) for found in snapshot.backoffs),
        quarantines=tuple(_quarantine(found, now) for found in snapshot.quarantines),
    )


def _node(node: ProvisionedNode, now: datetime) -> ProvisionedNode:
    if not _knows_later(node, now):
        return node
    return replace(
        node,
        phase_since=_past(node.phase_since, now),
        empty_since=_past(node.empty_since, now),
        unhealthy_since=_past(node.unhealthy_since, now),
        stopped_since=_past(node.stopped_since, now),
        history=tuple(change._replace(at=min(change.at, now)) for change in node.history),
    )


def _knows_later(node: ProvisionedNode, now: datetime) -> bool:
    """True if a moment of the node is later than `now`."""
    for since in (node.phase_since, node.empty_since, node.unhealthy_since, node.stopped_since):
        if since is not None and since > now:
            return True
    return bool([at for _, at, _ in node.history if at > now])


def _past(moment: datetime | None, now: datetime) -> datetime | None:
    return None if moment is None else min(moment, now)


def _backoff(found: Backoff, now: datetime, lasts: timedelta) -> Backoff:
    return found if found.until <= now + max(lasts, _LONGEST_NAMED) else replace(found, until=now)


def _quarantine(found: Quarantine, now: datetime) -> Quarantine:
    possible = found.until is None or found.until <= now + quarantine.lasts(found.times)
    return found if possible else replace(found, until=now)

"""Converts machines of Compute Engine into instances of the provider contract, and decides which ones belong to us.

A machine belongs to Foreslice if a launch of this cluster has chosen its name and a group created it. Labels do not
identify it: every machine of a group has the labels of the instance template.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from instance_catalog.dataclass import replace
from instance_catalog.frozen_map import EMPTY, FrozenMap
from instance_catalog.types.instance_type import CapacityType
from providers.contract import TAG_BATCH, TAG_CLUSTER, TAG_POOL, Instance, InstanceState, OfferingKey, Reservation
from providers.errors import GoneError, understood
from providers.gcp.interruptions import Event, interrupted
from providers.gcp.names import FILTER, batch_of, provider_id, read
from providers.gcp.node_template.template import Batch, GroupRef
from providers.gcp.node_template.tpu import hosts_of, kube_labels, topology_of
from providers.gcp.reserved.parts import Ref, ref_of
from providers.gcp.session import Gcp

# Instance.status. A machine that Google calls TERMINATED is stopped and still exists. STOPPING is either a stop or a
# deletion: until the machine is gone, or an event reports a preemption, somebody may start it again.
STATES: Final[Mapping[str, InstanceState]] = {
    "PENDING": InstanceState.PENDING,
    "PROVISIONING": InstanceState.PENDING,
    "STAGING": InstanceState.PENDING,
    "RUNNING": InstanceState.RUNNING,
    "REPAIRING": InstanceState.RUNNING,
    "SUSPENDING": InstanceState.STOPPED,
    "SUSPENDED": InstanceState.STOPPED,
    "PENDING_STOP": InstanceState.STOPPED,
    "STOPPING": InstanceState.STOPPED,
    "STOPPED": InstanceState.STOPPED,
    "TERMINATED": InstanceState.STOPPED,
    "DEPROVISIONING": InstanceState.TERMINATING,
}
# Stopping, or being deleted.
LEAVING: Final = frozenset({"PENDING_STOP", "STOPPING", "DEPROVISIONING"})
_MODELS: Final = {
    "SPOT": CapacityType.SPOT,
    "FLEX_START": CapacityType.FLEX_START,
    "RESERVATION_BOUND": CapacityType.CAPACITY_BLOCK,
}
Held = Callable[[Ref], Reservation | None]
# The ids that fit into one URL.
_IDS: Final = 50
_CREATED_BY: Final = "created-by"
_LOST: Final = "lost-"  # before the hash of a launch that is written down nowhere


def listed(gcp: Gcp, cluster: str) -> Iterator[Any]:
    """All machines that launches of this cluster have made, in every zone of the project."""
    for page in gcp.pages("instances.aggregatedList", filter=FILTER):
        for scoped in page.items.values():
            yield from (one for one in scoped.instances if owned(one, cluster))


def by_id(gcp: Gcp, ids: Sequence[str]) -> Mapping[str, Any]:
    """The machines with these ids that exist, whoever created them."""
    numbers = [one for one in ids if one.isdecimal()]
    found: dict[str, Any] = {}
    for start in range(0, len(numbers), _IDS):
        wanted = " OR ".join(f"(id = {one})" for one in numbers[start : start + _IDS])
        for page in gcp.pages("instances.aggregatedList", filter=wanted):
            found |= {str(one.id): one for scoped in page.items.values() for one in scoped.instances}
    return found


def owned(found: Any, cluster: str) -> bool:
    return read(found.name, cluster) is not None and group_of(found) is not None


def group_of(found: Any) -> GroupRef | None:
    """The managed instance group that created a machine, from the machine's metadata."""
    for item in found.metadata.items:
        parts = item.value.split("/")
        if item.key == _CREATED_BY and len(parts) > 3 and parts[-2] == "instanceGroupManagers" and parts[-4] == "zones":
            return GroupRef(parts[-3], parts[-1])
    return None


def is_host(found: Any) -> bool:
    """True for a host of a TPU slice of several hosts, which end together."""
    return _hosts(found) > 1


def _hosts(found: Any) -> int:
    return hosts_of(found.machine_type.rpartition("/")[2], topology_of(kube_labels(found.metadata)))


def looked_up(gcp: Gcp, cluster: str, provider_ids: Sequence[str], *, held: Held) -> Mapping[str, Instance]:
    """The machines with these provider ids. A machine that no launch of this cluster started has no tags."""
    found: dict[str, Instance] = {}
    for asked in provider_ids:
        project, _, rest = asked.removeprefix("gce://").partition("/")
        zone, _, name = rest.partition("/")
        if project != gcp.project or not zone or not name:
            continue
        try:
            one = gcp.call("instances.get", about=name, zone=zone, instance=name)
        except GoneError:
            continue
        with understood(name):
            seen = instance_of(one, gcp.project, (), tags=FrozenMap({TAG_CLUSTER: cluster}), held=held)
        found[asked] = seen if owned(one, cluster) else replace(seen, tags=EMPTY)
    return found


class Tags:
    """The tags of machines. A name contains only a hash of its batch; the stored LaunchBatches resolve the hash. The
    hosts of a slice whose LaunchBatch is not stored have one name in common."""

    def __init__(self, cluster: str, asked: Mapping[str, str], written: Callable[[], Iterable[Batch]]) -> None:
        self._cluster = cluster
        self._asked = asked
        self._written = written
        self._unread: Iterator[Batch] | None = None
        self._batches: dict[int, Batch] = {}

    def of(self, found: Any) -> FrozenMap[str, str] | None:
        """The tags of a machine of this cluster; None if the machine lacks one of the requested tags."""
        launched = read(found.name, self._cluster)
        if launched is None:
            return None
        tags = {TAG_CLUSTER: self._cluster}
        batch = self._batch(launched.batch)
        wanted = self._asked.get(TAG_BATCH, "")
        if batch is not None:
            tags |= {TAG_BATCH: batch.name, TAG_POOL: batch.pool}
        elif wanted and batch_of(self._cluster, wanted) == launched.batch:
            tags |= {TAG_BATCH: wanted}
        elif is_host(found):
            tags |= {TAG_BATCH: f"{_LOST}{launched.batch:x}"}
        return FrozenMap(tags) if self._asked.items() <= tags.items() else None

    def _batch(self, number: int) -> Batch | None:
        """The batch with this hash. Of the written ones no more are read than it takes to find it."""
        if self._unread is None:
            self._unread = iter(self._written())
        while number not in self._batches and (one := next(self._unread, None)) is not None:
            self._batches[batch_of(self._cluster, one.name)] = one
        return self._batches.get(number)


def reserved(found: Any, project: str) -> Ref | None:
    """The reservation that the instance template of a machine names."""
    affinity = found.reservation_affinity
    if affinity.consume_reservation_type != "SPECIFIC_RESERVATION" or not affinity.values:
        return None
    return ref_of(found.zone.rpartition("/")[2], affinity.values[0], project)


def instance_of(
    found: Any,
    project: str,
    events: Iterable[Event],
    *,
    tags: FrozenMap[str, str] = EMPTY,
    held: Held = lambda _: None,
) -> Instance:
    """A machine as an Instance, with its interruptions. `held` returns the reservation that it started in."""
    zone = found.zone.rpartition("/")[2]
    if not found.id or not zone or not found.name:
        raise ValueError("id, zone or name is missing")
    if found.status not in STATES:
        raise ValueError(f"status {found.status!r} is not known")
    created = moment(found.creation_timestamp)
    state = STATES[found.status]
    notice = interrupted(found, events)
    if notice.over and found.status in LEAVING:
        state = InstanceState.TERMINATING  # then STOPPED, until somebody deletes it: it keeps its disks
    named = reserved(found, project)
    of = held(named) if named is not None else None
    ends = [moment for moment in (notice.at, of.reclaim_at if of is not None else None) if moment is not None]
    kind = _MODELS.get(found.scheduling.provisioning_model, CapacityType.ON_DEMAND)
    return Instance(
        id=str(found.id),
        provider_id=provider_id(project, zone, found.name),
        offering=OfferingKey(
            found.machine_type.rpartition("/")[2],
            zone,
            of.capacity_type if of is not None else kind,
            of.id if of is not None else "",
        ),
        state=state,
        launched_at=created,
        tags=tags,
        reclaim_at=min(ends, default=None),
        message=notice.message or found.status_message,
        hosts=_hosts(found),
    )


def moment(text: str) -> datetime:
    """Parse one of Google's timestamps, with any offset. Raises ValueError."""
    found = datetime.fromisoformat(text)
    if found.tzinfo is None:
        raise ValueError(f"{text!r} has no offset")
    return found.astimezone(UTC)

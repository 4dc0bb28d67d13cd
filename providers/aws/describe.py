"""Converts EC2's instances to Instance values, and lists those of a cluster."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from instance_catalog.dataclass import replace
from instance_catalog.frozen_map import EMPTY, FrozenMap
from instance_catalog.kubernetes import labels
from instance_catalog.types.instance_type import CapacityType
from providers.aws.errors import translated
from providers.aws.session import Aws
from providers.contract import Instance, InstanceState, OfferingKey
from providers.errors import GoneError, understood

STATES: Final = {
    "pending": InstanceState.PENDING,
    "running": InstanceState.RUNNING,
    "shutting-down": InstanceState.TERMINATING,
    "stopping": InstanceState.STOPPED,
    "stopped": InstanceState.STOPPED,
    "terminated": InstanceState.TERMINATED,
}
GROUP_TAG: Final = "aws:autoscaling:groupName"  # AWS puts it on the members of an auto-scaling group
# EC2 takes 200 values in a filter and answers with at most 1000 instances a page.
_FILTER_VALUES: Final = 200
_PAGE: Final = 1000


def listed(aws: Aws, tags: Mapping[str, str]) -> Iterator[Mapping[str, Any]]:
    """All instances with these tags that a launch of Foreslice started, as EC2 describes them.

    The cluster's tag alone does not suffice: groups propagate their tags to machines that Foreslice did not request.
    """
    filters = [{"Name": f"tag:{key}", "Values": [value]} for key, value in sorted(tags.items())]
    yield from (found for found in _described(aws, filters) if owned(tags_of(found)))


def owned(tags: Mapping[str, str]) -> bool:
    """True if a launch wrote these tags: only launches write the launch token, and no group has it as a tag."""
    return bool(tags.get(labels.LAUNCH_TOKEN))


def named(aws: Aws, ids: Sequence[str]) -> Iterator[Mapping[str, Any]]:
    """The instances with these ids, as far as EC2 shows them. A filter, because naming an unknown id is an error."""
    for start in range(0, len(ids), _FILTER_VALUES):
        chunk = list(ids[start : start + _FILTER_VALUES])
        yield from _described(aws, [{"Name": "instance-id", "Values": chunk}])


def looked_up(aws: Aws, provider_ids: Sequence[str]) -> Mapping[str, Instance]:
    """The instances that EC2 knows, by provider id. They are read by id, because a filter reads a list that lags, and
    an instance that is missing there may exist. An instance without the tags of a launch is returned without tags."""
    asked = {provider_id.rpartition("/")[2]: provider_id for provider_id in provider_ids}
    ids, found = list(asked), dict[str, Instance]()
    for start in range(0, len(ids), _FILTER_VALUES):
        for one in _by_id(aws, ids[start : start + _FILTER_VALUES]):
            with understood("DescribeInstances"):
                seen = instance_of(one)
                found[asked[seen.id]] = seen if owned(tags_of(one)) else replace(seen, tags=EMPTY)
    return found


def _by_id(aws: Aws, ids: Sequence[str]) -> Iterator[Mapping[str, Any]]:
    """Reads instances by id. EC2 refuses the whole call for unknown ids and names them; if it does not, the ids are
    halved until the unknown ones are found."""
    if not ids:
        return
    try:
        with translated("DescribeInstances"):
            answer = aws.ec2.describe_instances(InstanceIds=list(ids))
    except GoneError as error:
        unknown = [machine for machine in ids if machine in error.message]
        if unknown:
            yield from _by_id(aws, [machine for machine in ids if machine not in unknown])
        elif len(ids) > 1:
            yield from _by_id(aws, ids[: len(ids) // 2])
            yield from _by_id(aws, ids[len(ids) // 2 :])
        return
    for reservation in answer.get("Reservations", ()):
        yield from reservation.get("Instances", ())


def instance_of(found: Mapping[str, Any], *, node: str = "", reclaim_at: datetime | None = None) -> Instance:
    """An instance as EC2 describes it. Tags that AWS itself sets are left out."""
    tags = tags_of(found)
    zone = found["Placement"]["AvailabilityZone"]
    reason = found.get("StateReason") or {}
    return Instance(
        id=found["InstanceId"],
        provider_id=provider_id(zone, found["InstanceId"]),
        offering=_offering(found, zone, tags),
        state=state_of(found) or InstanceState.RUNNING,
        launched_at=found["LaunchTime"],
        tags=FrozenMap({key: value for key, value in tags.items() if not key.startswith("aws:")}),
        node=node,
        reclaim_at=reclaim_at,
        message=reason.get("Message", "") or found.get("StateTransitionReason", ""),
    )


def state_of(found: Mapping[str, Any]) -> InstanceState | None:
    """The state of an instance; None for a state that is missing or unknown."""
    return STATES.get((found.get("State") or {}).get("Name", ""))


def provider_id(zone: str, instance: str) -> str:
    """The spec.providerID that the AWS cloud controller writes for an instance."""
    return f"aws:///{zone}/{instance}"


def tags_of(found: Mapping[str, Any]) -> dict[str, str]:
    """The tags of any EC2 resource, also of one that Foreslice did not create."""
    return {tag["Key"]: tag.get("Value") or "" for tag in found.get("Tags") or () if tag.get("Key")}


def _described(aws: Aws, filters: list[dict[str, Any]]) -> Iterator[Mapping[str, Any]]:
    # Paging is not size alone: a request with neither page size nor ids has the smallest rate bucket.
    pages = aws.ec2.get_paginator("describe_instances").paginate(Filters=filters, PaginationConfig={"PageSize": _PAGE})
    with translated("DescribeInstances"):
        for page in pages:
            for reservation in page.get("Reservations", ()):
                yield from reservation.get("Instances", ())


def _offering(found: Mapping[str, Any], zone: str, tags: Mapping[str, str]) -> OfferingKey:
    """The offering that was obtained. An on-demand machine in an open reservation keeps the offering of its request."""
    reservation = found.get("CapacityReservationId", "")
    asked = tags.get(labels.CAPACITY_TYPE, "")
    match found.get("InstanceLifecycle", ""):
        case "spot":
            capacity_type = CapacityType.SPOT
        case "capacity-block":
            capacity_type = CapacityType.CAPACITY_BLOCK
        case "interruptible-capacity-reservation":
            capacity_type = CapacityType.RESERVED
        case _ if reservation and asked in ("", CapacityType.RESERVED):
            capacity_type = CapacityType.RESERVED
        case _ if reservation and asked == CapacityType.CAPACITY_BLOCK:
            capacity_type = CapacityType.CAPACITY_BLOCK  # a CapacityBlock that names an on-demand reservation
        case _:
            capacity_type = CapacityType.ON_DEMAND
    held = reservation if capacity_type.needs_reservation else ""
    return OfferingKey(found["InstanceType"], zone, capacity_type, held)

"""Members of groups: EC2's answers about those that it started, and their termination.

Only machines that a launch of this cluster started are terminated, and each id is returned exactly once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from instance_catalog.frozen_map import FrozenMap
from providers.aws.describe import GROUP_TAG, named, owned, state_of, tags_of
from providers.aws.errors import of_code
from providers.aws.launch import names_nothing, unnamed
from providers.aws.session import Aws
from providers.contract import TAG_CLUSTER, InstanceState, OfferingFailure, OfferingKey, TerminateAnswer
from providers.errors import BusyError, GoneError, PermissionDeniedError, ProviderError, TemplateError, understood


def started(answer: Mapping[str, Any], least: int) -> dict[str, str]:
    """The machines that LaunchInstances started, by id, with their zone ("" if the answer has none).

    Raises AmbiguousError for an answer that names fewer than `least` machines and no error: others may run.
    """
    found = {
        key: str(row.get("AvailabilityZone", ""))
        for row in answer.get("Instances", ())
        for key in row.get("InstanceIds", ())
    }
    if names_nothing(answer) or (len(found) < least and not answer.get("Errors")):
        raise unnamed("LaunchInstances")
    return found


def failures_of(answer: Mapping[str, Any], offering: OfferingKey) -> tuple[OfferingFailure, ...]:
    """The reason why LaunchInstances did not start more: the first error of its answer."""
    rows = answer.get("Errors", ())
    return tuple(
        OfferingFailure(offering, of_code("LaunchInstances", row.get("ErrorCode", ""), row.get("ErrorMessage", "")))
        for row in rows[:1]
    )


def is_alive(found: Mapping[str, Any]) -> bool:
    """True if a described machine is neither terminated nor terminating."""
    return state_of(found) in (InstanceState.PENDING, InstanceState.RUNNING, None)


def zone_of(found: Mapping[str, Any] | None) -> str:
    """The zone of a described machine; "" if it is not shown."""
    return str(found["Placement"]["AvailabilityZone"]) if found else ""


def end_members(aws: Aws, cluster: str, ids: Sequence[str], end: Callable[[str, str], None]) -> TerminateAnswer:
    """Ends members of groups by `end(machine, group)`, which raises GoneError for a machine that is no member any
    more."""
    going, gone, failures = [], [], dict[str, ProviderError]()
    wanted = tuple(dict.fromkeys(ids))
    with understood("DescribeInstances"):
        found = {one["InstanceId"]: one for one in named(aws, wanted)}
    for machine in wanted:
        state = state_of(found[machine]) if machine in found else InstanceState.TERMINATED
        tags = tags_of(found[machine]) if machine in found else {}
        if state is InstanceState.TERMINATED:
            gone.append(machine)
        elif state is InstanceState.TERMINATING:
            going.append(machine)
        elif tags.get(TAG_CLUSTER) != cluster or not owned(tags) or not tags.get(GROUP_TAG):
            failures[machine] = PermissionDeniedError(f"{machine} was not launched for this cluster")
        else:
            try:
                end(machine, tags[GROUP_TAG])
                going.append(machine)
            except GoneError:
                gone.append(machine)
            except (TemplateError, BusyError) as error:
                failures[machine] = error
    return TerminateAnswer(tuple(going), tuple(gone), FrozenMap(failures))

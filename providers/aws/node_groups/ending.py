"""Ending members of groups: only those that a launch of this cluster started, and each id comes back exactly once."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from instance_catalog.frozen_map import FrozenMap
from providers.aws.describe import GROUP_TAG, named, owned, state_of, tags_of, understood
from providers.aws.session import Aws
from providers.contract import TAG_CLUSTER, InstanceState, TerminateAnswer
from providers.errors import BusyError, GoneError, PermissionDeniedError, ProviderError, TemplateError


def end_members(aws: Aws, cluster: str, ids: Sequence[str], end: Callable[[str, str], None]) -> TerminateAnswer:
    """End members of groups by `end(machine, group)`, which raises GoneError for what is none any more."""
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

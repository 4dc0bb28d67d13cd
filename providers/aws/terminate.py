"""Ending machines: only those that carry the cluster's tag, and each id comes back exactly once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from instance_catalog.frozen_map import FrozenMap
from providers.aws.describe import STATES, named, tags_of
from providers.aws.errors import translated
from providers.aws.session import Aws
from providers.contract import TAG_CLUSTER, InstanceState, TerminateAnswer
from providers.errors import GoneError, PermissionDeniedError, ProviderError

# EC2's advice for one call, and the size of a page.
_CHUNK: Final = 1000


def terminate(aws: Aws, cluster: str, ids: Sequence[str]) -> TerminateAnswer:
    """Terminate machines of a cluster. One unknown id would make EC2 refuse them all, so they are looked up first."""
    wanted = tuple(dict.fromkeys(ids))
    found = {instance["InstanceId"]: instance for instance in named(aws, wanted)}
    going: list[str] = []
    gone: list[str] = []
    asked: list[str] = []
    failures: dict[str, ProviderError] = {}
    for machine in wanted:
        state = STATES.get(found[machine]["State"]["Name"]) if machine in found else InstanceState.TERMINATED
        if state is InstanceState.TERMINATED:
            gone.append(machine)
        elif tags_of(found[machine]).get(TAG_CLUSTER) != cluster:
            failures[machine] = _foreign(machine)
        elif found[machine]["State"]["Name"] == "shutting-down":
            going.append(machine)
        else:
            asked.append(machine)
    for start in range(0, len(asked), _CHUNK):
        _ask(aws, asked[start : start + _CHUNK], going, gone)
    return TerminateAnswer(tuple(going), tuple(gone), FrozenMap(failures))


def _ask(aws: Aws, ids: list[str], going: list[str], gone: list[str]) -> None:
    try:
        with translated("TerminateInstances"):
            aws.ec2.terminate_instances(InstanceIds=ids)
        going.extend(ids)
    except GoneError:
        # One of them ended since it was described; EC2 refused them all.
        if len(ids) == 1:
            gone.extend(ids)
            return
        for machine in ids:
            _ask(aws, [machine], going, gone)


def _foreign(machine: str) -> PermissionDeniedError:
    step = "end it by hand if it is not needed: it lacks the tag of this cluster"
    return PermissionDeniedError(f"{machine} was not launched for this cluster", next_step=step)

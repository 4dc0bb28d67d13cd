"""Ends machines: only those that a launch of this cluster started; each id is returned exactly once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from instance_catalog.frozen_map import FrozenMap
from providers.aws.describe import named, owned, state_of, tags_of
from providers.aws.errors import translated
from providers.aws.session import Aws
from providers.contract import TAG_CLUSTER, InstanceState, TerminateAnswer
from providers.errors import GoneError, PermissionDeniedError, ProviderError, RefusedError

# EC2's advice for one call, and the size of a page.
_CHUNK: Final = 1000


def terminate(aws: Aws, cluster: str, ids: Sequence[str]) -> TerminateAnswer:
    """Terminate machines of a cluster. One unknown id would make EC2 refuse them all, so they are looked up first."""
    wanted = tuple(dict.fromkeys(ids))
    found = {instance.get("InstanceId", ""): instance for instance in named(aws, wanted)}
    going: list[str] = []
    gone: list[str] = []
    asked: list[str] = []
    failures: dict[str, ProviderError] = {}
    for machine in wanted:
        state = state_of(found[machine]) if machine in found else InstanceState.TERMINATED
        if state is InstanceState.TERMINATED:
            gone.append(machine)
        elif tags_of(found[machine]).get(TAG_CLUSTER) != cluster or not owned(tags_of(found[machine])):
            failures[machine] = _foreign(machine)
        elif state is InstanceState.TERMINATING:
            going.append(machine)
        else:
            asked.append(machine)
    for start in range(0, len(asked), _CHUNK):
        _ask(aws, asked[start : start + _CHUNK], going, gone, failures)
    return TerminateAnswer(tuple(going), tuple(gone), FrozenMap(failures))


def _ask(aws: Aws, ids: Sequence[str], going: list[str], gone: list[str], failures: dict[str, ProviderError]) -> None:
    """EC2 refuses all machines of a call for one of them: it has ended since it was described, or is protected against
    termination. Halves find that one in few calls, and the others end."""
    try:
        with translated("TerminateInstances"):
            aws.ec2.terminate_instances(InstanceIds=list(ids))
        going.extend(ids)
    except (GoneError, RefusedError) as error:
        if isinstance(error, PermissionDeniedError):
            raise
        if len(ids) > 1:
            middle = len(ids) // 2
            _ask(aws, ids[:middle], going, gone, failures)
            _ask(aws, ids[middle:], going, gone, failures)
        elif isinstance(error, GoneError):
            gone.extend(ids)
        else:
            failures[ids[0]] = error


def _foreign(machine: str) -> PermissionDeniedError:
    step = "end it by hand if it is not needed: it lacks the tags of a launch of this cluster"
    return PermissionDeniedError(f"{machine} was not launched for this cluster", next_step=step)

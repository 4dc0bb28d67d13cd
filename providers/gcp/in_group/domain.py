"""A group that is one NVLink domain: all its machines are in one sub-block, whose size limits the group.

Google refuses more machines, and does not document the error. So Foreslice requests only as many machines as the group
has room for. Machines that must start together are requested in a group with room for all of them, so they are in one
domain. Source: AI Hypercomputer documentation, managed instance groups of A4X and A4X Max.
"""

from __future__ import annotations

from typing import Final

from providers.contract import LaunchRequest
from providers.errors import ShortageError
from providers.gcp.node_template.groups import Group

DOMAIN_IN_USE: Final = "DomainInUse"


def room(group: Group, wanted: int) -> int:
    """The number of the wanted machines that fit in the group. Its `size` includes machines that it is creating."""
    return min(wanted, max(0, group.domain - group.size)) if group.domain else wanted


def too_small(request: LaunchRequest, group: Group) -> ShortageError | None:
    """The reason why the launch does not fit in the group; None if all machines that must start together fit."""
    fits, together = room(group, len(request.nodes)), request.minimum
    if fits >= together:
        return None
    text = f"group {group.ref} is one NVLink domain of at most {group.domain} machines"
    if together > group.domain:
        step = f"ask for at most {group.domain} machines at once: no NVLink domain of {group.instance_type} has more"
        return ShortageError(f"{text}, and {together} must start together", code="DomainTooSmall", next_step=step)
    step = "Nothing to do, or make another node pool: each is one NVLink domain. gcloud container node-pools create"
    return ShortageError(
        f"{text}: it has {group.size}, and {together} more do not fit", code=DOMAIN_IN_USE, next_step=step
    )

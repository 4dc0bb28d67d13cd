"""A resize request of a group in its life: all machines at once or none, when there is capacity for all of them.

While it waits, its names are members of the group already, in the action CREATING, and its target size counts them.
Source: Compute Engine documentation, about resize requests in a MIG, read 2026-11-27.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from tests.fakes.gce.state import Error, Group, Project

# Errors that no later attempt mends.
_FATAL: Final = frozenset({"INVALID_FIELD_VALUE", "INVALID_USAGE"})


@dataclass
class Resize:
    """A resize request."""

    name: str
    names: tuple[str, ...]
    created: datetime
    accepted: datetime
    tries_at: datetime
    lasts: timedelta | None = None  # how long its machines run
    state: str = "CREATING"
    error: Error | None = None  # of its last attempt, or what it failed with

    @property
    def held(self) -> bool:
        """Whether it may still start machines."""
        return self.state in ("CREATING", "ACCEPTED")


def advance(project: Project, group: Group, asked: Resize) -> None:
    """Let happen what is due by now."""
    now = project.clock.now()
    if asked.state == "CREATING" and now >= asked.accepted:
        asked.state = "ACCEPTED"
    if asked.state != "ACCEPTED" or now < asked.tries_at:
        return
    come = project.parts.pop(group.name, None)
    asked.error = project.lacks(group, now, len(asked.names)) if come is None else None
    if asked.error is not None:
        asked.tries_at = now + project.behaviour.retry
        asked.state = "FAILED" if asked.error[0] in _FATAL else "ACCEPTED"
        for name in asked.names if asked.state == "FAILED" else ():
            group.members.pop(name, None)
        return
    for index, name in enumerate(asked.names):
        project.member(group, name)
        if come is None or index < come:
            project.start(group, name, now, lasts=asked.lasts)
        else:
            project.fails(group, name, now)
    asked.state = "SUCCEEDED"

"""The Kubernetes API as a controller sees it that dies, and whose writes get lost, at chosen moments."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, TypeVar

from autoscaler.cluster.api import ConflictError, InvalidError, Object, UnavailableError
from autoscaler.cluster.resources import EVENTS, LAUNCH_BATCHES, Resource
from tests.crash.life import CrashError, Dying

T = TypeVar("T")
# By its definition.
LONGEST_BATCH: Final = 63


class Mishap(Enum):
    """What happens to a write."""

    DIES_BEFORE = "dies before it"
    DIES_AFTER = "dies after it"
    CONFLICT = "somebody else was faster"
    LOST = "the request is lost"
    UNANSWERED = "the answer is lost"


@dataclass
class Shaky(Dying):
    """`mishaps` wait for writes: (how many go well before, what then). `batches` remembers the nodes of each batch."""

    mishaps: deque[tuple[int, Mishap]] = field(default_factory=deque)
    batches: dict[str, int] = field(default_factory=dict)

    def create(self, resource: Resource, manifest: Object) -> Object:
        if resource == LAUNCH_BATCHES:
            if len(manifest["metadata"]["name"]) > LONGEST_BATCH:
                name = manifest["metadata"]["name"]
                raise InvalidError(f"LaunchBatch {name}: its name is too long", next_step="take a shorter one")
            self.batches[manifest["metadata"]["name"]] = len(manifest["spec"]["nodes"])
        return super().create(resource, manifest)

    def _write(self, verb: str, resource: Resource, write: Callable[[], T], name: str = "", what: str = "") -> T:
        if resource == EVENTS or not self.mishaps:
            return write()
        step = f"{verb} {resource.kind} {name} {what}".rstrip()
        left, mishap = self.mishaps.popleft()
        if left:
            self.mishaps.appendleft((left - 1, mishap))
            return write()
        if mishap is Mishap.DIES_BEFORE:
            raise CrashError(step)
        if mishap is Mishap.CONFLICT:
            raise ConflictError(step)
        if mishap is Mishap.LOST:
            raise UnavailableError(step)
        write()
        if mishap is Mishap.DIES_AFTER:
            raise CrashError(step)
        raise UnavailableError(step)

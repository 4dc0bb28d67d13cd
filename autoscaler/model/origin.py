"""The source of an object, for messages. Never part of equality."""

from __future__ import annotations

from instance_catalog.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Origin:
    """A place in a manifest (`path` as the user gave it, 1-based `line`), or the live cluster if path is empty."""

    path: str = ""
    line: int = 0
    # For pods expanded from a workload: "Job default/train".
    owner: str = ""

    def __str__(self) -> str:
        return f"{self.path}:{self.line}" if self.path else "cluster"


CLUSTER = Origin()

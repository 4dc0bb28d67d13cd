"""Writing to the very object that was seen: names of Nodes and pods come again."""

from __future__ import annotations

from autoscaler.model.node import Node
from autoscaler.model.pod import Pod


def uid_of(seen: Node | Pod) -> dict[str, str]:
    """For the metadata of a patch: the API server answers 409 Conflict when another object has the name by now."""
    return {"uid": seen.uid} if seen.uid else {}

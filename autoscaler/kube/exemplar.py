"""Objects that Foreslice shows to Cluster Autoscaler alone: a Node of no machine, with its ResourceSlices."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any

from instance_catalog.kubernetes import labels


def is_exemplar(raw: object) -> bool:
    """Whether an object is such a Node, or one of its slices."""
    metadata = raw.get("metadata") if isinstance(raw, Mapping) else None
    found = metadata.get("labels") if isinstance(metadata, Mapping) else None
    return isinstance(found, Mapping) and labels.EXEMPLAR in found


def unless_exemplar(parse: Callable[..., Any]) -> Callable[..., Any]:
    """Leaves them out: they are no capacity, and nothing is to be planned on them."""

    @wraps(parse)
    def read(raw: object, *rest: Any, **origin: Any) -> Any:
        return None if is_exemplar(raw) else parse(raw, *rest, **origin)

    return read

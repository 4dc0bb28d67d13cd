"""Finalizers: ours is put on an object or taken off, and those of others stay as they are."""

from __future__ import annotations

from autoscaler.cluster.api import KubernetesApi, Object
from autoscaler.cluster.resources import Resource


def set_finalizer(api: KubernetesApi, resource: Resource, name: str, finalizer: str, *, held: bool) -> Object:
    """Put `finalizer` on the object or take it off; the object as it is then.

    A merge patch replaces the whole list, so the object is read first and the patch is bound to what was read. Raises
    NotFoundError, and ConflictError when another client wrote the object in between.
    """
    found = api.get(resource, name)
    metadata = found["metadata"]
    before = metadata.get("finalizers") or []
    others = [one for one in before if one != finalizer]
    wanted = [*others, finalizer] if held else others
    if wanted == before:
        return found
    patch = {"metadata": {"finalizers": wanted or None, "resourceVersion": metadata["resourceVersion"]}}
    return api.patch(resource, name, patch)

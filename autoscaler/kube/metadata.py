"""The parts of ObjectMeta that affect placement, and the mark of objects that exist only for Cluster Autoscaler."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any

from autoscaler.kube.fields import Fields
from instance_catalog.dataclass import dataclass, field
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes import labels

_IGNORED = ("managedFields", "selfLink", "deletionGracePeriodSeconds")


@dataclass(frozen=True, slots=True)
class Owner:
    """The controlling owner reference."""

    api_version: str
    kind: str
    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class Metadata:
    """`namespace` is "default" for objects without one. `created` is in seconds since the epoch, 0 if unknown.

    `generation` counts the versions of the spec; 0 if the object was never in a cluster.
    """

    name: str
    namespace: str = "default"
    uid: str = ""
    labels: FrozenMap[str, str] = field(default_factory=FrozenMap)
    annotations: FrozenMap[str, str] = field(default_factory=FrozenMap)
    created: float = 0.0
    generation: int = 0
    resource_version: str = ""
    deleting: bool = False
    finalizers: tuple[str, ...] = ()
    controller: Owner | None = None


def parse_metadata(fields: Fields) -> Metadata:
    """The metadata of the object `fields`, which must have a name (or generateName, which then replaces it)."""
    metadata = fields.child("metadata")
    metadata.ignore(*_IGNORED)
    prefix = metadata.text("generateName")
    name = metadata.text("name") or prefix.removesuffix("-")
    if not name:
        metadata.error("name", "is required", "give the object a metadata.name")
    version = metadata.raw("resourceVersion")
    found = Metadata(
        name=name,
        namespace=metadata.text("namespace") or "default",
        uid=metadata.text("uid"),
        labels=metadata.text_map("labels"),
        annotations=metadata.text_map("annotations"),
        created=metadata.epoch("creationTimestamp") or 0.0,
        generation=metadata.integer("generation"),
        resource_version=version if isinstance(version, str) else "",
        deleting=metadata.optional_text("deletionTimestamp") is not None,
        finalizers=metadata.texts("finalizers"),
        controller=_controller(metadata),
    )
    metadata.unread()
    return found


def _controller(metadata: Fields) -> Owner | None:
    found = None
    for reference in metadata.children("ownerReferences"):
        reference.ignore("blockOwnerDeletion")
        owner = Owner(
            reference.text("apiVersion"), reference.text("kind"), reference.text("name"), reference.text("uid")
        )
        if reference.flag("controller") and found is None:
            found = owner
        reference.unread()
    return found


def header(raw: object) -> tuple[str, str]:
    """(apiVersion, kind) of any JSON value, empty strings if it has none."""
    if not isinstance(raw, dict):
        return "", ""
    version, kind = raw.get("apiVersion"), raw.get("kind")
    return version if isinstance(version, str) else "", kind if isinstance(kind, str) else ""


def is_exemplar(raw: object) -> bool:
    """True for a Node without a machine that exists only for Cluster Autoscaler, and for its ResourceSlices."""
    metadata = raw.get("metadata") if isinstance(raw, Mapping) else None
    found = metadata.get("labels") if isinstance(metadata, Mapping) else None
    return isinstance(found, Mapping) and labels.EXEMPLAR in found


def unless_exemplar(parse: Callable[..., Any]) -> Callable[..., Any]:
    """A parser that leaves such objects out: they are no capacity, and no pod is planned on them."""

    @wraps(parse)
    def read(raw: object, *rest: Any, **origin: Any) -> Any:
        return None if is_exemplar(raw) else parse(raw, *rest, **origin)

    return read

"""Common parts of all custom objects: metadata, spec and status, read and written the same way."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeVar

from autoscaler.errors import BadInputError
from autoscaler.kube.custom.reading import read
from autoscaler.kube.custom.schema import API_VERSION, NAME_LENGTH, ApiModel
from autoscaler.kube.fields import Fields
from autoscaler.kube.metadata import Metadata, parse_metadata
from autoscaler.kube.problem import Problems
from instance_catalog.diagnostic import Severity

M = TypeVar("M", bound=ApiModel)
S = TypeVar("S", bound=ApiModel)


def read_spec(model: type[M], raw: object, problems: Problems | None) -> tuple[Metadata, M | None]:
    """The metadata of `raw` and its spec as `model`; None if it cannot be used, with the reasons in `problems`.

    `problems` belongs to this one object: any error in it makes the object unusable.
    """
    found = Problems() if problems is None else problems
    fields = Fields(raw, found)
    fields.ignore("apiVersion", "kind", "status")
    metadata = parse_metadata(fields)
    if len(metadata.name) > NAME_LENGTH:
        message = f"must have {NAME_LENGTH} or fewer characters: it becomes a label"
        found.error(("metadata", "name"), message, "choose a shorter name")
    spec = read(model, fields.raw("spec"), found, path=("spec",))
    fields.unread()
    return metadata, None if found.errors else spec


def read_status(model: type[M], raw: object, problems: Problems | None) -> M | None:
    """The status of `raw` as `model`, an empty one if absent; None if it cannot be read."""
    found = Problems() if problems is None else problems
    status = raw.get("status") if isinstance(raw, Mapping) else None
    return read(model, status, found, path=("status",))


def custom_object(
    kind: str,
    name: str,
    *,
    spec: ApiModel,
    status: ApiModel | None = None,
    uid: str = "",
    version: str = "",
    labels: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """A manifest. `version` is the resourceVersion that guards a write; empty fields of metadata are left out."""
    metadata = {"name": name, "uid": uid, "resourceVersion": version, "labels": dict(labels or {})}
    manifest = {
        "apiVersion": API_VERSION,
        "kind": kind,
        "metadata": {key: value for key, value in metadata.items() if value},
        "spec": spec.manifest(),
    }
    return manifest if status is None else {**manifest, "status": status.manifest()}


RESTORE: Final = (
    "It was written by hand or by another version of Foreslice. Restore it from a backup, or delete it once its "
    "machines are gone."
)


def read_own(spec: type[M], status: type[S], raw: object, kind: str) -> tuple[Metadata, M, S]:
    """An object that only Foreslice writes. Raises BadInputError if it cannot be read: callers skip it."""
    problems = Problems()
    metadata, found_spec = read_spec(spec, raw, problems)
    found_status = read_status(status, raw, problems)
    if found_spec is None or found_status is None:
        first = next(problem for problem in problems if problem.severity is Severity.ERROR)
        raise BadInputError(
            f"{kind} {metadata.name!r} cannot be read: {first.field} {first.message}",
            next_step=RESTORE,
        )
    return metadata, found_spec, found_status

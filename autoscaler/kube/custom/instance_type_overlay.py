"""InstanceTypeOverlay: facts about an instance type that correct the catalog in a cluster."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final

from pydantic import Field, JsonValue, WithJsonSchema

from autoscaler.kube.custom.objects import read_spec
from autoscaler.kube.custom.schema import NO_ENTRIES, ApiModel, Conditions, Name, Rule, Text, TimeText
from autoscaler.kube.problem import Problems
from instance_catalog.files.layers import Corrections, Layer, content_layer, unreadable

OVERLAY_LAYER: Final = "InstanceTypeOverlay "  # the prefix of the names of their layers


class InstanceTypeOverlaySpec(ApiModel):
    """Facts that complete or replace those of the catalog, field by field."""

    cloud: Name
    """aws, gcp, ..."""
    instance_type: Text
    entry: Annotated[
        dict[str, JsonValue], WithJsonSchema({"type": "object", "x-kubernetes-preserve-unknown-fields": True})
    ] = NO_ENTRIES
    """A partial catalog entry, in the form of the catalog's files; checked when it is merged."""
    source: Text
    """The source of the facts: a support case, a measurement, a contract."""
    priority: Annotated[int, Field(ge=-1000, le=1000)] = 0
    """Overlays of higher priority override others; of equal ones the later name wins."""
    reason: Annotated[str, Field(max_length=1024)] = ""
    """The purpose of the overlay; shown beside every value of it."""
    expires_at: TimeText | None = None
    """From then on the catalog's values apply again. Absent: until the overlay is deleted."""

    RULES = (
        Rule(
            "self.cloud == oldSelf.cloud && self.instanceType == oldSelf.instanceType",
            "cloud and instanceType cannot change: another type is another InstanceTypeOverlay",
        ),
    )

    def catalog_file(self) -> dict[str, Any]:
        """The content of a catalog file with the same facts."""
        return {
            "priority": self.priority,
            "reason": f"{self.reason} ({self.source})" if self.reason else self.source,
            **({"expires": self.expires_at} if self.expires_at is not None else {}),
            "cloud": self.cloud,
            "types": [{**self.entry, "name": self.instance_type}],
        }


class InstanceTypeOverlayStatus(ApiModel):
    """The state of the overlay."""

    observed_generation: Annotated[int, Field(ge=0)] = 0
    conditions: Conditions = ()


def overlay_layer(raw: Mapping[str, Any]) -> Layer:
    """The layer for an InstanceTypeOverlay of a cluster. Never raises: defects are in the layer's problems."""
    meta = raw.get("metadata")
    name = f"{OVERLAY_LAYER}{meta.get('name', '') if isinstance(meta, Mapping) else ''}"
    problems = Problems()
    spec = parse_instance_type_overlay(raw, problems)
    if spec is None:
        found = "; ".join(f"{problem.field}: {problem.message}" for problem in problems)
        return unreadable(name, found=found, allowed="what `kubectl explain itoverlay.spec` says")
    return content_layer(Corrections(name, 1, spec.catalog_file()))


def parse_instance_type_overlay(raw: object, problems: Problems | None = None) -> InstanceTypeOverlaySpec | None:
    """The spec of an InstanceTypeOverlay; None if it cannot be used."""
    return read_spec(InstanceTypeOverlaySpec, raw, problems)[1]

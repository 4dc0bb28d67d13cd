"""InstanceTypeOverlay: what a cluster knows better than the catalog about an instance type."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, JsonValue, WithJsonSchema

from autoscaler.kube.custom.objects import read_spec
from autoscaler.kube.custom.schema import NO_ENTRIES, ApiModel, Conditions, Name, Rule, Text, TimeText
from autoscaler.kube.problem import Problems


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
    """Where the facts come from: a support case, a measurement, a contract."""
    expires_at: TimeText | None = None
    """From then on the catalog counts again. Absent: until it is deleted."""

    RULES = (
        Rule(
            "self.cloud == oldSelf.cloud && self.instanceType == oldSelf.instanceType",
            "cloud and instanceType cannot change: another type is another InstanceTypeOverlay",
        ),
    )

    def catalog_entry(self) -> dict[str, Any]:
        """The entry as it would stand in a catalog file, with its name."""
        return {**self.entry, "name": self.instance_type}


class InstanceTypeOverlayStatus(ApiModel):
    """Whether it is in force."""

    observed_generation: Annotated[int, Field(ge=0)] = 0
    conditions: Conditions = ()
    state: Literal["Applied", "Refused", "Expired"] | None = None


def parse_instance_type_overlay(raw: object, problems: Problems | None = None) -> InstanceTypeOverlaySpec | None:
    """The spec of an InstanceTypeOverlay; None when it cannot be used."""
    return read_spec(InstanceTypeOverlaySpec, raw, problems)[1]

"""SimulatedNodeTemplate and KwokNodeTemplate: the platform fields of the providers that rent no machines."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import Field

from autoscaler.kube.custom.objects import read_spec
from autoscaler.kube.custom.schema import (
    NO_ENTRIES,
    ApiModel,
    Conditions,
    DurationText,
    Items,
    Labels,
    LongText,
    TaintSpec,
)
from autoscaler.kube.problem import Problems
from instance_catalog.kubernetes.labels import KWOK_NODE

_OF_KWOK: Final = {KWOK_NODE: "fake"}


class SimulatedNodeTemplateSpec(ApiModel):
    """The behaviour of machines of the simulated cloud."""

    boot: DurationText = "40s"
    """The time from launch to a registered Node."""
    publish: DurationText = "10s"
    """The time from a registered Node to complete ResourceSlices."""
    shutdown: DurationText = "20s"
    broken: LongText = ""
    """Refuse every launch with this message, to simulate a wrong template."""


class KwokNodeTemplateSpec(ApiModel):
    """The nodes that are created for KWOK."""

    labels: Labels = NO_ENTRIES
    """Labels in addition to the pool's."""
    annotations: Annotated[dict[str, LongText], Field(max_length=64)] = _OF_KWOK
    """The annotations by which KWOK selects its nodes; the default is that of its installation guide."""
    taints: Annotated[Items[TaintSpec], Field(max_length=50)] = ()
    """Taints in addition to the pool's."""
    publish: DurationText = "0s"
    """The time from the Node's creation to its ResourceSlices."""


class NodeTemplateStatus(ApiModel):
    """The state of the template: condition Ready is True if it can be used."""

    observed_generation: Annotated[int, Field(ge=0)] = 0
    conditions: Conditions = ()


def parse_simulated_node_template(raw: object, problems: Problems | None = None) -> SimulatedNodeTemplateSpec | None:
    """The spec of a SimulatedNodeTemplate; None if it cannot be used."""
    return read_spec(SimulatedNodeTemplateSpec, raw, problems)[1]


def parse_kwok_node_template(raw: object, problems: Problems | None = None) -> KwokNodeTemplateSpec | None:
    """The spec of a KwokNodeTemplate; None if it cannot be used."""
    return read_spec(KwokNodeTemplateSpec, raw, problems)[1]

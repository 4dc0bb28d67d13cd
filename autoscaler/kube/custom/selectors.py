"""Label selectors in Foreslice's kinds, in the form of metav1.LabelSelector."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints

from autoscaler.kube.custom.schema import NO_ENTRIES, ApiModel, Items, Rule, Text
from autoscaler.model.labels import LabelSelector
from instance_catalog.kubernetes.node_selector import Requirement


class SelectorRequirement(ApiModel):
    """metav1.LabelSelectorRequirement."""

    key: Text
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist"]
    values: Annotated[Items[Annotated[str, StringConstraints(max_length=63)]], Field(max_length=100)] = ()

    RULES = (
        Rule(
            "self.operator in ['In', 'NotIn'] ? size(self.values) > 0 : size(self.values) == 0",
            "In and NotIn need values, Exists and DoesNotExist take none",
            lambda self: (self.operator in ("In", "NotIn")) == bool(self.values),
            field="values",
        ),
    )


class SelectorSpec(ApiModel):
    """metav1.LabelSelector; an empty one selects everything."""

    match_labels: Annotated[dict[str, Annotated[str, StringConstraints(max_length=63)]], Field(max_length=64)] = (
        NO_ENTRIES
    )
    match_expressions: Annotated[Items[SelectorRequirement], Field(max_length=50)] = ()

    def model(self) -> LabelSelector:
        labels = tuple(Requirement(key, "In", (value,)) for key, value in self.match_labels.items())
        return LabelSelector(labels + tuple(Requirement(r.key, r.operator, r.values) for r in self.match_expressions))


def selector_json(selector: LabelSelector | None) -> dict[str, Any] | None:
    """The selector as JSON, all in matchExpressions; None if there is none."""
    if selector is None:
        return None
    return {
        "matchExpressions": [
            {"key": r.key, "operator": r.operator, "values": list(r.values)} for r in selector.requirements
        ]
    }

"""The scope of a CapacityPool: whose nodes it opens."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from autoscaler.kube.custom.schema import ApiModel, Items, Rule, Text
from autoscaler.kube.custom.selectors import SelectorSpec
from autoscaler.model.capacity import KNOWN_SCHEDULERS, PodScope, Scope


class ScopeSpec(ApiModel):
    """Which pending pods the pool serves. Others are left to other autoscalers."""

    pods: Literal["DeviceClaims", "Selected", "All"] = "DeviceClaims"
    """DeviceClaims: pods with resource claims, or extended resources that a DeviceClass serves. Selected: pods that the
    selectors pick, with claims or without. All: every pod."""
    pod_selector: SelectorSpec | None = None
    namespace_selector: SelectorSpec | None = None
    scheduler_names: Annotated[Items[Text], Field(min_length=1, max_length=16)] = KNOWN_SCHEDULERS
    """Values of spec.schedulerName. A pod of a scheduler that does not decide like kube-scheduler may get a node that
    it is then not put on."""

    RULES = (
        Rule(
            "(self.pods == 'Selected') == (has(self.podSelector) || has(self.namespaceSelector))",
            "Selected needs podSelector or namespaceSelector, and these count for Selected only",
            lambda self: (
                (self.pods == "Selected") == (self.pod_selector is not None or self.namespace_selector is not None)
            ),
            field="pods",
        ),
    )

    def model(self) -> Scope:
        return Scope(
            PodScope(self.pods),
            self.pod_selector.model() if self.pod_selector else None,
            self.namespace_selector.model() if self.namespace_selector else None,
            self.scheduler_names,
        )

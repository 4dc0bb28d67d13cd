"""PodDisruptionBudgets: the pods that they select, and the number that may be evicted now."""

from __future__ import annotations

from autoscaler.kube.fields import Fields
from autoscaler.kube.metadata import parse_metadata
from autoscaler.kube.problem import Problems
from autoscaler.kube.selectors import parse_label_selector
from autoscaler.model.pod_disruption_budget import PodDisruptionBudget


def parse_disruption_budget(raw: object, problems: Problems | None = None) -> PodDisruptionBudget:
    """A PodDisruptionBudget. One whose controller has not observed its newest spec allows nothing, as in the Eviction
    API (pkg/registry/core/pod/storage/eviction.go, v1.36)."""
    fields = Fields(raw, problems)
    metadata = parse_metadata(fields)
    status = fields.child("status")
    current = status.integer("observedGeneration") >= metadata.generation
    return PodDisruptionBudget(
        namespace=metadata.namespace,
        name=metadata.name,
        selector=parse_label_selector(fields.child("spec").optional_child("selector")),
        allowed=status.integer("disruptionsAllowed") if current else 0,
    )

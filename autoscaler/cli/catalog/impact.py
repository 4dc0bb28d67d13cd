"""The effect of a drift on the pods of manifests, for `foreslice catalog verify --for`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from autoscaler.dra.claims.pod_claims import claims_of
from autoscaler.dra.drift import Impact, matters
from autoscaler.dra.outcome import Allocated, AllocationOutcome, FatalAllocation, UnknownAllocation
from autoscaler.errors import BadInputError
from autoscaler.manifests.load import load
from autoscaler.model.node import Node
from instance_catalog.dataclass import dataclass
from instance_catalog.drift.compare import Unified, node_names
from instance_catalog.kubernetes.profile import KubernetesProfile

COLUMNS = ("pod", "predicted", "published", "because of")
_MOST = 3


@dataclass(frozen=True, slots=True)
class PodImpact:
    """The claims of one pod, decided with the prediction and with the published slices."""

    pod: str
    impact: Impact

    def row(self) -> tuple[str, ...]:
        names = self._names()
        more = f" and {len(names) - _MOST} more" if len(names) > _MOST else ""
        return (
            self.pod,
            _outcome(self.impact.predicted),
            _outcome(self.impact.published),
            ", ".join(names[:_MOST]) + more or "-",
        )

    def data(self) -> dict[str, Any]:
        outcomes = {"predicted": _outcome(self.impact.predicted), "published": _outcome(self.impact.published)}
        return {"pod": self.pod, **outcomes, "matters": self.impact.matters, "becauseOf": self._names()}

    def _names(self) -> list[str]:
        found = (f"{d.driver} {d.field or d.aspect.value}" for d in self.impact.decisive)
        return list(dict.fromkeys(found))


def impacts_on(paths: Sequence[str], unified: Unified, profile: KubernetesProfile) -> tuple[PodImpact, ...]:
    """The effect of the differences on every pod with claims in the files. Raises BadInputError."""
    loaded = load(paths, profile=profile)
    if loaded.errors:
        raise BadInputError(loaded.error_text)
    snapshot = loaded.snapshot
    classes = {device_class.name: device_class for device_class in snapshot.classes}
    (name,) = node_names(unified.published)
    found = []
    for pod in snapshot.pods:
        claims = claims_of(pod, snapshot.claims, profile, classes)
        if isinstance(claims, tuple) and claims:
            impact = matters(unified, claims, node=Node(name), classes=snapshot.classes, profile=profile)
            found.append(PodImpact(pod.key, impact))
    if not found:
        raise BadInputError(
            f"{', '.join(paths)}: no pod with claims", next_step="give manifests of pods and of the claims they use"
        )
    return tuple(found)


def _outcome(outcome: AllocationOutcome) -> str:
    match outcome:
        case Allocated():
            return "fits"
        case UnknownAllocation():
            return "unknown"
        case FatalAllocation():
            return "error"
        case _:
            return "does not fit"

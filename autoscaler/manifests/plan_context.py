"""PlanContext (foreslice.dev/v1alpha1): what a set of manifests presupposes, so that their plan can be repeated.

It never reaches a cluster. Fields: spec.kubernetesVersion, spec.featureGates (names as in Kubernetes), spec.now.
"""

from __future__ import annotations

from datetime import datetime

from autoscaler.kube.fields import Fields
from autoscaler.kube.metadata import parse_metadata
from autoscaler.kube.problem import Problems
from instance_catalog.dataclass import dataclass, field
from instance_catalog.kubernetes.feature_gates import GATES
from instance_catalog.kubernetes.profile import REFERENCE, KubernetesProfile, UnknownVersionError, profile_for
from instance_catalog.spelling import did_you_mean


@dataclass(frozen=True, slots=True)
class PlanContext:
    """`profile` is None without a kubernetesVersion, `now` without a moment; `gates` are switches of a profile."""

    profile: KubernetesProfile | None = None
    gates: dict[str, bool] = field(default_factory=dict)
    now: datetime | None = None

    def profile_over(self, chosen: KubernetesProfile | None) -> KubernetesProfile:
        """The profile to decide with: `chosen` by the user before the one of the files, and the gates of the files."""
        return (chosen or self.profile or REFERENCE).with_gates(**self.gates)


def parse_plan_context(raw: object, problems: Problems) -> PlanContext:
    fields = Fields(raw, problems)
    parse_metadata(fields)
    fields.ignore("apiVersion", "kind")
    spec = fields.child("spec")
    version, profile = spec.text("kubernetesVersion"), None
    if version:
        try:
            profile = profile_for(version)
        except UnknownVersionError as error:
            spec.error("kubernetesVersion", str(error), "name a version from 1.34 on")
    context = PlanContext(profile, _gates(spec.child("featureGates")), spec.time("now"))
    spec.unread()
    fields.unread()
    return context


def _gates(fields: Fields) -> dict[str, bool]:
    found = {}
    for name in fields.names():
        value = fields.optional_flag(name)
        if name not in GATES:
            step = did_you_mean(name, GATES, f"the gates that matter here are {', '.join(GATES)}")
            fields.error(name, f"unknown feature gate {name!r}", step)
        elif value is not None:
            found[GATES[name]] = value
    return found

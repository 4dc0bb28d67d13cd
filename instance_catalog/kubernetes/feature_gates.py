"""Feature gates of Kubernetes in their text form, and the switches of a KubernetesProfile that they set.

An API server does not show its gates, so they are assumed: the defaults of its version, and the operator's settings.
Some can be tested if that is permitted.
"""

from __future__ import annotations

from typing import Final

from instance_catalog.kubernetes.profile import KubernetesProfile
from instance_catalog.spelling import did_you_mean

# Names as in Kubernetes → fields of Gates.
GATES: Final = {
    "DRAAdminAccess": "admin_access",
    "DRAPrioritizedList": "prioritized_list",
    "DRAPartitionableDevices": "partitionable_devices",
    "DRAConsumableCapacity": "consumable_capacity",
    "DRADeviceTaints": "device_taints",
    "DRADeviceTaintRules": "device_taint_rules",
    "DRADeviceBindingConditions": "binding_conditions",
    "DRAExtendedResource": "extended_resource",
    "DRAListTypeAttributes": "list_type_attributes",
    "DRANodeAllocatableResources": "node_allocatable_resources",
    "DRAFractionalCapacityRange": "fractional_capacity_range",
    "DRAWorkloadResourceClaims": "workload_resource_claims",
    "GenericWorkload": "generic_workload",
    "GangScheduling": "gang_scheduling",
    "NodeDeclaredFeatures": "node_declared_features",
}
# Gates have long names with common parts.
_MISSPELT: Final = 0.85
_COLLECTIVE: Final = ("AllAlpha", "AllBeta")


class FeatureGateError(ValueError):
    """Text that cannot be read as feature gates; the message has the expected form."""


def parse_feature_gates(text: str) -> dict[str, bool]:
    """Switches from the form of the --feature-gates flag: DRAListTypeAttributes=true,GenericWorkload=false.

    Gates that change nothing here are skipped, so that an API server's own flag can be given. Raises FeatureGateError.
    """
    found: dict[str, bool] = {}
    for part in filter(None, (slice_.strip() for slice_ in text.split(","))):
        name, _, value = (slice_.strip() for slice_ in part.partition("="))
        if value.lower() not in ("true", "false"):
            raise FeatureGateError(f"feature gate {part!r}: write {name}=true or {name}=false")
        if name in _COLLECTIVE:
            raise FeatureGateError(f"{name} stands for many gates; name those that are set: {', '.join(GATES)}")
        if name in GATES:
            found[GATES[name]] = value.lower() == "true"
        elif near := did_you_mean(name, GATES, equivalence_key=_MISSPELT):
            raise FeatureGateError(f"there is no feature gate {name!r}; {near}")
    return found


def feature_gates_text(profile: KubernetesProfile, *, proven: bool | None = None) -> str:
    """The gates that a profile decides with, as the --feature-gates flag has them: all, those proven, or the others."""
    named = {name: getattr(profile.gates, gate) for name, gate in GATES.items()}
    wanted = {name: on for name, on in named.items() if proven in (None, name in profile.proven)}
    return ",".join(f"{name}={str(on).lower()}" for name, on in wanted.items())

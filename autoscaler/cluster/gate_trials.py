"""Feature gates found by trial: server-side dry runs that create an object with one gated field each.

An API server does not list its gates, but it drops the fields of a gate that is off before it stores an object
(k8s.io/kubernetes 1.36 pkg/registry/resource/*/strategy.go, dropDisabledFields). A dry run includes that step and
stores nothing. For its audit log and its roles it is still a create; so only commands do this, with the rights of their
user, and never the controller, which may not write anything in mode Observe.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Protocol

from autoscaler.cluster.api import ApiError, ForbiddenError, InvalidError, NotFoundError, Object
from autoscaler.cluster.resources import DEVICE_CLASSES, RESOURCE_CLAIMS, RESOURCE_SLICES, Resource
from instance_catalog.dataclass import dataclass, field, replace
from instance_catalog.diagnostic import Path, path_text
from instance_catalog.kubernetes.feature_gates import GATES
from instance_catalog.kubernetes.profile import KubernetesProfile

_NAMESPACE: Final = "default"
_PREFIX: Final = "foreslice-dry-run-"
_DRIVER: Final = "dry-run.foreslice.dev"


class DryRuns(Protocol):
    """A client that can create with a dry run."""

    def try_create(self, resource: Resource, manifest: Object) -> Object:
        """The object as it would have been created; nothing is. InvalidError, ForbiddenError, NotFoundError."""


@dataclass(frozen=True, slots=True)
class Trial:
    """An object whose field `path` is kept only if the gate is on.

    `refused`: without the field the object is not valid, so an error about this other field proves that the gate is
    off. `former`: the path of the field in a release that had another one, which no other release has.
    """

    gate: str
    resource: Resource
    spec: Object
    path: Path
    refused: Path = ()
    former: Path = ()


def _request(**fields: Any) -> Object:
    exactly = {"deviceClassName": _DRIVER, "allocationMode": "ExactCount", "count": 1, **fields}
    return {"devices": {"requests": [{"name": "r", "exactly": exactly}]}}


def _slice(**fields: Any) -> Object:
    return {
        "driver": _DRIVER,
        "pool": {"name": "dry-run", "generation": 1, "resourceSliceCount": 1},
        "allNodes": True,
        **fields,
    }


_ALTERNATIVE: Final = {"name": "a", "deviceClassName": _DRIVER, "allocationMode": "ExactCount", "count": 1}
_EXACTLY: Final = ("spec", "devices", "requests", 0, "exactly")

TRIALS: Final = (
    Trial("DRAAdminAccess", RESOURCE_CLAIMS, _request(adminAccess=False), (*_EXACTLY, "adminAccess")),
    Trial(
        "DRAPrioritizedList",
        RESOURCE_CLAIMS,
        {"devices": {"requests": [{"name": "r", "firstAvailable": [_ALTERNATIVE]}]}},
        ("spec", "devices", "requests", 0, "firstAvailable"),
        refused=("spec", "devices", "requests", 0),
    ),
    Trial(
        "DRADeviceTaints",
        RESOURCE_CLAIMS,
        _request(tolerations=[{"key": "x", "operator": "Exists", "effect": "NoSchedule"}]),
        (*_EXACTLY, "tolerations"),
    ),
    Trial(
        "DRAConsumableCapacity",
        RESOURCE_CLAIMS,
        _request(capacity={"requests": {"memory": "1Gi"}}),
        (*_EXACTLY, "capacity"),
    ),
    Trial(
        "DRAPartitionableDevices",
        RESOURCE_SLICES,
        _slice(sharedCounters=[{"name": "set", "counters": {"memory": {"value": "1Gi"}}}]),
        ("spec", "sharedCounters"),
    ),
    Trial(
        "DRADeviceBindingConditions",
        RESOURCE_SLICES,
        _slice(devices=[{"name": "d", "bindingConditions": ["ready"], "bindingFailureConditions": ["failed"]}]),
        ("spec", "devices", 0, "bindingConditions"),
    ),
    Trial(
        "DRAListTypeAttributes",
        RESOURCE_SLICES,
        _slice(devices=[{"name": "d", "attributes": {"list": {"strings": ["a"]}}}]),
        ("spec", "devices", 0, "attributes", "list", "strings"),
        refused=("spec", "devices", 0, "attributes"),
    ),
    Trial(
        "DRANodeAllocatableResources",
        RESOURCE_SLICES,
        _slice(
            devices=[
                {
                    "name": "d",
                    "nodeAllocatableResources": {"cpu": {"mapping": {"deviceMultiplier": "1"}}},
                    "nodeAllocatableResourceMappings": {"cpu": {"allocationMultiplier": "1"}},
                }
            ]
        ),
        ("spec", "devices", 0, "nodeAllocatableResources"),
        former=("spec", "devices", 0, "nodeAllocatableResourceMappings"),  # 1.36
    ),
    Trial(
        "DRAExtendedResource",
        DEVICE_CLASSES,
        {"extendedResourceName": "dry-run.foreslice.dev/device"},
        ("spec", "extendedResourceName"),
    ),
)


@dataclass(frozen=True, slots=True)
class Proof:
    """Gates that are known by trial, and those that stay assumed with the reason why."""

    gates: Mapping[str, bool] = field(default_factory=dict)
    unproven: Mapping[str, str] = field(default_factory=dict)

    def applied_to(self, profile: KubernetesProfile) -> KubernetesProfile:
        """The profile with proven gates in place of assumed ones."""
        known = {GATES[name]: on for name, on in self.gates.items()}
        return replace(profile.with_gates(**known), proven=tuple(self.gates))

    def contradicts(self, profile: KubernetesProfile) -> Mapping[str, bool]:
        """The gates that are otherwise than the profile assumes."""
        return {name: on for name, on in self.gates.items() if getattr(profile.gates, GATES[name]) != on}


def prove(api: DryRuns) -> Proof:
    """Tries every gate that can be tried. If that is not permitted, the gate stays assumed; nothing is raised."""
    gates: dict[str, bool] = {}
    unproven: dict[str, str] = {}
    for trial in TRIALS:
        try:
            gates[trial.gate] = _kept(api, trial)
        except ForbiddenError:
            unproven[trial.gate] = f"that takes the right to create {trial.resource}"
        except NotFoundError:
            unproven[trial.gate] = f"{trial.resource} are not served as {trial.resource.api_version}"
        except ApiError as error:
            unproven[trial.gate] = error.message
    return Proof(gates, unproven)


def _kept(api: DryRuns, trial: Trial) -> bool:
    """True if the field is still there. Raises ApiError if the trial has no result."""
    metadata = {"generateName": _PREFIX} | ({"namespace": _NAMESPACE} if trial.resource.namespaced else {})
    try:
        created = api.try_create(trial.resource, {"metadata": metadata, "spec": trial.spec})
    except InvalidError as error:
        if trial.refused and path_text(trial.refused) in error.message:
            return False
        raise
    paths = (trial.path, trial.former) if trial.former else (trial.path,)
    return any(_at(created, path) not in (None, [], {}) for path in paths)


def _at(value: Any, path: Path) -> Any:
    """The value at the path; None if there is none."""
    for part in path:
        if isinstance(part, int):
            value = value[part] if isinstance(value, list) and part < len(value) else None
        else:
            value = value.get(part) if isinstance(value, dict) else None
    return value

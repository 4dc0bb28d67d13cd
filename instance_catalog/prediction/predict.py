"""predict: the future ResourceSlices of a node's drivers, of the same type as a cluster's slices.

The only entry point of this package. Every driver has one pool per node, named like the node; names and numbering of
slices follow the publishing library (k8s.io/dynamic-resource-allocation resourceslice controller) that the release
vendors.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from instance_catalog.drivers.facts import driver_facts
from instance_catalog.drivers.profile import DriverProfile, DriverSet
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.profile import KubernetesProfile
from instance_catalog.kubernetes.resource_slice import Device, NodeReach, Pool, ResourceSlice
from instance_catalog.prediction.concrete import under_name
from instance_catalog.prediction.driver import Prediction, SliceContents
from instance_catalog.prediction.drivers import (
    amd_gpu,
    aws_net,
    aws_neuron,
    custom,
    dra_cpu,
    dranet,
    example_gpu,
    google_tpu,
    intel_gaudi,
    intel_gpu,
    nvidia_compute_domain,
    nvidia_gpu,
)
from instance_catalog.types.instance_type import InstanceType

PLACEHOLDER_NODE: Final = "future-node"
_SUFFIX_LETTERS: Final = "bcdfghjklmnpqrstvwxz2456789"  # k8s.io/apimachinery util/rand


class UnpredictableError(ValueError):
    """Raised for slices that cannot be predicted; the message has the reason. `unpredictable` returns it in advance."""


def predict(
    instance_type: InstanceType,
    driver_set: DriverSet,
    *,
    kubernetes: KubernetesProfile,
    node_name: str = PLACEHOLDER_NODE,
) -> tuple[ResourceSlice, ...]:
    """The slices that a node of this type will publish, driver by driver, each driver's in the order of their names.

    Values that exist only at run time are tokens of `node_name`. A driver without devices on the type publishes
    nothing. Raises UnpredictableError.
    """
    return under_name(_predicted(instance_type, driver_set, kubernetes), node_name)


def unpredictable(instance_type: InstanceType, driver_set: DriverSet) -> str | None:
    """The reason why the slices of this combination cannot be predicted, or None if they can."""
    shipped = (p for p in driver_set.profiles if p.custom is None)
    reasons = (_prediction(p).why_unpredictable(instance_type, p) for p in shipped)
    return next((reason for reason in reasons if reason), None)


def node_labels(instance_type: InstanceType, driver_set: DriverSet, *, unit: str = "") -> FrozenMap[str, str]:
    """The labels a node carries because of its devices and drivers, beyond those of every node.

    `unit` names the capacity unit (a capacity block) that the node is launched in: one NVLink domain, if there is one.
    """
    found: dict[str, str] = {}
    for profile in driver_set.profiles:
        if runs_on(instance_type, profile):
            found.update(profile.facts.node_labels)
            if profile.custom is None:
                found.update(_prediction(profile).node_labels(instance_type, profile, unit))
    return FrozenMap(found)


@lru_cache(maxsize=4096)
def hosts(instance_type: InstanceType, driver_set: DriverSet) -> int:
    """The number of such nodes that exist only together: the hosts of a TPU slice, which is bought as a whole; else
    1."""
    return max(
        (
            _prediction(profile).hosts(instance_type, profile)
            for profile in driver_set.profiles
            if profile.custom is None and runs_on(instance_type, profile)
        ),
        default=1,
    )


def runs_on(instance_type: InstanceType, profile: DriverProfile) -> bool:
    if profile.custom is not None:
        return custom.runs_on(instance_type, profile.custom)
    return _prediction(profile).runs_on(instance_type)


def expected_unasked(instance_type: InstanceType, profile: DriverProfile) -> bool:
    """True if the driver has devices on the type, and they were measured, so that no pool has to name it."""
    if profile.custom is not None:
        return runs_on(instance_type, profile)
    found = _prediction(profile)
    return found.runs_on(instance_type) and found.in_auto_pools(instance_type)


def at_most(instance_type: InstanceType) -> tuple[tuple[str, Device], ...]:
    """The most that devices on the type have in implicit pools, with the driver's name; see Prediction.most.

    It needs no prediction. Drivers without this function are left out.
    """
    return tuple(
        (driver_facts()[name].driver, found.most(instance_type))
        for name, found in PREDICTIONS.items()
        if found.most is not None and found.runs_on(instance_type)
    )


@lru_cache(maxsize=4096)
def _predicted(
    instance_type: InstanceType, driver_set: DriverSet, kubernetes: KubernetesProfile
) -> tuple[ResourceSlice, ...]:
    """Pure and asked for again by every plan, hence remembered."""
    reason = unpredictable(instance_type, driver_set)
    if reason:
        raise UnpredictableError(f"{instance_type.name} with {driver_set.label}: {reason}")
    return tuple(
        slice_
        for profile in driver_set.profiles
        if runs_on(instance_type, profile)
        for slice_ in _numbered(_contents(instance_type, profile, kubernetes), profile)
    )


def _contents(
    instance_type: InstanceType, profile: DriverProfile, kubernetes: KubernetesProfile
) -> tuple[SliceContents, ...]:
    if profile.custom is not None:
        return custom.contents(instance_type, profile.custom, kubernetes)
    return _prediction(profile).contents(instance_type, profile, kubernetes)


# In the order in which implicit pools name the drivers of a node.
PREDICTIONS: Final[Mapping[str, Prediction]] = {
    "nvidia": nvidia_gpu.PREDICTION,
    "compute-domain": nvidia_compute_domain.PREDICTION,
    "tpu": google_tpu.PREDICTION,
    "neuron": aws_neuron.PREDICTION,
    "amd": amd_gpu.PREDICTION,
    "intel-gpu": intel_gpu.PREDICTION,
    "gaudi": intel_gaudi.PREDICTION,
    "dranet": dranet.PREDICTION,
    "aws-net": aws_net.PREDICTION,
    "dra-cpu": dra_cpu.PREDICTION,
    "example": example_gpu.PREDICTION,
}


def _prediction(profile: DriverProfile) -> Prediction:
    found = PREDICTIONS.get(profile.name)
    if found is None:
        raise UnpredictableError(f"driver profile {profile.name!r} has no prediction")
    return found


def _numbered(contents: tuple[SliceContents, ...], profile: DriverProfile) -> tuple[ResourceSlice, ...]:
    """One pool: names, numbering, reach. Publishing starts with generation 1."""
    return tuple(
        ResourceSlice(
            name=_slice_name(profile, index),
            driver=profile.driver,
            pool=Pool(PLACEHOLDER_NODE, generation=1, slice_count=len(contents)),
            devices=slice_.devices,
            reach=NodeReach(node_name=PLACEHOLDER_NODE),
            shared_counters=slice_.shared_counters,
        )
        for index, slice_ in enumerate(contents)
    )


def _slice_name(profile: DriverProfile, index: int) -> str:
    """The name that the API server makes of generateName, with a suffix from a hash instead of a random one.

    Library ≥ 0.36: <index, five hex digits>-<driver>-<node>-. Before that <node>-<driver>-, so that names do not show
    the order of the slices: it is random, and here the index is first in the suffix.
    """
    if "index-first-slice-names" in profile.features:
        return f"{index:05x}-{profile.driver}-{PLACEHOLDER_NODE}-{_suffix(profile.driver, index)}"
    return f"{PLACEHOLDER_NODE}-{profile.driver}-{_SUFFIX_LETTERS[index]}{_suffix(profile.driver, index)[1:]}"


def _suffix(driver: str, index: int) -> str:
    digest = hashlib.sha256(f"{driver}/{index}".encode()).digest()
    return "".join(_SUFFIX_LETTERS[byte % len(_SUFFIX_LETTERS)] for byte in digest[:5])

"""The drivers that a node may run if no CapacityPool lists them: the variants that implicit pools offer.

Devices are published differently with and without MIG, and the node's image decides which. So each type is offered in
every predictable way, and the plan names the driver profile that a real pool must then have.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import lru_cache
from itertools import product

from instance_catalog.drivers.facts import driver_facts
from instance_catalog.drivers.profile import DriverProfileError, DriverSet, assumed_profile, parse_driver_set
from instance_catalog.kubernetes.profile import KubernetesProfile
from instance_catalog.prediction.predict import PREDICTIONS, hosts, unpredictable
from instance_catalog.types.instance_type import InstanceType


@lru_cache(maxsize=4096)
def implicit_driver_sets(instance_type: InstanceType, kubernetes: KubernetesProfile) -> tuple[DriverSet, ...]:
    """The driver sets to try for a type, plainest first; empty if no known driver has devices on it.

    NVIDIA types have the plain set, one with every predictable static MIG layout and, if Kubernetes has partitionable
    devices, one with dynamic MIG; always with compute-domain. Other drivers are added where they have devices, except
    for drivers that run on any machine, which are an operator's choice.
    """
    return tuple(s for s in _all_driver_sets(instance_type, kubernetes) if unpredictable(instance_type, s) is None)


@lru_cache(maxsize=4096)
def with_drivers(
    instance_type: InstanceType, kubernetes: KubernetesProfile, drivers: frozenset[str]
) -> tuple[DriverSet, ...]:
    """The plainest driver set of a type together with drivers that are an operator's choice, by driver name; empty
    where none of them runs on the type."""
    chosen = tuple(
        assumed_profile(name)
        for name, driver in PREDICTIONS.items()
        if not driver.in_implicit_pools and driver_facts()[name].driver in drivers and driver.runs_on(instance_type)
    )
    plainest = implicit_driver_sets(instance_type, kubernetes)[:1] or (DriverSet(()),)
    found = (DriverSet((*driver_set.profiles, *chosen)) for driver_set in plainest if chosen)
    return tuple(s for s in found if unpredictable(instance_type, s) is None)


def slice_variants(
    instance_type: InstanceType, assumed: Iterable[DriverSet], topologies: Iterable[str]
) -> tuple[DriverSet, ...]:
    """The same driver sets on machines that form TPU slices of these topologies, if the type has such slices."""
    found: list[DriverSet] = []
    alone = DriverSet((assumed_profile("tpu"),))  # of types that exist in slices only
    for drivers in tuple(assumed) or (alone,):
        profile = drivers.profile("tpu")
        for topology in sorted(topologies) if profile else ():
            with suppress(DriverProfileError):
                (sliced,) = parse_driver_set(f"tpu:topology={topology}").profiles
                found.append(drivers.with_profile(sliced))
    return tuple(s for s in found if unpredictable(instance_type, s) is None and hosts(instance_type, s) > 1)


def chosen_profiles(drivers: Iterable[str]) -> tuple[DriverSet, ...]:
    """Each of the drivers that is an operator's choice, as a set of its own; `drivers` are driver names."""
    wanted = frozenset(drivers)
    return tuple(
        DriverSet((assumed_profile(name),))
        for name, driver in PREDICTIONS.items()
        if not driver.in_implicit_pools and driver_facts()[name].driver in wanted
    )


def left_out(instance_type: InstanceType, kubernetes: KubernetesProfile) -> tuple[tuple[DriverSet, str], ...]:
    """The variants that `implicit_driver_sets` does not offer, each with the reason."""
    found = ((s, unpredictable(instance_type, s)) for s in _all_driver_sets(instance_type, kubernetes))
    return tuple((driver_set, reason) for driver_set, reason in found if reason)


def _all_driver_sets(instance_type: InstanceType, kubernetes: KubernetesProfile) -> Iterator[DriverSet]:
    variants = [
        (assumed_profile(name),) if driver.variants is None else driver.variants(instance_type, kubernetes)
        for name, driver in PREDICTIONS.items()
        if driver.in_implicit_pools and driver.runs_on(instance_type)
    ]
    return map(DriverSet, product(*variants)) if variants else iter(())

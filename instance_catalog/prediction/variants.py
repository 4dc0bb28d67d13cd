"""Which drivers a node may run when no CapacityPool says so: the variants that implicit pools offer.

Devices are published differently with and without MIG, and which of it a node does is its image's choice. So each type
is offered in every way that can be predicted, and the plan names the driver profile that a real pool must then have.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Final

from instance_catalog.drivers.profile import (
    DriverSet,
    DynamicMig,
    MigMode,
    NoMig,
    StaticMig,
    assumed_profile,
)
from instance_catalog.kubernetes.profile import KubernetesProfile
from instance_catalog.prediction.drivers import nvidia_gpu, nvidia_mig
from instance_catalog.prediction.predict import runs_on, unpredictable
from instance_catalog.types.instance_type import InstanceType

_WITH_OWN_HARDWARE: Final = ("compute-domain", "tpu", "neuron", "amd", "intel-gpu", "gaudi", "dranet")


@lru_cache(maxsize=4096)
def implicit_driver_sets(instance_type: InstanceType, kubernetes: KubernetesProfile) -> tuple[DriverSet, ...]:
    """The driver sets to try for a type, plainest first; empty if no known driver has devices on it.

    NVIDIA types come plain, with every predictable static MIG layout and, where Kubernetes has partitionable devices,
    with dynamic MIG; always with compute-domain. The others join where they have devices, but not drivers that run on
    any machine, which are an operator's choice.
    """
    return tuple(s for s in _all_driver_sets(instance_type, kubernetes) if unpredictable(instance_type, s) is None)


def left_out(instance_type: InstanceType, kubernetes: KubernetesProfile) -> tuple[tuple[DriverSet, str], ...]:
    """The variants that `implicit_driver_sets` does not offer, each with the reason."""
    found = ((s, unpredictable(instance_type, s)) for s in _all_driver_sets(instance_type, kubernetes))
    return tuple((driver_set, reason) for driver_set, reason in found if reason)


def _all_driver_sets(instance_type: InstanceType, kubernetes: KubernetesProfile) -> Iterator[DriverSet]:
    common = tuple(p for p in map(assumed_profile, _WITH_OWN_HARDWARE) if runs_on(instance_type, p))
    if not nvidia_gpu.runs_on(instance_type):
        if common:
            yield DriverSet(common)
        return
    for mig in _mig_modes(instance_type, kubernetes):
        yield DriverSet((assumed_profile("nvidia", mig=mig), *common))


def _mig_modes(instance_type: InstanceType, kubernetes: KubernetesProfile) -> Iterator[MigMode]:
    yield NoMig()
    accelerator, table = instance_type.accelerator, nvidia_gpu.mig_table(instance_type)
    if accelerator is None or not accelerator.mig or accelerator.virtual:
        return
    for layout in nvidia_mig.layouts(table) if table else ():
        yield StaticMig(layout)
    if kubernetes.gates.partitionable_devices:
        # Ampere with MIG mode off would publish what it publishes without dynamic MIG.
        yield DynamicMig(mode_enabled=accelerator.architecture == nvidia_gpu.AMPERE)

"""The interface of a driver's module in prediction/drivers; predict.py registers one Prediction per driver."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from instance_catalog.dataclass import dataclass
from instance_catalog.drivers.profile import DriverProfile
from instance_catalog.frozen_map import EMPTY
from instance_catalog.kubernetes.profile import KubernetesProfile
from instance_catalog.kubernetes.resource_slice import CounterSet, Device
from instance_catalog.types.instance_type import InstanceType

# Limits of one slice (k8s.io/api resource/v1 0.36): the lower one where a device has counters, taints or lists.
MOST_DEVICES: Final = 128
MOST_ADVANCED_DEVICES: Final = 64
MOST_COUNTER_SETS: Final = 8


@dataclass(frozen=True, slots=True)
class SliceContents:
    """Devices in the order in which the driver lists them, and the counter sets declared beside them."""

    devices: tuple[Device, ...] = ()
    shared_counters: tuple[CounterSet, ...] = ()


def devices_in_chunks(devices: Sequence[Device], most: int) -> tuple[SliceContents, ...]:
    return tuple(SliceContents(tuple(devices[i : i + most])) for i in range(0, len(devices), most))


def counters_in_chunks(sets: Sequence[CounterSet]) -> tuple[SliceContents, ...]:
    """Slices with as many counter sets as one may have."""
    most = MOST_COUNTER_SETS
    return tuple(SliceContents((), tuple(sets[i : i + most])) for i in range(0, len(sets), most))


@dataclass(frozen=True, slots=True)
class Prediction:
    """The functions of one driver. Each depends on its arguments alone.

    runs_on            true if the type has devices for the driver
    contents           the driver's slices, in order
    why_unpredictable  the reason why the slices cannot be predicted; None if they can
    node_labels        the labels of a node beyond those in the driver's YAML; the last argument names the capacity
                       unit (a capacity block) that the node is launched in, "" without one
    variants           the profiles that implicit pools try for a type, plainest first; None: the assumed one alone
    hosts              the number of machines that are bought together with the node (a TPU slice of several hosts)
    in_implicit_pools  true if implicit pools run the driver where it has devices; False: an operator's choice
    in_auto_pools      true if pools with the drivers of the cluster expect it on the type. False if its published
                       devices were never measured: a node is waited for until its drivers have published
    most               a device with texts and capacities that follow from the type alone, as implicit pools run the
                       driver: every device that publishes the attribute has this text, and none has more of the
                       capacity. None if no such values are known
    """

    runs_on: Callable[[InstanceType], bool]
    contents: Callable[[InstanceType, DriverProfile, KubernetesProfile], tuple[SliceContents, ...]]
    why_unpredictable: Callable[[InstanceType, DriverProfile], str | None] = lambda _type, _profile: None
    node_labels: Callable[[InstanceType, DriverProfile, str], Mapping[str, str]] = lambda _type, _profile, _unit: EMPTY
    variants: Callable[[InstanceType, KubernetesProfile], Iterable[DriverProfile]] | None = None
    hosts: Callable[[InstanceType, DriverProfile], int] = lambda _type, _profile: 1
    in_implicit_pools: bool = True
    in_auto_pools: Callable[[InstanceType], bool] = lambda _type: True
    most: Callable[[InstanceType], Device] | None = None

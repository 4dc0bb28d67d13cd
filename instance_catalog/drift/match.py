"""Finds the drivers that published a node's slices, among those of its type: the nearest prediction wins. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from instance_catalog.drift.compare import Aspect, Unified, unify
from instance_catalog.drivers.profile import DriverSet
from instance_catalog.kubernetes.profile import KubernetesProfile
from instance_catalog.kubernetes.resource_slice import ResourceSlice
from instance_catalog.prediction.predict import predict
from instance_catalog.prediction.variants import implicit_driver_sets
from instance_catalog.types.instance_type import InstanceType


def nearest(
    machine: InstanceType,
    published: Sequence[ResourceSlice],
    kubernetes: KubernetesProfile,
    sets: Iterable[DriverSet] = (),
) -> tuple[DriverSet, Unified]:
    """The driver set, of `sets` (none: of those the type may run), whose prediction differs least, and how it differs.

    Raises SeveralNodesError.
    """
    candidates = tuple(sets) or _likely_sets(machine, published, kubernetes)
    tried = [(one, unify(predict(machine, one, kubernetes=kubernetes), published)) for one in candidates]
    return min(tried, key=lambda item: _distance(item[1]))


def _distance(unified: Unified) -> tuple[int, int]:
    """Devices that only one side has weigh more than any number of attributes."""
    whole = sum(d.aspect in (Aspect.DEVICE, Aspect.DRIVER) and not d.field for d in unified.differences)
    return whole, len(unified.differences)


def _likely_sets(
    machine: InstanceType, published: Sequence[ResourceSlice], kubernetes: KubernetesProfile
) -> tuple[DriverSet, ...]:
    """The implicit driver sets, as far as their drivers publish; versions of the image are the node's own."""
    running = {slice_.driver for slice_ in published}
    found = {
        DriverSet(tuple(p.without_image() for p in driver_set.profiles if p.driver in running)): None
        for driver_set in implicit_driver_sets(machine, kubernetes)
    }
    return tuple(found) or (DriverSet(()),)

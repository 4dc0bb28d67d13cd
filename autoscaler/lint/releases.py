"""Names that drivers published in other releases: a selector on one of them was right once."""

from __future__ import annotations

from collections.abc import Mapping

from autoscaler.cel.interpreter.device import split_name
from instance_catalog.drivers.facts import driver_facts
from instance_catalog.drivers.profile import DriverSet, parse_driver_set
from instance_catalog.kubernetes.profile import KubernetesProfile
from instance_catalog.kubernetes.resource_slice import ResourceSlice
from instance_catalog.prediction.predict import predict, runs_on, unpredictable
from instance_catalog.types.catalog import Catalog


def names_of_releases(catalog: Catalog, profile: KubernetesProfile) -> Mapping[str, str]:
    """ "domain/identifier" of attributes and capacities to the latest release that publishes it: "nvidia@v0.4.1".

    One instance type represents all: what a release publishes differs little from type to type.
    """
    found: dict[str, str] = {}
    for name, facts in driver_facts().items():
        for release in facts.releases:
            text = f"{name}@{release.name}"
            for slice_ in _sample(catalog, parse_driver_set(text), profile):
                for device in slice_.devices:
                    names = (*device.attributes, *device.capacity)
                    found.update(("/".join(split_name(one, slice_.driver)), text) for one in names)
    return found


def _sample(catalog: Catalog, driver_set: DriverSet, profile: KubernetesProfile) -> tuple[ResourceSlice, ...]:
    for instance_type in catalog:
        if runs_on(instance_type, driver_set.profiles[0]) and unpredictable(instance_type, driver_set) is None:
            return predict(instance_type, driver_set, kubernetes=profile)
    return ()

"""Parses the text of options such as --drivers; errors name the allowed values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from autoscaler.catalog_refresh.shipped_cache import shipped_catalog
from autoscaler.clock import SystemClock
from autoscaler.errors import BadInputError
from instance_catalog.drivers.custom import CustomDriver
from instance_catalog.drivers.profile import DriverProfileError, DriverSet, parse_driver_set
from instance_catalog.kubernetes.profile import KubernetesProfile, UnknownVersionError, profile_for
from instance_catalog.prediction.predict import unpredictable
from instance_catalog.prediction.variants import implicit_driver_sets
from instance_catalog.types.catalog import Catalog, UnknownInstanceTypeError
from instance_catalog.types.instance_type import InstanceType

if TYPE_CHECKING:
    from instance_catalog.files.layers import Corrections


def chosen_catalog(directories: Sequence[Path], corrections: Sequence[Corrections] = ()) -> Catalog:
    """The shipped catalog with the directories over it. Raises BadInputError."""
    if directories or corrections:
        return _read_catalog(directories, corrections)
    return shipped_catalog(lambda: _read_catalog((), ()))


def _read_catalog(directories: Sequence[Path], corrections: Sequence[Corrections]) -> Catalog:
    # Here, because most commands find the catalog in the cache, and what checks files takes a tenth of a second.
    from instance_catalog.files.findings import CatalogError
    from instance_catalog.files.loader import load_catalog

    try:
        return load_catalog(extra_dirs=directories, corrections=corrections, now=SystemClock().now())
    except CatalogError as error:
        step = "correct the entries; `foreslice catalog validate` checks files"
        raise BadInputError(str(error), next_step=step) from error


def chosen_type(name: str, catalog: Catalog) -> InstanceType:
    """The instance type of that name. Raises BadInputError."""
    try:
        return catalog.get(name)
    except UnknownInstanceTypeError as error:
        raise BadInputError(str(error)) from error


def chosen_kubernetes(version: str) -> KubernetesProfile:
    """The profile of a version such as 1.36. Raises BadInputError."""
    try:
        return profile_for(version)
    except UnknownVersionError as error:
        raise BadInputError(str(error), next_step="give --kubernetes-version like 1.36 or v1.36.3") from error


def parsed_drivers(text: str, custom: Mapping[str, CustomDriver]) -> DriverSet:
    """The driver set that --drivers names; `custom` are those of the catalog. Raises BadInputError."""
    try:
        return parse_driver_set(text, custom=custom)
    except DriverProfileError as error:
        raise BadInputError(f"--drivers {text}: {error}") from error


def chosen_drivers(machine: InstanceType, text: str | None, kubernetes: KubernetesProfile) -> DriverSet:
    """The requested driver set, else the plainest of the implicit sets. Raises BadInputError."""
    implicit = implicit_driver_sets(machine, kubernetes)
    if text is None:
        return implicit[0] if implicit else DriverSet(())
    driver_set = parsed_drivers(text, machine.custom_drivers)
    reason = unpredictable(machine, driver_set)
    if reason:
        known = "\n  ".join(s.text for s in implicit)
        raise BadInputError(
            f"the slices of {machine.name} with {driver_set.label} cannot be predicted: {reason}",
            next_step=f"choose one of:\n  {known}",
        )
    return driver_set

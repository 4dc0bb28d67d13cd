"""DeviceClasses that manifests name and no release which is predicted installs."""

from __future__ import annotations

from functools import cache

from instance_catalog.frozen_map import FrozenMap
from instance_catalog.package_data import contents


@cache
def class_hints() -> FrozenMap[str, str]:
    """The next steps for DeviceClasses that manifests use and no chart of a predicted driver installs."""
    return FrozenMap({row["name"]: row["step"] for row in contents("drivers")["other_classes"]["hints"]})


def ended_classes() -> frozenset[str]:
    """Those of them that no driver installs any more."""
    return frozenset(row["name"] for row in contents("drivers")["other_classes"]["hints"] if row.get("ended"))

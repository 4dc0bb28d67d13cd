"""Resources of pods that nothing on offer has."""

from __future__ import annotations

from collections.abc import Set

from autoscaler.model.pod import Pod
from autoscaler.planning.demand.scope import requested_resources
from instance_catalog.drivers.device_plugins import retired, shared_gpu_resources
from instance_catalog.prediction.device_plugins import is_plugin_resource
from instance_catalog.types.catalog import Catalog


def unserved_resources(pod: Pod, given: Set[str], catalog: Catalog) -> list[str]:
    """Resources of devices that the pod requests and that are not `given`, no instance type has, and no known device
    plugin or sharing system hands out."""
    asked = [name for name in dict.fromkeys(requested_resources(pod)) if "/" in name and name not in given]
    unknown = [name for name in asked if not (is_plugin_resource(name) or retired(name))]
    had = {name for one in catalog for name in (*one.allocatable, *one.extended_resources)} if unknown else set()
    return [name for name in unknown if name not in had and name not in shared_gpu_resources()]

"""DaemonSets: the pods that they add to every node they match."""

from __future__ import annotations

from collections.abc import Mapping

from autoscaler.kube.fields import Fields
from autoscaler.kube.pod import NO_PRIORITIES
from autoscaler.kube.priority import PriorityClass
from autoscaler.kube.problem import Problems
from autoscaler.kube.workloads.controllers import opened
from autoscaler.kube.workloads.stamping import stamp
from autoscaler.model.origin import CLUSTER, Origin
from autoscaler.model.snapshot import NO_DRIVERS, DaemonSet
from instance_catalog.dataclass import replace
from instance_catalog.drivers.daemonsets import profiles_from_daemonsets
from instance_catalog.drivers.device_plugins import device_plugins


def parse_daemon_set(
    raw: object,
    problems: Problems | None = None,
    *,
    origin: Origin = CLUSTER,
    priorities: Mapping[str, PriorityClass] = NO_PRIORITIES,
) -> DaemonSet:
    """A DaemonSet as its pod template; `image` is that of the first container, which identifies drivers."""
    fields, workload = opened(raw, problems, origin, priorities)
    spec = fields.child("spec")
    spec.ignore("selector", "updateStrategy", "minReadySeconds", "revisionHistoryLimit", "templateGeneration")
    metadata = workload.metadata
    template = spec.child("template")
    images = [entry.text("image") for entry in Fields(template.raw("spec")).children("containers")]
    (pod,) = stamp(template, replace(workload, kind="DaemonSet"), [metadata.name]).pods
    spec.unread()
    fields.unread()
    return DaemonSet(
        metadata.namespace,
        metadata.name,
        pod,
        images[0] if images else "",
        origin,
        drivers=NO_DRIVERS if fields.problems.errors or not isinstance(raw, dict) else profiles_from_daemonsets([raw]),
        device_plugin=next((driver for image in images if (driver := _plugin(image))), ""),
    )


def _plugin(image: str) -> str:
    """The driver whose devices the image serves as a device plugin; "" for any other image."""
    repository = image.partition("@")[0]
    if ":" in repository.rpartition("/")[2]:
        repository = repository.rpartition(":")[0]
    for plugin in device_plugins():
        if any(f"/{repository}".endswith(f"/{end}") for end in plugin.images):
            return plugin.driver
    return ""

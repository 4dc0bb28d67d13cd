"""DaemonSets: what they add to every node they match."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from autoscaler.kube.fields import Fields
from autoscaler.kube.pod import NO_PRIORITIES
from autoscaler.kube.priority import PriorityClass
from autoscaler.kube.problem import Problems
from autoscaler.kube.stamping import stamp
from autoscaler.kube.workload import opened
from autoscaler.model.origin import CLUSTER, Origin
from autoscaler.model.snapshot import DaemonSet


def parse_daemon_set(
    raw: object,
    problems: Problems | None = None,
    *,
    origin: Origin = CLUSTER,
    priorities: Mapping[str, PriorityClass] = NO_PRIORITIES,
) -> DaemonSet:
    """A DaemonSet as its pod template; `image` is that of the first container, by which drivers are recognised."""
    fields, workload = opened(raw, problems, origin, priorities)
    spec = fields.child("spec")
    spec.ignore("selector", "updateStrategy", "minReadySeconds", "revisionHistoryLimit", "templateGeneration")
    metadata = workload.metadata
    template = spec.child("template")
    images = [entry.text("image") for entry in Fields(template.raw("spec")).children("containers")]
    (pod,) = stamp(template, replace(workload, kind="DaemonSet"), [metadata.name]).pods
    spec.unread()
    fields.unread()
    return DaemonSet(metadata.namespace, metadata.name, pod, images[0] if images else "", origin)

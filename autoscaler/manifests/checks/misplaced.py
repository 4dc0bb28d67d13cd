"""Annotations and labels that ask a system for devices, on a workload itself: its pods have those of its template."""

from __future__ import annotations

from typing import Final

from autoscaler.kube.fields import Fields
from autoscaler.kube.metadata import header
from autoscaler.kube.problem import Problems
from autoscaler.manifests.checks.planned import Planned
from autoscaler.manifests.document import Document
from autoscaler.model.pod import Pod
from autoscaler.planning.demand.handed_out import asking_annotation, asking_label, handed_out
from autoscaler.planning.demand.scope import asks_for_no_device
from instance_catalog.diagnostic import all_of

# Kubernetes' own controllers copy nothing of a workload's metadata to its pods; those of other projects may.
_GROUPS: Final = ("apps", "batch")


def check_misplaced(document: Document, planned: Planned, problems: Problems) -> None:
    """Warn of such a request if the object's pods ask for no device in any other way."""
    version, kind = header(document.value)
    pods = planned.get((document.file, document.line), ())
    if version.partition("/")[0] not in _GROUPS or not pods or not all(map(_asks_for_nothing, pods)):
        return
    metadata = Fields(document.value).child("metadata")
    annotations, labels = metadata.text_map("annotations"), metadata.text_map("labels")
    for field, found in (
        ("annotations", [key for key in annotations if asking_annotation(key)]),
        ("labels", [key for key in labels if asking_label(key)]),
    ):
        if found:
            them, ask, name = ("them", "ask", "their names") if found[1:] else ("it", "asks", "its name")
            problems.warn(
                ("metadata", field, found[0]),
                f"{all_of(found)} {ask} for a device by {name}, and the {kind}'s pods do not have {them}: they get "
                f"{field} from the pod template alone, so they ask for no device",
                f"move {them} to metadata.{field} of the pod template for the system that reads {them}; for nodes of a "
                "plan, request whole devices in a container, such as nvidia.com/gpu",
            )


def _asks_for_nothing(pod: Pod) -> bool:
    return asks_for_no_device(pod) and not handed_out(pod)

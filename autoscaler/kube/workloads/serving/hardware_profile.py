"""HardwareProfile of OpenShift AI and Open Data Hub, which an annotation names: a webhook of their operator adds to the
object what the profile says.

opendatahub-io/opendatahub-operator, main 2026-11: of Notebook, InferenceService and LLMInferenceService (workloadGVKs);
the profile's resources where they lack them, and its node selector and tolerations, which replace theirs
(internal/webhook/hardwareprofile/mutating.go, applyNodeSchedulingConfiguration, 0beb7e7), or its queue of Kueue.
"""

from __future__ import annotations

from typing import Final

from autoscaler.kube.fields import Fields
from autoscaler.kube.metadata import header
from autoscaler.kube.problem import Problems, in_shell
from autoscaler.model.pod import Pod
from instance_catalog.kubernetes.labels import HARDWARE_PROFILE, HARDWARE_PROFILE_NAMESPACE

_KINDS: Final = ("InferenceService", "LLMInferenceService", "Notebook")
_ADDING: Final = "without the node labels, tolerations, queue and default resources that its pods then have"
_REPLACING: Final = "with the nodeSelector and tolerations of the file, which those of the profile, if any, replace"
_IN_PROFILE: Final = "; to change its nodeSelector, change the profile, or name another one"


def tell_of_profile(raw: object, pods: tuple[Pod, ...], problems: Problems) -> None:
    """Warns of a profile: nothing of it is read. Pods of a cluster that select nodes have its node selector already."""
    metadata = Fields(raw).child("metadata")
    named = metadata.text_map("annotations")
    profile = named.get(HARDWARE_PROFILE, "")
    selecting = any(pod.node_selector or pod.affinity for pod in pods)
    added = selecting and metadata.text("uid")
    if not profile or not pods or added or header(raw)[1] not in _KINDS:
        return
    namespace = named.get(HARDWARE_PROFILE_NAMESPACE) or metadata.text("namespace")
    where = f" -n {in_shell(namespace)}" if namespace else ""
    get = f"`kubectl get hardwareprofiles.infrastructure.opendatahub.io {in_shell(profile)}{where} -o yaml`"
    problems.warn(
        ("metadata", "annotations", HARDWARE_PROFILE),
        f"OpenShift AI adds to it what HardwareProfile {profile} says, and nothing of that is read: the plan is "
        f"{_REPLACING if selecting else _ADDING}",
        f"write the profile's nodeSelector, tolerations and resources into it ({get}), or give the pods as they are in "
        f"the cluster (kubectl get pods -o yaml){_IN_PROFILE if selecting else ''}",
    )

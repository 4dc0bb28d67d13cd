"""HardwareProfile of OpenShift AI and Open Data Hub, which an annotation names: a webhook of their operator adds to the
object what the profile says.

opendatahub-io/opendatahub-operator, main 2026-11: of Notebook, InferenceService and LLMInferenceService (workloadGVKs);
where they lack it, the profile's resources, and its node selector and tolerations or its queue of Kueue.
"""

from __future__ import annotations

from typing import Final

from autoscaler.kube.fields import Fields
from autoscaler.kube.metadata import header
from autoscaler.kube.problem import Problems, in_shell
from autoscaler.model.pod import Pod
from instance_catalog.kubernetes.labels import HARDWARE_PROFILE, HARDWARE_PROFILE_NAMESPACE

_KINDS: Final = ("InferenceService", "LLMInferenceService", "Notebook")


def tell_of_profile(raw: object, pods: tuple[Pod, ...], problems: Problems) -> None:
    """Warns of a profile whose node selector the pods do not have yet: nothing of it is read."""
    metadata = Fields(raw).child("metadata")
    named = metadata.text_map("annotations")
    profile = named.get(HARDWARE_PROFILE, "")
    selecting = any(pod.node_selector or pod.affinity for pod in pods)
    if not profile or not pods or selecting or header(raw)[1] not in _KINDS:
        return
    namespace = named.get(HARDWARE_PROFILE_NAMESPACE) or metadata.text("namespace")
    where = f" -n {in_shell(namespace)}" if namespace else ""
    get = f"`kubectl get hardwareprofiles.infrastructure.opendatahub.io {in_shell(profile)}{where} -o yaml`"
    problems.warn(
        ("metadata", "annotations", HARDWARE_PROFILE),
        f"OpenShift AI adds to it what HardwareProfile {profile} says, and nothing of that is read: the plan is "
        "without the node labels, tolerations, queue and default resources that its pods then have",
        f"write the profile's nodeSelector, tolerations and resources into it ({get}), or give the pods as they are in "
        "the cluster (kubectl get pods -o yaml)",
    )
